"""Header tensors summed by layer, module class, sharding and dtype."""

from __future__ import annotations

import re
from collections import Counter
from math import prod
from typing import TYPE_CHECKING

from engine.architecture.model import StoredGroup, StoredWeights
from engine.architecture.naming import Named, layer_of, named, pattern_of
from engine.architecture.spec import ModuleClass, Sharding
from engine.formats.weights import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.architecture.spec import ArchitectureSpec
    from engine.source.raw import HeaderTensor, RawModel

_ENCODER = re.compile(r"(?!.*decoder\.)(.*\.)?\w*encoder\.")
_DECODER = re.compile(r"(^|\.)decoder\.(?!weight$|bias$)")
_INTEGERS = frozenset({"I64", "I32", "I16", "U64", "U16", "BOOL", "U32"})
_PLAIN = {"BF16": "bf16", "F16": "fp16", "F32": "fp32"}
_BITS_PER_ELEMENT = {"I32": 32, "U32": 32, "U8": 8, "I8": 8, "I16": 16, "I64": 64}
_IN_WORDS = ("awq-", "gptq-", "w2a", "w3a", "w4a", "w8a", "mlx-")
_BYTE_PACKED = frozenset({"nvfp4", "mxfp4", "nf4", "nf4-plain"})

Key = tuple[int | None, ModuleClass, Sharding, str]


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
    groups = collect(
        (
            (_key(tensor, pattern, len(spec.layers), reads=reads), tensor, pattern)
            for tensor, pattern in _with_patterns(raw.tensors)
        ),
        _packed_bits(spec),
        packs_bytes=spec.weight_format in _BYTE_PACKED,
        packs_words=spec.weight_format.startswith("mlx-"),
    )
    label = format_label(raw.tensors, spec)
    return StoredWeights(groups, label, raw.tensors_source or "header", raw.file_bytes)


def _packed_bits(spec: ArchitectureSpec) -> int:
    """Bits of a value where several share a 32-bit word."""
    names = {spec.weight_format}
    for layer, _ in spec.layer_groups():
        names.update(tensor.stored_as for tensor in layer.tensors)
    widths = (FORMATS[n].value_bits for n in names if n.startswith(_IN_WORDS) and n in FORMATS)
    return min(widths, default=4)


def _with_patterns(tensors: Iterable[HeaderTensor]) -> Iterable[tuple[HeaderTensor, Named]]:
    seen: dict[str, Named] = {}
    for tensor in tensors:
        pattern = pattern_of(tensor.name)
        found = seen.get(pattern)
        if found is None:
            found = seen[pattern] = named(pattern)
        yield tensor, found


def _key(tensor: HeaderTensor, pattern: Named, layers: int, *, reads: bool) -> Key:
    """Where a tensor counts; the layers of an encoder that the model ``reads`` are none of its."""
    if not pattern.is_layered or (reads and _ENCODER.match(tensor.name)):
        return None, pattern.module, pattern.sharding, tensor.dtype
    layer = layer_of(tensor.name)
    if layer >= layers > 0:
        return None, ModuleClass.MTP, pattern.sharding, tensor.dtype
    return layer, pattern.module, pattern.sharding, tensor.dtype


def collect(
    placed: Iterable[tuple[Key, HeaderTensor, Named]],
    value_bits: int,
    *,
    packs_bytes: bool,
    packs_words: bool,
) -> tuple[StoredGroup, ...]:
    """Sum the placed tensors into groups, in order of first occurrence."""
    sums: dict[Key, list[int]] = {}
    for key, tensor, pattern in placed:
        total = sums.get(key)
        if total is None:
            total = sums[key] = [0, 0, 0, 0]
        total[0] += tensor.size_bytes
        total[1] += _parameters(tensor, pattern, value_bits, packs_bytes, packs_words)
        total[2] = max(total[2], tensor.size_bytes)
        total[3] += 1
    return tuple(StoredGroup(*key, *total) for key, total in sums.items())


def _parameters(
    tensor: HeaderTensor,
    pattern: Named,
    value_bits: int,
    packs_bytes: bool,  # noqa: FBT001 - called once a tensor
    packs_words: bool,  # noqa: FBT001
) -> int:
    if pattern.holds == "other":
        return 0
    elements = prod(tensor.shape)
    dtype = tensor.dtype
    is_packed = (
        pattern.holds == "packed"
        or (packs_bytes and dtype == "U8")
        or (packs_words and dtype == "U32")
    )
    if is_packed:
        bits = 4 if dtype in ("U8", "I8") else value_bits
        return elements * _BITS_PER_ELEMENT.get(dtype, bits) // bits
    if packs_words and tensor.name.endswith(".biases"):
        return 0
    return 0 if dtype in _INTEGERS else elements


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
