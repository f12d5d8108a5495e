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
class Episodes:
    """When to say what holds: once it held long enough, and then once until it was over."""

    hold_s: float
    _since: dict[str, float] = field(default_factory=dict[str, float])
    _told: set[str] = field(default_factory=set[str])

    def begins(self, key: str, at_s: float, *, holds: bool, is_over: bool) -> bool:
        """Whether ``key`` is to be told of now.

        Args:
            key: what it is about.
            at_s: on the clock of the snapshots (``monotonic_s``).
            holds: whether it is so at this moment.
            is_over: whether an episode ends here; what only touches the limit ends none.
        """
        if not holds:
            self._since.pop(key, None)
            if is_over:
                self._told.discard(key)
            return False
        held = at_s - self._since.setdefault(key, at_s) >= self.hold_s
        if not held or key in self._told:
            return False
        self._told.add(key)
        return True


@dataclass(slots=True)
class CeilingAlert:
    """Says once an episode that a device's use nears its ceiling and stays there."""

    percent: int
    """Of the ceiling."""
    hold_s: float
    """How long use must stay there."""
    left_bytes: int = 0
    """Also told with no more than this left below the ceiling; 0 for the percentage alone."""
    _episodes: Episodes = field(init=False)

    def __post_init__(self) -> None:
        self._episodes = Episodes(self.hold_s)

    def look(self, snapshot: TelemetrySnapshot) -> tuple[DeviceReading, ...]:
        """The devices to tell of now: each once, until its use has fallen well below."""
        found: list[DeviceReading] = []
        for device in snapshot.devices:
            ceiling, used = ceiling_bytes(device), device.used_bytes
            holds = is_over = False
            # What can't be read holds nothing: an episode neither begins nor ends.
            if ceiling and not isinstance(used, Missing):
                limit = self._limit_bytes(ceiling)
                holds = used >= limit
                is_over = used < limit - ceiling * _CALM_PERCENT // 100
            at_s = snapshot.monotonic_s
            if self._episodes.begins(device.uuid, at_s, holds=holds, is_over=is_over):
                found.append(device)
        return tuple(found)

    def _limit_bytes(self, ceiling_bytes: int) -> int:
        of_percent = -(-ceiling_bytes * self.percent // 100)
        # A device that never has so much left would always be near its end.
        is_told_left = 0 < self.left_bytes < ceiling_bytes
        return min(of_percent, ceiling_bytes - self.left_bytes) if is_told_left else of_percent


class ShortageAlert:
    """Says once an episode that the system may soon kill or swap out what runs.

    That is so where the computer has next to nothing left to give, or says so itself.
    """

    def __init__(self, hold_s: float) -> None:
        """Take how many seconds it must have held."""
        self._episodes = Episodes(hold_s)

    def look(self, snapshot: TelemetrySnapshot) -> bool:
        """Whether to tell of it now."""
        holds = scarce_bytes(snapshot) is not None or worst(snapshot) is Pressure.CRITICAL
        return self._episodes.begins("", snapshot.monotonic_s, holds=holds, is_over=not holds)
