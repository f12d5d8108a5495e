"""Stored layouts of quantised matrices: (rows, columns, bytes of a base element) -> bytes.

Sources: vLLM's quantisation layers, and files that the quantisers themselves wrote
(``tests/evidence/quantised_files.jsonl``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.units import ceil_div

if TYPE_CHECKING:
    from collections.abc import Callable

    MatrixBytes = Callable[[int, int, int], int]


OF_THE_MODEL = 0
"""In place of a scale's bytes: as many as an element of the model's dtype."""


def _groups(columns: int, group: int) -> int:
    """Groups of a row; a group of 0 is the whole row."""
    return ceil_div(columns, group) if group else 1


def gptq(bits: int, group: int = 128, *, act_order: bool = True) -> MatrixBytes:
    """AutoGPTQ: packed values, fp16 scales, packed zero points, the group index of a column."""

    def size(rows: int, columns: int, _base: int) -> int:
        groups = _groups(columns, group)
        payload = ceil_div(columns * bits, 32) * 4 * rows
        zeros = groups * ceil_div(rows * bits, 32) * 4
        return payload + 2 * rows * groups + zeros + (4 * columns if act_order else 0)

    return size


def awq(group: int = 128) -> MatrixBytes:
    """AutoAWQ "gemm": values and zero points packed along the rows, fp16 scales."""

    def size(rows: int, columns: int, _base: int) -> int:
        packed = ceil_div(rows, 8) * 4
        groups = _groups(columns, group)
        return columns * packed + 2 * rows * groups + groups * packed

    return size


def packed(
    bits: int, group: int = 128, *, zero_points: bool = False, act_order: bool = False
) -> MatrixBytes:
    """compressed-tensors "pack-quantized", without bits between the values.

    Scales have the model's dtype; ``weight_shape`` is two int64; zero points are packed along
    the rows; ``actorder: group`` stores the group index of a column.
    """

    def size(rows: int, columns: int, base: int) -> int:
        groups = _groups(columns, group)
        zeros = ceil_div(rows * bits, 32) * 4 * groups if zero_points else 0
        order = 4 * columns if act_order else 0
        words = rows * ceil_div(columns * bits, 32)
        return 4 * words + base * rows * groups + zeros + order + 16

    return size


def bytes_in_groups(group: int, *, zero_points: bool = False) -> MatrixBytes:
    """compressed-tensors "int-quantized" by groups: a byte a value, scales of the model's dtype."""

    def size(rows: int, columns: int, base: int) -> int:
        groups = _groups(columns, group)
        return rows * columns + (base + zero_points) * rows * groups

    return size


def nf4(rows: int, columns: int, _base: int) -> int:
    """NF4 of bitsandbytes, double quantised."""
    blocks = ceil_div(rows * columns, 64)
    nested = 4 * ceil_div(blocks, 256) + 256 * 4 + 4
    return ceil_div(rows * columns, 2) + blocks + nested + 16 * 4


def nf4_plain(rows: int, columns: int, _base: int) -> int:
    """NF4 of bitsandbytes."""
    return ceil_div(rows * columns, 2) + 4 * ceil_div(rows * columns, 64) + 16 * 4


def per_tensor(scale: int = 4, *, is_static: bool = False) -> MatrixBytes:
    """A byte a value and one scale; static activations have a scale as well.

    Args:
        scale: bytes of a scale; ``OF_THE_MODEL`` where it has the model's dtype.
        is_static: whether the activations' scale is stored.
    """

    def size(rows: int, columns: int, base: int) -> int:
        return rows * columns + (scale or base) * (1 + is_static)

    return size


def per_channel(
    scale: int = 4, *, zero_points: bool = False, is_static: bool = False, smooth: bool = False
) -> MatrixBytes:
    """A byte a value, one scale a row; ``smooth``: a factor of the model's dtype a column too."""

    def size(rows: int, columns: int, base: int) -> int:
        scales = (scale or base) * (rows + is_static)
        return rows * columns + scales + zero_points * rows + smooth * base * columns

    return size


def fp8_blocks(high: int = 128, wide: int = 128, scale: int = 4) -> MatrixBytes:
    """A byte a value, one scale a block."""

    def size(rows: int, columns: int, base: int) -> int:
        blocks = ceil_div(rows, high) * ceil_div(columns, wide)
        return rows * columns + (scale or base) * blocks

    return size


def mxfp8(rows: int, columns: int, _base: int) -> int:
    """A byte a value, a one-byte scale for 32."""
    return rows * (columns + ceil_div(columns, 32))


def mxfp4(rows: int, columns: int, _base: int) -> int:
    """Half a byte a value, a one-byte scale for 32."""
    return rows * (ceil_div(columns, 2) + ceil_div(columns, 32))


def nvfp4(scalars: int = 2) -> MatrixBytes:
    """Half a byte a value, a one-byte scale for 16, fp32 scalars: global and input scale."""

    def size(rows: int, columns: int, _base: int) -> int:
        return rows * (ceil_div(columns, 2) + ceil_div(columns, 16)) + 4 * scalars

    return size


def bitnet(rows: int, columns: int, base: int) -> int:
    """Four ternary values a byte along the rows, one scale of the model's dtype."""
    return ceil_div(rows, 4) * columns + base


def hqq(bits: int, group: int = 64) -> MatrixBytes:
    """HQQ: values side by side in bytes (3 bits: ten in a word), scale and zero a group.

    Groups run over the whole matrix; 0 is a row. Both have the model's dtype.
    """

    def size(rows: int, columns: int, base: int) -> int:
        width = group or columns
        groups = ceil_div(rows * columns, width)
        packed_bytes = 4 * ceil_div(groups, 10) if bits == 3 else ceil_div(groups * bits, 8)
        return packed_bytes * width + 2 * base * groups

    return size


def where_whole(group: int, packed_size: MatrixBytes) -> MatrixBytes:
    """MLX: a matrix whose width is no whole number of groups stays unquantised."""

    def size(rows: int, columns: int, base: int) -> int:
        return rows * columns * base if columns % group else packed_size(rows, columns, base)

    return size


def mlx(bits: int, group: int = 64) -> MatrixBytes:
    """MLX affine: scale and bias of the model's dtype a group."""

    def size(rows: int, columns: int, base: int) -> int:
        return rows * (ceil_div(columns * bits, 32) * 4 + 2 * base * (columns // group))

    return where_whole(group, size)
