"""A logarithmic axis of whole numbers: places on the screen, ticks, and steps along it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log2

STEPS_PER_OCTAVE = 4
_COARSE = 128
"""From 2,048 on a place is a multiple of this, so that moving along gives round numbers."""


@dataclass(frozen=True, slots=True)
class LogAxis:
    """From ``low`` at the place ``start`` to ``high`` at ``end``; either may be the greater."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The place of ``value``."""
        share = log2(value / self.low) / log2(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def value(self, place: float) -> float:
        """What stands at ``place``, within the axis."""
        share = min(max((place - self.start) / (self.end - self.start), 0.0), 1.0)
        return self.low * (self.high / self.low) ** share

    def ticks(self, least_apart: float) -> list[int]:
        """Octaves, or every second, third … so that they keep ``least_apart``."""
        octave = abs(self.end - self.start) / log2(self.high / self.low)
        every = max(1, ceil(least_apart / octave))
        first, last = ceil(log2(self.low) - 1e-9), floor(log2(self.high) + 1e-9)
        return [2**n for n in range(first, last + 1, every)]


def stepped(value: int, steps: int, *, rounded: bool) -> int:
    """The number ``steps`` quarter octaves on, and at least one further.

    ``rounded`` keeps to round numbers of tokens.
    """
    here = log2(value) * STEPS_PER_OCTAVE
    target = floor(here + 1e-6) + steps if steps > 0 else ceil(here - 1e-6) + steps
    exact = 2 ** (target / STEPS_PER_OCTAVE)
    found = nearest_round(exact) if rounded else round(exact)
    return max(found, value + 1) if steps > 0 else min(found, value - 1)


def nearest_round(tokens: float) -> int:
    """The nearest number of tokens that is round for its size."""
    grain = _COARSE if tokens >= 16 * _COARSE else _COARSE // 4
    if tokens < 4 * grain:
        return max(1, round(tokens))
    return round(tokens / grain) * grain
