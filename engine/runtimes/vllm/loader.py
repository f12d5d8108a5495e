"""What vLLM's loader adds to the weights on disk."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import AttentionKind, ModuleClass
from engine.budget.bounds import counted
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.budget.sharding import VOCAB_MULTIPLE
from engine.budget.weights import layer_sizes
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.weights import FORMATS
from engine.runtimes.vllm import buffers, cache_rules
from engine.runtimes.vllm.drafting import draft_weights
from engine.runtimes.vllm.fused import fused_sizes
from engine.runtimes.vllm.rotary import rotary_table
from engine.runtimes.vllm.rules import Since
from engine.units import MIB, align_up, ceil_div
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec, LayerSpec
    from engine.budget.sharding import Split
    from engine.budget.weights import StageWeights, Weights
    from engine.runtimes.vllm.rules import Version


class Loading(NamedTuple):
    """What, besides the tensors, decides what a rank holds after loading."""

    split: Split
    element_bytes: int
    """Of the model's own dtype."""
    capability: int = 0
    """Generation of the card; 0 where it is not known."""
    version: Version = ()
    lora_bytes: int = 0
    draft: Model | None = None
    """A draft model of its own, on the last stage."""
    stages: int = 1
    vendor: Vendor = Vendor.NVIDIA
    tokens: int = 0
    """``max_num_batched_tokens``."""


def resident(model: Model, found: Weights, stage: StageWeights, loading: Loading) -> Estimate:
    """Weights of one rank of ``stage`` as vLLM reports them ("Model loading took")."""
    stored = counted(
        stage.size_bytes, found.direction, found.basis, found.source, label=tr("tensors")
    )
    parts = [stored, *_additions(model, found, stage, loading)]
    formula = " + ".join(
        f"{grouped(p.likely_bytes)} B ({p.label})" for p in parts if p.likely_bytes
    )
    return total(parts, formula=formula)


def _additions(
    model: Model, found: Weights, stage: StageWeights, loading: Loading
) -> list[Estimate]:
    spec, layers, adapters = model.spec, stage.layers, loading.lora_bytes
    experts = stage.by_module.get(ModuleClass.EXPERTS, 0)
    parts = [rotary_table(model, loading.element_bytes)]
    if found.weight_format == "mxfp4" and experts:
        parts.append(_padded_experts(spec, experts, loading))
    elif found.weight_format in FORMATS and found.basis is not Basis.BOUND:
        rounding = _rounding(spec, found.weight_format, layers, loading)
        # A packed matrix is several tensors, of which each is rounded for itself.
        packed = FORMATS[found.weight_format].bits < 8
        parts.append(replace(rounding, likely_bytes=0) if rounding and packed else rounding)
    if found.quantised and cache_rules.LATENTS.at(loading.version):
        parts.append(_absorbed(spec, layers, loading.split, found.weight_format))
    if adapters:
        source = tr(
            "vLLM lora/layers; a start of Llama-3.2-3B shows 1 % less, one of Qwen3-4B 8 % more"
        )
        low, high = adapters * 98 // 100, adapters * 11 // 10
        parts.append(Estimate(low, adapters, high, Basis.FITTED, source, "", tr("LoRA slots")))
    if loading.draft is not None:
        tp = loading.split.tensor_parallel_size
        width = loading.element_bytes
        parts.append(draft_weights(model, loading.draft, tp, loading.stages, width))
    is_last = layers.stop == len(spec.layers)
    parts.append(buffers.of_model(model, loading.tokens, is_last=is_last))
    if not is_last:
        parts.append(_idle_head(spec, loading))
    if found.basis is not Basis.BOUND:
        parts += _open_ends(model, found, stage, loading)
    return [part for part in parts if part is not None]


def _open_ends(
    model: Model, found: Weights, stage: StageWeights, loading: Loading
) -> list[Estimate]:
    """What is known of the figure only within a range."""
    spec, size = model.spec, stage.size_bytes
    tp = loading.split.tensor_parallel_size
    parts = [buffers.small(model, size, tp, quantised=found.quantised)]
    if found.weight_format.startswith("gptq"):
        packed = _packed_bytes(spec, found, stage.layers, loading)
        parts.append(buffers.zero_points(packed))
    if found.quantised and found.weight_format not in (spec.weight_format, _BY_VLLM):
        parts.append(buffers.packing(size))
    if loading.vendor is Vendor.AMD:
        parts.append(buffers.read_from_device(size))
    return parts


_BY_VLLM = "fp8"
"""What vLLM itself packs a model in 16 bits into, layer by layer."""
_HEAD_ON_EVERY_STAGE = Since[tuple[str, ...]](((0,), ("deepseek_v2", "deepseek_v3")), ((0, 10), ()))
"""Types whose head lies on every stage, used or not (``deepseek_v2.py``, ``deepseek_v3.py`` of
0.6.6). The release of the change is not established."""


def _idle_head(spec: ArchitectureSpec, loading: Loading) -> Estimate | None:
    """A head on a stage before the last."""
    if not spec.model_type.startswith(_HEAD_ON_EVERY_STAGE.at(loading.version)):
        return None
    tp = loading.split.tensor_parallel_size
    words = align_up(spec.vocab_size, VOCAB_MULTIPLE) // tp
    size = words * spec.hidden_size * loading.element_bytes
    formula = tr("{words} words × {hidden_size} × {element_bytes} B").format(
        words=grouped(words),
        hidden_size=grouped(spec.hidden_size),
        element_bytes=loading.element_bytes,
    )
    return exactly(size, Basis.EXACT, "vLLM deepseek_v3.py (0.6.6)", formula, tr("idle head"))


def _packed_bytes(spec: ArchitectureSpec, found: Weights, layers: range, loading: Loading) -> int:
    """Bytes of the matrices of the layers."""
    if found.weight_format not in FORMATS:
        return 0
    sizes = layer_sizes(spec, loading.split, found.weight_format)
    return sum(
        count * sum(n for t, n in zip(layer.tensors, sizes[id(layer)], strict=True) if t.linear)
        for layer, count in layer_kinds(spec, layers.start, layers.stop)
    )


@lru_cache(maxsize=CACHED)
def _rounding(spec: ArchitectureSpec, fmt: str, layers: range, loading: Loading) -> Estimate | None:
    """What PyTorch's allocator adds to large tensors: whole 2 MiB, unless over 1 MiB is left.

    Source:
        PyTorch ``c10/cuda/CUDACachingAllocator.cpp`` (kMinLargeAlloc, kRoundLarge, should_split);
        it explains the last 0.02 to 0.12 GiB of eleven logged starts of Qwen2.5 and Gemma.
    """
    sizes = layer_sizes(spec, loading.split, fmt)
    size = sum(
        count * sum(_rest(n) for n in fused_sizes(layer, sizes[id(layer)]))
        for layer, count in layer_kinds(spec, layers.start, layers.stop)
    )
    if not size:
        return None
    source = tr("PyTorch's allocator: tensors of 10 MiB and more take whole 2 MiB")
    return Estimate(0, size, size, Basis.FITTED, source, "", tr("allocator rounding"))


def _rest(size_bytes: int) -> int:
    rest = -size_bytes % (2 * MIB)
    return rest if size_bytes >= 10 * MIB and rest <= MIB else 0


class _Padding(NamedTuple):
    """What MXFP4 kernels pad the widths of experts to, and how much of it a start showed."""

    hidden: int
    expert: int
    low: float = 1.0
    likely: float = 1.0
    high: float = 1.0
    source: str = "vLLM fused_moe/oracle/mxfp4.py"


_MARLIN = _Padding(256, 128)
_PADDING = {
    9: Since(
        ((0,), _MARLIN._replace(low=0.68, likely=0.72, high=1.05, source="vLLM 0.11 on H100")),
        ((0, 17), _MARLIN._replace(low=0.68, likely=0.93, high=1.05, source="vLLM 0.19 on H100")),
    ),
    10: Since(((0,), _Padding(256, 256))),
}
"""Generation of a card -> what its kernels pad, where those are not Marlin's. On 9 Triton's lay
weights out in tiles whose size is not established: measured as a share of Marlin's padding on two
models and two sizes of TP."""


def _padded_experts(spec: ArchitectureSpec, experts: int, loading: Loading) -> Estimate | None:
    """What the kernels for MXFP4 experts add on one rank.

    Source:
        vLLM ``fused_moe/oracle/mxfp4.py :: mxfp4_round_up_hidden_size_and_intermediate_size``.
    """
    moe = next((layer.moe for layer, _ in layer_kinds(spec) if layer.moe), None)
    if moe is None:
        return None
    split = loading.split
    ranks = 1 if split.enable_expert_parallel else split.expert_ranks
    known = _PADDING.get(loading.capability)
    to = known.at(loading.version) if known else _MARLIN
    width = ceil_div(moe.moe_intermediate_size, ranks)
    padded = align_up(spec.hidden_size, to.hidden) * align_up(width, to.expert)
    plain = spec.hidden_size * width
    size = experts * (padded - plain) // plain
    formula = tr("{hidden_size} × {width} padded to {padded} elements an expert matrix").format(
        hidden_size=grouped(spec.hidden_size), width=grouped(width), padded=grouped(padded)
    )
    low, likely, high = (round(size * share) for share in (to.low, to.likely, to.high))
    basis = Basis.EXACT if low == high else Basis.FITTED
    return Estimate(low, likely, high, basis, to.source, formula, tr("expert padding"))


@lru_cache(maxsize=CACHED)
def _absorbed(spec: ArchitectureSpec, layers: range, split: Split, fmt: str) -> Estimate | None:
    """MLA's up-projections, kept again in 16 bits where they are stored quantised.

    Source:
        vLLM ``mla_attention.py :: process_weights_after_loading``.
    """
    sizes: Mapping[int, list[int]] = {}
    if fmt in FORMATS:
        sizes = layer_sizes(spec, split, fmt)
    size = 0
    for layer, count in layer_kinds(spec, layers.start, layers.stop):
        a = layer.attention
        if a is not None and a.kind is AttentionKind.LATENT and _packs_up(layer, sizes, split):
            heads = ceil_div(a.num_attention_heads, split.tensor_parallel_size)
            size += count * a.kv_lora_rank * heads * (a.qk_nope_head_dim + a.v_head_dim) * 2
    if not size:
        return None
    return exactly(size, Basis.EXACT, "vLLM mla_attention.py", label=tr("absorbed projections"))


def _packs_up(layer: LayerSpec, sizes: Mapping[int, list[int]], split: Split) -> bool:
    """Whether the projection from the latent to heads is stored in less than 16 bits."""
    stored = sizes.get(id(layer))
    if stored is None:
        return True
    up = ((t, n) for t, n in zip(layer.tensors, stored, strict=True) if "kv_b" in t.name)
    return any(n * split.tensor_parallel_size < t.elements * 2 for t, n in up)
