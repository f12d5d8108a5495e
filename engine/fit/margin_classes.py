"""Classes of margin, by which a map of plans is coloured on the screen and on paper."""

from __future__ import annotations

from itertools import groupby
from math import isnan
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.units import UnitSystem

CLASSES = ("map.over3", "map.over2", "map.over1", "map.fit1", "map.fit2", "map.fit3")
"""Colours of the classes of margin, from far over to plenty to spare."""
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_STEPS_PER_DEVICE = 12
_NEARLY = 1.15
"""A card of 24 GB has a little less than 24 GiB."""
_FAR_OVER = 8
"""The last step of what is over, in steps."""


def edges_bytes(total_bytes: int, unit: UnitSystem) -> tuple[int, ...]:
    """Where the classes of margin meet on a device of ``total_bytes``: round in ``unit``.

    For a card of 24 GiB: 16 and 2 over, none, 2 and 4 to spare.
    """
    tenths = total_bytes * 10 / unit.factor / _STEPS_PER_DEVICE
    step = max((s for s in _STEPS if s <= tenths * _NEARLY), default=1) * unit.factor // 10
    return (-_FAR_OVER * step, -step, 0, step, 2 * step)


def margin_class(margin_bytes: float, edges: tuple[int, ...]) -> int:
    """Which of ``CLASSES`` a margin belongs to; on an edge, to the better one."""
    return sum(margin_bytes >= edge for edge in edges)


class Run(NamedTuple):
    """Neighbouring cells of one class in a row, in parts of the map from its lower left corner."""

    name: str
    left: float
    right: float
    bottom: float
    top: float
    is_over: bool


def runs(margins: Sequence[Sequence[float]], edges: tuple[int, ...]) -> Iterator[Run]:
    """All cells whose margin is known, as few rectangles as rows allow."""
    height = len(margins)
    for number, row in enumerate(margins):
        classes = [-1 if isnan(margin) else margin_class(margin, edges) for margin in row]
        start = 0
        for found, group in groupby(classes):
            end = start + len(list(group))
            if found >= 0:
                over = found <= edges.index(0)
                bottom, top = number / height, (number + 1) / height
                yield Run(CLASSES[found], start / len(row), end / len(row), bottom, top, over)
            start = end
