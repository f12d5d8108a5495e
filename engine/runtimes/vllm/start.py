"""vLLM's checks at start: the longest context that it finds room for, and refusals of its own.

Source:
    vLLM 0.33 ``v1/core/kv_cache_planning.py :: get_kv_cache_configs`` and
    ``config/compilation.py``; by version in ``cache_rules``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.budget.model import Region
from engine.runtimes.checks import too_long
from engine.runtimes.vllm import cache_rules
from engine.runtimes.vllm.pool import pool_layout
from engine.runtimes.vllm.stage import pool_rule, request_rule
from engine.units import GIB
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import RankBudget
    from engine.runtimes.vllm.layout import PoolLayout, RequestRule
    from engine.runtimes.vllm.settings import Settings
    from engine.runtimes.vllm.stage import StagePlan


class Pool(NamedTuple):
    """The pool of one rank and how it is cut."""

    layout: PoolLayout
    size_bytes: int

    @property
    def blocks(self) -> int:
        """Blocks that the pool holds, the one that is never given out among them."""
        return self.size_bytes // self.layout.bytes_per_block


def pools(
    settings: Settings, stages: tuple[StagePlan, ...], ranks: tuple[RankBudget, ...]
) -> list[tuple[StagePlan, Pool]]:
    """Every rank's pool with its stage, of ranks whose layers keep a cache."""
    deployment = settings.deployment
    found: list[tuple[StagePlan, Pool]] = []
    for rank in ranks:
        stage = stages[(rank.rank % deployment.ranks) // deployment.tensor_parallel_size]
        if stage.layout is not None:
            size = rank.regions[Region.KV_CACHE].estimate.likely_bytes
            found.append((stage, Pool(stage.layout, size)))
    return found


def longest(model: Model, settings: Settings, held: list[Pool]) -> int:
    """The most tokens of one request that pass the check on every rank; 1 where none do."""
    request = request_rule(model, settings)
    checked = [_whole(model, settings, held)] if _checks_whole(settings) else held
    found = (_longest(settings, pool, request) for pool in checked if pool is not None)
    return min(found, default=settings.context)


def refusals(model: Model, settings: Settings, held: list[Pool]) -> tuple[str, ...]:
    """Why this release does not start where every rank has room for a longest request."""
    if not held:
        return ()
    reasons = (
        _too_small_a_step(settings),
        _too_much_for_one_stage(model, settings, held),
        _too_many_rows(settings, held),
        too_long(model.spec, settings.deployment, "vLLM", "VLLM_ALLOW_LONG_MAX_MODEL_LEN"),
    )
    found = tuple(reason for reason in reasons if reason)
    if not found:
        return ()
    request = request_rule(model, settings)
    has_room = all(_passes(settings, pool, settings.context, request) for pool in held)
    return found if has_room else ()


def _too_small_a_step(settings: Settings) -> str:
    """``SchedulerConfig.verify_max_model_len``: a token of a step for every request at least."""
    if settings.tokens >= settings.rows:
        return ""
    return tr(
        "max_num_batched_tokens {tokens} is less than max_num_seqs {rows}: vLLM refuses that."
    ).format(tokens=grouped(settings.tokens), rows=grouped(settings.rows))


def _passes(settings: Settings, pool: Pool, tokens: int, request: RequestRule) -> bool:
    kept = int(cache_rules.NULL_BLOCK_KEPT.at(settings.version)) * pool.layout.bytes_per_block
    needed = pool.layout.blocks_per_request(tokens, request) * pool.layout.bytes_per_block
    return needed <= pool.size_bytes - kept


def _longest(settings: Settings, pool: Pool, request: RequestRule) -> int:
    low, high = 1, settings.context
    while low < high:
        middle = (low + high + 1) // 2
        if _passes(settings, pool, middle, request):
            low = middle
        else:
            high = middle - 1
    return low


def _checks_whole(settings: Settings) -> bool:
    pipelined = settings.deployment.pipeline_parallel_size > 1
    return pipelined and cache_rules.WHOLE_MODEL_CHECK.at(settings.version)


def _whole(model: Model, settings: Settings, held: list[Pool]) -> Pool | None:
    """All layers of the model against the poorest pool."""
    layout = pool_layout(model.spec, 0, len(model.spec.layers), pool_rule(model, settings))
    return layout and Pool(layout, min(pool.size_bytes for pool in held))


def _too_much_for_one_stage(model: Model, settings: Settings, held: list[Pool]) -> str:
    whole = _whole(model, settings, held) if _checks_whole(settings) else None
    if whole is None:
        return ""
    request = request_rule(model, settings)
    if _passes(settings, whole, settings.context, request):
        return ""
    layout = whole.layout
    needed = layout.blocks_per_request(settings.context, request) * layout.bytes_per_block
    most = _longest(settings, whole, request)
    works = tr("max_model_len {most} starts, and so does").format(most=grouped(most))
    if not _passes(settings, whole, most, request):
        works = tr("What starts is")
    return tr(
        "vLLM {runtime_version} holds what all layers need for one "
        "request, {needed} GiB, against the {size_bytes} GiB of "
        "the poorest pipeline stage, and refuses to start. {works} a "
        "release before 0.14 or since 0.17."
    ).format(
        runtime_version=settings.deployment.runtime_version,
        needed=figures(format(needed / GIB, ".2f")),
        size_bytes=figures(format(whole.size_bytes / GIB, ".2f")),
        works=works,
    )


def _too_many_rows(settings: Settings, held: list[Pool]) -> str:
    if settings.deployment.enforce_eager or not cache_rules.STATES_BOUND_ROWS.at(settings.version):
        return ""
    blocks = min(pool.blocks for pool in held)
    if settings.rows <= blocks or not any(pool.layout.has_state for pool in held):
        return ""
    return tr(
        "max_num_seqs {rows} is more than the {blocks} blocks of the "
        "pool: vLLM refuses to capture CUDA graphs for a model with states "
        "then. max_num_seqs {blocks} or less starts, and so does "
        "enforce_eager."
    ).format(rows=grouped(settings.rows), blocks=grouped(blocks))
