"""Does it fit? One verdict from a budget: margins, the binding rank and region, the sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.devices.device import DeviceKind, Vendor
from engine.fit import words
from engine.fit.verdict import Fit, Verdict
from engine.units import GIB, UnitSystem

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget
    from engine.devices.device import Device

_ROUNDS_TO_NOTHING = GIB // 20
"""Under 0.05 GiB a margin is shown as 0.0: too little to promise anything."""


@dataclass(frozen=True, slots=True)
class RankMargin:
    """What one rank has to spare."""

    rank: int
    likely_bytes: int
    worst_bytes: int


def judge(budget: Budget, unit: UnitSystem = UnitSystem.BINARY) -> Verdict:
    """The verdict on ``budget``.

    A plan fits when even the high estimates do, is tight when only the likely ones do. A bound
    decides only in its own direction: an upper bound that fits, fits; a lower bound that
    doesn't, doesn't. ``unit`` is what the sentences write sizes in.
    """
    margins = [rank_margin(rank) for rank in budget.ranks]
    poorest = min(margins, key=lambda m: (m.likely_bytes, m.worst_bytes))
    worst = min(m.worst_bytes for m in margins)
    fit = _fit(budget, poorest.likely_bytes, worst)
    rank = budget.ranks[margins.index(poorest)]
    region = binding_region(rank)
    return Verdict(
        fit=fit,
        margin_bytes=poorest.likely_bytes,
        worst_margin_bytes=min(worst, poorest.likely_bytes),
        binding_rank=rank.rank,
        binding_region=region,
        headline=words.headline(budget, fit, poorest.likely_bytes, region, unit),
        detail=words.detail(budget, fit, rank, region, unit),
    )


def rank_margin(rank: RankBudget) -> RankMargin:
    """To spare on one rank: of the pool where there is one, else below the load line."""
    free = rank.free_bytes
    if not rank.has_pool:
        low = rank.slot.device.allocatable.low_bytes
        high = sum(r.estimate.high_bytes for r in rank.regions.values())
        return RankMargin(rank.rank, free, min(low - high, free))
    pool = rank.regions[Region.KV_CACHE].estimate
    likely = pool.likely_bytes - rank.needed.likely_bytes
    worst = pool.low_bytes - rank.needed.high_bytes
    if not rank.regions[Region.HEADROOM].estimate.likely_bytes:
        # Nothing is left beside the share: whatever grows there has no room.
        worst = min(worst, -1)
    if free < 0:
        # Start-up already asks for more than the device has: the pool's room is no comfort.
        likely, worst = min(likely, 0) + free, min(worst, 0) + free
    return RankMargin(rank.rank, likely, worst)


def _fit(budget: Budget, likely: int, worst: int) -> Fit:
    if any(rank.has_pool and not _has_pool_rules(rank.slot.device) for rank in budget.ranks):
        return Fit.UNKNOWN
    if budget.bounds:
        if budget.bounds_are_upper and worst >= 0:
            return Fit.FITS
        if not budget.bounds_are_upper and likely < 0:
            return Fit.DOES_NOT_FIT
        return Fit.UNKNOWN
    if likely < 0:
        return Fit.DOES_NOT_FIT
    return Fit.FITS if worst >= 0 and likely >= _ROUNDS_TO_NOTHING else Fit.TIGHT


def _has_pool_rules(device: Device) -> bool:
    """Whether the rules of runtimes that take a pool (vLLM) are known for ``device``."""
    return device.kind is not DeviceKind.HOST and device.vendor is not Vendor.APPLE


def binding_region(rank: RankBudget) -> Region:
    """The region to blame when a rank is too small, or nearest to the edge."""
    sizes = {region: entry.estimate.likely_bytes for region, entry in rank.regions.items()}
    sizes[Region.KV_CACHE] = rank.needed.likely_bytes
    allocatable = rank.slot.device.allocatable.likely_bytes
    if sizes[Region.WEIGHTS] >= allocatable:
        return Region.WEIGHTS
    over = -rank_margin(rank).likely_bytes
    if over > 0:
        if rank.has_pool and rank.free_bytes < 0 and sizes[Region.FOREIGN] >= -rank.free_bytes:
            return Region.FOREIGN
        if (
            rank.has_pool
            and rank.free_bytes < 0
            and rank.regions[Region.KV_CACHE].estimate.likely_bytes
        ):
            return Region.HEADROOM
        if sizes[Region.KV_CACHE] < over:
            blamed = (Region.WEIGHTS, Region.KV_CACHE, Region.ACTIVATIONS, Region.FOREIGN)
            return max(blamed, key=sizes.__getitem__)
    if sizes[Region.KV_CACHE]:
        return Region.KV_CACHE
    return Region.WEIGHTS
