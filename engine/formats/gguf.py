"""GGUF block types: elements and bytes of a block.

Source: ggml ``ggml-common.h`` (block layouts) by way of gguf-py's ``GGML_QUANT_SIZES``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class BlockType:
    """How a ggml type packs a row."""

    name: str
    number: int
    """Its id in a tensor table."""
    elements: int
    """Per block; 1 for plain types."""
    size_bytes: int
    """Per block."""

    @property
    def is_quantised(self) -> bool:
        """Whether elements share a block."""
        return self.elements > 1

    @property
    def bits(self) -> float:
        """Bits per weight."""
        return 8 * self.size_bytes / self.elements


def _table(*rows: tuple[str, int, int, int]) -> Mapping[str, BlockType]:
    return MappingProxyType({row[0]: BlockType(*row) for row in rows})


TYPES: Mapping[str, BlockType] = _table(
    ("F32", 0, 1, 4),
    ("F16", 1, 1, 2),
    ("Q4_0", 2, 32, 18),
    ("Q4_1", 3, 32, 20),
    ("Q5_0", 6, 32, 22),
    ("Q5_1", 7, 32, 24),
    ("Q8_0", 8, 32, 34),
    ("Q8_1", 9, 32, 40),
    ("Q2_K", 10, 256, 84),
    ("Q3_K", 11, 256, 110),
    ("Q4_K", 12, 256, 144),
    ("Q5_K", 13, 256, 176),
    ("Q6_K", 14, 256, 210),
    ("Q8_K", 15, 256, 292),
    ("IQ2_XXS", 16, 256, 66),
    ("IQ2_XS", 17, 256, 74),
    ("IQ3_XXS", 18, 256, 98),
    ("IQ1_S", 19, 256, 50),
    ("IQ4_NL", 20, 32, 18),
    ("IQ3_S", 21, 256, 110),
    ("IQ2_S", 22, 256, 82),
    ("IQ4_XS", 23, 256, 136),
    ("I8", 24, 1, 1),
    ("I16", 25, 1, 2),
    ("I32", 26, 1, 4),
    ("I64", 27, 1, 8),
    ("F64", 28, 1, 8),
    ("IQ1_M", 29, 256, 56),
    ("BF16", 30, 1, 2),
    ("TQ1_0", 34, 256, 54),
    ("TQ2_0", 35, 256, 66),
    ("MXFP4", 39, 32, 17),
    ("NVFP4", 40, 64, 36),
    ("Q1_0", 41, 128, 18),
)
"""Block types by name."""

BY_NUMBER: Mapping[int, BlockType] = MappingProxyType({t.number: t for t in TYPES.values()})
"""Block types by their id in a tensor table."""


def row_bytes(ggml_type: str, elements: int) -> int:
    """Bytes of a row.

    Raises:
        ValueError: the row is no whole number of blocks; ggml cannot hold it.
        KeyError: the type is not known.
    """
    block = TYPES[ggml_type]
    blocks, rest = divmod(elements, block.elements)
    if rest:
        message = f"a row of {elements} is no whole number of {ggml_type} blocks"
        raise ValueError(message)
    return blocks * block.size_bytes


def tensor_bytes(ggml_type: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor.

    Shapes:
        ``shape`` in ggml order: ne0, the row, first.

    Raises:
        ValueError: the row is no whole number of blocks.
        KeyError: the type is not known.
    """
    return row_bytes(ggml_type, shape[0]) * prod(shape[1:]) if shape else 0
