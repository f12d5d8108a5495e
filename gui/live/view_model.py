"""Which device is shown, what it held before a run, and the state that follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.telemetry import mapped
from engine.telemetry.commands import recognise
from engine.telemetry.snapshot import Missing, own_bytes
from engine.units import UnitSystem
from engine.words import tr
from gui.live import explain, present

if TYPE_CHECKING:
    from engine.seen.model import RuntimeSeen
    from engine.telemetry.snapshot import DeviceReading, TelemetrySnapshot
    from gui.live.present import HoldsState, Row


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """One device of the selector."""

    uuid: str
    label: str


class HoldsViewModel(QObject):
    """Takes snapshots and publishes one frozen ``HoldsState``."""

    changed = Signal(object)
    """A ``HoldsState``, or None while nothing was sampled."""
    devices_changed = Signal(object)
    """A tuple of ``DeviceChoice``."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state: HoldsState | None = None
        self.devices: tuple[DeviceChoice, ...] = ()
        self._snapshot: TelemetrySnapshot | None = None
        self._unit = UnitSystem.BINARY
        self._wanted = ""
        self._picked = ""
        self._runtimes: tuple[RuntimeSeen, ...] = ()
        self._before: dict[tuple[str, str], int] = {}

    def show(self, snapshot: TelemetrySnapshot, uuid: str) -> None:
        """Show ``uuid`` of ``snapshot``; a device picked by hand stays until ``uuid`` changes."""
        self._snapshot = snapshot
        if uuid != self._wanted:
            self._wanted, self._picked = uuid, ""
        for reading in snapshot.devices:
            self._learn_baseline(reading)
        self._publish_devices(snapshot)
        self._publish()

    def pick(self, uuid: str) -> None:
        """Show another device of the snapshot."""
        self._picked = uuid
        self._publish()

    def set_unit(self, unit: UnitSystem) -> None:
        """Write sizes in ``unit``."""
        if unit is not self._unit:
            self._unit = unit
            self._publish()

    def set_runtimes(self, runtimes: tuple[RuntimeSeen, ...]) -> None:
        """Tell these runtimes' figures beside what their processes hold."""
        if runtimes != self._runtimes:
            self._runtimes = runtimes
            self._publish()

    def runtime_of(self, row: Row) -> RuntimeSeen | None:
        """The runtime that the process of ``row`` belongs to, if it is one's."""
        if row.seen is not None or not row.pid:
            return row.seen
        return next((seen for seen in self._runtimes if row.pid in seen.pids), None)

    @property
    def unit(self) -> UnitSystem:
        """In which sizes are written."""
        return self._unit

    def clear(self) -> None:
        """Forget what was sampled: another source begins."""
        self._snapshot = self.state = None
        self._before.clear()
        self._publish_devices(None)
        self.changed.emit(None)

    def _publish(self) -> None:
        snapshot = self._snapshot
        reading = self._shown(snapshot) if snapshot else None
        if snapshot is None or reading is None:
            return
        before = explain.before(
            self._before.get(_origin(reading)), self._unit, is_running=_runtime_bytes(reading) > 0
        )
        models = present.models_by_runtime(snapshot)
        state = present.present(reading, self._unit, models, before, self._runtimes)
        if state != self.state:
            self.state = state
            self.changed.emit(state)

    def _publish_devices(self, snapshot: TelemetrySnapshot | None) -> None:
        readings = snapshot.devices if snapshot else ()
        names = [reading.name for reading in readings]
        found = tuple(
            DeviceChoice(
                reading.uuid,
                f"{tr(reading.name)}, {names[: i + 1].count(reading.name)}"
                if names.count(reading.name) > 1
                else tr(reading.name),
            )
            for i, reading in enumerate(readings)
        )
        if found != self.devices:
            self.devices = found
            self.devices_changed.emit(found)

    def _shown(self, snapshot: TelemetrySnapshot) -> DeviceReading | None:
        """The device picked, else the one asked for, else the first."""
        by_uuid = {reading.uuid: reading for reading in snapshot.devices}
        for uuid in (self._picked, self._wanted):
            if uuid in by_uuid:
                return by_uuid[uuid]
        return next(iter(snapshot.devices), None)

    def _learn_baseline(self, reading: DeviceReading) -> None:
        """What others hold: all of it while no runtime runs, else what was held before.

        A run that was there at the first sample has no before; then it is the rest beside it.
        """
        if isinstance(reading.used_bytes, Missing):
            return
        running = _runtime_bytes(reading)
        others = max(reading.used_bytes - running - own_bytes(reading), 0)
        if not running:
            self._before[_origin(reading)] = others
        else:
            self._before.setdefault(_origin(reading), others)


def _origin(reading: DeviceReading) -> tuple[str, str]:
    """Device and source: a recording of a device tells nothing of what it holds live."""
    return reading.uuid, reading.source


def _runtime_bytes(reading: DeviceReading) -> int:
    """What recognised runtimes hold, mapped model files included."""
    if isinstance(reading.processes, Missing):
        return 0
    running = [p for p in reading.processes if recognise(p.name, p.command).runtime]
    private = sum(p.used_bytes for p in running if isinstance(p.used_bytes, int))
    return private + mapped.model_bytes(running)
