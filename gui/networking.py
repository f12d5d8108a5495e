"""How the Hub is reached: the pages that set and show it, and the client that goes by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.source.access import Access
from engine.source.activity import ACTIVITY
from engine.source.hub import endpoint_of
from engine.words import tr
from gui.kit.activity_page import ActivityPage
from gui.kit.network_page import NetworkPage

if TYPE_CHECKING:
    from engine.source.reach import Reach
    from gui.app import App
    from gui.kit.theme import Theme


class Networking(QObject):
    """Owns the pages Network and Network activity."""

    def __init__(self, app: App, pinned: str = "") -> None:
        """``pinned`` is the Hub that was named at the start, if one was."""
        super().__init__(app)
        self._app = app
        self._pinned = pinned
        self.title = tr("Network")
        theme = app.themes.current
        self.page = NetworkPage(app.hub, app.runner, theme)
        self.activity = ActivityPage(ACTIVITY, theme)
        dialog = app.preferring.dialog
        dialog.add_page(self.title, "globe", self.page)
        dialog.add_page(tr("Network activity"), "activity", self.activity)
        dialog.opening.connect(self._on_opening)
        dialog.finished.connect(self.page.trial.stop)
        app.themes.changed.connect(self._on_theme)
        app.window.commands["network"].triggered.connect(self._on_command)
        self._switch = app.window.commands["offline"]
        self._switch.toggled.connect(self._on_switched)
        self.page.offline_picked.connect(self._switch.trigger)
        self.page.reach_changed.connect(self._on_reach)

    @Slot()
    def _on_opening(self) -> None:
        app = self._app
        self.page.show_values(app.hub.reach, offline=app.hub.offline, pinned=self._pinned)

    @Slot()
    def _on_command(self) -> None:
        self._app.preferring.dialog.open_page(self.title)

    @Slot(bool)
    def _on_switched(self, offline: bool) -> None:  # noqa: FBT001 - a signal's argument
        self.page.show_offline(offline=offline)

    @Slot(object)
    def _on_theme(self, theme: Theme) -> None:
        self.page.set_theme(theme)
        self.activity.set_theme(theme)

    @Slot(object)
    def _on_reach(self, reach: Reach) -> None:
        app = self._app
        app.settings = app.settings.with_(reach=reach)
        endpoint = endpoint_of(reach, self._pinned)
        # A token belongs to the Hub it was given for.
        access = app.hub.access if endpoint == app.hub.endpoint else Access(endpoint)
        app.hub.go_by(reach, endpoint, access)
