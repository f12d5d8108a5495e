"""The cache that transformers keeps, layer by layer, to the byte.

Source:
    transformers 5.24.0 ``cache_utils.py``; the tensors of every type's cache were measured after
    7, 40 and 41 tokens (torch 2.13.0, CPU), see ``tests/truth/test_architectures.py``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import kept_tokens as needed_tokens
from engine.budget.sequence_state import kv_heads_per_rank
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.kv import head_bytes, side_bytes
from engine.units import ceil_div

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.spec import AttentionSpec, Compression, LayerSpec, StateSpec

_MODEL_DTYPE = frozenset({"cca", "lightning", "xlstm"})
"""Kinds of state that stay in the model's dtype; all others are kept in 32 bits."""
_INTEGER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Form:
    """What a cache keeps of a layer, before any quantisation."""

    static: bool = False
    """Whether it is made for the whole sequence up front."""
    packs_latents: bool = True
    """Whether latent attention keeps the latent vector, and not keys and values of every head."""
    cuts_windows: bool = True
    """Whether a growing cache drops what has left the window."""


GROWING = Form()


def kinds(layers: Sequence[LayerSpec]) -> list[tuple[LayerSpec, int]]:
    """Every layer that differs, and how many there are of it."""
    counts = Counter(map(id, layers))
    return [(layer, counts[key]) for key, layer in {id(one): one for one in layers}.items()]


def layer_bytes(
    layer: LayerSpec, tokens: int, dtype: str, *, tp: int = 1, form: Form = GROWING
) -> int:
    """Bytes that one layer keeps for one sequence of ``tokens``.

    Args:
        layer: the layer.
        tokens: prompt and answer so far.
        dtype: the model's dtype, which keys and values have.
        tp: tensor-parallel size.
        form: what the cache keeps.
    """
    kept = sum(
        attention_bytes(a, tokens, dtype, tp=tp, form=form)
        for a in (layer.attention, layer.cross)
        if a is not None and a.keeps_cache
    )
    return kept + (state_bytes(layer.state, dtype, tp) if layer.state is not None else 0)


def attention_bytes(
    attention: AttentionSpec, tokens: int, dtype: str, *, tp: int = 1, form: Form = GROWING
) -> int:
    """Keys and values of one attention layer after ``tokens``."""
    kept = kept_tokens(attention, tokens, form)
    size = kept * token_bytes(attention, dtype, tp, packs_latents=form.packs_latents)
    if attention.compression is not None:
        size += _compressed_elements(attention.compression, tokens) * element_bytes(dtype)
    return size * attention.caches


def growth_bytes(
    layer: LayerSpec, tokens: int, dtype: str, *, tp: int = 1, form: Form = GROWING
) -> int:
    """What one more token costs a layer after ``tokens``; of a compressed entry, its share.

    What waits for an entry to be full comes and goes, and is left out.
    """
    grown = 0
    for attention in (layer.attention, layer.cross):
        if attention is None or not attention.keeps_cache:
            continue
        more = kept_tokens(attention, tokens + 1, form) - kept_tokens(attention, tokens, form)
        each = token_bytes(attention, dtype, tp, packs_latents=form.packs_latents)
        grown += more * each * attention.caches
        found = attention.compression
        if found is not None:
            entry_bytes = (found.width + found.index_width) * element_bytes(dtype)
            grown += ceil_div(entry_bytes, found.ratio) * attention.caches
    return grown


def token_bytes(
    attention: AttentionSpec, dtype: str, tp: int = 1, *, packs_latents: bool = True
) -> int:
    """Bytes that one cache of a layer holds for one token.

    A latent vector is whole on every rank; unpacked, its heads are shared out.
    """
    if attention.kind is AttentionKind.LATENT and packs_latents:
        size = side_bytes(dtype, attention.kv_lora_rank + attention.qk_rope_head_dim)
    elif attention.kind is AttentionKind.LATENT:
        key = attention.qk_nope_head_dim + attention.qk_rope_head_dim
        size = attention.num_attention_heads // tp * head_bytes(dtype, key, attention.v_head_dim)
    else:
        heads = kv_heads_per_rank(attention, tp)
        # A plain window keeps the value though it is the key; only the compressed kinds do not.
        once = attention.compression is not None and not attention.keeps_values
        values = 0 if once else attention.v_head_dim
        size = heads * head_bytes(dtype, attention.head_dim, values)
    if attention.index_head_dim:
        size += side_bytes(attention.index_dtype or dtype, attention.index_head_dim)
        size += _INTEGER_BYTES * attention.index_positions
    return size


def kept_tokens(attention: AttentionSpec, tokens: int, form: Form = GROWING) -> int:
    """Tokens a layer's cache holds at the end: W − 1 (dynamic) or W (static) under a window."""
    windowed = attention.window and attention.kind is not AttentionKind.CROSS
    if windowed and not form.static:
        kept = min(attention.window - 1, tokens) if form.cuts_windows else tokens
        return kept + attention.prefix_tokens
    return needed_tokens(attention, tokens)


def state_bytes(state: StateSpec, dtype: str, tp: int = 1) -> int:
    """Constant state of one layer and sequence."""
    model_dtype = canonical(dtype) or "bfloat16"
    columns = state.conv_kernel if state.keeps_kernel else max(state.conv_kernel - 1, 0)
    conv = state.conv_dim // tp * columns + state.further_elements // tp
    conv_bytes = conv * element_bytes(state.conv_dtype or model_dtype)
    kept_as = model_dtype if state.kind in _MODEL_DTYPE else "float32"
    recurrent_bytes = state.recurrent_elements // tp * element_bytes(kept_as)
    return conv_bytes + recurrent_bytes + _INTEGER_BYTES * state.integers


def waiting_bytes(compression: Compression, tokens: int, dtype: str) -> int:
    """Of ``tokens`` a value and a gate each, while they wait for their entry to be full."""
    widths = compression.width + compression.index_width
    return 2 * tokens * (2 if compression.overlaps else 1) * widths * element_bytes(dtype)


def _compressed_elements(compression: Compression, tokens: int) -> int:
    """Entries so far, and the tokens of the entry that is not full yet.

    Those wait as a value and a gate each; where entries overlap, twice as wide, and the tokens of
    the last entry stay beside them.
    """
    ratio = compression.ratio
    widths = (compression.width, compression.index_width)
    waiting = 2 * (tokens % ratio) * (2 if compression.overlaps else 1)
    beside = 2 * ratio if compression.overlaps and tokens >= ratio else 0
    return sum(width * (tokens // ratio + waiting + beside) for width in widths)
