"""What mlx-lm's caches hold, to the byte: rows by which they grow, not tokens.

Source:
    mlx-lm 0.32.2 ``models/cache.py``; the arrays of the caches of 20 types were measured, see
    ``tests/unit/runtimes/mlx/test_cache.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import kv_heads_per_rank
from engine.formats.dtypes import canonical, element_bytes
from engine.runtimes.mlx.models import EXPANDED_LATENTS
from engine.runtimes.mlx.rules import STEP
from engine.units import align_up

if TYPE_CHECKING:
    from engine.architecture.spec import AttentionSpec, StateSpec

_FLOAT32_STATES = frozenset({"gated_delta_net", "kda", "mamba2"})
"""Kinds whose recurrent part is kept in 32 bits; that of all others has the model's dtype."""


@dataclass(frozen=True, slots=True)
class Packing:
    """``--kv-bits`` and its companions; no bits: keys and values as they are computed."""

    bits: int | None = None
    group_size: int = 64
    start: int = 5000

    def applies(self, tokens: int) -> bool:
        """Whether a cache that holds ``tokens`` has been quantised."""
        return self.bits is not None and tokens >= self.start


UNPACKED = Packing()


def prompt_rows(tokens: int, step: int) -> int:
    """Rows of a growing cache after ``tokens`` of a prompt, read ``step`` at a time.

    A chunk that finds no room adds rows for itself, rounded up to 256, behind the tokens that
    there are.
    """
    if tokens <= 0:
        return 0
    if step >= STEP:
        before = (tokens - 1) // step * step
        return before + align_up(tokens - before, STEP)
    held = STEP // step * step
    return (tokens - 1) // held * held + STEP


def grown_rows(rows: int, tokens: int) -> int:
    """Rows after an answer has filled the cache up to ``tokens``, one at a time."""
    return rows if tokens <= rows else rows + align_up(tokens - rows, STEP)


def rows_at_end(window: int, *, chunked: bool, prompt: int, step: int, tokens: int) -> int:
    """Rows of one layer's cache when the sequence has ``tokens``.

    Args:
        window: tokens that the layer looks back on; 0 = all.
        chunked: whether it looks at chunks of that length (Llama 4).
        prompt: tokens of the prompt; the last one is read with the answer.
        step: tokens of one chunk.
        tokens: prompt and answer.
    """
    if not window or (chunked and tokens <= window):
        return grown_rows(prompt_rows(prompt - 1, step), tokens)
    if chunked:
        return window + STEP
    # A rotating cache keeps a prompt as it is and grows up to its window.
    return min(window, grown_rows(min(prompt - 1, window), tokens))


def prompt_window_rows(window: int, offset: int, chunk: int) -> int:
    """Rows of a rotating cache while a chunk is read: the window's, and the chunk's."""
    return min(offset, window - 1) + chunk


def row_elements(attention: AttentionSpec, model_type: str, tp: int = 1) -> tuple[int, int]:
    """Elements of a row of keys and of values in one cache of a layer, on one rank.

    A latent vector counts as the keys, its rotary part as the values.
    """
    if attention.kind is AttentionKind.LATENT:
        if model_type in EXPANDED_LATENTS:
            heads = attention.num_attention_heads // tp
            key = attention.qk_nope_head_dim + attention.qk_rope_head_dim
            return heads * key, heads * attention.v_head_dim
        return attention.kv_lora_rank, attention.qk_rope_head_dim
    heads = kv_heads_per_rank(attention, tp)
    return heads * attention.head_dim, heads * attention.v_head_dim


def row_bytes(
    attention: AttentionSpec, model_type: str, width: int, packing: Packing, tp: int = 1
) -> int:
    """Bytes of a row of one cache of a layer; the indexer's key is kept twice, as a value too."""
    elements = sum(row_elements(attention, model_type, tp))
    index = 2 * attention.index_head_dim * width
    if packing.bits is None:
        return elements * width + index
    groups = elements // packing.group_size
    return elements * packing.bits // 8 + 2 * groups * width + index


def state_bytes(state: StateSpec, dtype: str, tp: int = 1) -> int:
    """Constant state of one layer and sequence: the convolution's last columns, and the rest."""
    width = element_bytes(canonical(dtype) or "bfloat16")
    kept = max(state.conv_kernel - 1, 0)
    conv = state.conv_dim // tp * kept + state.further_elements // tp
    recurrent = 4 if state.kind in _FLOAT32_STATES else width
    return conv * width + state.recurrent_elements // tp * recurrent
