"""Memory that runs out: told once, and shown while it lasts.

What nears its ceiling is told only where the user asked for it; what may end a run, always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QSystemTrayIcon

from engine.telemetry.pressure import (
    CeilingAlert,
    ShortageAlert,
    ceiling_bytes,
    scarce_bytes,
    spilled_bytes,
    worst,
)
from engine.telemetry.snapshot import Pressure
from engine.units import GIB, format_gib
from engine.words import tr, tr_later
from gui.kit.icons import app_icon
from gui.kit.live_page import LivePage
from gui.kit.notices import Notice

if TYPE_CHECKING:
    from engine.telemetry.snapshot import DeviceReading, TelemetrySnapshot
    from gui.app import App

_SHORT_FOR_S = 10
_SNOOZE_S = 3600
_PRESSURES = {
    Pressure.SOME: tr_later("Memory pressure"),
    Pressure.CRITICAL: tr_later("Memory pressure, critical"),
}


class Alerting(QObject):
    """Owns the rule, the strip, the system's notice, the page, and the word in the status line."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._alert: CeilingAlert | None = None
        self._shortage: ShortageAlert | None = None
        self._quiet_until_s = float("-inf")
        """On the clock of the snapshots: until then nothing is told."""
        self._tray: QSystemTrayIcon | None = None
        self.notice = Notice("ceiling", "triangle-alert", "tight")
        app.view.add_notice(self.notice)
        app.themes.changed.connect(self.notice.set_theme)
        self.notice.set_theme(app.themes.current)
        self.notice.closed.connect(self._hide_tray)
        self.notice.add_button(tr("Not for an hour")).clicked.connect(self._snooze)
        self.page = LivePage()
        self.page.picked.connect(self._on_picked)
        app.preferring.dialog.add_page(tr("Live"), "triangle-alert", self.page)
        app.watch.sampled.connect(self._on_sampled)
        app.watch.source_changed.connect(self._on_source_changed)
        self._begin()

    @Slot()
    def _on_source_changed(self) -> None:
        """What was told is of another machine."""
        self.notice.dismiss()
        self._begin()

    def _begin(self) -> None:
        """As the settings say; every episode begins anew."""
        kept = self._app.settings
        is_live = self._app.watch.replay is None
        self._alert = None
        if is_live and kept.alert:
            left_bytes = kept.alert_left_gib * GIB
            self._alert = CeilingAlert(kept.alert_percent, kept.alert_seconds, left_bytes)
        self._shortage = ShortageAlert(_SHORT_FOR_S) if self._app.watch.is_here else None
        self.page.show_settings(kept)

    @Slot(str, object)
    def _on_picked(self, name: str, value: object) -> None:
        self._app.settings = self._app.settings.with_(**{name: value})
        self._begin()

    @Slot(object)
    def _on_sampled(self, snapshot: TelemetrySnapshot) -> None:
        self._show_pressure(snapshot)
        near = self._alert.look(snapshot) if self._alert else ()
        is_short = self._shortage.look(snapshot) if self._shortage else False
        if snapshot.monotonic_s < self._quiet_until_s:
            return
        for device in near:
            self._tell_near(device)
        if is_short:
            self._tell_short(snapshot)

    def _tell_near(self, device: DeviceReading) -> None:
        used, ceiling = device.used_bytes, ceiling_bytes(device)
        if not isinstance(used, int) or not ceiling:
            return
        unit = self._app.model.state.unit
        line = tr("{device} is at {percent} % of its ceiling: {used} of {ceiling}").format(
            device=tr(device.name),
            percent=used * 100 // ceiling,
            used=format_gib(used, unit, digits=1, unit=False),
            ceiling=format_gib(ceiling, unit, digits=1),
        )
        second = tr("For {seconds} s now. Settings, Live, says when this is told.").format(
            seconds=self._app.settings.alert_seconds
        )
        self._tell(line, second)

    def _tell_short(self, snapshot: TelemetrySnapshot) -> None:
        scarce = scarce_bytes(snapshot)
        line = tr("This computer runs out of memory")
        if scarce is not None:
            size = format_gib(scarce, self._app.model.state.unit, digits=1)
            line = tr("This computer runs out of memory: {size} left").format(size=size)
        self._tell(line, tr("What runs may be swapped out, or killed by the system."))

    def _tell(self, line: str, second: str) -> None:
        self.notice.tell(line, second)
        if QSystemTrayIcon.isSystemTrayAvailable():
            if self._tray is None:
                self._tray = QSystemTrayIcon(app_icon(), self)
                self._tray.messageClicked.connect(self._app.window.activateWindow)
            self._tray.show()
            self._tray.showMessage("Plimsoll", line)

    @Slot()
    def _snooze(self) -> None:
        """Tell nothing for a while; what is in the status line stays."""
        self._quiet_until_s = self._app.watch.last.monotonic_s + _SNOOZE_S
        self.notice.dismiss()

    @Slot()
    def _hide_tray(self) -> None:
        if self._tray is not None:
            self._tray.hide()

    def _show_pressure(self, snapshot: TelemetrySnapshot) -> None:
        """What spills and what is scarce, in the status line; nothing where nothing is."""
        unit = self._app.model.state.unit
        said: list[str] = []
        tips: list[str] = []
        for device in snapshot.devices:
            spilled = spilled_bytes(device)
            if spilled is not None:
                size = format_gib(spilled, unit, digits=1)
                said.append(tr("{size} spilled to system memory").format(size=size))
                tip = tr(
                    "Part of what runs on {device} lies in system memory, which is far slower."
                )
                tips.append(tip.format(device=tr(device.name)))
        scarce = scarce_bytes(snapshot)
        if scarce is not None:
            size = format_gib(scarce, unit, digits=1)
            said.append(tr("Memory is scarce: {size} left").format(size=size))
            tips.append(tr("What runs may be swapped out, or killed by the system."))
        pressure = worst(snapshot)
        if pressure in _PRESSURES:
            said.append(tr(_PRESSURES[pressure]))
            tips.append(tr("The system says so itself: programs wait for memory."))
        line = self._app.window.status_line
        had = bool(line.pressure.words.full_text)
        line.pressure.tell("; ".join(said), "\n".join(tips))
        if had is not bool(said):
            line.make_room()
