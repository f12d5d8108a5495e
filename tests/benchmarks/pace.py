"""How fast this machine is now, so that limits are ratios and not seconds of another machine.

A fixed piece of plain Python, of the kind that a plan is made of, is timed beside each figure. The
limits were set where it took ``USUAL_S``; where it takes longer, they are longer by as much.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

USUAL_S = 0.0105
NOISE = 1.5
"""How far past its limit a figure may lie before the test fails: what a shared machine was seen to
add to the same work within a minute. The table states figure and limit as they are."""


class _Part(NamedTuple):
    low: int
    likely: int
    words: str


def _work() -> int:
    found: dict[int, _Part] = {}
    for number in range(9000):
        likely = number * 4096 % 65_537
        found[number] = _Part(likely - number % 7, likely, f"{likely / 2**10:.2f} KiB")
    return sum(max(part.likely, part.low) for part in found.values() if part.words)


def _once() -> float:
    started = time.process_time()
    _work()
    return time.process_time() - started


def slowness(rounds: int = 15) -> float:
    """How many times as long as usual plain Python takes now; 1 on a faster machine too."""
    return max(1.0, statistics.median(_once() for _ in range(rounds)) / USUAL_S)


def allowed(limit_s: float) -> float:
    """What a figure may be here and now, for a limit on the usual machine."""
    return limit_s * slowness() * NOISE


def quietest(measure: Callable[[], float], limit_s: float, tries: int = 4) -> float:
    """The least of several measurements; the first within ``limit_s`` is enough.

    Noise only ever adds, so one that lies within shows what the work costs.
    """
    least = measure()
    for _ in range(tries - 1):
        if least <= limit_s:
            break
        least = min(least, measure())
    return least
