"""Whether the Hub may be asked, and as whom: the switch, the terms, a token, another try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.errors import HubGatedError
from engine.words import tr
from gui.kit.access_dialog import AccessDialog

if TYPE_CHECKING:
    from gui.app import App


class HubAccess(QObject):
    """Opens the dialog, and asks again for what was refused."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._refused = False
        self._page = ""
        app.window.commands["access"].triggered.connect(self.open)
        app.hub.offline = app.hub.offline or app.settings.offline
        self._switch = app.window.commands["offline"]
        self._switch.setChecked(app.hub.offline)
        self._switch.triggered.connect(self._on_offline)
        app.loader.failed.connect(self._on_failed)
        app.loader.loaded.connect(self._on_loaded)

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        self._refused = isinstance(error, HubGatedError)
        self._page = error.page if isinstance(error, HubGatedError) else ""
        way_out = (tr("Give a token…"), self.open) if self._refused else None
        self._app.trouble.report(error, way_out)

    @Slot()
    def _on_loaded(self) -> None:
        self._refused, self._page = False, ""

    @Slot(bool)
    def _on_offline(self, offline: bool) -> None:  # noqa: FBT001 - a signal's argument
        app = self._app
        app.hub.offline = offline
        app.settings = app.settings.with_(offline=offline)
        app.desk.on_state_changed(app.model.state)
        app.browser.model.note_access()

    @Slot()
    def open(self) -> None:
        """Open the dialog."""
        app = self._app
        dialog = AccessDialog(app.hub, app.runner, self._page, app.window)
        dialog.granted.connect(self._on_granted)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot()
    def _on_granted(self) -> None:
        if self._refused:
            self._app.trouble.dismiss()
            self._app.loader.again()
