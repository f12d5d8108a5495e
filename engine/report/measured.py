"""A measured run as the report needs it: seconds from its start, bytes in use.

Takes snapshots by their shape, not by their class: a report neither reads devices nor files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Reading(Protocol):
    """One device at one moment (``engine.telemetry.snapshot.DeviceReading``)."""

    @property
    def uuid(self) -> str:
        """Which device."""
        ...

    @property
    def name(self) -> str:
        """As the driver calls it."""
        ...

    @property
    def total_bytes(self) -> object:
        """An int, or the reason why there is none."""
        ...

    @property
    def used_bytes(self) -> object:
        """An int, or the reason why there is none."""
        ...

    @property
    def source(self) -> str:
        """Who said so."""
        ...


class Snapshot(Protocol):
    """All devices at one moment (``engine.telemetry.snapshot.TelemetrySnapshot``)."""

    @property
    def monotonic_s(self) -> float:
        """For spacing."""
        ...

    @property
    def wall_time_s(self) -> float:
        """Unix time."""
        ...

    @property
    def devices(self) -> Sequence[Reading]:
        """Their readings."""
        ...


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What one device held over a run."""

    device: str
    """As the driver calls it."""
    total_bytes: int | None
    """None where the driver doesn't say."""
    started_s: float
    """Unix time of the first sample."""
    times_s: tuple[float, ...]
    """From the start."""
    used_bytes: tuple[int | None, ...]
    """None where nothing was read."""
    source: str

    @property
    def seen(self) -> tuple[int, ...]:
        """The samples that were read."""
        return tuple(u for u in self.used_bytes if u is not None)

    @property
    def length_s(self) -> float:
        """From the first sample to the last."""
        return self.times_s[-1] if self.times_s else 0.0


def measured_runs(snapshots: Iterable[Snapshot]) -> dict[str, MeasuredRun]:
    """The run of every device that was read at least twice, by uuid."""
    kept = tuple(snapshots)
    if not kept:
        return {}
    first = kept[0]
    readings: dict[str, list[tuple[float, Reading]]] = {}
    for snapshot in kept:
        for device in snapshot.devices:
            moment = snapshot.monotonic_s - first.monotonic_s
            readings.setdefault(device.uuid, []).append((moment, device))
    runs = {uuid: _run(first.wall_time_s, seen) for uuid, seen in readings.items()}
    return {uuid: run for uuid, run in runs.items() if len(run.seen) > 1}


def _run(started_s: float, readings: Sequence[tuple[float, Reading]]) -> MeasuredRun:
    device = readings[0][1]
    return MeasuredRun(
        device=device.name,
        total_bytes=_size(device.total_bytes),
        started_s=started_s,
        times_s=tuple(moment for moment, _ in readings),
        used_bytes=tuple(_size(reading.used_bytes) for _, reading in readings),
        source=device.source,
    )


def _size(value: object) -> int | None:
    return value if isinstance(value, int) else None
