"""Weight formats: the exact bytes of a logical tensor, and what a format leaves alone.

The stored layouts are those of the checkpoints (payload, scales, zero points, group index);
block counts round up. Sources: vLLM's quantisation layers, bitsandbytes ``functional.py``,
the modelopt and compressed-tensors checkpoints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from engine.formats.dtypes import canonical, element_bytes
from engine.units import ceil_div

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class LogicalTensor(Protocol):
    """What a format needs of ``engine.architecture.spec.Tensor``."""

    @property
    def name(self) -> str:
        """Module path with its suffix."""
        ...

    @property
    def module(self) -> str:
        """Module class value: ``attention``, ``lm_head`` …."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """(out_features, in_features) for a matrix."""
        ...

    @property
    def copies(self) -> int:
        """Stacked experts."""
        ...

    @property
    def linear(self) -> bool:
        """Whether a linear layer holds it."""
        ...

    @property
    def parameters(self) -> int:
        """Elements over all copies."""
        ...


_LAYERS = frozenset({"attention", "mlp", "experts", "shared_experts", "mtp", "other"})
_ALL = _LAYERS | {"embedding", "lm_head", "router"}


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """One way to store a model's weights."""

    name: str
    """Key in the machine contract."""
    label: str
    """For people."""
    bits: float
    """Nominal bits per weight of a large quantised matrix, scales included."""
    matrix_bytes: Callable[[int, int, int], int] | None = None
    """(rows, columns, bytes of a base-dtype element) -> bytes; None where nothing is packed."""
    modules: frozenset[str] = _LAYERS
    """Module classes whose matrices are quantised."""
    dtype: str | None = None
    """For plain formats: every tensor has this dtype."""

    @property
    def is_plain(self) -> bool:
        """Whether every element is stored on its own, without scales."""
        return self.matrix_bytes is None


def _gptq(bits: int, *, group: int = 128, act_order: bool = True) -> Callable[[int, int, int], int]:
    def size(rows: int, columns: int, _base: int) -> int:
        groups = ceil_div(columns, group)
        payload = ceil_div(columns * bits, 32) * 4 * rows
        zeros = groups * ceil_div(rows * bits, 32) * 4
        return payload + 2 * rows * groups + zeros + (4 * columns if act_order else 0)

    return size


def _awq(rows: int, columns: int, _base: int, group: int = 128) -> int:
    packed = ceil_div(rows, 8) * 4
    groups = ceil_div(columns, group)
    return columns * packed + 2 * rows * groups + groups * packed


def _w4a16(group: int) -> Callable[[int, int, int], int]:
    # pack-quantized, symmetric: no zero points; weight_shape is two int64.
    def size(rows: int, columns: int, base: int) -> int:
        return rows * ceil_div(columns, 8) * 4 + base * rows * ceil_div(columns, group) + 16

    return size


def _nf4(rows: int, columns: int, _base: int) -> int:
    blocks = ceil_div(rows * columns, 64)
    nested = 4 * ceil_div(blocks, 256) + 256 * 4 + 4
    return ceil_div(rows * columns, 2) + blocks + nested + 16 * 4


def _nf4_plain(rows: int, columns: int, _base: int) -> int:
    return ceil_div(rows * columns, 2) + 4 * ceil_div(rows * columns, 64) + 16 * 4


def _per_channel(rows: int, columns: int, _base: int) -> int:
    return rows * columns + 4 * rows


def _per_tensor(rows: int, columns: int, _base: int) -> int:
    return rows * columns + 4


def _fp8_block(rows: int, columns: int, _base: int) -> int:
    return rows * columns + 4 * ceil_div(rows, 128) * ceil_div(columns, 128)


def _mxfp8(rows: int, columns: int, _base: int) -> int:
    return rows * (columns + ceil_div(columns, 32))


def _mxfp4(rows: int, columns: int, _base: int) -> int:
    return rows * (ceil_div(columns, 2) + ceil_div(columns, 32))


def _nvfp4(rows: int, columns: int, _base: int) -> int:
    # Two fp32 scalars: the global weight scale and the input scale.
    return rows * (ceil_div(columns, 2) + ceil_div(columns, 16)) + 8


def _mlx(bits: int, group: int = 64) -> Callable[[int, int, int], int]:
    def size(rows: int, columns: int, base: int) -> int:
        if columns % group:
            return rows * columns * base
        return rows * (ceil_div(columns * bits, 32) * 4 + 2 * base * (columns // group))

    return size


def _table(*formats: WeightFormat) -> Mapping[str, WeightFormat]:
    return MappingProxyType({f.name: f for f in formats})


FORMATS: Mapping[str, WeightFormat] = _table(
    WeightFormat("bf16", "BF16", 16, dtype="bfloat16"),
    WeightFormat("fp16", "FP16", 16, dtype="float16"),
    WeightFormat("fp32", "FP32", 32, dtype="float32"),
    WeightFormat("fp8", "FP8, one scale per tensor", 8, _per_tensor),
    WeightFormat("fp8-channel", "FP8, one scale per channel", 8, _per_channel),
    WeightFormat("fp8-block", "FP8, 128×128 blocks", 8, _fp8_block),
    WeightFormat("mxfp8", "MXFP8", 8.25, _mxfp8),
    WeightFormat("int8", "INT8, one scale per channel", 8, _per_channel),
    WeightFormat("gptq-int8", "GPTQ 8 bit, g128", 8.1875, _gptq(8)),
    WeightFormat("gptq-int4", "GPTQ 4 bit, g128", 4.15625, _gptq(4)),
    WeightFormat(
        "gptq-int4-no-order", "GPTQ 4 bit, g128, no group index", 4.15625, _gptq(4, act_order=False)
    ),
    WeightFormat("awq-int4", "AWQ 4 bit, g128", 4.15625, _awq),
    WeightFormat("w4a16", "W4A16, compressed-tensors", 4.125, _w4a16(128)),
    WeightFormat("w4a16-g32", "W4A16, compressed-tensors, g32", 4.5, _w4a16(32)),
    WeightFormat("nf4", "NF4, double quantised", 4.127, _nf4),
    WeightFormat("nf4-plain", "NF4", 4.5, _nf4_plain),
    WeightFormat("nvfp4", "NVFP4", 4.5, _nvfp4),
    WeightFormat("mxfp4", "MXFP4", 4.25, _mxfp4),
    WeightFormat("mlx-4bit", "MLX 4 bit, g64", 4.5, _mlx(4), _ALL),
    WeightFormat("mlx-5bit", "MLX 5 bit, g64", 5.5, _mlx(5), _ALL),
    WeightFormat("mlx-6bit", "MLX 6 bit, g64", 6.5, _mlx(6), _ALL),
    WeightFormat("mlx-8bit", "MLX 8 bit, g64", 8.5, _mlx(8), _ALL),
)
"""Every format by its name in the machine contract, GGUF mixes apart (``engine.formats.gguf``)."""

_PLAIN = {f.dtype: f.name for f in FORMATS.values() if f.dtype}


def plain_format(dtype: str) -> str | None:
    """The format in which every tensor has ``dtype``: ``bf16`` for ``bfloat16``."""
    return _PLAIN.get(canonical(dtype) or "")


def resident_dtype(weight_format: str, base_dtype: str) -> str:
    """Dtype of what a format does not quantise: embeddings, norms and, mostly, activations."""
    chosen = FORMATS.get(weight_format)
    return (chosen.dtype if chosen else None) or base_dtype


def is_quantised(
    tensor: LogicalTensor, weight_format: str, unquantised: tuple[str, ...] = ()
) -> bool:
    """Whether ``weight_format`` packs this tensor."""
    chosen = FORMATS[weight_format]
    if chosen.is_plain or len(tensor.shape) != 2 or str(tensor.module) not in chosen.modules:
        return False
    eligible = tensor.linear or (str(tensor.module) == "embedding" and chosen.modules is _ALL)
    return eligible and not excluded(tensor.name, unquantised)


def tensor_bytes(
    tensor: LogicalTensor, weight_format: str, base_dtype: str, unquantised: tuple[str, ...] = ()
) -> int:
    """Exact bytes of a logical tensor, all copies, as ``weight_format`` stores it.

    Args:
        tensor: shape, class and whether it is a linear layer's weight.
        weight_format: a key of ``FORMATS``.
        base_dtype: dtype of what stays unquantised, and of group scales that follow it.
        unquantised: module patterns that the quantisation leaves alone.

    Raises:
        ValueError: ``base_dtype`` is not a known dtype.
        KeyError: ``weight_format`` is not a key of ``FORMATS``.
    """
    chosen = FORMATS[weight_format]
    base = element_bytes(chosen.dtype or base_dtype)
    if chosen.matrix_bytes is None or not is_quantised(tensor, weight_format, unquantised):
        return tensor.parameters * base
    rows, columns = tensor.shape
    return chosen.matrix_bytes(rows, columns, base) * tensor.copies


_LAYER_PREFIX = re.compile(r"^(?:[\w.]+\.)?layers\.(?:\*|\\d\+|\.\*|\[0-9\]\+)\.")


def excluded(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a module path matches one of the patterns a quantisation config lists.

    Checkpoints write them in four ways: a full path, a part of a path (``lm_head``,
    ``self_attn``), a glob (``model.layers.*.mlp.gate``) and a regular expression
    (``re:.*mlp.gate$``). A pattern for every layer also matches a path relative to its layer.
    """
    path = name.removesuffix(".weight").removesuffix(".bias")
    return any(matcher(path) for matcher in _matchers(patterns))


@lru_cache(maxsize=256)
def _matchers(patterns: tuple[str, ...]) -> tuple[Callable[[str], bool], ...]:
    return tuple(_matcher(p) for p in patterns)


def _matcher(pattern: str) -> Callable[[str], bool]:
    written = pattern.removeprefix("re:")
    relative = _LAYER_PREFIX.sub("", written.removeprefix("^").replace(r"\.", "."))
    if pattern.startswith("re:"):
        whole, part = _compiled(written), _compiled(relative)
        return lambda path: any(r is not None and r.match(path) is not None for r in (whole, part))
    if "*" in pattern:
        globs = [_compiled(_glob(text)) for text in (pattern, relative)]
        return lambda path: any(r is not None and r.search(path) is not None for r in globs)
    plain = written.removesuffix(".weight")
    bounded = re.compile(rf"(?:^|\.){re.escape(plain)}(?:\.|$)")
    return lambda path: bounded.search(path) is not None


def _glob(text: str) -> str:
    body = ".*".join(re.escape(part) for part in text.split("*"))
    return rf"(?:^|\.){body}(?:\.|$)"


def _compiled(text: str) -> re.Pattern[str] | None:
    # A pattern from a foreign config may be no regular expression: then it matches nothing.
    try:
        return re.compile(text)
    except re.error:
        return None
