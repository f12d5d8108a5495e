"""One rank of a vLLM deployment: its regions, and the pool that is left."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget import sequence_state as state
from engine.budget.model import RankBudget, Region, RegionBudget
from engine.budget.sharding import VOCAB_MULTIPLE
from engine.budget.weights import WeightLayout, parameters, weights
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.weights import FORMATS
from engine.runtimes import overheads as device_overheads
from engine.runtimes.vllm import overheads, rules
from engine.runtimes.vllm.loader import Loading, lora_bytes, resident
from engine.runtimes.vllm.pool import PoolLayout, PoolRule, RequestRule, pool_layout
from engine.units import GIB, ceil_div, format_gib

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.weights import StageWeights, Weights
    from engine.devices.device import Device, Slot
    from engine.runtimes.vllm.settings import Settings

_RESERVES = "vLLM takes the whole rest of its share at start, whatever the plan needs."


@dataclass(frozen=True, slots=True)
class Need:
    """What the plan asks of one replica."""

    requests: int
    tokens: int
    """Held by each request."""


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What all tensor-parallel ranks of one pipeline stage have in common."""

    layers: range
    weights: Estimate
    weights_least_bytes: int
    weights_note: str
    activations: Estimate
    graphs: Estimate
    graph_sizes: int
    sampler: Estimate | None
    layout: PoolLayout | None
    blocks_per_request: int
    least_per_request_bytes: int

    @property
    def request_bytes(self) -> int:
        """Blocks of one request at the plan's context."""
        return self.blocks_per_request * self.layout.bytes_per_block if self.layout else 0


def stage_plans(model: Model, settings: Settings, tokens: int) -> tuple[StagePlan, ...]:
    """Every stage; ``tokens`` is what each request holds."""
    found = weights(model, _weight_layout(model, settings))
    return tuple(
        _stage_plan(model, settings, found, index, tokens) for index in range(len(found.stages))
    )


def _weight_layout(model: Model, settings: Settings) -> WeightLayout:
    deployment = settings.deployment
    return WeightLayout(
        weight_format=deployment.weight_format,
        tensor_parallel_size=deployment.tensor_parallel_size,
        pipeline_parallel_size=deployment.pipeline_parallel_size,
        enable_expert_parallel=deployment.enable_expert_parallel,
        with_mtp=bool(deployment.speculative_tokens and model.spec.mtp),
        vocab_multiple=VOCAB_MULTIPLE,
        halve_float32=True,
    )


def _stage_plan(
    model: Model, settings: Settings, found: Weights, index: int, tokens: int
) -> StagePlan:
    spec, deployment = model.spec, settings.deployment
    tp, pp = deployment.tensor_parallel_size, deployment.pipeline_parallel_size
    stage = found.stages[index]
    layout = pool_layout(spec, stage.layers.start, stage.layers.stop, _pool_rule(model, settings))
    request = request_rule(settings)
    first, last = index == 0, index == pp - 1
    step = overheads.Step(
        version=settings.version,
        tokens=settings.tokens,
        rows=settings.rows,
        element_bytes=settings.element_bytes,
        tensor_parallel_size=tp,
        weight_format=found.weight_format,
        first_stage=first,
        last_stage=last,
        passes_on=pp > 1,
    )
    sizes = 0
    graphs = overheads.nothing("enforce_eager captures no graphs")
    if not deployment.enforce_eager:
        sizes = rules.capture_sizes(
            settings.rows, settings.tokens, deployment.speculative_tokens, settings.version
        )
        graphs = overheads.cuda_graphs(spec, len(stage.layers), sizes, settings.version)
    adapters = deployment.max_loras and deployment.max_loras * lora_bytes(
        spec, stage.layers, tp, deployment.max_lora_rank
    )
    loading = Loading(tp, settings.element_bytes, deployment.enable_expert_parallel, adapters)
    return StagePlan(
        layers=stage.layers,
        weights=resident(spec, found, stage, loading),
        weights_least_bytes=stage.size_bytes,
        weights_note=_weights_note(model, found, stage, tp * pp),
        activations=overheads.activations(spec, step),
        graphs=graphs,
        graph_sizes=sizes,
        sampler=_sampler(model, settings, layout) if last else None,
        layout=layout,
        blocks_per_request=layout.blocks_per_request(tokens, request) if layout else 0,
        least_per_request_bytes=state.rank_bytes(spec, settings.kv_dtype, tokens, stage.layers, tp),
    )


def _pool_rule(model: Model, settings: Settings) -> PoolRule:
    deployment = settings.deployment
    return PoolRule(
        kv_dtype=settings.kv_dtype,
        tensor_parallel_size=deployment.tensor_parallel_size,
        block_size=_block_size(model, settings),
        hybrid_groups=rules.HYBRID_GROUPS.at(settings.version),
        group_slack=rules.GROUP_SLACK.at(settings.version),
        speculative_tokens=deployment.speculative_tokens,
        with_mtp=bool(deployment.speculative_tokens and model.spec.mtp),
    )


def _block_size(model: Model, settings: Settings) -> int:
    # FlashMLA, the kernel for latents of 512 on Hopper and Blackwell, takes blocks of 64.
    latent = any(
        a.kind is AttentionKind.LATENT and a.kv_lora_rank == 512
        for a in state.attention_kinds(model.spec)
    )
    return 64 if latent and settings.capability >= 9 else 16


def request_rule(settings: Settings) -> RequestRule:
    """How many blocks a request takes under these settings."""
    deployment = settings.deployment
    batches = deployment.pipeline_parallel_size
    batches += rules.STEPS_IN_FLIGHT.at(settings.version) - 1
    state_blocks = 1 + deployment.speculative_tokens + int(bool(deployment.enable_prefix_caching))
    return RequestRule(
        tokens_in_flight=settings.tokens * batches,
        state_blocks=state_blocks,
        context_parallel=deployment.decode_context_parallel_size,
    )


def _sampler(model: Model, settings: Settings, layout: PoolLayout | None) -> Estimate | None:
    if not rules.SAMPLER_BUFFERS.at(settings.version):
        return None
    tables = 0
    if layout is not None:
        tables = layout.num_groups * ceil_div(settings.context, layout.block_size)
    return overheads.sampler_buffers(model.spec.vocab_size, settings.rows, tables)


def _weights_note(model: Model, found: Weights, stage: StageWeights, ranks: int) -> str:
    if found.basis is Basis.READ:
        note = "Tensor sizes in the file header, plus buffers"
    else:
        known = FORMATS.get(found.weight_format)
        label = known.label if known else found.weight_format
        note = f"{parameters(model.spec):,} parameters in {label}, plus buffers"
    return note if ranks == 1 else f"Layers {stage.layers.start} to {stage.layers.stop - 1}; {note}"


def rank_budget(
    settings: Settings, stage: StagePlan, need: Need, rank: int, slot: Slot
) -> RankBudget:
    """The regions of one rank. Together they reach the load line unless the plan is over it."""
    needed = _needed(stage, need)
    fixed = _fixed(settings, stage, slot.device)
    pool, raw_bytes = _pool(settings, stage, fixed, slot.device)
    regions = {
        Region.WEIGHTS: _weights_region(stage),
        Region.KV_CACHE: _kv_region(settings, stage, need, needed, pool),
        Region.RECURRENT_STATE: _recurrent_region(stage),
        Region.ACTIVATIONS: RegionBudget(
            Region.ACTIVATIONS,
            stage.activations,
            None,
            f"{settings.tokens:,} tokens a step, {settings.rows:,} sampled rows",
        ),
        Region.CUDA_GRAPHS: _graphs_region(settings, stage),
        Region.RUNTIME: RegionBudget(
            Region.RUNTIME, fixed.runtime, fixed.context_bytes, _parts_note(fixed.runtime)
        ),
        Region.ALLOCATOR: RegionBudget(
            Region.ALLOCATOR, overheads.slack(), 0, "Held but unused, outside the budget"
        ),
    }
    regions[Region.HEADROOM] = _headroom(settings, regions, slot, raw_bytes)
    regions[Region.FOREIGN] = RegionBudget(
        Region.FOREIGN, slot.foreign, slot.foreign.likely_bytes, slot.foreign.source
    )
    return RankBudget(rank, slot, regions, needed, has_pool=True)


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What lies in and beside the share, pool apart."""

    inside: Estimate
    """Weights, activations, buffers and, since 0.21, graphs: taken out of the share."""
    runtime: Estimate
    context_bytes: int


def _fixed(settings: Settings, stage: StagePlan, device: Device) -> _Fixed:
    deployment = settings.deployment
    tp, pp = deployment.tensor_parallel_size, deployment.pipeline_parallel_size
    growth = overheads.inside(device, settings.version, tp, pp)
    context = device_overheads.context(device)
    charged = [growth] if stage.sampler is None else [growth, stage.sampler]
    runtime = total([context, overheads.outside(tp * pp), *charged])
    parts = [stage.weights, stage.activations, *charged]
    if rules.GRAPHS_INSIDE.at(settings.version):
        parts.append(stage.graphs)
    return _Fixed(total(parts, "vLLM", "share"), runtime, context.likely_bytes)


def _pool(
    settings: Settings, stage: StagePlan, fixed: _Fixed, device: Device
) -> tuple[Estimate, int]:
    """The pool, and the same with its sign: negative when nothing is left."""
    if stage.layout is None:
        return exactly(0, Basis.EXACT, "no layer keeps a cache"), 0
    given = settings.deployment.kv_pool_bytes
    if given is not None:
        return exactly(given, Basis.SETTING, "kv_pool_bytes as given"), given
    share, allocatable = settings.utilisation, device.allocatable
    asked = [
        ceil(share * size)
        for size in (allocatable.low_bytes, allocatable.likely_bytes, allocatable.high_bytes)
    ]
    inside = fixed.inside
    raw = asked[1] - inside.likely_bytes
    formula = (
        f"{share:g} × {_gib(allocatable.likely_bytes)} − "
        + " − ".join(_gib(part.likely_bytes) for part in inside.parts)
        + f" = {_gib(raw)} GiB"
    )
    estimate = Estimate(
        max(asked[0] - inside.high_bytes, 0),
        max(raw, 0),
        max(asked[2] - inside.low_bytes, 0),
        Basis.FITTED,
        f"vLLM {settings.deployment.runtime_version}: share of the device less what start-up takes",
        formula,
    )
    return estimate, raw


def _needed(stage: StagePlan, need: Need) -> Estimate:
    if stage.layout is None:
        return exactly(0, Basis.EXACT, "no layer keeps a cache")
    # One block, the null block, is never given out.
    blocks = need.requests * stage.blocks_per_request + 1
    size = blocks * stage.layout.bytes_per_block
    formula = (
        f"({need.requests} × {stage.blocks_per_request:,} blocks + 1) × "
        f"{stage.layout.bytes_per_block:,} B"
    )
    return exactly(size, Basis.EXACT, "vLLM v1/core/kv_cache_utils.py", formula)


def _weights_region(stage: StagePlan) -> RegionBudget:
    extra = stage.weights.likely_bytes - stage.weights_least_bytes
    names = ", ".join(part.label for part in stage.weights.parts[1:])
    gap = f"{format_gib(extra)} more than the tensors: {names}." if names else ""
    return RegionBudget(
        Region.WEIGHTS, stage.weights, stage.weights_least_bytes, stage.weights_note, gap
    )


def _kv_region(
    settings: Settings, stage: StagePlan, need: Need, needed: Estimate, pool: Estimate
) -> RegionBudget:
    if stage.layout is None:
        return RegionBudget(Region.KV_CACHE, pool, 0, "This model keeps none")
    least = need.requests * stage.least_per_request_bytes
    wants = _gib(needed.likely_bytes)
    note = f"Rest of {settings.utilisation:g} × the load line; the plan needs {wants}"
    if settings.deployment.kv_pool_bytes is not None:
        note = f"Pool as given; the plan needs {wants}"
    gap = _RESERVES
    blocks = need.requests * stage.request_bytes
    if blocks > least:
        gap += f" In blocks the plan takes {_gib(blocks)} in place of {_gib(least)} GiB."
    return RegionBudget(Region.KV_CACHE, pool, least, note, gap)


def _recurrent_region(stage: StagePlan) -> RegionBudget:
    held = stage.layout is not None and stage.layout.has_state
    note = "Held in blocks of the pool" if held else "This model keeps none"
    return RegionBudget(Region.RECURRENT_STATE, overheads.nothing(note), None, note)


def _graphs_region(settings: Settings, stage: StagePlan) -> RegionBudget:
    note = f"{stage.graph_sizes} capture sizes"
    if not stage.graph_sizes:
        note = "None: enforce_eager"
    elif not rules.GRAPHS_INSIDE.at(settings.version):
        note += ", on top of the budget before 0.21"
    return RegionBudget(Region.CUDA_GRAPHS, stage.graphs, 0, note)


def _headroom(
    settings: Settings, regions: dict[Region, RegionBudget], slot: Slot, raw_bytes: int
) -> RegionBudget:
    """What is left of the device beside the share; never less than nothing."""
    allocatable, foreign = slot.device.allocatable, slot.foreign
    planned = sum(r.estimate.likely_bytes for r in regions.values())
    planned += min(raw_bytes, 0) + foreign.likely_bytes
    likely = max(allocatable.likely_bytes - planned, 0)
    spread = sum(
        regions[r].estimate.high_bytes - regions[r].estimate.likely_bytes
        for r in (Region.RUNTIME, Region.ALLOCATOR)
    )
    estimate = Estimate(
        max(likely - spread, 0),
        likely,
        likely + spread,
        Basis.SETTING,
        "what gpu_memory_utilization leaves",
        f"{_gib(allocatable.likely_bytes)} − {_gib(planned)} = {_gib(likely)} GiB",
    )
    note = f"1 − {settings.utilisation:g}, less context, slack, others"
    if settings.deployment.kv_pool_bytes is not None:
        note = "What the given pool leaves"
    return RegionBudget(Region.HEADROOM, estimate, 0, note)


def _parts_note(estimate: Estimate) -> str:
    shown = [f"{p.label} {_gib(p.likely_bytes)}" for p in estimate.parts if p.likely_bytes]
    return ", ".join(shown)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.2f}"
