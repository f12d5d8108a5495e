"""What vLLM's loader adds to the weights on disk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind, ModuleClass
from engine.budget.bounds import counted
from engine.budget.sequence_state import CACHED, attention_kinds, layer_kinds
from engine.budget.weights import layer_sizes
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.weights import FORMATS
from engine.units import MIB, align_up, ceil_div

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec, LayerSpec
    from engine.budget.sharding import Split
    from engine.budget.weights import StageWeights, Weights

_TWO_ROTARY_BASES = ("gemma3", "gemma4")
"""Families whose sliding and full layers turn by different bases: two tables."""
_GEMMA_3_SCALING = 8
"""Linear rotary scaling of the multimodal Gemma 3: the full layers' table is as much longer."""
_JOINED = re.compile(r"\b(?:q|k|v|gate|up)_proj\b")

_PARTLY_ROTARY = (
    "phi_", "gpt_neox", "stablelm", "glm", "chatglm", "minimax", "qwen3_next", "qwen3_5",
    "nemotron", "persimmon", "gptj", "codegen",
)  # fmt: skip
"""Families that turn a part of each head only; the part is not in the architecture."""
_NO_ROTARY = ("gpt2", "gpt_bigcode", "opt", "bloom", "mpt", "xglm", "biogpt", "falcon_mamba")


@dataclass(frozen=True, slots=True)
class Loading:
    """What, besides the tensors, decides what a rank holds after loading."""

    split: Split
    element_bytes: int
    """Of the model's own dtype."""
    lora_bytes: int = 0


def resident(
    spec: ArchitectureSpec, found: Weights, stage: StageWeights, loading: Loading
) -> Estimate:
    """Weights of one rank of ``stage`` as vLLM reports them ("Model loading took")."""
    stored = counted(stage.size_bytes, found.direction, found.basis, found.source, label="tensors")
    parts = [stored, *_additions(spec, found, stage, loading)]
    formula = " + ".join(f"{part.likely_bytes:,} B ({part.label})" for part in parts)
    return total(parts, formula=formula)


def _additions(
    spec: ArchitectureSpec, found: Weights, stage: StageWeights, loading: Loading
) -> list[Estimate]:
    tp, adapters = loading.split.tensor_parallel_size, loading.lora_bytes
    experts = stage.by_module.get(ModuleClass.EXPERTS, 0)
    parts = [_rotary_table(spec, loading.element_bytes)]
    if found.weight_format == "mxfp4" and experts:
        parts.append(_padded_experts(spec, experts, tp))
    elif found.weight_format in FORMATS and found.basis is not Basis.BOUND:
        layers = stage.layers
        parts.append(_rounding(spec, found.weight_format, layers, loading))
    if found.quantised:
        parts.append(_absorbed(spec, stage.layers, tp))
    if adapters:
        source = (
            "vLLM lora/layers; two starts of Llama-3.2-3B show 1 % less, one of Qwen3-4B 8 % more"
        )
        low, high = adapters * 98 // 100, adapters * 11 // 10
        parts.append(Estimate(low, adapters, high, Basis.FITTED, source, "", "LoRA slots"))
    return [part for part in parts if part is not None]


@lru_cache(maxsize=CACHED)
def _rounding(spec: ArchitectureSpec, fmt: str, layers: range, loading: Loading) -> Estimate | None:
    """What PyTorch's allocator adds to large tensors: whole 2 MiB, unless over 1 MiB is left.

    Source:
        PyTorch ``c10/cuda/CUDACachingAllocator.cpp`` (kMinLargeAlloc, kRoundLarge, should_split);
        it explains the last 0.02 to 0.12 GiB of eleven logged starts of Qwen2.5 and Gemma.
    """
    sizes = layer_sizes(spec, loading.split, fmt)
    size = sum(
        count * sum(_rest(n) for n in _fused(layer, sizes[id(layer)]))
        for layer, count in layer_kinds(spec, layers.start, layers.stop)
    )
    if not size:
        return None
    source = "PyTorch's allocator: tensors of 10 MiB and more take whole 2 MiB"
    return Estimate(0, size, size, Basis.FITTED, source, "", "allocator rounding")


def _rest(size_bytes: int) -> int:
    rest = -size_bytes % (2 * MIB)
    return rest if size_bytes >= 10 * MIB and rest <= MIB else 0


def _fused(layer: LayerSpec, sizes: list[int]) -> list[int]:
    """Bytes of the matrices of a layer as vLLM joins them: q, k and v; gate and up."""
    joined: dict[str, int] = {}
    for tensor, size in zip(layer.tensors, sizes, strict=True):
        if tensor.linear:
            name = _joined(tensor.name)
            joined[name] = joined.get(name, 0) + size
    return list(joined.values())


@lru_cache(maxsize=CACHED)
def _joined(name: str) -> str:
    return _JOINED.sub(lambda found: "qkv" if found[0][0] in "qkv" else "gate_up", name)


@lru_cache(maxsize=CACHED)
def _rotary_table(spec: ArchitectureSpec, element_bytes: int) -> Estimate | None:
    """Cosines and sines of every position: in the figure that vLLM prints for the weights.

    Source:
        vLLM ``rotary_embedding/base.py``; the same 8.03 B parameters print 14.9888 and 14.9595
        GiB at 131,072 and 8,192 positions.
    """
    attention = next(iter(attention_kinds(spec)), None)
    if attention is None or not spec.max_position_embeddings:
        return None
    if spec.model_type.startswith(_NO_ROTARY):
        return None
    width = attention.qk_rope_head_dim or attention.head_dim
    positions = spec.max_position_embeddings
    if spec.model_type.startswith(_TWO_ROTARY_BASES):
        scaled = any(tensor.module is ModuleClass.VISION for tensor in spec.outer)
        positions *= 1 + (_GEMMA_3_SCALING if scaled else 1)
    size = positions * width * element_bytes
    formula = f"{positions:,} positions × {width} × {element_bytes} B"
    source, label = "vLLM rotary_embedding/base.py", "rotary table"
    if f"{spec.model_type}_".startswith(_PARTLY_ROTARY):
        return Estimate(0, size // 2, size, Basis.ASSUMED, source, f"up to {formula}", label)
    return exactly(size, Basis.EXACT, source, formula, label)


def _padded_experts(spec: ArchitectureSpec, experts: int, tp: int) -> Estimate | None:
    """MXFP4 kernels pad the hidden width to 256 and the expert width to 128.

    Source:
        vLLM ``fused_moe/oracle/mxfp4.py``.
    """
    moe = next((layer.moe for layer, _ in layer_kinds(spec) if layer.moe), None)
    if moe is None:
        return None
    width = ceil_div(moe.moe_intermediate_size, tp)
    padded = align_up(spec.hidden_size, 256) * align_up(width, 128)
    plain = spec.hidden_size * width
    size = experts * (padded - plain) // plain
    formula = f"{spec.hidden_size:,} × {width:,} padded to {padded:,} elements an expert matrix"
    return exactly(size, Basis.EXACT, "vLLM fused_moe mxfp4", formula, "expert padding")


@lru_cache(maxsize=CACHED)
def _absorbed(spec: ArchitectureSpec, layers: range, tp: int) -> Estimate | None:
    """MLA's up-projections, kept again in 16 bits when they are stored quantised.

    Source:
        vLLM ``mla_attention.py :: process_weights_after_loading``.
    """
    size = 0
    for layer in (spec.layers[i] for i in layers):
        a = layer.attention
        if a is not None and a.kind is AttentionKind.LATENT:
            heads = ceil_div(a.num_attention_heads, tp)
            size += a.kv_lora_rank * heads * (a.qk_nope_head_dim + a.v_head_dim) * 2
    if not size:
        return None
    return exactly(size, Basis.EXACT, "vLLM mla_attention.py", label="absorbed projections")
