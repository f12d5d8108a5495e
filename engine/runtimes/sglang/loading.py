"""Weights of one rank as SGLang holds them after loading ("mem usage" of its log)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind, ModuleClass
from engine.budget.bounds import counted, least
from engine.budget.model import Region, RegionBudget
from engine.budget.sequence_state import CACHED, attention_kinds, layer_kinds
from engine.budget.weights import StageWeights, WeightLayout, parameters, weights
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.weights import FORMATS
from engine.runtimes.sglang.parallel import stage_sizes
from engine.units import MIB, align_up, ceil_div, format_gib

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.budget.weights import Weights
    from engine.runtimes.sglang.settings import Settings

_VOCAB_MULTIPLE = 64
_NO_ROTARY = ("gpt2", "gpt_bigcode", "opt", "bloom", "mpt", "xglm", "biogpt", "falcon_mamba")
_PARTLY_ROTARY = (
    "phi_", "gpt_neox", "stablelm", "glm", "chatglm", "minimax", "qwen3_next", "qwen3_5",
    "nemotron", "persimmon", "gptj", "codegen",
)  # fmt: skip
"""Types that turn a part of each head only; the part is not in the architecture."""
_TWO_BASES = ("gemma3", "gemma4")
"""Types whose sliding and full layers turn by different bases: two tables."""
_ROTARY_BYTES = 4
"""SGLang keeps cosines and sines in 32 bits on CUDA (``rotary_embedding.py``)."""
_LEFT_ON_ONE = "eight starts on one device: 0 to 0.11 GiB more than tensors and rotary table"
_LEFT_ON_SEVERAL = "two starts on four devices: 0.18 and 0.22 GiB more than their share"
_LEFT_ELSEWHERE = "starts on MI355X and Intel: 0 to 0.5 GiB more than tensors and rotary table"


@dataclass(frozen=True, slots=True)
class Split:
    """What of a deployment decides a rank's weights."""

    weight_format: str
    tensor_parallel_size: int
    pipeline_parallel_size: int
    attention_tp: int
    enable_expert_parallel: bool
    with_mtp: bool
    loras: int
    lora_rank: int
    element_bytes: int
    """Of the model's own dtype."""
    is_cuda: bool


def split_of(model: Model, settings: Settings) -> Split:
    """The split of ``settings``."""
    deployment = settings.deployment
    return Split(
        deployment.weight_format,
        deployment.tensor_parallel_size,
        deployment.pipeline_parallel_size,
        settings.parallel.attention_tp,
        deployment.enable_expert_parallel,
        bool(settings.drafts and (model.spec.mtp or model.spec.uncounted_mtp)),
        deployment.max_loras,
        deployment.max_lora_rank,
        settings.element_bytes,
        settings.is_cuda,
    )


@lru_cache(maxsize=CACHED)
def loaded(model: Model, split: Split) -> tuple[tuple[range, RegionBudget], ...]:
    """Layers and weights of every pipeline stage."""
    found = weights(model, _layout(model.spec, split, split.tensor_parallel_size))
    stages = found.stages
    if split.attention_tp < split.tensor_parallel_size:
        stages = _with_own_attention(model, split, found)
    return tuple(
        (stage.layers, _region(model, split, found, stage, index))
        for index, stage in enumerate(stages)
    )


def _layout(spec: ArchitectureSpec, split: Split, tp: int) -> WeightLayout:
    multiple = _VOCAB_MULTIPLE
    if align_up(max(spec.vocab_size, 1), multiple) % tp:
        multiple *= tp
    return WeightLayout(
        weight_format=split.weight_format,
        tensor_parallel_size=tp,
        pipeline_parallel_size=split.pipeline_parallel_size,
        enable_expert_parallel=split.enable_expert_parallel,
        with_mtp=split.with_mtp,
        vocab_multiple=multiple,
        halve_float32=True,
        layers_per_stage=stage_sizes(len(spec.layers), split.pipeline_parallel_size),
    )


def _with_own_attention(model: Model, split: Split, found: Weights) -> tuple[StageWeights, ...]:
    """Under data-parallel attention a rank has its group's attention and the whole embedding."""
    ours = weights(model, _layout(model.spec, split, split.attention_tp))
    whole = weights(model, _layout(model.spec, split, 1))
    merged: list[StageWeights] = []
    for stage, attention, alone in zip(found.stages, ours.stages, whole.stages, strict=True):
        by_module = dict(stage.by_module)
        for module, source in (
            (ModuleClass.ATTENTION, attention),
            (ModuleClass.EMBEDDING, alone),
        ):
            if module in by_module:
                by_module[module] = source.by_module.get(module, 0)
        merged.append(replace(stage, by_module=by_module, size_bytes=sum(by_module.values())))
    return tuple(merged)


def _region(
    model: Model, split: Split, found: Weights, stage: StageWeights, index: int
) -> RegionBudget:
    spec = model.spec
    stored = counted(stage.size_bytes, found.direction, found.basis, found.source, label="tensors")
    further = (
        _rotary_tables(spec, split),
        _absorbed(spec, stage.layers, split, found),
        _adapters(spec, stage.layers, split),
        _left_behind(split),
    )
    parts = [stored, *(part for part in further if part is not None)]
    formula = " + ".join(f"{part.likely_bytes:,} B ({part.label})" for part in parts)
    estimate = total(parts, formula=formula)
    extra = format_gib(estimate.likely_bytes - stage.size_bytes)
    names = ", ".join(part.label for part in parts[1:])
    if found.basis is Basis.READ:
        note = "Tensor sizes in the file header, plus buffers"
    else:
        known = FORMATS.get(found.weight_format)
        label = known.label if known else found.weight_format
        note = f"{parameters(spec):,} parameters in {label}, plus buffers"
    if split.pipeline_parallel_size > 1:
        note = f"Layers {stage.layers.start} to {stage.layers.stop - 1}; {note}"
    known_least = least(stage.size_bytes, found.direction)
    gap = f"{extra} more than the tensors: {names}."
    return RegionBudget(Region.WEIGHTS, estimate, known_least, note, gap)


def _rotary_tables(spec: ArchitectureSpec, split: Split) -> Estimate | None:
    """Cosines and sines of every position, once for the whole model.

    Llama-3.1-8B prints 15.02 GiB: 16,060,522,496 B of tensors and 131,072 × 128 × 4 B.
    """
    attention = next(iter(attention_kinds(spec)), None)
    if attention is None or not spec.max_position_embeddings:
        return None
    if spec.model_type.startswith(_NO_ROTARY):
        return None
    width = attention.qk_rope_head_dim or attention.head_dim
    positions = spec.max_position_embeddings
    if spec.model_type.startswith(_TWO_BASES):
        positions *= 2
    each = _ROTARY_BYTES if split.is_cuda else split.element_bytes
    size = positions * width * each
    formula = f"{positions:,} positions × {width} × {each} B"
    source, label = "SGLang layers/rotary_embedding.py", "rotary table"
    if f"{spec.model_type}_".startswith(_PARTLY_ROTARY):
        return Estimate(0, size // 2, size, Basis.ASSUMED, source, f"up to {formula}", label)
    return exactly(size, Basis.EXACT, source, formula, label)


def _absorbed(
    spec: ArchitectureSpec, layers: range, split: Split, found: Weights
) -> Estimate | None:
    """MLA's up-projections, copied into the order in which decoding multiplies by them.

    Source:
        SGLang ``deepseek_common/deepseek_weight_loader.py``: ``w_kc`` and ``w_vc``.
    """
    size = 0
    for layer, count in layer_kinds(spec, layers.start, layers.stop):
        a = layer.attention
        if a is not None and a.kind is AttentionKind.LATENT:
            heads = ceil_div(a.num_attention_heads, split.attention_tp)
            size += a.kv_lora_rank * heads * (a.qk_nope_head_dim + a.v_head_dim) * count
    if not size:
        return None
    in_fp8 = found.weight_format.startswith("fp8")
    likely = size if in_fp8 else 2 * size
    source = "SGLang deepseek_weight_loader.py: w_kc and w_vc"
    return Estimate(size, likely, 2 * size, Basis.FITTED, source, "", "absorbed projections")


def _adapters(spec: ArchitectureSpec, layers: range, split: Split) -> Estimate | None:
    if not split.loras:
        return None
    sizes = sum(
        (ceil_div(t.shape[0], split.tensor_parallel_size) + t.shape[1]) * t.copies * count
        for layer, count in layer_kinds(spec, layers.start, layers.stop)
        for t in layer.tensors
        if t.linear and len(t.shape) == 2
    )
    size = 2 * split.lora_rank * sizes * split.loras
    source = "2 × rank × (rows + columns) of every linear layer × slots"
    return Estimate(size // 2, size, size * 13 // 10, Basis.ASSUMED, source, "", "LoRA slots")


def _left_behind(split: Split) -> Estimate:
    """What loading leaves on the device beside tensors: kernels, handles, allocator rounding."""
    low, likely, high, source = 0, 40, 150, _LEFT_ON_ONE
    if not split.is_cuda:
        low, likely, high, source = 0, 50, 600, _LEFT_ELSEWHERE
    elif split.tensor_parallel_size > 1:
        low, likely, high, source = 60, 200, 400, _LEFT_ON_SEVERAL
    return Estimate(
        low * MIB, likely * MIB, high * MIB, Basis.FITTED, source, f"{likely} MiB",
        "left by loading",
    )  # fmt: skip
