"""What PyTorch's allocator takes beyond the tensors that are left after loading.

SGLang prints what the driver has free before and after; the driver hands out whole segments.

Source:
    PyTorch 2.4 to 2.13 ``c10/cuda/CUDACachingAllocator.cpp :: get_allocation_size``,
    ``should_split``, and SGLang's linear layers, which hold some matrices as one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass
from engine.budget.sequence_state import layer_kinds
from engine.budget.weights import layer_sizes
from engine.units import MIB, align_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.architecture.spec import ArchitectureSpec, LayerSpec, Tensor
    from engine.budget.sharding import Split

_SMALL = MIB
"""Up to here tensors share segments of 2 MiB; what is lost there is not worth counting."""
_LARGE = 10 * MIB
"""From here on every tensor has a segment of its own, in steps of 2 MiB."""
_SHARED = 20 * MIB
_STEP = 2 * MIB
_FUSED = {
    "q_proj": "qkv", "k_proj": "qkv", "v_proj": "qkv",
    "gate_proj": "gate_up", "up_proj": "gate_up", "w1": "gate_up", "w3": "gate_up",
    "q_a_proj": "qkv_a", "kv_a_proj_with_mqa": "qkv_a",
    "in_proj_qkv": "qkvz", "in_proj_z": "qkvz", "in_proj_b": "ba", "in_proj_a": "ba",
}  # fmt: skip
"""Matrix of a checkpoint -> what SGLang keeps it in, together with its neighbours."""


def rounding_bytes(sizes: Iterable[int]) -> int:
    """What whole segments hold beyond ``sizes``, the tensors in the order of their making."""
    lost = 0
    free: list[int] = []
    for size in sizes:
        if size <= _SMALL:
            continue
        if size >= _LARGE:
            lost += align_up(size, _STEP) - size
            continue
        at = bisect_left(free, size)
        block = free.pop(at) if at < len(free) else _SHARED
        # A rest of 1 MiB or less stays with its block.
        if block - size > _SMALL:
            insort(free, block - size)
        else:
            lost += block - size
    return lost + sum(free)


def held_apart(spec: ArchitectureSpec, layers: range, split: Split, fmt: str) -> Iterator[int]:
    """Sizes of a stage's matrices on one rank as SGLang holds them, layer by layer."""
    sizes = layer_sizes(spec, split, fmt)
    known = {
        id(layer): tuple(_joined(layer, sizes[id(layer)]))
        for layer, _ in layer_kinds(spec, layers.start, layers.stop)
    }
    for index in layers:
        yield from known[id(spec.layers[index])]


def _joined(layer: LayerSpec, sizes: list[int]) -> Iterator[int]:
    together: dict[tuple[str, str], int] = {}
    for tensor, size in zip(layer.tensors, sizes, strict=True):
        stacked = tensor.module is ModuleClass.EXPERTS
        each = size if stacked else size // max(tensor.copies, 1)
        key = _key(tensor)
        together[key] = together.get(key, 0) + each
    yield from together.values()


def _key(tensor: Tensor) -> tuple[str, str]:
    path, _, kind = tensor.name.rpartition(".")
    owner, _, leaf = path.rpartition(".")
    return (owner, f"{_FUSED.get(leaf, leaf)}.{kind}")
