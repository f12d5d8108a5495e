"""vLLM's budget: a share of the device, less what start-up takes, is the KV pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget import sequence_state as state
from engine.budget.model import Budget, SequenceState
from engine.budget.weights import AS_STORED
from engine.formats.kv import KV_DTYPES
from engine.formats.weights import FORMATS
from engine.runtimes.platforms import on_platform, platform_of
from engine.runtimes.taught import taught
from engine.runtimes.vllm import cache_rules, rules
from engine.runtimes.vllm.evened import evened
from engine.runtimes.vllm.hardware import device_warnings
from engine.runtimes.vllm.parallel import in_doubt
from engine.runtimes.vllm.rank import Need, rank_budget
from engine.runtimes.vllm.settings import Settings, settle
from engine.runtimes.vllm.speculation import opened
from engine.runtimes.vllm.stage import runtime_doubts, stage_plans
from engine.runtimes.vllm.start import longest, pools, refusals
from engine.units import ceil_div

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import RankBudget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.runtimes.vllm.layout import PoolLayout
    from engine.runtimes.vllm.stage import StagePlan
    from engine.runtimes.vllm.start import Pool


class Vllm:
    """vLLM with the rules of 0.2 to 0.33."""

    name = "vllm"
    label = "vLLM"
    versions: tuple[str, ...] = rules.VERSIONS
    kv_cache_dtypes: tuple[str, ...] = KV_DTYPES

    def weight_formats(self, model: Model) -> tuple[str, ...]:
        """As stored, and every format vLLM loads or quantises to."""
        names = (n for n in FORMATS if not n.startswith("mlx") and n != model.spec.weight_format)
        return () if model.is_gguf else (AS_STORED, *names)

    @taught
    def plan(self, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        """The budget of every rank.

        Raises:
            DeploymentError: the deployment is impossible; names the field to correct.
        """
        model = in_doubt(opened(model, deployment), deployment)
        machine = on_platform(machine, platform_of(deployment, machine))
        settings = settle(model, deployment, machine)
        stages, ranks = _planned(model, settings, machine)
        held = pools(settings, stages, ranks)
        if settings.fits_length:
            most = longest(model, settings, [pool for _, pool in held])
            settings = settings.with_length(most)
            stages, ranks = _planned(model, settings, machine)
            held = pools(settings, stages, ranks)
        warnings = list(settings.warnings)
        warnings += device_warnings(model, deployment, machine.slots[0].device, settings.dtype)
        return Budget(
            model=model,
            deployment=settings.deployment,
            machine=machine,
            ranks=evened(settings, stages, ranks),
            sequence_state=_sequence_state(model, settings, held),
            assumptions=settings.assumptions,
            warnings=tuple(warnings),
            refusals=refusals(model, settings, [pool for _, pool in held]),
            doubts=runtime_doubts(model, settings),
        )


def _planned(
    model: Model, settings: Settings, machine: Machine
) -> tuple[tuple[StagePlan, ...], tuple[RankBudget, ...]]:
    """Every pipeline stage, and every rank on its own device."""
    need = _need(settings)
    stages = stage_plans(model, settings, need.tokens)
    replica = settings.deployment.ranks
    ranks = tuple(
        rank_budget(
            settings,
            stages[(i % replica) // settings.deployment.tensor_parallel_size],
            need,
            i,
            machine.slots[i],
        )
        for i in range(replica * settings.deployment.data_parallel_size)
    )
    return stages, ranks


def _need(settings: Settings) -> Need:
    """Requests of one replica and the tokens each of them holds."""
    deployment = settings.deployment
    requests = ceil_div(deployment.concurrency, deployment.data_parallel_size)
    tokens = settings.context
    if deployment.live_tokens is not None:
        tokens = min(tokens, ceil_div(deployment.live_tokens, deployment.concurrency))
    return Need(requests, max(tokens, 1))


def _sequence_state(
    model: Model, settings: Settings, held: list[tuple[StagePlan, Pool]]
) -> SequenceState:
    """The pool's arithmetic; the poorest rank decides for all."""
    spec, context = model.spec, settings.context
    least = state.architecture_bytes(spec, settings.kv_dtype, context, settings.dtype)
    formula = state.sequence_equation(spec, settings.kv_dtype, context, settings.dtype)
    tp = settings.deployment.tensor_parallel_size
    if not held:
        return SequenceState(least, 0, 0, formula=formula)
    stage, pool = min(held, key=lambda entry: entry[1].blocks)
    blocks, layout = pool.blocks, pool.layout
    printed = layout.printed_blocks(context, stage.request)
    return SequenceState(
        architecture_bytes_per_sequence=least,
        reserved_bytes_per_sequence=stage.blocks_at_most * layout.bytes_per_block,
        bytes_per_token=ceil_div(
            state.token_growth_bytes(spec, settings.kv_dtype, context, stage.layers, tp),
            stage.request.context_parallel,
        ),
        pool_bytes=pool.size_bytes,
        num_blocks=blocks,
        block_size=layout.block_size,
        bytes_per_block=layout.bytes_per_block,
        pool_tokens=_pool_tokens(settings, layout, blocks, printed),
        max_concurrency=_concurrency(settings, layout, blocks, printed),
        formula=formula,
    )


def _concurrency(settings: Settings, layout: PoolLayout, blocks: int, per_request: int) -> float:
    """The "Maximum concurrency" line, which came from tokens once."""
    if cache_rules.CONCURRENCY_BY_BLOCKS.at(settings.version):
        return blocks / per_request
    return blocks * layout.block_size / settings.context


def _pool_tokens(settings: Settings, layout: PoolLayout, blocks: int, per_request: int) -> int:
    """The "GPU KV cache size" line, which changed its meaning."""
    if cache_rules.TOKENS_BY_CONCURRENCY.at(settings.version):
        return blocks * settings.context // per_request
    parallel = settings.deployment.decode_context_parallel_size
    # Where only states are kept, a block stands for a whole request.
    tokens = layout.least_block_tokens or settings.context
    return blocks // layout.num_groups * tokens * parallel
