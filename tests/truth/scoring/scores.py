"""One measured figure beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.evidence import Basis

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.evidence import Estimate

_NO_SOURCE_STATES = {Basis.FITTED, Basis.ASSUMED}
"""Bases of a constant that comes from measured records or judgement, not from a runtime's code."""


@dataclass(frozen=True, slots=True)
class Score:
    """A figure that a runtime reported, and what the engine says of it."""

    record: str
    runtime: str
    versions: str
    """Range of releases that the record falls into."""
    family: str
    """Type of the model, for groups that are left out together."""
    figure: str
    """What is compared: a region, or a count."""
    wanted: float
    low: float
    likely: float
    high: float
    within: float
    """Half a unit of the last printed digit."""
    is_region: bool
    """Whether it is a region with a stated range (and not a count)."""
    traits: frozenset[str] = frozenset()
    """What a bar asks for: ``dense``, ``16-bit`` …"""
    release: str = ""
    """The release it was measured on, for groups that are left out together."""
    law: str = ""
    """What of the figure is fitted (see ``law_of``); empty where all of it follows from source."""

    @property
    def error(self) -> float:
        """Relative error; 0 where the figure agrees to its last printed digit."""
        off = abs(self.likely - self.wanted)
        if off <= self.within:
            return 0.0
        return off / abs(self.wanted) if self.wanted else float("inf")

    @property
    def signed(self) -> float:
        """The error with its sign: above 0 where ours is more."""
        return self.error if self.likely >= self.wanted else -self.error

    @property
    def off(self) -> float:
        """Bytes or count between ours and the figure, beyond its last printed digit."""
        return max(0.0, abs(self.likely - self.wanted) - self.within)

    @property
    def is_inside(self) -> bool:
        """Whether the figure lies in our stated range, its last digit allowed for."""
        return self.low - self.within <= self.wanted <= self.high + self.within

    @property
    def width(self) -> float:
        """Width of our range relative to the figure."""
        return (self.high - self.low) / abs(self.wanted) if self.wanted else 0.0


@dataclass(frozen=True, slots=True)
class Missed:
    """A figure that is not scored, and why."""

    record: str
    runtime: str
    figure: str
    reason: str


def span(estimate: Estimate) -> tuple[float, float, float]:
    """Low, likely, high of an estimate."""
    return estimate.low_bytes, estimate.likely_bytes, estimate.high_bytes


def law_of(estimates: Iterable[Estimate]) -> str:
    """Which constant decides how wide the sum of ``estimates`` is; empty where none was fitted.

    Records with one law stand for each other when their constants are fitted again.
    """
    fitted = [leaf for one in estimates for leaf in _leaves(one) if leaf.basis in _NO_SOURCE_STATES]
    if not fitted:
        return ""
    widest = max(fitted, key=lambda leaf: leaf.high_bytes - leaf.low_bytes)
    return f"{widest.label}: {widest.source}"


def _leaves(estimate: Estimate) -> Iterator[Estimate]:
    if estimate.parts:
        for part in estimate.parts:
            yield from _leaves(part)
    elif not estimate.is_point:
        yield estimate
