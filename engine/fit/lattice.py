"""A function of two whole numbers on a whole lattice, at the cost of the points that matter.

Made for budgets, which are nearly tokens times requests, with kinks where a window or a block
ends. A patch whose middle is what its ends let expect is interpolated; any other is halved along
the axis along which it bends.
"""

from __future__ import annotations

from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FIRST_PATCHES = (4, 2)
"""Patches across and up before any is halved."""
_AGREES_WITHIN = 32
"""A value is as expected when it is so within this part of itself, or the tolerance."""


def filled(
    value: Callable[[int, int], float],
    across: Sequence[int],
    up: Sequence[int],
    tolerance: float,
) -> list[list[float]]:
    """``value`` at every point of a lattice.

    Args:
        value: of a number of ``across`` and one of ``up``; NaN where it has none.
        across: rising; at least two.
        up: rising; at least two.
        tolerance: how far a middle may be from what is expected.

    Shapes:
        Result: rows × columns, ``len(up)`` × ``len(across)``.
    """
    lattice = _Lattice(value, across, up, tolerance)
    patches = [
        (left, right, low, high)
        for left, right in _parts(len(across) - 1, _FIRST_PATCHES[0])
        for low, high in _parts(len(up) - 1, _FIRST_PATCHES[1])
    ]
    while patches:
        patches += lattice.settle(*patches.pop())
    return lattice.rows()


def _parts(steps: int, wanted: int) -> list[tuple[int, int]]:
    parts = min(steps, wanted)
    edges = [steps * n // parts for n in range(parts + 1)]
    return list(pairwise(edges))


class _Lattice:
    def __init__(
        self,
        value: Callable[[int, int], float],
        across: Sequence[int],
        up: Sequence[int],
        tolerance: float,
    ) -> None:
        self._value, self._across, self._up, self._tolerance = value, across, up, tolerance
        self._known: dict[tuple[int, int], float] = {}
        self._expected: dict[tuple[int, int], float] = {}

    def rows(self) -> list[list[float]]:
        """All values, once every patch is settled."""
        all_of_it = self._expected | self._known
        width, height = len(self._across), len(self._up)
        return [[all_of_it[i, j] for i in range(width)] for j in range(height)]

    def settle(self, left: int, right: int, low: int, high: int) -> list[tuple[int, int, int, int]]:
        """Fill a patch, or return the smaller ones to settle instead."""
        middle, centre = (left + right) // 2, (low + high) // 2
        bends_across = right - left > 1 and not all(
            self._is_even((left, j), (right, j), (middle, j)) for j in (low, centre, high)
        )
        bends_up = high - low > 1 and not all(
            self._is_even((i, low), (i, high), (i, centre)) for i in (left, middle, right)
        )
        if not (bends_across or bends_up):
            self._fill(left, right, low, high)
            return []
        halves = ((left, middle), (middle, right)) if bends_across else ((left, right),)
        parts = ((low, centre), (centre, high)) if bends_up else ((low, high),)
        return [(*half, *part) for half in halves for part in parts]

    def _at(self, i: int, j: int) -> float:
        if (i, j) not in self._known:
            self._known[i, j] = self._value(self._across[i], self._up[j])
        return self._known[i, j]

    def _is_even(
        self, first: tuple[int, int], last: tuple[int, int], middle: tuple[int, int]
    ) -> bool:
        """Whether a middle is what its ends let expect; no value is so beside no values only."""
        start, end, found = self._at(*first), self._at(*last), self._at(*middle)
        if isnan(start) or isnan(end) or isnan(found):
            return isnan(start) and isnan(end) and isnan(found)
        share = _share(self._across, first[0], last[0], middle[0])
        if first[0] == last[0]:
            share = _share(self._up, first[1], last[1], middle[1])
        off = abs(found - _between(start, end, share))
        return off <= max(self._tolerance, abs(found) / _AGREES_WITHIN)

    def _fill(self, left: int, right: int, low: int, high: int) -> None:
        shares = [(i, _share(self._across, left, right, i)) for i in range(left, right + 1)]
        for j in range(low, high + 1):
            rise = _share(self._up, low, high, j)
            start = _between(self._at(left, low), self._at(left, high), rise)
            end = _between(self._at(right, low), self._at(right, high), rise)
            for i, share in shares:
                self._expected[i, j] = _between(start, end, share)


def _share(places: Sequence[int], first: int, last: int, index: int) -> float:
    """How far a place is on the way; places may be equal where an axis has few numbers."""
    return (places[index] - places[first]) / (places[last] - places[first] or 1)


def _between(start: float, end: float, share: float) -> float:
    return start + (end - start) * share if share else start
