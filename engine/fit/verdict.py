"""Does it fit? Verdicts as values; ``judge`` makes one from a budget."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.budget.model import Region


class Fit(StrEnum):
    """The four answers."""

    FITS = "fits"
    """Even the high estimate fits."""
    TIGHT = "tight"
    """Only the likely estimate fits."""
    DOES_NOT_FIT = "does_not_fit"
    """The likely estimate doesn't."""
    UNKNOWN = "unknown"
    """Only a bound is known, and it decides nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in words and bytes. Margins are positive when there is room."""

    fit: Fit
    margin_bytes: int
    """Likely: to spare if positive, over if negative. For a bound: at least / at most this."""
    worst_margin_bytes: int
    """With every estimate at its high end."""
    binding_rank: int
    binding_region: Region
    headline: str
    """``Fits, with 1.3 GiB to spare``."""
    detail: str
    """What the runtime will do: reserve, refuse, queue, spill."""
