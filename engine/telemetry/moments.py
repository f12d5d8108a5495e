"""The one clock that samples are drawn by: it never runs back, and sleep has its length."""

from __future__ import annotations

_JUMP_S = 2.5
"""Further apart than this, the two clocks did not count the same time."""
_LONGEST_S = 7 * 86400.0
"""A wall clock that jumps further was set, and nobody slept as long."""


class Moments:
    """Places samples on one axis of seconds.

    The monotonic clock stands still while a computer sleeps, and begins anew after a start; the
    wall clock can be set. Where the two disagree something happened that no sample saw: a gap.
    """

    def __init__(self, start_s: float | None = None) -> None:
        """Begin; the first sample stands at ``start_s``, or where its own clock puts it."""
        self._start_s = start_s
        self._before: tuple[float, float] | None = None
        self._time_s = 0.0

    def at(self, monotonic_s: float, wall_time_s: float) -> tuple[float, bool]:
        """Seconds on the axis, and whether there is a gap before them.

        Args:
            monotonic_s: the sample's monotonic clock.
            wall_time_s: the sample's wall clock, Unix seconds.
        """
        before, self._before = self._before, (monotonic_s, wall_time_s)
        if before is None:
            self._time_s = monotonic_s if self._start_s is None else self._start_s
            return self._time_s, False
        passed, walled = monotonic_s - before[0], wall_time_s - before[1]
        broke = abs(walled - passed) > _JUMP_S or passed < 0
        if broke:
            passed = max(passed, walled if walled <= _LONGEST_S else 0.0, 0.0)
        self._time_s += passed
        return self._time_s, broke

    def place_of(self, monotonic_s: float) -> float:
        """Where a moment between the last two samples stands, or one just after the last."""
        last = self._before[0] if self._before else monotonic_s
        return self._time_s + monotonic_s - last
