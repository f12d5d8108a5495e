"""The model's name and the two things one does with a plan: record it, report it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from gui.kit.controls import ElidedLabel, Ground
from gui.kit.icons import icon
from gui.sizing import present

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

    from gui.kit.theme import Theme
    from gui.sizing.view_model import State


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
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(16, 12, 16, 0)
        self._row.setSpacing(8)
        self._row.addWidget(self._title)
        self._row.addWidget(self._subtitle)
        self._row.addStretch(1)
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
        button.setObjectName(f"{action.objectName()} button")
        button.setIconSize(QSize(15 + _GAP, 15))
        button.setCheckable(action.isCheckable())
        button.clicked.connect(action.trigger)
        action.changed.connect(self._on_action_changed)
        self._buttons.append((button, action, picture))
        place = self._row.indexOf(self._subtitle) + 1 if beside_facts else self._row.count()
        self._row.insertWidget(place, button)
        self._on_action_changed()
        return button

    def show_state(self, state: State) -> None:
        """Name the model in force."""
        if state.model is None:
            self._title.set_text("No model yet")
            self._subtitle.set_text("Pick one on the left, or drop a file anywhere")
            return
        self._title.set_text(present.title(state.model))
        self._subtitle.set_text(
            present.subtitle(state.model), present.subtitle_details(state.model)
        )

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self._on_action_changed()

    def _on_action_changed(self) -> None:
        for button, action, picture in self._buttons:
            button.setEnabled(action.isEnabled())
            button.setChecked(action.isChecked())
            button.setVisible(action.isVisible())
            button.setToolTip(action.toolTip())
            if self._theme is not None:
                name = _INKS.get(picture, "text.primary")
                color = self._theme.color(name if action.isEnabled() else "text.disabled")
                button.setIcon(icon(picture, color, 15, _GAP))
