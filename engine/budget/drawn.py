"""What a region takes in pictures and tables: where a pool is too small, what is needed of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region

if TYPE_CHECKING:
    from engine.budget.model import RankBudget
    from engine.evidence import Estimate


def needed_bytes(rank: RankBudget) -> int:
    """What the plan needs of the KV segment: all that is needed, less the recurrent state."""
    if not rank.has_pool:
        return rank.regions[Region.KV_CACHE].estimate.likely_bytes
    state = rank.regions[Region.RECURRENT_STATE].estimate.likely_bytes
    return max(0, rank.needed.likely_bytes - state)


def drawn_bytes(rank: RankBudget, region: Region) -> int:
    """Height of a region: its estimate, or what is needed where a pool is too small for it."""
    likely = rank.regions[region].estimate.likely_bytes
    return max(likely, needed_bytes(rank)) if region is Region.KV_CACHE else likely


def drawn_estimate(rank: RankBudget, region: Region) -> Estimate:
    """What the height of a region rests on: where a pool is too small, on what is needed."""
    own = rank.regions[region].estimate
    return rank.needed if drawn_bytes(rank, region) > own.likely_bytes else own
