"""What was sampled of every device, on one axis of time, with its extremes and its markers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.overlay.group import plan_bytes
from engine.telemetry.moments import Moments
from engine.telemetry.strain import Strains
from gui.kit.charts.series import Sample, Series

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from engine.overlay.group import Planned
    from engine.telemetry.markers import Marker
    from engine.telemetry.snapshot import TelemetrySnapshot

MOST_MARKERS = 1000
MOST_DEVICES = 64
"""Each has a day's history of its own; what a hostile recording names beyond is left out."""


@dataclass(slots=True)
class Extent:
    """Least, average and most of a device's use since a moment."""

    since_s: float
    least_bytes: int
    most_bytes: int
    _sum: int = 0
    _count: int = 0
    _last_s: float = float("-inf")

    def add(self, time_s: float, used_bytes: int) -> None:
        """Take one more sample into account; one that is shown again counts once."""
        if time_s <= self._last_s:
            return
        self._last_s = time_s
        self.least_bytes = min(self.least_bytes, used_bytes)
        self.most_bytes = max(self.most_bytes, used_bytes)
        self._sum += used_bytes
        self._count += 1

    @property
    def average_bytes(self) -> int:
        """The mean of the samples."""
        return self._sum // max(self._count, 1)


@dataclass(slots=True)
class Kept:
    """Series, extents and markers; all of them live or all of one recording."""

    series: dict[str, Series] = field(default_factory=dict[str, Series])
    """By the device's uuid."""
    extents: dict[str, Extent] = field(default_factory=dict[str, Extent])
    names: dict[str, str] = field(default_factory=dict[str, str])
    markers: list[tuple[float, Marker]] = field(default_factory=list[tuple[float, "Marker"]])
    """Each with its place on the axis, in order."""
    now_s: float | None = None
    """The place of the newest sample, or of the one that a recording is at."""
    wall_offset_s: float | None = None
    """Unix time at second 0 of the axis."""
    moments: Moments = field(default_factory=Moments)
    strains: Strains = field(default_factory=Strains)
    """When memory ran short, of every device and of the computer."""

    def append(
        self,
        snapshot: TelemetrySnapshot,
        planned: Planned | None,
        live_kv: Mapping[str, int] | None = None,
    ) -> None:
        """Keep a moment of every device.

        Args:
            snapshot: the moment.
            planned: whose processes are the plan's.
            live_kv: bytes of the cache in use by device, where the runtime states them.
        """
        place, broke = self.moments.at(snapshot.monotonic_s, snapshot.wall_time_s)
        self.now_s, self.wall_offset_s = place, snapshot.wall_time_s - place
        self.strains.take(snapshot, place, after_gap=broke)
        self.miss({device.uuid for device in snapshot.devices}, place)
        for device in snapshot.devices:
            used = device.used_bytes if isinstance(device.used_bytes, int) else None
            share = plan_bytes(device, planned) if planned else None
            kv = (live_kv or {}).get(device.uuid)
            self.add((device.uuid, device.name), Sample(place, used, share, kv), after_gap=broke)

    def add(self, device: tuple[str, str], sample: Sample, *, after_gap: bool = False) -> None:
        """Keep one sample of one device, given as its uuid and name."""
        uuid, name = device
        series = self.series.get(uuid)
        if series is None:
            if len(self.series) >= MOST_DEVICES:
                return
            series = self.series[uuid] = Series()
            self.names[uuid] = name
        series.append(sample, after_gap=after_gap)
        if sample.used_bytes is not None:
            extent = self.extents.get(uuid)
            if extent is None:
                extent = Extent(sample.time_s, sample.used_bytes, sample.used_bytes)
                self.extents[uuid] = extent
            extent.add(sample.time_s, sample.used_bytes)

    def miss(self, there: Container[str], place: float) -> None:
        """Keep that nothing is known of the devices that are not ``there`` any more."""
        for uuid, series in self.series.items():
            if uuid not in there:
                series.append(Sample(place, None))

    def mark(self, place: float, marker: Marker) -> None:
        """Keep a marker."""
        self.markers.append((place, marker))
        self.markers.sort(key=lambda pair: pair[0])
        del self.markers[:-MOST_MARKERS]

    def reset_extents(self) -> None:
        """Begin anew with least, average and most."""
        self.extents.clear()

    def forget_plan(self) -> None:
        """Another plan is in force: its share of what was measured is not known."""
        for series in self.series.values():
            series.forget_plan()

    def oldest_s(self, uuids: Container[str]) -> float | None:
        """The oldest moment known of the devices ``uuids``."""
        starts = (s.start_s for uuid, s in self.series.items() if uuid in uuids)
        return min((start for start in starts if start is not None), default=None)
