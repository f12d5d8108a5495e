"""Rows of the scoreboard: per runtime, range of releases and figure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import TYPE_CHECKING

from tests.truth.scoring.versions import order_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.truth.scoring.scores import Score

_FLOAT = 1e-9
"""What a product of floats may be too much by."""


@dataclass(frozen=True, slots=True)
class Row:
    """How far the figures of one kind are from what was measured."""

    runtime: str
    versions: str
    figure: str
    count: int
    exact: int
    median: float
    p95: float
    worst: float
    inside: float | None
    """Share within our stated range; None for counts, which have none."""
    width: float | None
    """Median width of that range, relative to the figure."""

    @property
    def outside(self) -> float:
        """Share outside our stated range; 0 for counts."""
        return 0.0 if self.inside is None else 1 - self.inside

    @property
    def key(self) -> str:
        """What names the row in the baseline."""
        return f"{self.runtime} · {self.versions} · {self.figure}"


def rows(scores: Iterable[Score]) -> list[Row]:
    """One row per runtime, range and figure."""
    groups: dict[tuple[str, str, str], list[Score]] = defaultdict(list)
    for score in scores:
        groups[score.runtime, score.versions, score.figure].append(score)
    ordered = sorted(groups, key=lambda key: (key[0], order_of(key[1]), key[2]))
    return [row(*key, groups[key]) for key in ordered]


def row(runtime: str, versions: str, figure: str, found: Sequence[Score]) -> Row:
    """The figures of one group."""
    errors = sorted(score.error for score in found)
    ranged = [score for score in found if score.is_region]
    return Row(
        runtime,
        versions,
        figure,
        len(found),
        sum(error == 0 for error in errors),
        median(errors),
        percentile(errors, 0.95),
        errors[-1],
        sum(s.is_inside for s in ranged) / len(ranged) if ranged else None,
        median(s.width for s in ranged) if ranged else None,
    )


def worst_of(scores: Iterable[Score], count: int) -> list[Score]:
    """Figures that are off: outside our range first, then by error."""
    off = [score for score in scores if score.error]
    return sorted(off, key=lambda s: (s.is_inside, -s.error, s.record, s.figure))[:count]


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of ``ordered`` does not exceed."""
    return ordered[max(ceil(share * len(ordered) - _FLOAT) - 1, 0)]


def percent(value: float | None, digits: int = 2) -> str:
    """A share for a table."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"
