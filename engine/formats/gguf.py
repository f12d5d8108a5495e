"""GGUF block types by name, and the bytes of rows and tensors packed in them."""

from __future__ import annotations

from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.source.ggml_types import BY_NUMBER
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.source.ggml_types import GgmlType


TYPES: Mapping[str, GgmlType] = MappingProxyType({kind.name: kind for kind in BY_NUMBER.values()})
"""Block types by name."""


def row_bytes(ggml_type: str, elements: int) -> int:
    """Bytes of a row.

    Raises:
        ValueError: the row is no whole number of blocks; ggml cannot hold it.
        KeyError: the type is not known.
    """
    block = TYPES[ggml_type]
    blocks, rest = divmod(elements, block.elements)
    if rest:
        message = tr("a row of {elements} is no whole number of {ggml_type} blocks").format(
            elements=elements, ggml_type=ggml_type
        )
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
