"""What a sequence needs by the architecture alone: no blocks, no padding, no runtime."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import AttentionKind
from engine.errors import DeploymentError
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.kv import (
    PACKED_LATENTS,
    compressed_bytes,
    indexer_bytes,
    latent_bytes,
    layer_bytes,
)
from engine.units import ceil_div
from engine.words import grouped, tr, tr_count

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

_INDEX_BYTES = 2
"""Of an indexer's key beside keys and values of heads: 16 bits, whatever the cache's dtype."""


class CacheTerm(NamedTuple):
    """Layers that keep the same: one line of the KV equation."""

    kind: AttentionKind
    layers: int
    """Caches of the kind: layers, times the caches that each of them keeps."""
    window: int
    token_bytes: int
    """Per token and layer."""
    equation: str
    """``2 × 32 layers × 8 heads × 128 × 2 B``."""

    prefix_tokens: int = 0
    ratio: int = 1
    """Tokens that one entry stands for."""

    @property
    def grows_alike(self) -> bool:
        """Whether such a layer keeps just as many tokens as the context has."""
        return not self.window and not self.prefix_tokens and self.ratio == 1

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

    The latent vector of MLA is replicated on every rank, and so are an indexer's keys.
    """
    if attention.kind is AttentionKind.LATENT:
        size = latent_bytes(kv_dtype, attention.kv_lora_rank, attention.qk_rope_head_dim)
        return size + (indexer_bytes(attention.index_head_dim) if attention.index_head_dim else 0)
    if is_compressed(attention):
        return compressed_bytes(kv_dtype, attention.head_dim, attention.qk_rope_head_dim)
    # The packed layouts are those of latents: keys and values beside them stay plain.
    dtype = "fp8" if kv_dtype in PACKED_LATENTS else kv_dtype
    values = attention.v_head_dim if attention.keeps_values else 0
    size = layer_bytes(dtype, kv_heads_per_rank(attention, tp), attention.head_dim, values)
    return size + _INDEX_BYTES * attention.index_head_dim


def is_compressed(attention: AttentionSpec) -> bool:
    """Whether a layer keeps one key of one head, which is the value too (DeepSeek-V4)."""
    return not attention.keeps_values and attention.num_key_value_heads == 1


def entry_bytes(attention: AttentionSpec, found: Compression, kv_dtype: str) -> int:
    """Bytes of one compressed entry, with its key in the indexer."""
    index = indexer_bytes(found.index_width) if found.index_width else 0
    return compressed_bytes(kv_dtype, found.width, attention.qk_rope_head_dim) + index


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


@lru_cache(maxsize=CACHED)
def attention_kinds(spec: ArchitectureSpec) -> tuple[AttentionSpec, ...]:
    """The distinct attentions of the layers that keep a cache, in layer order."""
    return tuple(attention for attention, _ in attention_counts(spec))


@lru_cache(maxsize=CACHED)
def cache_terms(spec: ArchitectureSpec, kv_dtype: str) -> tuple[CacheTerm, ...]:
    """The KV equation of the whole model, one term per kind of layer, in layer order."""
    return tuple(
        term
        for attention, count in attention_counts(spec)
        for term in _terms(attention, count, kv_dtype)
    )


def _terms(attention: AttentionSpec, caches: int, kv_dtype: str) -> list[CacheTerm]:
    where = _where(attention, caches)
    per_token = token_bytes(attention, kv_dtype)
    terms = [
        CacheTerm(
            kind=attention.kind if attention.compression is None else AttentionKind.SLIDING,
            layers=caches,
            window=attention.window,
            token_bytes=per_token,
            equation=_equation(attention, where, per_token, kv_dtype),
            prefix_tokens=attention.prefix_tokens,
        )
    ]
    found = attention.compression
    if found is not None:
        entry = entry_bytes(attention, found, kv_dtype)
        text = tr("{where} × {entry} B an entry").format(where=where, entry=grouped(entry))
        terms.append(CacheTerm(AttentionKind.FULL, caches, 0, entry, text, ratio=found.ratio))
    return terms


def _where(attention: AttentionSpec, caches: int) -> str:
    layers = caches // attention.caches
    if attention.kind is AttentionKind.CROSS:
        said = tr_count("{layers} cross-attention layer", "{layers} cross-attention layers", layers)
    else:
        said = tr_count("{layers} layer", "{layers} layers", layers)
    text = said.format(layers=layers)
    return text + (
        tr(" × {caches} caches").format(caches=attention.caches) if attention.caches > 1 else ""
    )


def _equation(attention: AttentionSpec, where: str, per_token: int, kv_dtype: str) -> str:
    """``per_token`` of every cache, as a product of what the config states."""
    if not attention.index_head_dim:
        return _product(attention, where, per_token)
    plain = replace(attention, index_head_dim=0)
    beside = token_bytes(plain, kv_dtype)
    index = tr("{per_token} B of the index's keys").format(per_token=grouped(per_token - beside))
    if not beside:
        return tr("{where} × {index}").format(where=where, index=index)
    return tr("{where} × ({product} + {index})").format(
        where=where, product=_product(plain, "", beside), index=index
    )


def _product(attention: AttentionSpec, where: str, per_token: int) -> str:
    before = f"{where} × " if where else ""
    if attention.kind is AttentionKind.LATENT:
        latent, rope = attention.kv_lora_rank, attention.qk_rope_head_dim
        if per_token % (latent + rope):
            return tr("{before}{per_token} B (latent {latent} + {rope}, packed)").format(
                before=before, per_token=grouped(per_token), latent=latent, rope=rope
            )
        return tr("{before}({latent} + {rope}) × {per_token} B").format(
            before=before, latent=latent, rope=rope, per_token=per_token // (latent + rope)
        )
    heads, key = attention.num_key_value_heads, attention.head_dim
    value = attention.v_head_dim if attention.keeps_values else 0
    of_keys = "" if value else tr(" of keys")
    some = tr_count("{heads} head", "{heads} heads", heads).format(heads=heads)
    if per_token % (heads * (key + value)):
        each = (
            grouped(per_token)
            if per_token % heads
            else tr("{some} × {per_token}").format(some=some, per_token=grouped(per_token // heads))
        )
        return f"{before}{each} B{of_keys}"
    twice = "2 × " if key == value else ""
    widths = (
        tr("({key} + {value})").format(key=key, value=value) if value not in (0, key) else f"{key}"
    )
    width = per_token // (heads * (key + value))
    return tr("{twice}{before}{some} × {widths} × {width} B{of_keys}").format(
        twice=twice, before=before, some=some, widths=widths, width=width, of_keys=of_keys
    )


@lru_cache(maxsize=CACHED)
def constant_bytes(
    spec: ArchitectureSpec, first: int = 0, stop: int | None = None, tp: int = 1, dtype: str = ""
) -> int:
    """Constant state of one sequence in layers ``first`` to ``stop`` on one rank.

    Args:
        spec: the model.
        first: the first layer.
        stop: the layer after the last; all of them where it is None.
        tp: tensor-parallel size.
        dtype: the model's dtype where it runs in another than the config states.
    """
    return sum(
        constant_state_bytes(layer.state, dtype or spec.dtype, tp) * count
        for layer, count in layer_kinds(spec, first, stop)
        if layer.state is not None
    )


def architecture_bytes(spec: ArchitectureSpec, kv_dtype: str, context: int, dtype: str = "") -> int:
    """The least that a sequence of ``context`` tokens needs, whole model.

    Tokens that wait for a compressed entry are left out: there may be none.
    """
    return rank_bytes(spec, kv_dtype, context, range(len(spec.layers)), 1, dtype)


def rank_bytes(
    spec: ArchitectureSpec, kv_dtype: str, context: int, layers: range, tp: int, dtype: str = ""
) -> int:
    """The least that a sequence of ``context`` tokens needs of one rank, unrounded."""
    size = constant_bytes(spec, layers.start, layers.stop, tp, dtype)
    for cost in _costs(spec, kv_dtype, layers.start, layers.stop, tp):
        size += kept_tokens(cost.attention, context) * cost.token_bytes
        size += context // cost.ratio * cost.entry_bytes
    return size


class _Cost(NamedTuple):
    """What all caches of one kind keep on one rank: its window, and entries beside it."""

    attention: AttentionSpec
    token_bytes: int
    entry_bytes: int = 0
    ratio: int = 1
    """Tokens that an entry stands for."""


@lru_cache(maxsize=CACHED)
def _costs(
    spec: ArchitectureSpec, kv_dtype: str, first: int, stop: int, tp: int
) -> tuple[_Cost, ...]:
    costs: list[_Cost] = []
    for attention, count in attention_counts(spec, first, stop):
        cost = _Cost(attention, token_bytes(attention, kv_dtype, tp) * count)
        found = attention.compression
        if found is not None:
            entry = entry_bytes(attention, found, kv_dtype) * count
            cost = cost._replace(entry_bytes=entry, ratio=found.ratio)
        costs.append(cost)
    return tuple(costs)


def token_growth_bytes(
    spec: ArchitectureSpec, kv_dtype: str, context: int, layers: range, tp: int
) -> int:
    """What one more token costs one rank at ``context``; of an entry for several, its share."""
    grown = 0
    for cost in _costs(spec, kv_dtype, layers.start, layers.stop, tp):
        tokens = kept_tokens(cost.attention, context + 1) - kept_tokens(cost.attention, context)
        grown += tokens * cost.token_bytes + ceil_div(cost.entry_bytes, cost.ratio)
    return grown


@lru_cache(maxsize=CACHED)
def equation(spec: ArchitectureSpec, kv_dtype: str) -> str:
    """The bytes of one token in every layer, as a calculation with its inputs."""
    terms = cache_terms(spec, kv_dtype)
    if not terms:
        return tr("no layer keeps a cache")
    parts = [term.equation + _how_often(term) for term in terms]
    whole = sum(term.layers * term.token_bytes for term in terms if term.ratio == 1)
    return " + ".join(parts) + tr(" = {whole} B a token").format(whole=grouped(whole))


def _how_often(term: CacheTerm) -> str:
    if term.ratio > 1:
        return tr(" for {ratio} tokens").format(ratio=grouped(term.ratio))
    if term.prefix_tokens:
        return tr(" (and {prefix_tokens} tokens before every sequence)").format(
            prefix_tokens=grouped(term.prefix_tokens)
        )
    if term.kind is AttentionKind.CROSS and term.window:
        return tr(" (the encoder's {window} tokens)").format(window=grouped(term.window))
    return tr(" (last {window} tokens)").format(window=grouped(term.window)) if term.window else ""


@lru_cache(maxsize=CACHED)
def sequence_equation(spec: ArchitectureSpec, kv_dtype: str, context: int, dtype: str = "") -> str:
    """The least of a sequence of ``context`` tokens, as a calculation that comes out exactly.

    One term per kind of layer; where all layers grow alike, the bytes of one token come first.
    """
    terms, constant = cache_terms(spec, kv_dtype), constant_bytes(spec, dtype=dtype)
    whole = architecture_bytes(spec, kv_dtype, context, dtype)
    if terms and not constant and all(term.grows_alike for term in terms):
        return tr("{equation}; × {context} tokens = {whole} B a sequence").format(
            equation=equation(spec, kv_dtype), context=grouped(context), whole=grouped(whole)
        )
    parts = [
        (
            tr("{equation} × {tokens} tokens")
            if term.ratio == 1
            else tr("{equation} × {tokens} entries")
        ).format(equation=term.equation, tokens=grouped(term.tokens(context)))
        for term in terms
    ]
    if constant:
        parts.append(tr("{constant} B of constant state").format(constant=grouped(constant)))
    if not parts:
        return tr("no layer keeps a cache")
    return " + ".join(parts) + (
        tr(" = {whole} B a sequence").format(whole=grouped(whole)) if terms else tr(" a sequence")
    )


def resolve_kv_dtype(spec: ArchitectureSpec, asked: str, model_dtype: str) -> str:
    """The KV dtype in force: as asked, else as the checkpoint says, else the model's own.

    Raises:
        DeploymentError: it is a layout of latent vectors that the model doesn't have, or one of
            keys and values, where all that is kept are latent vectors.
    """
    found = asked
    if asked == "auto":
        found = spec.kv_cache_dtype or canonical(model_dtype) or "bfloat16"
    kinds = attention_kinds(spec)
    latent = any(a.kind is AttentionKind.LATENT for a in kinds)
    compressed = any(a.compression for a in kinds)
    message = ""
    if found in PACKED_LATENTS and not latent and not (compressed and found == "fp8_ds_mla"):
        message = tr(
            "{found} is a layout of latent vectors (MLA), and this model keeps none."
        ).format(found=found)
    elif found.startswith("nvfp4") and found not in PACKED_LATENTS and latent:
        message = tr(
            "{found} keeps keys and values; this model keeps latent vectors (MLA)."
        ).format(found=found)
    if message:
        raise DeploymentError(message, field="kv_cache_dtype")
    return found
