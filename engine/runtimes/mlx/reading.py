"""What an evaluation of MLX reads, and what every layer's cache holds before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.runtimes.mlx.cache import UNPACKED, Packing, prompt_window_rows
from engine.runtimes.mlx.rules import STEP
from engine.units import align_up

if TYPE_CHECKING:
    from engine.runtimes.mlx.layers import Attention, Layer


@dataclass(frozen=True, slots=True)
class Pass:
    """What is read in one evaluation."""

    tokens: int
    """New tokens, of all sequences together."""
    offset: int
    """Tokens of a sequence before them."""
    step: int
    """Tokens of a full chunk: what a rotating cache holds of the chunk before."""
    fused: frozenset[int]
    """Widths of heads whose attention is one kernel."""
    masked: bool = False
    """Whether the mask is an array that is added to the scores."""
    logits: bool = False
    """Whether every token goes through the head."""
    packing: Packing = UNPACKED
    grows: bool = True
    """Whether growing caches find no room for the tokens."""
    is_small_chip: bool = False
    """Whether the chip's command buffers are the smaller ones."""


def before_rows(attention: Attention, wanted: Pass) -> int:
    """Rows of a layer's cache before the pass."""
    offset = wanted.offset
    if not attention.window:
        return align_up(offset, STEP)
    if attention.is_chunked:
        return min(align_up(offset, STEP), attention.window + align_up(wanted.step, STEP))
    return min(offset, attention.window - 1 + wanted.step)


def after_rows(attention: Attention, wanted: Pass) -> int:
    """Rows of a layer's cache after the pass."""
    before, offset, tokens = before_rows(attention, wanted), wanted.offset, wanted.tokens
    if not attention.window:
        return before + align_up(tokens, STEP) if wanted.grows else before
    if attention.is_chunked:
        return min(align_up(offset, STEP), attention.window) + align_up(tokens, STEP)
    if tokens == 1:
        return min(before + (STEP if wanted.grows else 0), attention.window)
    return prompt_window_rows(attention.window, offset, tokens)


def rows_bytes(attention: Attention, rows: int, wanted: Pass, width: int) -> int:
    """Bytes of ``rows`` of a layer's caches."""
    elements = sum(attention.row) * attention.caches
    index = 2 * attention.index_row * width
    packing = wanted.packing
    if packing.bits is None or not packing.applies(wanted.offset) or attention.window:
        return rows * (elements * width + index)
    groups = elements // packing.group_size
    return rows * (elements * packing.bits // 8 + 2 * groups * width + index)


def kept_bytes(layer: Layer, wanted: Pass, width: int, *, after: bool) -> int:
    """Bytes of a layer's caches and states, before the pass or after it."""
    size = layer.state.size_bytes if layer.state is not None else 0
    attention = layer.attention
    if attention is not None and attention.keeps_cache:
        rows = (after_rows if after else before_rows)(attention, wanted)
        size += rows_bytes(attention, rows, wanted, width)
    return size


def conv_input_bytes(layer: Layer, wanted: Pass, width: int) -> int:
    """The input of a layer's convolution, which lives until the end of the pass."""
    return layer.state.conv * wanted.tokens * width if layer.state is not None else 0
