"""Measured samples of one device, and what a line drawn through them needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gui.kit.charts.past import ROWS, Past

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

HOUR_AT_10_HZ = 36_000
DAY_S = 86_400
_GAP_FACTOR = 3.5
"""A pause longer than this many usual intervals is a gap, not a slow sample."""
_LEAST_GAP_S = 2.5
_ENOUGH = 9
"""Intervals that tell what is usual now: it changes when a laptop leaves its socket."""


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
    """What was sampled of one device: the last at full rate, a day with every extreme.

    The newest samples are stored twice, ``capacity`` apart, so that they are always one slice.
    Where sampling paused stands a column without values.

    Shapes:
        ``values``: (4, n) float64, rows time, used, plan, KV; NaN where there is no value.
    """

    def __init__(self, capacity: int = HOUR_AT_10_HZ, past: Past | None = None) -> None:
        self._data: NDArray[np.float64] = np.full((ROWS, 2 * capacity), np.nan)
        self._capacity = capacity
        self._count = 0
        self._past = past or Past()

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Series:
        """A series that holds exactly ``samples``."""
        kept = tuple(samples)
        made = cls(max(1, 2 * len(kept)), Past(1))
        for sample in kept:
            made.append(sample)
        return made

    def __len__(self) -> int:
        return min(self._count, self._capacity)

    def append(self, sample: Sample, *, after_gap: bool = False) -> None:
        """Add one sample, thinning the oldest when full.

        Args:
            sample: not older than the one before it.
            after_gap: whether it is known that nothing was sampled just before it.
        """
        if len(self):
            last = float(self.values[0, -1])
            if after_gap or self._is_gap(sample.time_s - last):
                self._store([(last + sample.time_s) / 2, np.nan, np.nan, np.nan])
        row = [sample.time_s, sample.used_bytes, sample.plan_bytes, sample.kv_bytes]
        self._store([np.nan if v is None else float(v) for v in row])

    def _is_gap(self, interval_s: float) -> bool:
        if interval_s <= _LEAST_GAP_S:
            return False
        known = np.diff(self.values[0, -_ENOUGH:])
        usual = float(np.median(np.r_[known, interval_s]))
        return interval_s > _GAP_FACTOR * usual

    def _store(self, values: list[float]) -> None:
        slot = self._count % self._capacity
        self._data[:, slot] = values
        self._data[:, slot + self._capacity] = values
        self._count += 1
        self._past.add(values)

    def forget_plan(self) -> None:
        """Drop the shares of the plan: another plan is in force."""
        self._data[2] = np.nan
        self._past.forget(2)

    @property
    def values(self) -> NDArray[np.float64]:
        """The samples held at full rate. A view: valid until the next ``append``."""
        n = len(self)
        stop = (self._count - 1) % self._capacity + self._capacity + 1 if n else 0
        return self._data[:, stop - n : stop]

    def window(self, start_s: float, end_s: float) -> NDArray[np.float64]:
        """The samples from ``start_s`` to ``end_s`` and one before, so that a line enters."""
        values = self.values
        is_all = self._count <= self._capacity
        if is_all or start_s >= values[0, 0]:
            return _between(values, start_s, end_s)
        past = self._past.until(float(values[0, 0]))
        if end_s < values[0, 0]:
            return _between(past, start_s, end_s)
        older = _between(past, start_s, end_s)
        return np.concatenate([older, _between(values, float(values[0, 0]), end_s)], axis=1)

    @property
    def start_s(self) -> float | None:
        """The oldest moment that is still known."""
        if not len(self):
            return None
        first = float(self.values[0, 0])
        if self._count <= self._capacity:
            return first
        past = self._past.until(first)
        return float(past[0, 0]) if past.size else first

    @property
    def newest(self) -> Sample | None:
        """The last sample."""
        if not len(self):
            return None
        return _sample(self.values[:, -1])

    def nearest(self, time_s: float) -> Sample | None:
        """The sample nearest to a moment."""
        values = self.values
        if not values.size:
            return None
        if self._count > self._capacity and time_s < values[0, 0]:
            past = self._past.until(float(values[0, 0]))
            values = np.concatenate([past, values[:, :1]], axis=1)
        times = values[0]
        after = int(np.searchsorted(times, time_s))
        choices = [i for i in (after - 1, after) if 0 <= i < times.size]
        best = min(choices, key=lambda i: abs(float(times[i]) - time_s))
        return _sample(values[:, best])

    def known_until(self, time_s: float) -> Sample | None:
        """The last sample up to a moment of which it is known what was in use."""
        values = self.values
        if not values.size:
            return None
        if time_s < values[0, 0]:
            values = self._past.until(float(values[0, 0]))
        stop = int(np.searchsorted(values[0], time_s, side="right"))
        # The last one is it, while all goes well.
        for start in (max(0, stop - 1), 0):
            known = np.flatnonzero(~np.isnan(values[1, start:stop]))
            if known.size:
                return _sample(values[:, start + int(known[-1])])
        return None


def _sample(column: NDArray[np.float64]) -> Sample:
    time, *rest = (float(v) for v in column)
    used, plan, kv = (None if np.isnan(v) else int(v) for v in rest)
    return Sample(time, used, plan, kv)


def _between(values: NDArray[np.float64], start_s: float, end_s: float) -> NDArray[np.float64]:
    first, last = np.searchsorted(values[0], (start_s, end_s), side="right")
    return values[:, max(0, int(first) - 1) : int(last)]


def runs(values: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Index ranges without a missing value.

    Shapes:
        ``values``: (n,).
    """
    if not values.size:
        return []
    present = ~np.isnan(values)
    goes_on = present[1:] & present[:-1]
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
