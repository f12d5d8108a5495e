"""What a generation with Transformers keeps and what it needs for a moment."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import kv_heads_per_rank
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.kv import side_bytes
from engine.runtimes.transformers.cache import attention_bytes, kept_tokens
from engine.runtimes.transformers.cache import state_bytes as layer_state_bytes
from engine.units import ceil_div

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.spec import LayerSpec
    from engine.runtimes.transformers.settings import Settings

_SCORE_BYTES = 8
"""Peak per attention score in 16 bits: the score, its fp32 softmax and the cast back."""


def cache_bytes(layers: Sequence[LayerSpec], settings: Settings, tp: int) -> int:
    """KV cache of the whole batch at the end of the generation."""
    kinds = _cache_kinds(layers, settings, tp)
    return sum(each * count for (_, each), count in kinds.items()) * settings.batch


def cache_formula(layers: Sequence[LayerSpec], settings: Settings, tp: int) -> str:
    """``cache_bytes`` as a calculation, one term per kind of layer."""
    batch = settings.batch
    many = "1 sequence" if batch == 1 else f"{batch:,} sequences"
    parts = [
        f"{count} layers × {_kept(tokens, each)} × {many}"
        for (tokens, each), count in _cache_kinds(layers, settings, tp).items()
    ]
    return " + ".join(parts) + f" = {cache_bytes(layers, settings, tp):,} B" if parts else ""


def _kept(tokens: int, size_bytes: int) -> str:
    if tokens and size_bytes % tokens == 0:
        return f"{tokens:,} tokens × {size_bytes // tokens:,} B"
    return f"{size_bytes:,} B"


def _cache_kinds(
    layers: Sequence[LayerSpec], settings: Settings, tp: int
) -> Counter[tuple[int, int]]:
    """(tokens kept, bytes of them) of every cache, counted."""
    static, dtype, context = settings.static_cache, settings.kv_dtype, settings.context
    return Counter(
        (
            kept_tokens(a, context, static=static) * a.caches,
            attention_bytes(a, context, dtype, tp=tp, static=static),
        )
        for layer in layers
        for a in (layer.attention, layer.cross)
        if a is not None and a.keeps_cache
    )


def state_bytes(layers: Sequence[LayerSpec], dtype: str, batch: int, tp: int) -> int:
    """Constant state of the whole batch."""
    states = (layer.state for layer in layers if layer.state is not None)
    return batch * sum(layer_state_bytes(state, dtype, tp) for state in states)


def activations(
    layers: Sequence[LayerSpec], hidden: int, vocab: int, settings: Settings, tp: int
) -> Estimate:
    """The larger of the prefill's peak and a decoding step's cache copy."""
    prefill = max(
        (_prefill_bytes(layer, hidden, settings, tp) for layer in _distinct(layers)), default=0
    )
    logits = settings.batch * vocab * (settings.element_bytes + 4)
    prefill = max(prefill, logits)
    growth = 0 if settings.static_cache else _growth_bytes(layers, settings, tp)
    likely = max(prefill, growth)
    tokens = settings.batch * settings.prompt
    formula = f"prefill of {tokens:,} tokens ({settings.attention}): {prefill:,} B"
    if growth > prefill:
        formula = f"the longest layer's keys copied to grow by one token: {growth:,} B"
    return Estimate(
        likely * 3 // 4,
        likely,
        likely * 5 // 4,
        Basis.FITTED,
        "closed form of one layer's live tensors, ± 25 %",
        formula,
    )


def _distinct(layers: Sequence[LayerSpec]) -> list[LayerSpec]:
    return list({id(layer): layer for layer in layers}.values())


def _prefill_bytes(layer: LayerSpec, hidden: int, settings: Settings, tp: int) -> int:
    tokens, width = settings.batch * settings.prompt, settings.element_bytes
    shared = layer.moe.shared_intermediate_size if layer.moe else 0
    inner = (3 if layer.gated_mlp else 2) * ceil_div(max(layer.intermediate_size, shared), tp)
    if layer.moe is not None:
        expert = ceil_div(layer.moe.moe_intermediate_size, tp)
        inner = max(inner, layer.moe.num_experts_per_tok * (2 * expert + hidden))
    mlp = tokens * width * (3 * hidden + inner)
    attention = layer.attention
    if attention is None:
        return mlp
    heads = ceil_div(attention.num_attention_heads, tp)
    projected = heads * (2 * attention.head_dim + attention.v_head_dim)
    needed = tokens * width * (3 * hidden + 2 * projected)
    if settings.attention == "eager":
        keys = settings.prompt
        scores = settings.batch * heads * settings.prompt * keys
        needed += (
            scores * _SCORE_BYTES * width // 2 + settings.batch * settings.prompt * keys * width
        )
    return max(mlp, needed)


def _growth_bytes(layers: Sequence[LayerSpec], settings: Settings, tp: int) -> int:
    """``torch.cat`` keeps the old keys of a layer beside the new ones."""
    largest = 0
    for layer in _distinct(layers):
        attention = layer.attention
        if attention is None or not attention.keeps_cache:
            continue
        tokens = kept_tokens(attention, settings.context)
        if attention.kind is AttentionKind.LATENT:
            heads, key = 1, attention.kv_lora_rank
        else:
            heads = kv_heads_per_rank(attention, tp)
            key = max(attention.head_dim, attention.v_head_dim)
        key_bytes = side_bytes(settings.kv_dtype, key)
        largest = max(largest, settings.batch * tokens * heads * key_bytes)
    return largest


def slack(cache: int, moving: Estimate) -> Estimate:
    """What the caching allocator holds without using it: every step asks for other sizes."""
    likely = (cache + moving.likely_bytes) // 10
    return Estimate(
        0,
        likely,
        (cache + moving.high_bytes) // 4,
        Basis.ASSUMED,
        "a tenth of what changes size; up to a quarter without expandable segments",
        f"({cache:,} + {moving.likely_bytes:,}) / 10 = {likely:,} B",
    )


def workspaces(*, on_gpu: bool) -> Estimate:
    """Workspaces of cuBLAS and its like: what generations hold beside weights and cache."""
    mib = 2**20
    if not on_gpu:
        return exactly(0, Basis.EXACT, "no cuBLAS here")
    return Estimate(
        12 * mib,
        40 * mib,
        48 * mib,
        Basis.FITTED,
        "25 of 28 generations of Qwen3 on H20 held 12 to 48 MiB more, mostly 33 and over",
        "40 MiB",
        "BLAS workspaces",
    )


def process(context: Estimate) -> Estimate:
    """Context and kernels of one PyTorch process."""
    if not context.high_bytes:
        return context
    mib = 2**20
    likely = context.likely_bytes * 11 // 10
    return total(
        [
            Estimate(
                min(95 * mib, likely),
                likely,
                context.high_bytes + 350 * mib,
                context.basis,
                "PyTorch processes on T4 to H100 beside the bare context",
                f"{context.formula} × 1.1",
                context.label,
            )
        ]
    ).named(context.label)
