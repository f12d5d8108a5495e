"""What SGLang will do, in words: it starts with what pool it gets, and keeps long requests out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.units import format_gib
from engine.words import figures, grouped, tr

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
        return tr(
            "SGLang refuses to start: its weights, {weights}, leave "
            "nothing for a KV cache under {setting} {share}."
        ).format(weights=weights, setting=SETTING, share=figures(format(share, ".3g")))
    beside = (*_BESIDE, Region.FOREIGN) if region is Region.FOREIGN else _BESIDE
    wanted = sum(rank.regions[region].estimate.likely_bytes for region in beside)
    return tr(
        "SGLang takes {share} of the free memory for weights and pool; "
        "activations, graphs and tables take {wanted} beside them, {value} "
        "more than is left: it runs out of memory at start or with a long "
        "prompt."
    ).format(
        share=figures(format(share, ".3g")),
        wanted=format_gib(wanted, unit, digits=1),
        value=format_gib(-rank.free_bytes, unit, digits=1),
    )


def what_then(budget: Budget) -> str:
    """With a pool that is too small requests wait, or are refused one by one."""
    state = budget.sequence_state
    runs, tokens = int(state.max_concurrency or 0), state.pool_tokens or 0
    if not tokens:
        return tr("It refuses to start: nothing is left for a KV cache.")
    if runs < 1:
        return tr("It starts, but refuses requests of more than {tokens} tokens.").format(
            tokens=grouped(tokens)
        )
    return tr("It starts, but runs {runs} at once; the rest waits.").format(runs=grouped(runs))
