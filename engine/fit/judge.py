"""Does it fit? One verdict from a budget: margins, the binding rank and region, the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.budget.model import Region
from engine.budget.phases import loading_bytes, outgrows
from engine.devices.device import DeviceKind, Vendor
from engine.fit import words
from engine.fit.verdict import Fit, Verdict
from engine.runtimes.registry import family
from engine.units import GIB, UnitSystem

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget
    from engine.devices.device import Device

_TAKE_A_SHARE = frozenset({"vllm", "sglang"})
_ROUNDS_TO_NOTHING = GIB // 20
"""Under 0.05 GiB a margin is shown as 0.0: too little to promise anything."""


class RankMargin(NamedTuple):
    """What one rank has to spare."""

    rank: int
    likely_bytes: int
    worst_bytes: int


def judge(budget: Budget, unit: UnitSystem = UnitSystem.BINARY) -> Verdict:
    """The verdict on ``budget``.

    A plan fits when even the high estimates do, is tight when only the likely ones do. A bound
    decides only in its own direction: what is counted at its most and fits, fits; where
    something isn't counted, nothing is promised; and what is certain and too much doesn't fit,
    whatever else is in doubt. ``unit`` is what the sentences write sizes in.
    """
    margins = planned = [rank_margin(rank) for rank in budget.ranks]
    likely = min([m.likely_bytes for m in margins])
    worst = min([m.worst_bytes for m in margins])
    fit = _fit(budget, likely, worst)
    certain = bool(budget.doubts) and fit is Fit.DOES_NOT_FIT
    if certain:
        margins = [certain_margin(budget, rank) for rank in budget.ranks]
    poorest = min(margins, key=lambda m: (m.likely_bytes, m.worst_bytes))
    index = margins.index(poorest)
    rank = budget.ranks[index]
    region = _binding_region(rank, -planned[index].likely_bytes, certain=certain)
    return Verdict(
        fit=fit,
        margin_bytes=poorest.likely_bytes,
        worst_margin_bytes=min(worst, poorest.likely_bytes),
        binding_rank=rank.rank,
        binding_region=region,
        headline=words.headline(budget, fit, poorest.likely_bytes, region, unit),
        detail=words.detail(budget, fit, rank, region, unit),
        refusals=budget.refusals,
    )


def rank_margin(rank: RankBudget) -> RankMargin:
    """To spare on one rank: of the pool where there is one, else below the load line.

    A load that for a moment takes more than the plan in the end is what has to fit.
    """
    free = rank.free_bytes
    if rank.moments.load:
        free = min(free, rank.slot.device.allocatable.likely_bytes - loading_bytes(rank))
    if not rank.has_pool:
        low = rank.slot.device.allocatable.low_bytes
        high = sum(r.estimate.high_bytes for r in rank.regions.values())
        return RankMargin(rank.rank, free, min(low - high, free))
    pool = rank.regions[Region.KV_CACHE].estimate
    likely = pool.likely_bytes + rank.unmatched_bytes - rank.needed.likely_bytes
    worst = pool.low_bytes + rank.unmatched_bytes - rank.needed.high_bytes
    if not rank.regions[Region.HEADROOM].estimate.likely_bytes:
        # Nothing is left beside the share: whatever grows there has no room.
        worst = min(worst, -1)
    if free < 0:
        # Start-up already asks for more than the device has: the pool's room is no comfort.
        likely, worst = min(likely, 0) + free, min(worst, 0) + free
    return RankMargin(rank.rank, likely, worst)


def certain_margin(budget: Budget, rank: RankBudget) -> RankMargin:
    """The most that one rank can have to spare: of what is in doubt only what is certain counts."""
    eased = 0
    for region, entry in rank.regions.items():
        pooled = rank.has_pool and region in (Region.KV_CACHE, Region.RECURRENT_STATE)
        if budget.direction(region) is not None and not pooled:
            eased += entry.estimate.likely_bytes - entry.estimate.low_bytes
    free = rank.free_bytes
    if not rank.has_pool:
        return RankMargin(rank.rank, free + eased, free + eased)
    pool = rank.regions[Region.KV_CACHE].estimate.likely_bytes + rank.unmatched_bytes
    if free < 0:
        # With a pool the share itself is too large; without, start-up takes more than the share.
        room = free if pool else free + eased
        spare = min(room, -1) if room <= 0 else room - rank.needed.low_bytes
    else:
        spare = pool + eased - rank.needed.low_bytes
    return RankMargin(rank.rank, spare, spare)


def _fit(budget: Budget, likely: int, worst: int) -> Fit:
    takes_share = family(budget.deployment.runtime) in _TAKE_A_SHARE
    if takes_share and not all(_has_pool_rules(rank.slot.device) for rank in budget.ranks):
        return Fit.UNKNOWN
    if budget.doubts:
        if any(certain_margin(budget, rank).likely_bytes < 0 for rank in budget.ranks):
            return Fit.DOES_NOT_FIT
        return Fit.FITS if budget.is_complete and worst >= 0 else Fit.UNKNOWN
    if likely < 0:
        return Fit.DOES_NOT_FIT
    if worst < 0 or likely < _ROUNDS_TO_NOTHING:
        return Fit.TIGHT
    return Fit.TIGHT if any(outgrows(rank) for rank in budget.ranks) else Fit.FITS


def _has_pool_rules(device: Device) -> bool:
    """Whether the rules of runtimes that take a pool (vLLM) are known for ``device``."""
    return device.kind is not DeviceKind.HOST and device.vendor is not Vendor.APPLE


def _binding_region(rank: RankBudget, over: int, *, certain: bool) -> Region:
    """The region to blame when a rank is too small by ``over``, or nearest to the edge.

    With ``certain``, of the cache only what is certainly needed is to blame.
    """
    sizes = {
        region: entry.estimate.low_bytes if certain else entry.estimate.likely_bytes
        for region, entry in rank.regions.items()
    }
    sizes[Region.KV_CACHE] = rank.needed.low_bytes if certain else rank.needed.likely_bytes
    allocatable = rank.slot.device.allocatable.likely_bytes
    if sizes[Region.WEIGHTS] >= allocatable:
        return Region.WEIGHTS
    if over > 0:
        # What a share holds beyond the plan: its pool, or what has to be free all the same.
        spare = rank.regions[Region.HEADROOM].estimate.likely_bytes
        if rank.has_pool:
            spare = rank.regions[Region.KV_CACHE].estimate.likely_bytes
        in_share = rank.free_bytes < 0 and (rank.has_pool or spare > 0)
        if in_share and sizes[Region.FOREIGN] >= -rank.free_bytes:
            return Region.FOREIGN
        if in_share and spare:
            return Region.HEADROOM
        if sizes[Region.KV_CACHE] < over:
            blamed = (Region.WEIGHTS, Region.KV_CACHE, Region.ACTIVATIONS, Region.FOREIGN)
            return max(blamed, key=sizes.__getitem__)
    if sizes[Region.KV_CACHE]:
        return Region.KV_CACHE
    return Region.WEIGHTS
