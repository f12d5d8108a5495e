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
    times: dict[str, list[float]] = {}
    used: dict[str, list[int | None]] = {}
    sources: dict[str, str] = {}
    for snapshot in kept:
        for device in snapshot.devices:
            times.setdefault(device.uuid, []).append(snapshot.monotonic_s - first.monotonic_s)
            size = device.used_bytes
            used.setdefault(device.uuid, []).append(size if isinstance(size, int) else None)
            sources.setdefault(device.uuid, device.source)
    runs = {
        uuid: MeasuredRun(first.wall_time_s, tuple(times[uuid]), tuple(used[uuid]), source)
        for uuid, source in sources.items()
    }
    return {uuid: run for uuid, run in runs.items() if len(run.seen) > 1}
