"""Curves of memory made by hand, sampled at any rate, with noise and gaps."""

from __future__ import annotations

import random
from bisect import bisect_right
from typing import TYPE_CHECKING

from engine.overlay.seen import Moment
from engine.overlay.state import NOTHING_STATED, Stated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MIB, GIB = 2**20, 2**30
FOREIGN = round(0.41 * GIB)
Corner = tuple[float, float]
"""Second, and GiB of the plan's processes; straight lines between."""


def level(corners: Sequence[Corner], time_s: float) -> int:
    """Bytes at ``time_s``; after the last corner as there."""
    at = bisect_right([t for t, _ in corners], time_s)
    if at == 0:
        return round(corners[0][1] * GIB)
    if at == len(corners):
        return round(corners[-1][1] * GIB)
    (t0, g0), (t1, g1) = corners[at - 1], corners[at]
    return round((g0 + (g1 - g0) * (time_s - t0) / (t1 - t0)) * GIB)


def moments(
    corners: Sequence[Corner],
    every_s: float = 1.0,
    *,
    noise_bytes: int = 0,
    skip: Callable[[float], bool] = lambda _time: False,
    state: Callable[[float], Stated] = lambda _time: NOTHING_STATED,
    is_told: bool = True,
) -> Iterator[Moment]:
    """Samples of the curve from its first corner to its last."""
    chance = random.Random(7)
    time_s, end_s = corners[0][0], corners[-1][0]
    while time_s <= end_s:
        own = level(corners, time_s)
        shaken = max(own + chance.randint(-noise_bytes, noise_bytes), 0) if own else 0
        if not skip(time_s):
            yield Moment(
                1000 + time_s, FOREIGN + shaken, shaken if is_told else None, state(time_s)
            )
        time_s = round(time_s + every_s, 6)
