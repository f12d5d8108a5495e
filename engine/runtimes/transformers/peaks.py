"""What a generation with Transformers needs for a moment: reading the prompt, the next token.

Source:
    Live tensors of one layer, followed through every operation of transformers 5.24 (torch 2.13,
    CPU, two layers of Llama, Qwen3, Gemma 2 and 3, Phi-3, Mixtral, Qwen3-MoE, DeepSeek-V3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import kv_heads_per_rank
from engine.evidence import Basis, Estimate
from engine.formats.kv import side_bytes
from engine.runtimes.transformers import releases
from engine.runtimes.transformers.cache import kept_tokens, kinds, token_bytes, waiting_bytes
from engine.runtimes.transformers.caches import held, unpacked_bytes
from engine.units import ceil_div
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.architecture.spec import AttentionSpec, LayerSpec, MoeSpec
    from engine.runtimes.transformers.settings import Settings

_SCORE_BYTES = {"bfloat16": 10, "float16": 8, "float32": 8}
"""Peak per attention score: masked, in 32 bits beside its softmax; PyTorch saves the copy in
FP16."""
_LOGIT_BYTES = 4
"""The last token's logits are copied to 32 bits."""


def activations(
    layers: Sequence[LayerSpec], hidden: int, vocab: int, settings: Settings, tp: int
) -> Estimate:
    """The larger of a pass over the prompt and of a decoding step."""
    layer, padded = reading(layers, hidden, vocab, settings, tp)
    step = decoding(layers, settings, tp)
    let_go = beside = let_go_bytes(layers, settings, tp)
    if step.likely_bytes > layer + beside:
        layer, beside, formula = step.likely_bytes, 0, step.formula
    else:
        tokens = settings.batch * settings.chunk
        formula = tr("prefill of {tokens} tokens ({attention}): {layer} B").format(
            tokens=grouped(tokens), attention=settings.attention, layer=grouped(layer)
        )
        formula += (
            tr(" + {beside} B that windows let go of").format(beside=grouped(beside))
            if beside
            else ""
        )
    return Estimate(
        layer * 4 // 5 + beside,
        layer + beside,
        max(layer * 5 // 4 + beside, padded + let_go, step.high_bytes),
        Basis.FITTED,
        tr("live tensors of one layer, counted in Transformers 5.24, ± a quarter"),
        formula,
    )


def reading(
    layers: Sequence[LayerSpec], hidden: int, vocab: int, settings: Settings, tp: int
) -> tuple[int, int]:
    """Peak of a pass over the prompt; and where some prompts are padded, as others are longer."""
    logits = settings.batch * vocab * (settings.element_bytes + _LOGIT_BYTES)
    logits = max(logits, settings.logits.made_bytes)
    unpacked = settings.unpacked
    plain = padded = logits
    for layer in _distinct(layers):
        mlp = _mlp_bytes(layer, hidden, settings, tp)
        plain, padded = max(plain, mlp), max(padded, mlp)
        for attention in (layer.attention, layer.cross):
            if attention is not None:
                needed = _attention_bytes(attention, hidden, settings, tp)
                plain = max(plain, needed)
                # Only a mask that pads makes sdpa copy the keys for every head that shares them.
                more = _masked_bytes(attention, settings, tp) if settings.batch > 1 else 0
                padded = max(padded, needed + more)
    return plain + unpacked.likely_bytes // tp, padded + unpacked.high_bytes // tp


def decoding(layers: Sequence[LayerSpec], settings: Settings, tp: int) -> Estimate:
    """What the next token takes for a moment: a layer's cache copied, unpacked or repeated."""
    copied = repeated = 0
    for layer in _distinct(layers):
        attention = layer.attention
        if attention is None or not attention.keeps_cache:
            continue
        copied = max(copied, _copied_bytes(attention, settings, tp))
        repeated = max(repeated, _repeated_bytes(attention, settings, tp, settings.context))
        if settings.attention == "eager":
            scores = settings.batch * _heads(attention, tp) * settings.context
            copied = max(copied, repeated + scores * _SCORE_BYTES[_dtype(settings)])
    formula = tr("the longest layer's keys copied to grow by one token: {copied} B").format(
        copied=grouped(copied)
    )
    if settings.cache.is_renewed:
        copied, more = _renewed_bytes(layers, settings, tp)
        # Qwen 1 of 1.8B held a third copy in 4 and 8 bits; why is not known.
        repeated = copied + more * 9 // 8
        formula = tr("every layer's keys and values made anew: {copied} B").format(
            copied=grouped(copied)
        )
    if settings.cache.is_quantised:
        formula = tr("the longest layer's keys and values unpacked and copied: {copied} B").format(
            copied=grouped(copied)
        )
    return Estimate(
        copied, copied, max(copied, repeated), Basis.FITTED,
        tr("transformers 5.24 cache_utils.py; repeated for all heads where the kernel shares none"),
        formula,
    )  # fmt: skip


def _renewed_bytes(layers: Sequence[LayerSpec], settings: Settings, tp: int) -> tuple[int, int]:
    """Beside the cache where steps make it anew: at the first step or the last; and a copy of it.

    While the first token is computed, the logits of the whole prompt are still there.
    """
    last = held(layers, settings, tp).device_bytes
    start = replace(settings, context=min(settings.prompt + 1, settings.context))
    first = 2 * held(layers, start, tp).device_bytes + settings.logits.held_bytes - last
    return max(first, last), last


def let_go_bytes(layers: Sequence[LayerSpec], settings: Settings, tp: int) -> int:
    """Of a prompt what windows and compressed entries have let go of, and that still lies there.

    What a window keeps is a view of all that the layer computed with: the rest is freed when the
    layer's next token makes new ones. So it is with what waited for an entry.

    Source:
        transformers 5.24 ``cache_utils.py :: DynamicSlidingWindowLayer.update``; measured, see
        ``tests/truth/test_transformers_windows.py``.
    """
    form = settings.cache.form
    if form.static or not form.cuts_windows or settings.cache.is_offloaded:
        return 0
    found = 0
    for layer, count in kinds(layers):
        for attention in (layer.attention, layer.cross):
            if attention is not None and attention.keeps_cache and attention.window:
                found += _let_go_of(attention, settings, tp) * attention.caches * count
    return found * settings.batch


def _let_go_of(attention: AttentionSpec, settings: Settings, tp: int) -> int:
    """One cache's part of ``let_go_bytes``, one sequence."""
    if attention.kind is AttentionKind.CROSS:
        return 0
    form, dtype, earlier = settings.cache.form, settings.kv_dtype, settings.prompt - settings.chunk
    lying = min(attention.window - 1, earlier) + settings.chunk
    more = max(lying - kept_tokens(attention, settings.context, form), 0)
    size = more * token_bytes(attention, dtype, tp, packs_latents=form.packs_latents)
    waits = attention.compression
    if waits is not None:
        lying = earlier % waits.ratio + settings.chunk
        more = max(lying - settings.context % waits.ratio, 0)
        size += waiting_bytes(waits, more, dtype)
    return size


def _distinct(layers: Iterable[LayerSpec]) -> list[LayerSpec]:
    return list({id(layer): layer for layer in layers}.values())


def _dtype(settings: Settings) -> str:
    return (
        {2: "float16", 4: "float32"}[settings.element_bytes]
        if (settings.kv_dtype not in _SCORE_BYTES)
        else settings.kv_dtype
    )


def _heads(attention: AttentionSpec, tp: int) -> int:
    return ceil_div(attention.num_attention_heads, tp)


def _mlp_bytes(layer: LayerSpec, hidden: int, settings: Settings, tp: int) -> int:
    """Four hidden states stay: embeddings, the layer's input, the residual, the normed input."""
    width = ceil_div(layer.intermediate_size, tp)
    # Gate and up, the activated gate, the product; a fused projection stays whole beside both.
    inner = (4 if _is_fused(layer) else 3) * width
    tokens = settings.batch * settings.chunk
    elements = tokens * (4 * hidden + inner)
    if layer.moe is not None:
        elements = max(elements, _moe_elements(layer.moe, tokens, hidden, settings, tp))
    if layer.state is not None:
        # In, convolved, activated and out, with the kernels of the architecture installed.
        channels = ceil_div(layer.state.conv_dim, tp)
        elements = max(elements, tokens * (4 * hidden + 4 * channels))
    return elements * settings.element_bytes


def _is_fused(layer: LayerSpec) -> bool:
    return any("gate_up" in tensor.name for tensor in layer.tensors)


def _moe_elements(moe: MoeSpec, tokens: int, hidden: int, settings: Settings, tp: int) -> int:
    """Rows of every chosen expert: gathered, gate and up, activated, product; then weighted."""
    width = ceil_div(moe.moe_intermediate_size, tp)
    shared = 3 * ceil_div(moe.shared_intermediate_size, tp) + hidden
    rows = tokens * moe.num_experts_per_tok
    if settings.version < releases.JOINED_EXPERTS:
        rows = ceil_div(rows, moe.num_experts)
    routed = rows * max(hidden + 4 * width, 4 * hidden)
    return tokens * 4 * hidden + max(routed, tokens * shared)


def _attention_bytes(attention: AttentionSpec, hidden: int, settings: Settings, tp: int) -> int:
    tokens, width = settings.batch * settings.chunk, settings.element_bytes
    heads, keys = _heads(attention, tp), _keys(attention, settings)
    queries = heads * attention.head_dim
    if attention.kind is AttentionKind.LATENT:
        projected = 2 * heads * (2 * attention.head_dim + attention.v_head_dim)
    else:
        shared = kv_heads_per_rank(attention, tp)
        key, value = shared * attention.head_dim, shared * attention.v_head_dim
        # While they are turned: the product with the cosine, the turned half, that with the sine.
        turning = max(3 * queries, queries + 3 * key)
        projected = queries + key + value + turning + 2 * attention.head_dim
    needed = tokens * width * (3 * hidden + projected)
    if settings.attention == "eager":
        scores = settings.batch * heads * settings.chunk * keys
        masks = settings.batch * settings.chunk * keys * width
        repeated = _repeated_bytes(attention, settings, tp, keys)
        held = tokens * width * (3 * hidden + queries) + repeated
        return max(needed, held + scores * _SCORE_BYTES[_dtype(settings)] + masks)
    if settings.attention == "sdpa" and _needs_mask(attention, settings):
        needed += _masked_bytes(attention, settings, tp)
    return needed


def _keys(attention: AttentionSpec, settings: Settings) -> int:
    """Keys that the last chunk of the prompt attends to."""
    if attention.kind is AttentionKind.CROSS:
        return attention.window or settings.prompt
    if not attention.window:
        return settings.prompt
    return min(settings.prompt, attention.window - 1 + settings.chunk)


def _needs_mask(attention: AttentionSpec, settings: Settings) -> bool:
    """Whether plain causality is not the mask: a window, or keys from before the chunk."""
    windowed = 0 < attention.window < settings.chunk
    return windowed or 1 < settings.chunk < settings.prompt


def _masked_bytes(attention: AttentionSpec, settings: Settings, tp: int) -> int:
    """A mask, and keys and values repeated for every query head, which sdpa makes with one."""
    keys = _keys(attention, settings)
    repeated = _repeated_bytes(attention, settings, tp, keys)
    return settings.batch * settings.chunk * keys + repeated


def _repeated_bytes(attention: AttentionSpec, settings: Settings, tp: int, keys: int) -> int:
    heads = _heads(attention, tp)
    if attention.kind is AttentionKind.LATENT or heads == kv_heads_per_rank(attention, tp):
        return 0
    each = heads * (attention.head_dim + attention.v_head_dim) * settings.element_bytes
    return settings.batch * min(keys, settings.context) * each


def _copied_bytes(attention: AttentionSpec, settings: Settings, tp: int) -> int:
    """Beside the cache while it grows: ``torch.cat`` keeps old keys until the new ones are there.

    A quantised layer is unpacked whole, and what is unpacked is copied with the new token.
    """
    cache = settings.cache
    if cache.is_quantised:
        return (3 if cache.is_fp8 else 2) * unpacked_bytes(attention, settings, tp)
    if cache.form.static:
        return 0
    tokens = kept_tokens(attention, settings.context, cache.form)
    if attention.kind is AttentionKind.LATENT and cache.form.packs_latents:
        heads, key = 1, attention.kv_lora_rank
    else:
        latent = attention.kind is AttentionKind.LATENT
        heads = _heads(attention, tp) if latent else kv_heads_per_rank(attention, tp)
        key = max(attention.head_dim, attention.v_head_dim)
    return settings.batch * tokens * heads * side_bytes(settings.kv_dtype, key)
