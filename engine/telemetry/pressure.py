"""How near a device is to its end: its ceiling, what it spills, and when to say so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.telemetry.snapshot import Missing, PoolKind, Pressure
from engine.units import MIB

if TYPE_CHECKING:
    from engine.telemetry.snapshot import DeviceReading, TelemetrySnapshot

LEAST_SPILL_BYTES = 256 * MIB
"""Below this it is a driver's bookkeeping, not a model's part (shared/live/telemetry.md 6)."""
_SCARCE = 20
"""A computer with less than this part of its memory left to give is short of it."""
_CALM_PERCENT = 3
"""How far below the threshold use must fall before the next alert."""


def ceiling_bytes(device: DeviceReading) -> int | None:
    """What can be in use on a device before it is full; None where nobody can tell.

    A carve-out is no ceiling: models lie in the memory mapped beside it. Where the source states
    no ceiling for such a pool, there is none.
    """
    if isinstance(device.ceiling_bytes, int):
        return device.ceiling_bytes
    if device.pool is PoolKind.CARVE_OUT or isinstance(device.total_bytes, Missing):
        return None
    reserved = device.reserved_bytes if isinstance(device.reserved_bytes, int) else 0
    return device.total_bytes - reserved


def spilled_bytes(device: DeviceReading) -> int | None:
    """What of a device's work lies in system memory; None where that is little or not told."""
    spill = device.spill_bytes
    return spill if isinstance(spill, int) and spill >= LEAST_SPILL_BYTES else None


def scarce_bytes(snapshot: TelemetrySnapshot) -> int | None:
    """What the computer's own memory has left to give, where that is little; else None."""
    for device in snapshot.devices:
        if device.pool is not PoolKind.HOST or isinstance(device.total_bytes, Missing):
            continue
        left = device.available_bytes
        if isinstance(left, Missing):
            left = device.free_bytes
        if isinstance(left, int) and left * _SCARCE < device.total_bytes:
            return left
    return None


def worst(snapshot: TelemetrySnapshot) -> Pressure:
    """How short of memory the system itself says it is."""
    found = {device.pressure for device in snapshot.devices}
    for pressure in (Pressure.CRITICAL, Pressure.SOME):
        if pressure in found:
            return pressure
    return Pressure.NONE


@dataclass(slots=True)
class CeilingAlert:
    """Says once an episode that a device's use nears its ceiling and stays there."""

    percent: int
    """Of the ceiling."""
    hold_s: float
    """How long use must stay there."""
    _since: dict[str, float] = field(default_factory=dict[str, float])
    _told: set[str] = field(default_factory=set[str])

    def look(self, snapshot: TelemetrySnapshot) -> tuple[DeviceReading, ...]:
        """The devices to tell of now: each once, until its use has fallen well below."""
        found: list[DeviceReading] = []
        for device in snapshot.devices:
            ceiling, used = ceiling_bytes(device), device.used_bytes
            if not ceiling or isinstance(used, Missing):
                # What can't be read holds nothing: an episode neither begins nor ends.
                self._since.pop(device.uuid, None)
                continue
            if used * 100 < ceiling * self.percent:
                self._since.pop(device.uuid, None)
                if used * 100 < ceiling * (self.percent - _CALM_PERCENT):
                    self._told.discard(device.uuid)
                continue
            since = self._since.setdefault(device.uuid, snapshot.monotonic_s)
            held = snapshot.monotonic_s - since >= self.hold_s
            if held and device.uuid not in self._told:
                self._told.add(device.uuid)
                found.append(device)
        return tuple(found)
