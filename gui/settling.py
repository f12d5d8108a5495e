"""The command that opens all settings of the plan's runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.words import tr
from gui.sizing.all_settings_dialog import AllSettingsDialog

if TYPE_CHECKING:
    from gui.app import App


class Settling(QObject):
    """Opens the panel once, and brings it to the front after that."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.dialog: AllSettingsDialog | None = None
        action = app.window.commands["settings"]
        action.triggered.connect(self._on_open)
        app.view.header.add_action_button(action, "list-filter", tr("All settings"), flat=True)

    @Slot()
    def _on_open(self) -> None:
        if self.dialog is None:
            self.dialog = AllSettingsDialog(self._app.model, self._app.window)
            self.dialog.finished.connect(self._on_finished)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()

    @Slot()
    def _on_finished(self) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None
