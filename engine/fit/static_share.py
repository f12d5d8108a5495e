"""What SGLang will do, in words: it starts with what pool it gets, and keeps long requests out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.units import format_gib

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget
    from engine.units import UnitSystem

SETTING = "mem_fraction_static"
_BESIDE = (Region.ACTIVATIONS, Region.CUDA_GRAPHS, Region.ALLOCATOR)


def too_large(budget: Budget, rank: RankBudget, region: Region, unit: UnitSystem) -> str:
    """Start-up asks for more than there is, because of ``region``."""
    share = budget.deployment.mem_fraction_static or 1.0
    if not rank.regions[Region.KV_CACHE].estimate.likely_bytes:
        weights = format_gib(rank.regions[Region.WEIGHTS].estimate.likely_bytes, unit, digits=1)
        return (
            f"SGLang refuses to start: its weights, {weights}, leave nothing for a KV cache under "
            f"{SETTING} {share:.3g}."
        )
    beside = (*_BESIDE, Region.FOREIGN) if region is Region.FOREIGN else _BESIDE
    wanted = sum(rank.regions[region].estimate.likely_bytes for region in beside)
    return (
        f"SGLang takes {share:.3g} of the free memory for weights and pool; activations, graphs "
        f"and tables take {format_gib(wanted, unit, digits=1)} beside them, "
        f"{format_gib(-rank.free_bytes, unit, digits=1)} more than is left: it runs out of memory "
        "at start or with a long prompt."
    )


def what_then(budget: Budget) -> str:
    """With a pool that is too small requests wait, or are refused one by one."""
    state = budget.sequence_state
    runs, tokens = int(state.max_concurrency or 0), state.pool_tokens or 0
    if not tokens:
        return "It refuses to start: nothing is left for a KV cache."
    if runs < 1:
        return f"It starts, but refuses requests of more than {tokens:,} tokens."
    return f"It starts, but runs {runs:,} at once; the rest waits."
