"""The command that opens all settings of the plan's runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from engine.words import tr
from gui.kit.dialogs import Companion
from gui.sizing.all_settings_dialog import AllSettingsDialog

if TYPE_CHECKING:
    from gui.app import App


class Settling(QObject):
    """Opens the panel once, and brings it to the front after that."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._panel = Companion(self._made_dialog, self)
        action = app.window.commands["settings"]
        action.triggered.connect(self._panel.open)
        app.view.header.add_action_button(action, "list-filter", tr("All settings"), flat=True)

    def _made_dialog(self) -> AllSettingsDialog:
        return AllSettingsDialog(self._app.model, self._app.window)
