"""The chip beside the context: whose word it is, and one click to another."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QSizePolicy, QToolButton, QWidget
from typing_extensions import override

from engine.words import tr
from gui.kit.icons import icon
from gui.sizing.first_contexts import Offer, offers, origin

if TYPE_CHECKING:
    from gui.kit.theme import Theme
    from gui.sizing.view_model import SizingViewModel, State

_ICON = 12
_BARE = 26
"""Width with the arrow alone."""
_GAP = 6
"""Between word and arrow."""


class ContextChip(QToolButton):
    """Says that nobody chose the context yet, and opens the ones worth choosing."""

    typing_wanted = Signal()

    def __init__(self, model: SizingViewModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._state: State | None = None
        self._is_bare = True
        self._bare = _BARE
        self.setObjectName("context chip")
        self.setProperty("role", "chip")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setStyleSheet("QToolButton { padding: 0 3px; }")
        self.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        # The list says what is in force when it opens, not what was when the plan changed.
        self.clicked.connect(self._on_clicked)

    def show_state(self, state: State) -> None:
        """Say whose word the context of ``state`` is."""
        self._state = state
        self.setEnabled(state.model is not None)
        self._show()

    def set_bare(self, *, bare: bool) -> None:
        """Let the arrow stand alone, or beside the word."""
        if bare != self._is_bare:
            self._is_bare = bare
            self._show()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        size = theme.grown(_ICON)
        self._bare = theme.grown(_BARE)
        self.setIconSize(QSize(size, size))
        self.setIcon(icon("chevron-down", theme.color("text.secondary"), size))

    @property
    def word_width(self) -> int:
        """Room that the word takes beside the arrow; 0 where it isn't shown."""
        word = self.text()
        return self.fontMetrics().horizontalAdvance(word) + _GAP if word else 0

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._bare + self.word_width, super().sizeHint().height())

    @override
    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def _show(self) -> None:
        if self._state is None:
            return
        word, sentence = origin(self._state)
        self.setAccessibleName(sentence)
        self.setToolTip(sentence)
        shown = "" if self._is_bare else word
        style = Qt.ToolButtonStyle
        self.setText(shown)
        self.setToolButtonStyle(
            style.ToolButtonTextBesideIcon if shown else style.ToolButtonIconOnly
        )

    def _on_clicked(self) -> None:
        if self._state is None:
            return
        menu = QMenu(self)
        menu.setObjectName("contexts")
        for offer in offers(self._state):
            action = QAction(offer.words, menu)
            action.setCheckable(True)
            action.setChecked(offer.is_chosen)
            action.triggered.connect(partial(self._take, offer))
            menu.addAction(action)
        menu.addSeparator()
        menu.addAction(tr("Type another…")).triggered.connect(self.typing_wanted)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def _take(self, offer: Offer) -> None:
        if offer.tokens is None:
            self._model.assume_context()
        else:
            self._model.edit("context", max_model_len=offer.tokens)
