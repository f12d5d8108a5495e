"""Header tensors summed by layer, module class, sharding and dtype."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from engine.architecture.model import StoredGroup, StoredWeights
from engine.architecture.naming import Named, layer_of, named, pattern_of
from engine.architecture.spec import ModuleClass, Sharding
from engine.formats.weights import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.architecture.spec import ArchitectureSpec
    from engine.source.raw import HeaderTensor, RawModel

_ENCODER = re.compile(r"(?!.*decoder\.)(.*\.)?\w*encoder\.")
_DECODER = re.compile(r"(^|\.)decoder\.(?!weight$|bias$)")
_INTEGERS = frozenset({"I64", "I32", "I16", "U64", "U16", "BOOL", "U32"})
_PLAIN = {"BF16": "bf16", "F16": "fp16", "F32": "fp32"}
_BITS_PER_ELEMENT = {"I32": 32, "U32": 32, "U8": 8, "I8": 8, "I16": 16, "I64": 64}
_IN_WORDS = ("awq-", "gptq-", "w2a", "w3a", "w4a", "w8a", "mlx-")
_IN_BYTES = ("nvfp4", "mxfp4", "nf4", "bitnet", "hqq-")
_LAYER_PATH = re.compile(r"(?:^|\.)layers\.(\d{1,6}\..+)\.\w+$")

Key = tuple[int | None, ModuleClass, Sharding, str]


@dataclass(frozen=True, slots=True)
class Packing:
    """How many values an element of a packed tensor holds."""

    word_bits: int = 4
    """Bits of a value where several share a 32-bit word."""
    byte_bits: int = 4
    """Bits of a value where several share a byte."""
    byte_dtypes: frozenset[str] = frozenset()
    """Dtypes in which a weight holds several values to a byte."""
    packs_words: bool = False
    """Whether a U32 weight is packed (MLX)."""
    own_bits: Mapping[str, int] = field(default_factory=dict[str, int])
    """Layer and path (``7.mlp.up_proj``) -> bits, of modules with another width."""


def summarise(raw: RawModel, spec: ArchitectureSpec) -> StoredWeights | None:
    """The weights that a header lists; None where no header was read.

    Tensors are counted under their stored dtype; ``parameters`` are logical: a packed element
    counts for all its values, scales, zero points and tables for none. A layer beyond the
    model's own is a prediction block.

    Source:
        safetensors dtypes; the packed layouts of AWQ, GPTQ, compressed-tensors, modelopt,
        bitsandbytes and MLX checkpoints (``engine.formats.weights``).
    """
    if not raw.tensors:
        return None
    reads = any("decoder." in t.name and _DECODER.search(t.name) for t in raw.tensors)
    repeated = tuple(f".{t.name}" for t in spec.mtp if t.repeats)
    groups = collect(
        (
            (_key(tensor, pattern, len(spec.layers), repeated, reads=reads), tensor, pattern)
            for tensor, pattern in _with_patterns(raw.tensors)
        ),
        _packing(spec),
    )
    label = format_label(raw.tensors, spec)
    return StoredWeights(groups, label, raw.tensors_source or "header", raw.file_bytes)


def _packing(spec: ArchitectureSpec) -> Packing:
    own = spec.weight_format
    names = {own, *(t.stored_as for t in spec.outer)}
    for layer, _ in spec.layer_groups():
        names.update(tensor.stored_as for tensor in layer.tensors)
    widths = {FORMATS[n].value_bits for n in names if n.startswith(_IN_WORDS) and n in FORMATS}
    dtypes = {"U8"} if any(n.startswith(_IN_BYTES) for n in names) else set[str]()
    if dtypes and not any(n.startswith("int8") for n in names):
        dtypes.add("I8")
    return Packing(
        word_bits=min(widths, default=4),
        byte_bits=FORMATS[own].value_bits if own.startswith(("bitnet", "hqq-")) else 4,
        byte_dtypes=frozenset(dtypes),
        packs_words=spec.weight_format.startswith("mlx-"),
        own_bits=_own_bits(spec) if len(widths) > 1 else {},
    )


def _own_bits(spec: ArchitectureSpec) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, layer in enumerate(spec.layers):
        for tensor in layer.tensors:
            name = tensor.stored_as or spec.weight_format
            if tensor.linear and name.startswith(_IN_WORDS):
                found[f"{index}.{tensor.name.removesuffix('.weight')}"] = FORMATS[name].value_bits
    return found


def _with_patterns(tensors: Iterable[HeaderTensor]) -> Iterable[tuple[HeaderTensor, Named]]:
    seen: dict[str, Named] = {}
    for tensor in tensors:
        pattern = pattern_of(tensor.name)
        found = seen.get(pattern)
        if found is None:
            found = seen[pattern] = named(pattern)
        yield tensor, found


def _key(
    tensor: HeaderTensor, pattern: Named, layers: int, repeated: tuple[str, ...], *, reads: bool
) -> Key:
    """Where a tensor counts; the layers of an encoder that the model ``reads`` are none of its.

    Only the tables that a prediction block repeats keep the block's layer number.
    """
    if not pattern.is_layered or (reads and _ENCODER.match(tensor.name)):
        return None, pattern.module, pattern.sharding, tensor.dtype
    layer = layer_of(tensor.name)
    if layer >= layers > 0:
        if tensor.name.endswith(repeated):
            return layer, ModuleClass.MTP, Sharding.VOCAB, tensor.dtype
        return None, ModuleClass.MTP, pattern.sharding, tensor.dtype
    return layer, pattern.module, pattern.sharding, tensor.dtype


def collect(
    placed: Iterable[tuple[Key, HeaderTensor, Named]], packing: Packing
) -> tuple[StoredGroup, ...]:
    """Sum the placed tensors into groups, in order of first occurrence."""
    sums: dict[Key, list[int]] = {}
    matrices: dict[Key, Counter[tuple[int, int]]] = {}
    for key, tensor, pattern in placed:
        total = sums.get(key)
        if total is None:
            total = sums[key] = [0, 0, 0, 0]
            matrices[key] = Counter()
        if tensor.dtype in _PLAIN and len(tensor.shape) > 1:
            _add_matrices(tensor, pattern, matrices[key])
        total[0] += tensor.size_bytes
        total[1] += _parameters(tensor, pattern, packing)
        total[2] = max(total[2], tensor.size_bytes)
        total[3] += 1
    return tuple(
        StoredGroup(*key, *total, matrices=tuple((*s, n) for s, n in matrices[key].items()))
        for key, total in sums.items()
    )


def _add_matrices(tensor: HeaderTensor, pattern: Named, matrices: Counter[tuple[int, int]]) -> None:
    """Count the matrices that a format would pack; stacked experts are one each, or gate and up."""
    *stack, rows, columns = tensor.shape
    is_stacked = pattern.module is ModuleClass.EXPERTS and len(stack) == 1
    if is_stacked and not tensor.name.endswith("bias"):
        parts = 2 if "gate_up" in tensor.name and rows % 2 == 0 else 1
        matrices[rows // parts, columns] += stack[0] * parts
    elif not stack and tensor.name.endswith(".weight"):
        matrices[rows, columns] += 1


def _parameters(tensor: HeaderTensor, pattern: Named, packing: Packing) -> int:
    if pattern.holds == "other":
        return 0
    elements = prod(tensor.shape)
    dtype = tensor.dtype
    is_packed = (
        pattern.holds == "packed"
        or dtype in packing.byte_dtypes
        or (packing.packs_words and dtype == "U32")
        or (dtype == "I32" and tensor.name.endswith(".weight"))
    )
    if is_packed:
        in_bytes = dtype in ("U8", "I8")
        bits = packing.byte_bits if in_bytes else _word_bits(tensor.name, packing)
        return elements * _BITS_PER_ELEMENT.get(dtype, bits) // bits
    if packing.packs_words and tensor.name.endswith(".biases"):
        return 0
    return 0 if dtype in _INTEGERS else elements


def _word_bits(name: str, packing: Packing) -> int:
    if not packing.own_bits:
        return packing.word_bits
    path = _LAYER_PATH.search(name)
    return packing.own_bits.get(path[1], packing.word_bits) if path else packing.word_bits


def format_label(tensors: Iterable[HeaderTensor], spec: ArchitectureSpec) -> str:
    """The format that the header shows.

    The config's own word for a quantised checkpoint; else the dtype most bytes have.
    """
    if spec.weight_format not in _PLAIN.values():
        return spec.weight_format
    sizes: Counter[str] = Counter()
    scaled = False
    for tensor in tensors:
        sizes[tensor.dtype] += tensor.size_bytes
        scaled = scaled or tensor.name.endswith("weight_scale_inv")
    dtype, size = sizes.most_common(1)[0]
    if dtype in _PLAIN:
        return _PLAIN[dtype]
    if dtype.startswith("F8"):
        return "fp8-block" if scaled else "fp8"
    return "mixed" if size else spec.weight_format
