"""The model's name and the two things one does with a plan: record it, report it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget
from typing_extensions import override

from engine.words import tr
from gui.kit.controls import ElidedLabel, Ground
from gui.kit.icons import icon
from gui.kit.wrap import WrapRow
from gui.sizing import present

if TYPE_CHECKING:
    from PySide6.QtGui import QAction, QResizeEvent

    from gui.kit.theme import Theme
    from gui.sizing.view_model import State


_TITLE, _PICTURE = 200, 15
_GAP = 3
"""More room between icon and words than the style leaves."""
_INKS = {"circle-dot": "over"} | dict.fromkeys(
    ("scale", "columns-3", "list-filter", "terminal"), "text.secondary"
)


class HeaderBar(Ground):
    """Name, organisation, parameters, revision; right, the actions."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = ElidedLabel("title", name="model title")
        self._subtitle = ElidedLabel("small", name="model facts")
        self._buttons: list[tuple[QPushButton, QAction, str]] = []
        self._words: dict[QPushButton, str] = {}
        """Words of the flat buttons, which give them up before the model's name is cut."""
        self._row = WrapRow(self)
        self._row.setContentsMargins(16, 12, 16, 0)
        self._row.add(self._title)
        self._row.add(self._subtitle)
        self._end = QWidget()
        self._row.add(self._end, 1)
        self._title.set_text("Plimsoll")
        self._theme: Theme | None = None

    def add_action_button(
        self,
        action: QAction,
        picture: str,
        text: str,
        *,
        beside_facts: bool = False,
        flat: bool = False,
    ) -> QPushButton:
        """Put a button for ``action`` at the right end, or a flat one beside the facts."""
        button = QPushButton(text)
        if beside_facts or flat:
            button.setProperty("role", "flat")
            button.setAccessibleName(text)
            self._words[button] = text
        button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        button.setObjectName(f"{action.objectName()} button")
        button.setCheckable(action.isCheckable())
        button.clicked.connect(action.trigger)
        action.changed.connect(self._on_action_changed)
        self._buttons.append((button, action, picture))
        if beside_facts:
            self._row.insert(self._row.place_of(self._end), button)
        else:
            self._row.add(button)
        self._on_action_changed()
        return button

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        """Leave the flat buttons their words where the model's name has room beside them."""
        for button, text in self._words.items():
            button.setText(text)
        if self._theme is None or self._theme.text_scale > 1:
            return
        shown = [button for button, action, _ in self._buttons if action.isVisible()]
        name = self._title.fontMetrics().horizontalAdvance(self._title.full_text)
        facts = self._subtitle.minimumSizeHint().width()
        beside = [
            facts,
            self._end.minimumSizeHint().width(),
            *(b.sizeHint().width() for b in shown),
        ]
        wanted = name + sum(max(0, width) + self._row.spacing() for width in beside)
        margins = self._row.contentsMargins()
        if wanted > self.width() - margins.left() - margins.right():
            for button in self._words:
                button.setText("")

    def show_state(self, state: State) -> None:
        """Name the model in force."""
        if state.model is None:
            self._title.set_text(state.awaited or tr("No model yet"))
            hint = tr("Pick one on the left, or drop a file anywhere")
            self._subtitle.set_text("" if state.awaited else hint)
            return
        self._title.set_text(present.title(state.model))
        self._subtitle.set_text(
            present.subtitle(state.model), present.subtitle_details(state.model)
        )
        self._bound_title()
        self._make_room()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self._bound_title()
        self._on_action_changed()
        self._make_room()

    def _bound_title(self) -> None:
        """It may be cut, but the facts beside it are cut first."""
        if self._theme is not None:
            wanted = self._title.fontMetrics().horizontalAdvance(self._title.full_text) + 1
            self._title.setMinimumWidth(min(wanted, self._theme.grown(_TITLE)))

    def _on_action_changed(self) -> None:
        for button, action, picture in self._buttons:
            button.setEnabled(action.isEnabled())
            button.setChecked(action.isChecked())
            button.setVisible(action.isVisible())
            button.setToolTip(action.toolTip())
            if self._theme is not None:
                name = _INKS.get(picture, "text.primary")
                color = self._theme.color(name if action.isEnabled() else "text.disabled")
                size = self._theme.grown(_PICTURE)
                button.setIconSize(QSize(size + _GAP, size))
                button.setIcon(icon(picture, color, size, _GAP))
