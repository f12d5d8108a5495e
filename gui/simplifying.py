"""The simple view and the full one: the same plan and numbers, with fewer or all controls."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

if TYPE_CHECKING:
    from gui.app import App

_PAGE = "tab "
"""How the commands begin that open a page below the picture."""


class Simplifying(QObject):
    """Connects the two commands and the switch in the status line with the room."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        commands = app.window.commands
        commands["view simple"].triggered.connect(partial(self.show_simple, simple=True))
        commands["view full"].triggered.connect(partial(self.show_simple, simple=False))
        app.window.status_line.view.picked.connect(self._on_picked)
        app.view.strip.model_button.clicked.connect(commands["search"].trigger)
        for action in commands.all:
            # What the simple view leaves out is there for whoever asks for it.
            if action.objectName().startswith(_PAGE):
                action.triggered.connect(partial(self.show_simple, simple=False))
        self._show(simple=app.settings.simple)

    def show_simple(self, *, simple: bool) -> None:
        """Show the simple view or the full one, now and at the next start."""
        if simple != self._app.settings.simple:
            self._app.settings = self._app.settings.with_(simple=simple)
            self._show(simple=simple)

    def _show(self, *, simple: bool) -> None:
        window = self._app.window
        window.commands["view simple" if simple else "view full"].setChecked(True)
        window.commands["tabs"].setEnabled(not simple)
        window.status_line.view.set_current(simple)
        self._app.view.set_simple(simple=simple)

    @Slot(object)
    def _on_picked(self, simple: bool) -> None:  # noqa: FBT001 - a signal's argument
        self.show_simple(simple=simple)
