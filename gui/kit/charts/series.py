"""Measured samples of one device, and what a line drawn through them needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

HOUR_AT_10_HZ = 36_000
_GAP_FACTOR = 3.5
"""A pause longer than this many usual intervals is a gap, not a slow sample."""
_LEAST_GAP_S = 2.5
_ENOUGH = 256
"""Intervals that tell what is usual."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One device at one moment; None where there is no value, and why isn't ours to say."""

    time_s: float
    used_bytes: int | None
    plan_bytes: int | None = None
    """Of it, what the processes of this plan hold."""
    kv_bytes: int | None = None
    """KV cache in use, where the runtime states it."""


class Series:
    """The last samples of one device, oldest first.

    Every sample is stored twice, ``capacity`` apart, so that the newest are always one slice.

    Shapes:
        ``values``: (4, n) float64, rows time, used, plan, KV; NaN where there is no value.
    """

    def __init__(self, capacity: int = HOUR_AT_10_HZ) -> None:
        self._data: NDArray[np.float64] = np.full((4, 2 * capacity), np.nan)
        self._capacity = capacity
        self._count = 0

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Series:
        """A series that holds exactly ``samples``."""
        kept = tuple(samples)
        made = cls(max(1, len(kept)))
        for sample in kept:
            made.append(sample)
        return made

    def __len__(self) -> int:
        return min(self._count, self._capacity)

    def append(self, sample: Sample) -> None:
        """Add one sample, dropping the oldest when full."""
        row = [sample.time_s, sample.used_bytes, sample.plan_bytes, sample.kv_bytes]
        slot = self._count % self._capacity
        values = [np.nan if v is None else float(v) for v in row]
        self._data[:, slot] = values
        self._data[:, slot + self._capacity] = values
        self._count += 1

    def forget_plan(self) -> None:
        """Drop the shares of the plan: another plan is in force."""
        self._data[2] = np.nan

    @property
    def values(self) -> NDArray[np.float64]:
        """The samples held. A view: valid until the next ``append``."""
        n = len(self)
        stop = (self._count - 1) % self._capacity + self._capacity + 1 if n else 0
        return self._data[:, stop - n : stop]

    def window(self, start_s: float, end_s: float) -> NDArray[np.float64]:
        """The samples from ``start_s`` to ``end_s`` and one before, so that a line enters."""
        values = self.values
        first, last = np.searchsorted(values[0], (start_s, end_s), side="right")
        return values[:, max(0, int(first) - 1) : int(last)]

    @property
    def newest(self) -> Sample | None:
        """The last sample."""
        if not len(self):
            return None
        time, *rest = (float(v) for v in self.values[:, -1])
        used, plan, kv = (None if np.isnan(v) else int(v) for v in rest)
        return Sample(time, used, plan, kv)

    def nearest(self, time_s: float) -> Sample | None:
        """The sample nearest to a moment."""
        times = self.values[0]
        if not times.size:
            return None
        after = int(np.searchsorted(times, time_s))
        choices = [i for i in (after - 1, after) if 0 <= i < times.size]
        best = min(choices, key=lambda i: abs(float(times[i]) - time_s))
        time, *rest = (float(v) for v in self.values[:, best])
        used, plan, kv = (None if np.isnan(v) else int(v) for v in rest)
        return Sample(time, used, plan, kv)


def runs(times: NDArray[np.float64], values: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Index ranges without a gap: split at missing values and at pauses in sampling.

    Shapes:
        ``times``, ``values``: (n,).
    """
    if not times.size:
        return []
    intervals = np.diff(times)
    usual = float(np.median(intervals[-_ENOUGH:])) if intervals.size else 0.0
    pause = max(_LEAST_GAP_S, _GAP_FACTOR * usual)
    present = ~np.isnan(values)
    goes_on = present[1:] & present[:-1] & (intervals <= pause)
    # Without a loop: a series that is missing throughout would be as many cuts as samples.
    starts = np.flatnonzero(present & np.r_[True, ~goes_on])
    stops = np.flatnonzero(present & np.r_[~goes_on, True]) + 1
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def envelope(
    places: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most two points for each whole place: the least and the greatest value there.

    What a line through all points would show on a screen of whole pixels, at a cost that
    doesn't grow with the number of samples.

    Shapes:
        ``places``, ``values``: (n,), places rising. Both results: (m,), m <= 2 per pixel.
    """
    columns = np.floor(places).astype(np.int64)
    starts = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]])
    if 2 * starts.size >= places.size:
        return places, values
    low = np.minimum.reduceat(values, starts)
    high = np.maximum.reduceat(values, starts)
    falls = values[starts] > values[np.r_[starts[1:], values.size] - 1]
    pairs = np.empty(2 * starts.size, np.float64)
    pairs[0::2] = np.where(falls, high, low)
    pairs[1::2] = np.where(falls, low, high)
    return np.repeat(columns[starts].astype(np.float64), 2), pairs
