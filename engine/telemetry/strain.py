"""Since when memory runs short: work that lies in system memory, or a computer with none left.

``pressure`` judges one moment; here the moments become episodes with a beginning and an end, for
whoever shows them along an axis of time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from engine.telemetry.pressure import scarce_bytes, spilled_bytes, worst
from engine.telemetry.snapshot import Missing, PoolKind, Pressure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.telemetry.snapshot import DeviceReading, TelemetrySnapshot

COMPUTER: Final = ""
"""In place of a uuid: the computer's own memory is short, whatever its devices hold."""
_JOIN_S: Final = 10.0
"""A pause this short, a late answer or a figure about the threshold, ends no episode."""
_MOST_KEPT: Final = 500


@dataclass(frozen=True, slots=True)
class Strain:
    """One episode; its moments are places on the axis that ``Strains.take`` was given."""

    uuid: str
    """The device whose work lies in system memory, or ``COMPUTER``."""
    name: str
    """The device's name."""
    since_s: float
    until_s: float
    """The last moment at which it was seen."""
    size_bytes: int | None
    """At that moment, what lies in system memory, or what the computer has left to give.

    None where the system only says that programs wait for memory."""
    worst_bytes: int | None
    """The most that lay there, or the least that was left."""
    pressure: Pressure
    """What the system itself said then."""
    source: str
    """Who told."""
    holders: tuple[tuple[str, int], ...] = ()
    """Processes whose work lies in system memory, the largest first, with their bytes there."""
    is_over: bool = False

    @property
    def is_spill(self) -> bool:
        """Whether a device's work lies in system memory; else the computer is short of it."""
        return self.uuid != COMPUTER


@dataclass(slots=True)
class Strains:
    """Takes the snapshots in order and keeps the episodes."""

    _now: dict[str, Strain] = field(default_factory=dict[str, Strain])
    _over: list[Strain] = field(default_factory=list[Strain])

    @property
    def all(self) -> tuple[Strain, ...]:
        """Those that are over and those that last, in the order in which they ended."""
        return (*self._over, *self._now.values())

    def take(self, snapshot: TelemetrySnapshot, place_s: float, *, after_gap: bool = False) -> None:
        """Add one moment.

        Args:
            snapshot: the moment.
            place_s: its place on the axis of time.
            after_gap: whether nothing is known of the time just before it.
        """
        found = {strain.uuid: strain for strain in _found(snapshot, place_s)}
        for uuid in tuple(self._now):
            if after_gap or uuid not in found:
                self._over.append(replace(self._now.pop(uuid), is_over=True))
        for uuid, now in found.items():
            before = self._now.get(uuid) or (None if after_gap else self._paused(now))
            self._now[uuid] = now if before is None else _longer(before, now)
        del self._over[:-_MOST_KEPT]

    def _paused(self, now: Strain) -> Strain | None:
        """The episode that ``now`` goes on with, taken back from those that are over."""
        for at in range(len(self._over) - 1, -1, -1):
            if self._over[at].uuid == now.uuid:
                is_same = now.since_s - self._over[at].until_s <= _JOIN_S
                return self._over.pop(at) if is_same else None
        return None


def _longer(before: Strain, now: Strain) -> Strain:
    sizes = [s for s in (before.worst_bytes, now.worst_bytes) if s is not None]
    pick = max if now.is_spill else min
    return replace(now, since_s=before.since_s, worst_bytes=pick(sizes, default=None))


def _found(snapshot: TelemetrySnapshot, place_s: float) -> Iterator[Strain]:
    pressure = worst(snapshot)
    for device in snapshot.devices:
        size = spilled_bytes(device)
        if size is not None:
            yield Strain(
                device.uuid, device.name, place_s, place_s, size, size, pressure,
                device.source, _holders(device),
            )  # fmt: skip
    left = scarce_bytes(snapshot)
    if left is not None or pressure is not Pressure.NONE:
        host = [d for d in snapshot.devices if d.pool is PoolKind.HOST]
        said = [d for d in snapshot.devices if d.pressure is pressure]
        source = (host if left is not None else said)[0].source
        yield Strain(COMPUTER, "", place_s, place_s, left, left, pressure, source)


def _holders(device: DeviceReading) -> tuple[tuple[str, int], ...]:
    if isinstance(device.processes, Missing):
        return ()
    held = [
        (process.name, process.spill_bytes)
        for process in device.processes
        if isinstance(process.spill_bytes, int) and process.spill_bytes
    ]
    return tuple(sorted(held, key=lambda one: -one[1]))
