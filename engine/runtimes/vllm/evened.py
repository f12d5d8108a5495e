"""One number of blocks for all ranks: what a rank could hold beyond it stays free.

Source:
    vLLM 0.11.1 ``v1/core/kv_cache_utils.py :: get_kv_cache_configs`` ("shrink the tensor size
    proportionally", pull request 25164). The first engine took the least of all ranks as well
    (``determine_num_available_blocks``); in between every rank filled its own share.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.runtimes.vllm.rules import Since
from engine.units import GIB
from engine.words import figures, tr

if TYPE_CHECKING:
    from engine.budget.model import RankBudget
    from engine.evidence import Estimate
    from engine.runtimes.vllm.settings import Settings
    from engine.runtimes.vllm.stage import StagePlan

_EVENED = Since[bool](((0,), True), ((0, 8), False), ((0, 11, 1), True))


def evened(
    settings: Settings, stages: tuple[StagePlan, ...], ranks: tuple[RankBudget, ...]
) -> tuple[RankBudget, ...]:
    """``ranks``, each with only as many blocks as the poorest of its replica has."""
    if len(ranks) == 1 or not _EVENED.at(settings.version):
        return ranks
    replica, tp = settings.deployment.ranks, settings.deployment.tensor_parallel_size
    found: list[RankBudget] = []
    for first in range(0, len(ranks), replica):
        group = ranks[first : first + replica]
        sizes = [_block_bytes(stages[at // tp]) for at in range(len(group))]
        blocks = [
            rank.regions[Region.KV_CACHE].estimate.likely_bytes // size
            for rank, size in zip(group, sizes, strict=True)
            if size
        ]
        least = min(blocks, default=0)
        found += [_cut(rank, size, least) for rank, size in zip(group, sizes, strict=True)]
    return tuple(found)


def _block_bytes(stage: StagePlan) -> int:
    """Bytes of a block; 0 where the stage keeps no cache."""
    return stage.layout.bytes_per_block if stage.layout is not None else 0


def _cut(rank: RankBudget, block_bytes: int, blocks: int) -> RankBudget:
    cache = rank.regions[Region.KV_CACHE]
    if not block_bytes:
        return rank
    over = (cache.estimate.likely_bytes // block_bytes - blocks) * block_bytes
    if not over:
        return rank
    said = tr("{over} unused, as the poorest rank’s pool is smaller").format(
        over=figures(format(over / GIB, ",.2f"))
    )
    headroom = rank.regions[Region.HEADROOM]
    changed = {
        Region.KV_CACHE: replace(
            cache,
            estimate=_grown(cache.estimate, -over, said),
            note=tr("{note}; {said}").format(note=cache.note, said=said),
        ),
        Region.HEADROOM: replace(
            headroom,
            estimate=_grown(headroom.estimate, over, tr("and {said}").format(said=said)),
            note=tr("{note}, and {said}").format(note=headroom.note, said=said),
        ),
    }
    return replace(rank, regions={**rank.regions, **changed}, unmatched_bytes=over)


def _grown(found: Estimate, by_bytes: int, said: str) -> Estimate:
    sizes = (found.low_bytes, found.likely_bytes, found.high_bytes)
    low, likely, high = (max(size + by_bytes, 0) for size in sizes)
    formula = (
        tr("{formula}; {said}").format(formula=found.formula, said=said) if found.formula else said
    )
    return replace(
        found, low_bytes=low, likely_bytes=likely, high_bytes=high, formula=formula, parts=()
    )
