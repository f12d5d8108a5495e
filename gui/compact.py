"""The compact view: opened by its command, where and as it was left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QByteArray, QObject, Slot
from PySide6.QtGui import QGuiApplication

from engine.telemetry.snapshot import Missing
from engine.units import format_gib
from engine.words import tr
from gui.kit.compact_window import MOST_DEVICES, CompactWindow, Glance, Load
from gui.kit.placing import on_screen
from gui.sizing import present

if TYPE_CHECKING:
    from engine.devices.device import Slot as DeviceSlot
    from engine.telemetry.snapshot import DeviceReading
    from engine.units import UnitSystem
    from gui.app import App


class Compact(QObject):
    """Makes the small window when it is asked for, and tells it what is so."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._age = ""
        self.window: CompactWindow | None = None
        self._geometry = app.settings.compact_geometry
        self._command = app.window.commands["compact"]
        self._command.triggered.connect(self._on_command)
        app.watch.sampled.connect(self._show)
        app.watch.aged.connect(self._on_aged)
        app.model.changed.connect(self._show)
        app.themes.changed.connect(self._on_theme_changed)

    def restore(self) -> None:
        """Open it if it was open when the program was left."""
        if self._app.settings.compact:
            self._open()

    def settings_now(self) -> dict[str, Any]:
        """What to remember."""
        is_open = self.window is not None
        if self.window is not None:
            self._geometry = bytes(self.window.saveGeometry().data())
        return {"compact": is_open, "compact_geometry": self._geometry}

    def close(self) -> None:
        """Take it down."""
        window, self.window = self.window, None
        if window is not None:
            self._geometry = bytes(window.saveGeometry().data())
            window.hide()
            window.deleteLater()
        self._command.setChecked(False)

    @Slot()
    def _on_command(self) -> None:
        if self.window is None:
            self._open()
        else:
            self.close()

    def _open(self) -> None:
        window = self.window = CompactWindow(self._app.themes.current)
        window.window_wanted.connect(self._on_window_wanted)
        window.closed.connect(self.close)
        window.set_theme(self._app.themes.current)
        self._show()
        window.adjustSize()
        if self._geometry and window.restoreGeometry(QByteArray(self._geometry)):
            frame = window.frameGeometry()
            free = [screen.availableGeometry() for screen in QGuiApplication.screens()]
            window.move(on_screen(frame, free).topLeft())
        window.show()
        self._command.setChecked(True)

    @Slot()
    def _on_window_wanted(self) -> None:
        window = self._app.window
        window.showNormal() if window.isMinimized() else window.show()
        window.raise_()
        window.activateWindow()

    @Slot(str)
    def _on_aged(self, age: str) -> None:
        self._age = tr("Last sample {age}").format(age=age) if age else ""
        self._show()

    @Slot()
    def _on_theme_changed(self) -> None:
        if self.window is not None:
            self.window.set_theme(self._app.themes.current)

    @Slot()
    def _show(self) -> None:
        if self.window is not None:
            self.window.show_glance(self._glance())

    def _glance(self) -> Glance:
        state = self._app.model.state
        words = present.verdict(state) if state.sizing is not None else None
        readings = {device.uuid: device for device in self._app.watch.last.devices}
        loads = (
            _load(slot, readings[slot.uuid], state.unit)
            for slot in state.here.slots[:MOST_DEVICES]
            if slot.uuid in readings
        )
        return Glance(
            tuple(loads),
            words.headline if words else "",
            words.color if words else "unknown",
            words.icon if words else "circle-help",
            self._age,
        )


def _load(slot: DeviceSlot, reading: DeviceReading, unit: UnitSystem) -> Load:
    line = slot.device.allocatable.likely_bytes
    used, total = reading.used_bytes, slot.device.total_bytes
    if isinstance(used, Missing):
        return Load(slot.device.name, tr(used.reason), None, min(line / total, 1.0), is_over=False)
    free = reading.free_bytes
    words = tr("{used} used").format(used=format_gib(used, unit, digits=1))
    if isinstance(free, int):
        words = tr("{used} used, {free} free").format(
            used=format_gib(used, unit, digits=1, unit=False), free=format_gib(free, unit, digits=1)
        )
    share = min(line / total, 1.0)
    return Load(slot.device.name, words, used / total, share, is_over=used > line)
