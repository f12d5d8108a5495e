"""How much of which device was in use in the last hour: what a report draws.

With eight cards and forty processes on each, whole snapshots of an hour take over 100 MB. What
seldom changes is kept once for all samples that share it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.telemetry.snapshot import DeviceReading, Missing, TelemetrySnapshot
from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_KEPT: Final = 3600
_NOT_KEPT = Missing(tr_later("not kept after its moment"))


class _Kept(NamedTuple):
    monotonic_s: float
    wall_time_s: float
    devices: tuple[DeviceReading, ...]
    """Without sizes that change; shared by samples that follow each other."""
    used: tuple[int | Missing, ...]


class Outlines:
    """The last samples, oldest first."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._kept: deque[_Kept] = deque(maxlen=most)

    def append(self, snapshot: TelemetrySnapshot) -> None:
        """Keep what was in use."""
        devices = tuple(_outline(device) for device in snapshot.devices)
        if self._kept and self._kept[-1].devices == devices:
            devices = self._kept[-1].devices
        used = tuple(device.used_bytes for device in snapshot.devices)
        self._kept.append(_Kept(snapshot.monotonic_s, snapshot.wall_time_s, devices, used))

    def clear(self) -> None:
        """Forget all of it."""
        self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[TelemetrySnapshot]:
        """The samples as snapshots that hold totals and use alone."""
        for at, wall, devices, used in self._kept:
            whole = (replace(d, used_bytes=u) for d, u in zip(devices, used, strict=True))
            yield TelemetrySnapshot(at, wall, tuple(whole))


def _outline(device: DeviceReading) -> DeviceReading:
    return replace(
        device,
        used_bytes=_NOT_KEPT,
        free_bytes=_NOT_KEPT,
        reserved_bytes=_NOT_KEPT,
        ceiling_bytes=_NOT_KEPT,
        available_bytes=_NOT_KEPT,
        spill_bytes=_NOT_KEPT,
        parts=(),
        processes=_NOT_KEPT,
        note="",
        age_s=0.0,
    )
