"""A budget whose rules are known of a near relative only: marked as a bound, with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.spec import Subject, direction_of
from engine.budget.bounds import counted
from engine.budget.model import Region

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.architecture.spec import Direction, Doubt
    from engine.budget.model import Budget, RankBudget

_REGIONS = {
    Subject.WEIGHTS: (Region.WEIGHTS,),
    Subject.SEQUENCE_STATE: (Region.KV_CACHE, Region.RECURRENT_STATE),
    Subject.ACTIVATIONS: (Region.ACTIVATIONS,),
}


def bound(budget: Budget, doubts: Sequence[Doubt]) -> Budget:
    """``budget`` with ``doubts`` added, and the regions that they are about as bounds."""
    if not doubts:
        return budget
    every = (*budget.doubts, *doubts)
    subjects = {doubt.subject: direction_of(every, doubt.subject) for doubt in doubts}
    ranks = tuple(_doubted(rank, subjects) for rank in budget.ranks)
    return replace(budget, ranks=ranks, doubts=every)


def _doubted(rank: RankBudget, subjects: Mapping[Subject, Direction | None]) -> RankBudget:
    regions = dict(rank.regions)
    needed = rank.needed
    for subject, direction in subjects.items():
        for name in _REGIONS[subject]:
            entry = regions[name]
            told = entry.estimate
            estimate = counted(
                told.likely_bytes, direction, told.basis, told.source, told.formula, told.label
            )
            regions[name] = replace(entry, estimate=estimate, least_bytes=None)
        if subject is Subject.SEQUENCE_STATE:
            needed = counted(needed.likely_bytes, direction, needed.basis, needed.source)
    return replace(rank, regions=regions, needed=needed)
