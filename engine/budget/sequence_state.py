"""What a sequence needs by the architecture alone: no blocks, no padding, no runtime."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.kv import head_bytes, indexer_bytes, latent_bytes, side_bytes

if TYPE_CHECKING:
    from engine.architecture.spec import (
        ArchitectureSpec,
        AttentionSpec,
        Compression,
        LayerSpec,
        StateSpec,
    )

CACHED = 16384
"""Results kept per function: a list of thousands of models is gone through twice and more."""


@dataclass(frozen=True, slots=True)
class CacheTerm:
    """Layers that keep the same: one line of the KV equation."""

    kind: AttentionKind
    layers: int
    window: int
    token_bytes: int
    """Per token and layer."""
    equation: str
    """``2 × 32 layers × 8 heads × 128 × 2 B``."""

    prefix_tokens: int = 0
    ratio: int = 1
    """Tokens that one entry stands for."""

    def tokens(self, context: int) -> int:
        """Tokens, or entries for several, that such a layer has to remember of ``context``."""
        return _kept(self.kind, self.window, self.prefix_tokens, context) // self.ratio

    def size_bytes(self, context: int) -> int:
        """Bytes at ``context`` tokens, all layers of the kind."""
        return self.layers * self.token_bytes * self.tokens(context)


def kept_tokens(attention: AttentionSpec, context: int) -> int:
    """Tokens whose keys and values a layer has to remember of ``context``.

    Cross-attention remembers the encoder's tokens: a fixed number, or as many as the context
    where the input decides.
    """
    return _kept(attention.kind, attention.window, attention.prefix_tokens, context)


def _kept(kind: AttentionKind, window: int, prefix: int, context: int) -> int:
    if kind is AttentionKind.CROSS:
        return window or context
    return (min(context, window) if window else context) + prefix


def kv_heads_per_rank(attention: AttentionSpec, tp: int) -> int:
    """KV heads on one rank; never less than one, since beyond that heads are replicated.

    Source:
        vLLM ``config/model.py :: get_num_kv_heads``.
    """
    return max(1, attention.num_key_value_heads // tp)


def token_bytes(attention: AttentionSpec, kv_dtype: str, tp: int = 1) -> int:
    """Bytes that one layer keeps for one token on one rank.

    The latent vector of MLA is replicated on every rank.
    """
    if attention.kind is AttentionKind.LATENT:
        size = latent_bytes(kv_dtype, attention.kv_lora_rank, attention.qk_rope_head_dim)
        return size + (indexer_bytes(attention.index_head_dim) if attention.index_head_dim else 0)
    heads = kv_heads_per_rank(attention, tp)
    size = heads * head_bytes(kv_dtype, attention.head_dim, _value_width(attention))
    return size + side_bytes(kv_dtype, attention.index_head_dim)


def _value_width(attention: AttentionSpec) -> int:
    return attention.v_head_dim if attention.keeps_values else 0


def _entry_bytes(compression: Compression, kv_dtype: str) -> int:
    index = indexer_bytes(compression.index_width) if compression.index_width else 0
    return side_bytes(kv_dtype, compression.width) + index


def _kept_bytes(attention: AttentionSpec, kv_dtype: str, context: int, tp: int) -> int:
    """What one layer has to keep of ``context`` on one rank: its window, and entries beside it."""
    size = kept_tokens(attention, context) * token_bytes(attention, kv_dtype, tp)
    found = attention.compression
    return size + (context // found.ratio * _entry_bytes(found, kv_dtype) if found else 0)


def constant_state_bytes(state: StateSpec, model_dtype: str, tp: int = 1, extra: int = 0) -> int:
    """Bytes of one layer's constant state for one sequence on one rank.

    Source:
        vLLM ``mamba_utils.py``: groups that the ranks don't divide become one a rank.

    Args:
        state: the layer's state.
        model_dtype: dtype of the convolution part, and of the rest unless the state says.
        tp: tensor-parallel size.
        extra: speculative tokens, kept in the convolution window.
    """
    width = element_bytes(canonical(model_dtype) or "bfloat16")
    state_width = element_bytes(state.state_dtype) if state.state_dtype else width
    window = max(state.conv_kernel - 1, 0) + (extra if state.conv_kernel else 0)
    copied = tp - state.groups if state.groups % tp else 0
    channels = state.conv_dim + copied * state.group_channels
    conv = (channels // tp * window + state.further_elements // tp) * width
    return conv + state.recurrent_elements // tp * state_width


def layer_kinds(
    spec: ArchitectureSpec, first: int = 0, stop: int | None = None
) -> tuple[tuple[LayerSpec, int], ...]:
    """The distinct layers from ``first`` to ``stop`` with their numbers, in order."""
    return _layer_kinds(spec, first, len(spec.layers) if stop is None else stop)


@lru_cache(maxsize=CACHED)
def _layer_kinds(
    spec: ArchitectureSpec, first: int, stop: int
) -> tuple[tuple[LayerSpec, int], ...]:
    layers = spec.layers[first:stop]
    counts = Counter(map(id, layers))
    found = {id(layer): layer for layer in layers}
    return tuple((layer, counts[key]) for key, layer in found.items())


def attention_counts(
    spec: ArchitectureSpec, first: int = 0, stop: int | None = None
) -> tuple[tuple[AttentionSpec, int], ...]:
    """The distinct attentions of layers that keep a cache, with their numbers, in order."""
    return _attention_counts(spec, first, len(spec.layers) if stop is None else stop)


@lru_cache(maxsize=CACHED)
def _attention_counts(
    spec: ArchitectureSpec, first: int, stop: int
) -> tuple[tuple[AttentionSpec, int], ...]:
    counts: dict[AttentionSpec, int] = {}
    for layer, count in layer_kinds(spec, first, stop):
        for attention in (layer.attention, layer.cross):
            if attention is not None and attention.keeps_cache:
                counts[attention] = counts.get(attention, 0) + count * attention.caches
    return tuple(counts.items())


def attention_kinds(spec: ArchitectureSpec) -> tuple[AttentionSpec, ...]:
    """The distinct attentions of the layers that keep a cache, in layer order."""
    return tuple(attention for attention, _ in attention_counts(spec))


@lru_cache(maxsize=CACHED)
def cache_terms(spec: ArchitectureSpec, kv_dtype: str) -> tuple[CacheTerm, ...]:
    """The KV equation of the whole model, one term per kind of layer, in layer order."""
    terms: list[CacheTerm] = []
    for attention, count in attention_counts(spec):
        term = CacheTerm(
            kind=attention.kind,
            layers=count,
            window=attention.window,
            token_bytes=token_bytes(attention, kv_dtype),
            equation=_equation(attention, count, kv_dtype),
            prefix_tokens=attention.prefix_tokens,
        )
        terms.append(term)
        found = attention.compression
        if found:
            size = _entry_bytes(found, kv_dtype)
            text = f"{count} layers × {size:,} B an entry"
            terms.append(CacheTerm(AttentionKind.FULL, count, 0, size, text, ratio=found.ratio))
    return tuple(terms)


def _equation(attention: AttentionSpec, layers: int, kv_dtype: str) -> str:
    per_token = token_bytes(attention, kv_dtype)
    if attention.kind is AttentionKind.LATENT:
        latent, rope = attention.kv_lora_rank, attention.qk_rope_head_dim
        if attention.index_head_dim or per_token % (latent + rope):
            return f"{layers} layers × {per_token:,} B (latent {latent} + {rope}, packed)"
        return f"{layers} layers × ({latent} + {rope}) × {per_token // (latent + rope)} B"
    if attention.index_head_dim:
        return f"{layers} layers × {per_token:,} B (keys, values and the index's keys)"
    heads, dim = attention.num_key_value_heads, attention.head_dim
    elements = heads * (dim + attention.v_head_dim)
    where = "cross-attention layers" if attention.kind is AttentionKind.CROSS else "layers"
    if per_token % elements or not attention.keeps_values:
        of_keys = "" if attention.keeps_values else " of keys"
        return f"{layers} {where} × {heads} heads × {per_token // heads} B{of_keys}"
    width = per_token // elements
    if dim == attention.v_head_dim:
        return f"2 × {layers} {where} × {heads} heads × {dim} × {width} B"
    return f"{layers} {where} × {heads} heads × ({dim} + {attention.v_head_dim}) × {width} B"


def constant_bytes(
    spec: ArchitectureSpec, first: int = 0, stop: int | None = None, tp: int = 1
) -> int:
    """Constant state of one sequence in layers ``first`` to ``stop`` on one rank."""
    return sum(
        constant_state_bytes(layer.state, spec.dtype, tp) * count
        for layer, count in layer_kinds(spec, first, stop)
        if layer.state is not None
    )


def architecture_bytes(spec: ArchitectureSpec, kv_dtype: str, context: int) -> int:
    """The least that a sequence of ``context`` tokens needs, whole model."""
    return rank_bytes(spec, kv_dtype, context, range(len(spec.layers)), 1)


def rank_bytes(spec: ArchitectureSpec, kv_dtype: str, context: int, layers: range, tp: int) -> int:
    """The least that a sequence of ``context`` tokens needs of one rank, unrounded."""
    kept = sum(
        _kept_bytes(attention, kv_dtype, context, tp) * count
        for attention, count in attention_counts(spec, layers.start, layers.stop)
    )
    return kept + constant_bytes(spec, layers.start, layers.stop, tp)


def token_growth_bytes(
    spec: ArchitectureSpec, kv_dtype: str, context: int, layers: range, tp: int
) -> int:
    """What one more token costs one rank at ``context``."""
    return rank_bytes(spec, kv_dtype, context + 1, layers, tp) - rank_bytes(
        spec, kv_dtype, context, layers, tp
    )


@lru_cache(maxsize=CACHED)
def equation(spec: ArchitectureSpec, kv_dtype: str) -> str:
    """The bytes of one token in every layer, as a calculation with its inputs."""
    terms = cache_terms(spec, kv_dtype)
    if not terms:
        return "no layer keeps a cache"
    parts = [term.equation + _how_often(term) for term in terms]
    whole = sum(term.layers * term.token_bytes for term in terms if term.ratio == 1)
    return " + ".join(parts) + f" = {whole:,} B a token"


def _how_often(term: CacheTerm) -> str:
    if term.ratio > 1:
        return f" for {term.ratio:,} tokens"
    if term.kind is AttentionKind.CROSS and term.window:
        return f" (the encoder's {term.window:,} tokens)"
    return f" (last {term.window:,} tokens)" if term.window else ""


@lru_cache(maxsize=CACHED)
def sequence_equation(spec: ArchitectureSpec, kv_dtype: str, context: int) -> str:
    """The least of a sequence of ``context`` tokens, as a calculation that comes out exactly.

    One term per kind of layer; where all layers grow alike, the bytes of one token come first.
    """
    terms, constant = cache_terms(spec, kv_dtype), constant_bytes(spec)
    whole = architecture_bytes(spec, kv_dtype, context)
    if terms and not constant and not any(term.window or term.ratio > 1 for term in terms):
        return f"{equation(spec, kv_dtype)}; × {context:,} tokens = {whole:,} B a sequence"
    parts = [
        f"{term.equation} × {term.tokens(context):,} {'tokens' if term.ratio == 1 else 'entries'}"
        for term in terms
    ]
    if constant:
        parts.append(f"{constant:,} B of constant state")
    if not parts:
        return "no layer keeps a cache"
    return " + ".join(parts) + (f" = {whole:,} B a sequence" if terms else " a sequence")


def resolve_kv_dtype(spec: ArchitectureSpec, asked: str, model_dtype: str) -> str:
    """The KV dtype in force: as asked, else as the checkpoint says, else the model's own."""
    if asked != "auto":
        return asked
    return spec.kv_cache_dtype or canonical(model_dtype) or "bfloat16"
