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
    refusals: tuple[str, ...] = ()
    """Why this release of the runtime refuses to start though the memory would do."""

    @property
    def outcome(self) -> Fit:
        """The answer for signs and exit statuses: a plan that is refused doesn't run."""
        return Fit.DOES_NOT_FIT if self.refusals else self.fit

    @property
    def starts(self) -> bool | None:
        """Whether the plan runs as asked for; None where that is not known."""
        return None if self.outcome is Fit.UNKNOWN else self.outcome is not Fit.DOES_NOT_FIT
