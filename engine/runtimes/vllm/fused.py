"""Matrices as vLLM joins them: q, k and v; gate and up."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.sequence_state import CACHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.spec import LayerSpec

_JOINED = re.compile(r"\b(?:q|k|v|gate|up)_proj\b")


def fused_sizes(layer: LayerSpec, sizes: Sequence[int]) -> list[int]:
    """Bytes of the joined matrices of ``layer``, of whose tensors ``sizes`` are the bytes."""
    joined: dict[str, int] = {}
    for tensor, size in zip(layer.tensors, sizes, strict=True):
        if tensor.linear:
            name = _joined(tensor.name)
            joined[name] = joined.get(name, 0) + size
    return list(joined.values())


@lru_cache(maxsize=CACHED)
def _joined(name: str) -> str:
    return _JOINED.sub(lambda found: "qkv" if found[0][0] in "qkv" else "gate_up", name)
