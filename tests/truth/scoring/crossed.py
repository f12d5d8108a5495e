"""Fits scored on records that they have not seen: fitted again without a group at a time.

Most of a budget follows from a runtime's source and is scored as it is. Where a constant was fitted
to records that are scored too, the figure is scored once more without them:

1. Records under one constant stand together (``Score.law``).
2. A residual is what was measured less what we say, in units of our own range, so that records of
   small and of large models compare.
3. One group at a time is left out: all records of a model family, or all of a release. What we say
   of the group moves by the median residual of the others. Its range moves along; the stricter
   range is fitted again too, and holds 95 % of the others' residuals (all, if fewer than 40).

Where fewer than three records are left to fit to, there is no such figure: the constant rests on
the group alone.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from tests.truth.scoring.tables import Row, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tests.truth.scoring.scores import Score

FEWEST = 3
"""Records of other groups without which nothing is fitted."""
_BEYOND = 0.025
"""Share of the others' residuals beyond either end of a range that is fitted to them."""


@dataclass(frozen=True, slots=True)
class Held:
    """A score as the records of other groups have it."""

    moved: Score
    """With our range around it."""
    ranged: Score
    """With the range that the others fill."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a fitted figure with its own records, or without."""

    runtime: str
    figure: str
    scored: str
    row: Row
    ranged: Row | None = None
    """The same in the range that was fitted to the others."""


def by_family(score: Score) -> str:
    """The group of a model family."""
    return score.family


def by_release(score: Score) -> str:
    """The group of a release."""
    return score.release


def lines(scores: Iterable[Score]) -> Iterator[Line]:
    """Every fitted figure: as it is, without its model family, and without its release."""
    figures: dict[tuple[str, str], list[Score]] = defaultdict(list)
    for score in scores:
        if _is_fitted(score):
            figures[score.runtime, score.figure].append(score)
    for (runtime, figure), found in sorted(figures.items()):
        yield Line(runtime, figure, "as fitted", row(runtime, "all", figure, found))
        for name, group in (("family", by_family), ("release", by_release)):
            held = list(refitted(found, group))
            if held:
                moved = row(runtime, "all", figure, [one.moved for one in held])
                ranged = row(runtime, "all", figure, [one.ranged for one in held])
                yield Line(runtime, figure, f"without its {name}", moved, ranged)


def held_out(scores: Sequence[Score]) -> list[Score]:
    """Scores without their own model family; those that nothing is left to fit to are gone."""
    held = [one.moved for one in refitted(scores, by_family)]
    ours = {score.record: score.likely for score in scores if score.figure == "kv_pool"}
    grown = {s.record: s.likely / ours[s.record] for s in held if s.figure == "kv_pool"}
    for score in scores:
        if score.figure.endswith(" from scratch") and score.record in ours:
            if score.record in grown:  # What fits into a pool grows with it.
                held.append(replace(score, likely=score.likely * grown[score.record]))
        elif not _is_fitted(score):
            held.append(score)
    return held


def refitted(scores: Iterable[Score], group: Callable[[Score], str]) -> Iterator[Held]:
    """Every fitted score, as the records of other groups have it."""
    laws: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        if _is_fitted(score):
            laws[f"{score.runtime} {score.figure} {score.law}"].append(score)
    for peers in laws.values():
        for left_out in sorted({group(score) for score in peers}):
            others = sorted(_residual(score) for score in peers if group(score) != left_out)
            if len(others) >= FEWEST:
                yield from (_held(s, others) for s in peers if group(s) == left_out)


def _is_fitted(score: Score) -> bool:
    return bool(score.law) and score.low < score.high


def _residual(score: Score) -> float:
    """What was measured less what we say, in units of our range."""
    return (score.wanted - score.likely) / (score.high - score.low) if score.error else 0.0


def _held(score: Score, others: Sequence[float]) -> Held:
    unit, cut = score.high - score.low, int(_BEYOND * len(others))
    step = unit * median(others)
    moved = replace(score, low=score.low + step, likely=score.likely + step, high=score.high + step)
    low, high = (score.likely + unit * others[at] for at in (cut, -1 - cut))
    return Held(moved, replace(moved, low=low, high=high))
