"""What happened to a run, where otherwise the verdict on the plan stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from engine.words import tr
from gui.kit.controls import ElidedLabel, Ground, label
from gui.kit.icons import icon
from gui.kit.verdict_parts import MarginButton, VerdictMark
from gui.log import present

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from engine.logs.remedies import Remedy
    from gui.kit.theme import Theme
    from gui.log.view_model import LogState

_NARROW = 950
_INDENT = 44


class RemedyButton(MarginButton):
    """One change that would have helped."""

    def __init__(self, remedy: Remedy, margin: str, theme: Theme) -> None:
        super().__init__(remedy.label, margin, present.remedy_color(remedy), theme)
        self.remedy = remedy
        # Closing another program is nothing that a plan can be asked for.
        self.setEnabled(remedy.deployment is not None)
        self.setToolTip(
            tr("Plan this run with it") if remedy.deployment else tr("No change of the plan")
        )


class RunVerdict(Ground):
    """Mark, headline, detail, what would have helped, and the way back to the plan."""

    close_wanted = Signal()
    chosen = Signal(object)
    """The ``Remedy`` whose plan is wanted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("run verdict")
        self._state: LogState | None = None
        self._theme: Theme | None = None
        self._buttons: list[RemedyButton] = []
        self.mark = VerdictMark()
        self.headline = ElidedLabel("verdict", name="run headline")
        self.detail = ElidedLabel("secondary", name="run detail")
        self.close_button = QPushButton(tr("Close log"))
        self.close_button.setObjectName("close log")
        self.close_button.setProperty("role", "flat")
        self.close_button.clicked.connect(self.close_wanted)
        self._caption = label(tr("What would have helped"), "secondary")
        self._helped = QWidget()
        self._build()

    def _build(self) -> None:
        said = QVBoxLayout()
        said.setSpacing(2)
        said.addWidget(self.headline)
        said.addWidget(self.detail)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.mark, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addLayout(said, 1)
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignVCenter)
        self._row = QHBoxLayout(self._helped)
        self._row.setContentsMargins(_INDENT, 0, 0, 0)
        self._row.setSpacing(8)
        self._row.addWidget(self._caption)
        self._row.addSpacing(4)
        self._row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 12)
        column.setSpacing(10)
        column.addLayout(row)
        column.addWidget(self._helped)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._helped.setMinimumWidth(200)

    @property
    def buttons(self) -> tuple[RemedyButton, ...]:
        """The remedies, the smallest change first."""
        return tuple(self._buttons)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and fonts of ``theme``."""
        self._theme = theme
        size = theme.grown(15)
        self.close_button.setIcon(icon("x", theme.color("text.secondary"), size, 3))
        self.close_button.setIconSize(QSize(size + 3, size))
        for words in (self.headline, self.detail):
            words.set_wraps(wraps=theme.text_scale > 1)
        if self._state is not None:
            self.show_state(self._state)

    def show_state(self, state: LogState) -> None:
        """Say what happened."""
        self._state = state
        theme = self._theme
        if theme is None:
            return
        said = present.run_words(state)
        self.mark.show_mark(theme, said.color, said.icon)
        self.headline.set_text(said.headline)
        self.detail.set_text(said.detail)
        for button in self._buttons:
            self._row.removeWidget(button)
            button.deleteLater()
        self._buttons = []
        for remedy in state.run.remedies:
            button = RemedyButton(remedy, present.remedy_margin(remedy, state.unit), theme)
            button.clicked.connect(self._on_clicked)
            self._buttons.append(button)
            self._row.insertWidget(self._row.count() - 1, button)
        self._helped.setVisible(bool(self._buttons))
        self._fit()

    @override
    def sizeHint(self) -> QSize:
        return super().sizeHint().expandedTo(QSize(0, self._wrapped_height()))

    @override
    def minimumSizeHint(self) -> QSize:
        return super().minimumSizeHint().expandedTo(QSize(0, self._wrapped_height()))

    def _wrapped_height(self) -> int:
        """What its words take in lines; before it is laid out its width says nothing of that."""
        is_large = self._theme is not None and self._theme.text_scale > 1
        return self.heightForWidth(self.width()) if is_large and self.isVisible() else 0

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._theme is not None:
            narrow = self.width() < _NARROW
            self.headline.setFont(self._theme.font("verdict.compact" if narrow else "verdict"))
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()
        self._fit()

    def _fit(self) -> None:
        """As many remedies as the width holds."""
        left = self.width() - 32 - _INDENT - self._caption.sizeHint().width() - 12
        for button in self._buttons:
            left -= button.sizeHint().width() + 8
            button.setVisible(left >= -8)

    def _on_clicked(self) -> None:
        button = self.sender()
        if isinstance(button, RemedyButton):
            self.chosen.emit(button.remedy)
