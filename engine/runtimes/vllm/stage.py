"""What all tensor-parallel ranks of one pipeline stage have in common."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import AttentionKind, Subject, direction_of
from engine.budget import sequence_state as state
from engine.budget.bounds import least
from engine.budget.model import Region, RegionBudget
from engine.budget.sequence_state import CACHED
from engine.budget.sharding import VOCAB_MULTIPLE
from engine.budget.weights import WeightLayout, parameters, weights
from engine.evidence import Basis
from engine.formats.weights import FORMATS
from engine.runtimes.kept import doubts_in
from engine.runtimes.vllm import cache_rules, rules
from engine.runtimes.vllm.activations import Step, gathers
from engine.runtimes.vllm.adapters import Slots, slots_bytes
from engine.runtimes.vllm.drafting import draft_doubts
from engine.runtimes.vllm.encoders import largest
from engine.runtimes.vllm.layout import PoolLayout, PoolRule, RequestRule
from engine.runtimes.vllm.loader import Loading, resident
from engine.runtimes.vllm.loading import transients
from engine.runtimes.vllm.overheads import sampler_buffers
from engine.runtimes.vllm.parallel import (
    has_experts,
    kept_whole,
    layers_per_stage,
)
from engine.runtimes.vllm.pool import pool_layout
from engine.runtimes.vllm.runner import Runner
from engine.runtimes.vllm.speculation import drafts_itself
from engine.units import align_up, ceil_div, format_gib
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import Direction, Doubt
    from engine.budget.weights import StageWeights, Weights
    from engine.deployment.spec import Deployment
    from engine.evidence import Estimate
    from engine.runtimes.vllm.settings import Settings


class StagePlan(NamedTuple):
    """One pipeline stage, before it meets a device."""

    layers: range
    weights: RegionBudget
    loading: tuple[Estimate, ...]
    """Beside the weights at the worst moment of loading them."""
    step: Step
    """What its largest step is; a device decides what that takes."""
    layout: PoolLayout | None
    buffers: Estimate | None
    """Persistent buffers of model runner 2: in the share since 0.27, beside it before."""
    equation: str
    """The least of one request, whole model."""
    request: RequestRule
    blocks_per_request: int
    """Of a request that holds what the plan says."""
    blocks_at_most: int
    """Of a request at ``max_model_len``: vLLM starts only where one such fits."""
    least_per_request_bytes: int
    state_in_doubt: Direction | None
    """Which way what a request takes is in doubt."""


def stage_plans(model: Model, settings: Settings, tokens: int) -> tuple[StagePlan, ...]:
    """Every stage; ``tokens`` is what each request holds."""
    layout = _weight_layout(model, settings)
    found = weights(model, layout)
    return tuple(
        _stage_plan(model, settings, layout, index, tokens) for index in range(len(found.stages))
    )


def _weight_layout(model: Model, settings: Settings) -> WeightLayout:
    deployment = settings.deployment
    return WeightLayout(
        weight_format=deployment.weight_format,
        tensor_parallel_size=deployment.tensor_parallel_size,
        pipeline_parallel_size=deployment.pipeline_parallel_size,
        enable_expert_parallel=deployment.enable_expert_parallel,
        with_mtp=bool(drafts_itself(deployment) and (model.spec.mtp or model.spec.uncounted_mtp)),
        vocab_multiple=VOCAB_MULTIPLE,
        halve_float32=True,
        text_only=deployment.language_model_only,
        left_out=rules.LEFT_OUT.get(model.spec.root_type, ()),
        layers_per_stage=layers_per_stage(model.spec, deployment, settings.version),
        replicas=deployment.data_parallel_size if has_experts(model.spec) else 1,
        whole=kept_whole(model.spec, deployment, settings.version),
    )


def _stage_plan(
    model: Model, settings: Settings, weight_layout: WeightLayout, index: int, tokens: int
) -> StagePlan:
    spec, deployment = model.spec, settings.deployment
    tp = deployment.tensor_parallel_size
    found = weights(model, weight_layout)
    stage = found.stages[index]
    layout = pool_layout(spec, stage.layers.start, stage.layers.stop, pool_rule(model, settings))
    request = request_rule(model, settings)
    slots = Slots(deployment.max_loras, deployment.max_lora_rank, settings.version)
    split, width = weight_layout.split, settings.element_bytes
    adapters = slots.adapters and slots_bytes(spec, stage.layers, split, slots, width)
    capability = int(settings.capability)
    stages = deployment.pipeline_parallel_size
    step = _step(model, settings, index, (stage.layers, found.weight_format), layout)
    draft = deployment.draft_model if index == stages - 1 else None
    loading = Loading(
        split,
        width,
        capability,
        settings.version,
        adapters,
        draft,
        stages,
        settings.vendor,
        settings.tokens,
    )
    return StagePlan(
        layers=stage.layers,
        weights=_weights_region(model, weight_layout, index, loading),
        loading=transients(model, stage.layers, found.weight_format, loading),
        step=step,
        layout=layout,
        buffers=_buffers(step, layout, settings.context),
        equation=state.sequence_equation(spec, settings.kv_dtype, tokens, settings.dtype),
        request=request,
        blocks_per_request=layout.blocks_per_request(tokens, request) if layout else 0,
        blocks_at_most=layout.blocks_per_request(settings.context, request) if layout else 0,
        least_per_request_bytes=state.rank_bytes(
            spec,
            settings.kv_dtype,
            ceil_div(tokens, request.context_parallel),
            stage.layers,
            tp,
            settings.dtype,
        ),
        state_in_doubt=direction_of(runtime_doubts(model, settings), Subject.SEQUENCE_STATE),
    )


def _step(
    model: Model,
    settings: Settings,
    index: int,
    layers_and_format: tuple[range, str],
    layout: PoolLayout | None,
) -> Step:
    deployment = settings.deployment
    layers, weight_format = layers_and_format
    stages = deployment.pipeline_parallel_size
    item = None
    if not deployment.language_model_only:
        item = largest(model, settings.tokens, settings.context)
    return Step(
        spec=model.spec,
        version=settings.version,
        tokens=settings.tokens,
        rows=settings.rows if layout is not None else 0,
        gathered=settings.context if gathers(model.spec) else 0,
        element_bytes=settings.element_bytes,
        tensor_parallel_size=deployment.tensor_parallel_size,
        data_parallel_size=deployment.data_parallel_size,
        expert_parallel=deployment.enable_expert_parallel,
        weight_format=weight_format,
        first_stage=index == 0,
        last_stage=index == stages - 1,
        passes_on=stages > 1,
        drafts=deployment.speculative_tokens,
        draft_layers=_draft_layers(model, deployment),
        capability=settings.capability,
        layers=layers,
        captures_graphs=not deployment.enforce_eager,
        adapters=deployment.max_loras > 0,
        keeps_cache=layout is not None,
        item=item,
    )


def _buffers(step: Step, layout: PoolLayout | None, context: int) -> Estimate | None:
    if layout is None or not step.last_stage or step.runner is not Runner.V2:
        return None
    tables = layout.num_groups * ceil_div(context, layout.block_size)
    return sampler_buffers(step.spec.vocab_size, step.rows, tables)


def _draft_layers(model: Model, deployment: Deployment) -> int:
    """Layers that draft, beside the model's own."""
    if not deployment.speculative_tokens:
        return 0
    draft = deployment.draft_model
    return len(draft.spec.layers if draft else model.spec.mtp_attentions)


def pool_rule(model: Model, settings: Settings) -> PoolRule:
    """What the layout of the pool depends on under these settings."""
    deployment = settings.deployment
    return PoolRule(
        kv_dtype=settings.kv_dtype,
        tensor_parallel_size=deployment.tensor_parallel_size,
        block_size=_block_size(model, settings),
        hybrid_groups=cache_rules.HYBRID_GROUPS.at(settings.version),
        group_slack=cache_rules.GROUP_SLACK.at(settings.version),
        speculative_tokens=deployment.speculative_tokens,
        with_mtp=bool(drafts_itself(deployment) and model.spec.mtp),
        draft=deployment.draft_model.spec if deployment.draft_model else None,
        dtype=settings.dtype,
        keeps_latents=cache_rules.LATENTS.at(settings.version),
        states_as_stated=cache_rules.STATES_AS_STATED.at(settings.version),
        state_tokens=max(_checkpoint_tokens(model, settings), 1),
        pads_least=cache_rules.PADS_LEAST.at(settings.version),
        pads_tuples=cache_rules.PADDED_SETS.at(settings.version),
    )


def runtime_doubts(model: Model, settings: Settings) -> tuple[Doubt, ...]:
    """The model's doubts, and those about what this release of vLLM keeps of it."""
    known = cache_rules.PACKING_KNOWN.at(settings.version)
    if settings.deployment.pipeline_parallel_size > 1:
        # How sets were shared out among stages is not established.
        known = known and not cache_rules.PADDED_SETS.at(settings.version)
    found = doubts_in(model.spec, "vLLM", packs_entries=known)
    return (*found, *draft_doubts(settings.deployment))


def _block_size(model: Model, settings: Settings) -> int:
    """Tokens of a block that the kernels for the model's attention take."""
    kinds = state.attention_kinds(model.spec)
    latent = any(a.kind is AttentionKind.LATENT and a.kv_lora_rank == 512 for a in kinds)
    if any(a.index_head_dim for a in kinds):
        return cache_rules.INDEXED_BLOCK if latent else cache_rules.SELECTED_BLOCK
    usual = settings.block_tokens
    blocks = cache_rules.LATENT_BLOCKS.at(settings.version)
    found = blocks.get(int(settings.capability), usual) if latent else usual
    asked = settings.deployment.block_size
    return align_up(asked, found) if asked and latent else asked or found


def request_rule(model: Model, settings: Settings) -> RequestRule:
    """How many blocks a request takes under these settings."""
    deployment = settings.deployment
    state_blocks = 1 + deployment.speculative_tokens + int(bool(deployment.enable_prefix_caching))
    return RequestRule(
        tokens_in_flight=settings.tokens * _steps_in_flight(settings),
        state_blocks=state_blocks + int(_checkpoint_tokens(model, settings) > 0),
        context_parallel=deployment.decode_context_parallel_size,
        encoder_tokens=settings.tokens,
    )


def _steps_in_flight(settings: Settings) -> int:
    stages = settings.deployment.pipeline_parallel_size
    kept = cache_rules.STEPS_IN_FLIGHT.at(settings.version)
    if kept == "runner 1":
        return 2 if stages == 1 else stages
    return stages + 1 if kept == "runner 2" else 1


def _checkpoint_tokens(model: Model, settings: Settings) -> int:
    """Tokens between which states are written inside a prompt; 0 where they are not."""
    if not settings.deployment.enable_prefix_caching:
        return 0
    kinds = {la.state.kind for la, _ in state.layer_kinds(model.spec) if la.state is not None}
    kind = kinds.pop() if len(kinds) == 1 else ""
    cards = cache_rules.CHECKPOINT_CARDS.get(kind)
    if cards is not None and int(settings.capability) not in cards:
        return 0
    return cache_rules.CHECKPOINTS.at(settings.version).get(kind, 0)


@lru_cache(maxsize=CACHED)
def _weights_region(
    model: Model, layout: WeightLayout, index: int, loading: Loading
) -> RegionBudget:
    found = weights(model, layout)
    stage = found.stages[index]
    estimate = resident(model, found, stage, loading)
    names = ", ".join(part.label for part in estimate.parts[1:])
    extra = format_gib(estimate.likely_bytes - stage.size_bytes)
    return RegionBudget(
        Region.WEIGHTS,
        estimate,
        least(stage.size_bytes, found.direction),
        _weights_note(model, found, stage, pipelined=layout.pipeline_parallel_size > 1),
        tr("{extra} more than the tensors: {names}.").format(extra=extra, names=names)
        if names
        else "",
    )


def _weights_note(model: Model, found: Weights, stage: StageWeights, *, pipelined: bool) -> str:
    if found.basis is Basis.READ:
        note = tr("Tensor sizes in the file header, plus buffers")
    else:
        known = FORMATS.get(found.weight_format)
        label = known.label if known else found.weight_format
        note = tr("{spec} parameters in {label}, plus buffers").format(
            spec=grouped(parameters(model.spec)), label=label
        )
    if not pipelined:
        return note
    return tr("Layers {start} to {stop}; {note}").format(
        start=stage.layers.start, stop=stage.layers.stop - 1, note=note
    )
