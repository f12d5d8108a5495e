"""Places for labels that want to stand beside their marks but must not touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places as near as can be to ``wanted``, ``gap`` apart, between ``low`` and ``high``.

    The least-squares answer: labels that would overlap form a block, and a block stands at
    the mean of what its members want (pool adjacent violators).

    Args:
        wanted: places in rising order.
        gap: least distance between neighbours.
        low: least place of the first.
        high: greatest place of the last.

    Raises:
        ValueError: there is no room; ``capacity`` says how many have.
    """
    if len(wanted) > capacity(gap, low, high):
        message = f"{len(wanted)} labels {gap} apart do not fit between {low} and {high}"
        raise ValueError(message)
    blocks: list[tuple[float, int]] = []
    for index, place in enumerate(wanted):
        mean, size = place - index * gap, 1
        while blocks and blocks[-1][0] > mean:
            below, count = blocks.pop()
            mean = (below * count + mean * size) / (count + size)
            size += count
        blocks.append((mean, size))
    ceiling = high - (len(wanted) - 1) * gap
    starts = [min(max(mean, low), max(low, ceiling)) for mean, size in blocks for _ in range(size)]
    return [start + index * gap for index, start in enumerate(starts)]


def capacity(gap: float, low: float, high: float) -> int:
    """How many labels fit ``gap`` apart between ``low`` and ``high``, both included."""
    return int((high - low) / gap + 1e-9) + 1 if high >= low else 0


def steps(span: float, room: float, least: float, *, binary: bool) -> float:
    """The smallest tick step, in units, that keeps ticks ``least`` pixels apart.

    Args:
        span: units shown.
        room: pixels for them.
        least: pixels between ticks, at least.
        binary: powers of two from 1 on (GiB), else 1, 2, 5, 10 (GB); below 1 always decimal.
    """
    small = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    large = (1, 2, 4) if binary else (1, 2, 5)
    factor = 8 if binary else 10
    scale = 1
    choices = [*small, *large]
    while True:
        for choice in choices:
            if span and choice * scale * room / span >= least:
                return choice * scale
        scale *= factor
        choices = list(large)
        if scale > 1e9:
            return float(scale)
