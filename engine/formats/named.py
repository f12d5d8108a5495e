"""The weight formats by name: those that are published, and their relatives of another group.

A checkpoint states its group size, its width, whether it has zero points. Each such layout has
a name of its own, ``awq-int4-g32`` beside ``awq-int4`` (groups of 128), made when it is met.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.formats import layouts
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LAYERS = frozenset({"attention", "mlp", "experts", "shared_experts", "mtp", "other"})
_ALL = _LAYERS | {"embedding", "lm_head", "router"}


_WORDS = frozenset(
    {
        tr_later("one scale per tensor"),
        tr_later("one scale per channel"),
        tr_later("zero points"),
        tr_later("no group index"),
        tr_later("static"),
        tr_later("double quantised"),
        tr_later("scales of the model's dtype"),
        tr_later("FP16 scales"),
        tr_later("E8M0 scales"),
        tr_later("activations in 16 bits"),
    }
)
_BLOCKS = re.compile(r"(\d+×\d+) blocks")
_BITS = re.compile(r"(.+ \d) bit")


def _said(part: str) -> str:
    """One part of a label; what is a name stays as it is."""
    if part in _WORDS:
        return tr(part)
    if found := _BLOCKS.fullmatch(part):
        return tr("{shape} blocks").format(shape=found[1])
    if found := _BITS.fullmatch(part):
        return tr("{bits} bit").format(bits=found[1])
    return part


class WeightFormat(NamedTuple):
    """One way to store a model's weights."""

    name: str
    """Key in the machine contract."""
    english: str
    """For people: what it is, then what tells it from its relatives, between commas."""
    bits: float
    """Nominal bits per weight of a large quantised matrix, scales included."""
    matrix_bytes: Callable[[int, int, int], int] | None = None
    """(rows, columns, bytes of a base-dtype element) -> bytes; None where nothing is packed."""
    modules: frozenset[str] = _LAYERS
    """Module classes whose matrices are quantised."""
    dtype: str | None = None
    """For plain formats: every tensor has this dtype."""

    value_bits: int = 4
    """Bits of one packed value, where values are packed."""

    @property
    def label(self) -> str:
        """For people, in the language in force."""
        return ", ".join(_said(part) for part in self.english.split(", "))

    @property
    def is_plain(self) -> bool:
        """Whether every element is stored on its own, without scales."""
        return self.matrix_bytes is None


_PUBLISHED = (
    WeightFormat("bf16", "BF16", 16, dtype="bfloat16"),
    WeightFormat("fp16", "FP16", 16, dtype="float16"),
    WeightFormat("fp32", "FP32", 32, dtype="float32"),
    WeightFormat("fp8", "FP8, one scale per tensor", 8, layouts.per_tensor(), value_bits=8),
    WeightFormat(
        "fp8-channel", "FP8, one scale per channel", 8, layouts.per_channel(), value_bits=8
    ),
    WeightFormat("fp8-block", "FP8, 128×128 blocks", 8, layouts.fp8_blocks(), value_bits=8),
    WeightFormat("mxfp8", "MXFP8", 8.25, layouts.mxfp8, value_bits=8),
    WeightFormat("int8", "INT8, one scale per channel", 8, layouts.per_channel(), value_bits=8),
    WeightFormat("gptq-int8", "GPTQ 8 bit, g128", 8.1875, layouts.gptq(8), value_bits=8),
    WeightFormat("gptq-int4", "GPTQ 4 bit, g128", 4.15625, layouts.gptq(4)),
    WeightFormat(
        "gptq-int4-no-order",
        "GPTQ 4 bit, g128, no group index",
        4.15625,
        layouts.gptq(4, act_order=False),
    ),
    WeightFormat("awq-int4", "AWQ 4 bit, g128", 4.15625, layouts.awq()),
    WeightFormat("w4a16", "W4A16, compressed-tensors", 4.125, layouts.packed(4, 128)),
    WeightFormat("w4a16-g32", "W4A16, compressed-tensors, g32", 4.5, layouts.packed(4, 32)),
    WeightFormat("nf4", "NF4, double quantised", 4.127, layouts.nf4),
    WeightFormat("nf4-plain", "NF4", 4.5, layouts.nf4_plain),
    WeightFormat("nvfp4", "NVFP4", 4.5, layouts.nvfp4()),
    WeightFormat("mxfp4", "MXFP4", 4.25, layouts.mxfp4),
    WeightFormat("mlx-4bit", "MLX 4 bit, g64", 4.5, layouts.mlx(4), _ALL),
    WeightFormat("mlx-5bit", "MLX 5 bit, g64", 5.5, layouts.mlx(5), _ALL, value_bits=5),
    WeightFormat("mlx-6bit", "MLX 6 bit, g64", 6.5, layouts.mlx(6), _ALL, value_bits=6),
    WeightFormat("mlx-8bit", "MLX 8 bit, g64", 8.5, layouts.mlx(8), _ALL, value_bits=8),
)


class _Formats(Mapping[str, WeightFormat]):
    """Iterates over the published formats; looks their relatives up as well."""

    def __init__(self, formats: tuple[WeightFormat, ...]) -> None:
        self._published = {f.name: f for f in formats}

    def __getitem__(self, name: str) -> WeightFormat:
        found = self._published.get(name) or _relative(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._published)

    def __len__(self) -> int:
        return len(self._published)


@lru_cache(maxsize=256)
def _relative(name: str) -> WeightFormat | None:
    for pattern, make in _RELATIVES:
        if found := re.fullmatch(pattern, name):
            return make(found)
    return None


def _awq(found: re.Match[str]) -> WeightFormat:
    group, words = _group(found)
    return WeightFormat(found[0], f"AWQ 4 bit{words}", 4 + _per(20, group), layouts.awq(group))


def _gptq(found: re.Match[str]) -> WeightFormat:
    bits, (group, words) = int(found["bits"]), _group(found)
    order = found["plain"] is None
    label = f"GPTQ {bits} bit{words}{'' if order else ', no group index'}"
    size = layouts.gptq(bits, group, act_order=order)
    return WeightFormat(found[0], label, bits + _per(16 + bits, group), size, value_bits=bits)


def _packed(found: re.Match[str]) -> WeightFormat:
    bits, (group, words) = int(found["bits"]), _group(found)
    zeros, order = found["zeros"] is not None, found["order"] is not None
    label = f"W{bits}A16, compressed-tensors{words}{', zero points' if zeros else ''}"
    size = layouts.packed(bits, group, zero_points=zeros, act_order=order)
    nominal = 32 / (32 // bits) + _per(16 + bits * zeros, group)
    return WeightFormat(found[0], label, nominal, size, value_bits=bits)


def _bytes(found: re.Match[str]) -> WeightFormat:
    group, zeros = int(found["group"] or 0), found["zeros"] is not None
    words = f", g{group}" if group else ", one scale per channel"
    label = f"INT8{words}{', zero points' if zeros else ''}"
    size = layouts.bytes_in_groups(group, zero_points=zeros)
    bits = 8 + _per(24 if zeros else 16, group)
    return WeightFormat(found[0], label, bits, size, value_bits=8)


def _fp8(found: re.Match[str]) -> WeightFormat:
    scale, static = _scale(found), found["static"] is not None
    layout = layouts.per_channel if found["row"] else layouts.per_tensor
    each = "channel" if found["row"] else "tensor"
    label = f"FP8, one scale per {each}{_scale_words(found)}{', static' if static else ''}"
    return WeightFormat(found[0], label, 8, layout(scale, is_static=static), value_bits=8)


def _int8(found: re.Match[str]) -> WeightFormat:
    static, smooth = found["static"] is not None, found["smooth"] is not None
    if found["one"]:
        label, size = (
            "INT8, one scale per tensor",
            layouts.per_tensor(_scale(found), is_static=static),
        )
    else:
        label, size = (
            "INT8, one scale per channel",
            layouts.per_channel(
                _scale(found),
                zero_points=found["zeros"] is not None,
                is_static=static,
                smooth=smooth,
            ),
        )
    label += f"{_scale_words(found)}{', zero points' if found['zeros'] else ''}"
    words = f"{', static' if static else ''}{', SmoothQuant' if smooth else ''}"
    return WeightFormat(found[0], label + words, 8, size, value_bits=8)


def _scale(found: re.Match[str]) -> int:
    """Bytes of a scale: fp32 unless the name says that it has another dtype."""
    return _SCALES[found["scale"] or ""]


def _scale_words(found: re.Match[str]) -> str:
    """How the dtype of the scales is said, where it is not fp32."""
    return _SCALE_WORDS[found["scale"] or ""]


_SCALES = {"": 4, "-ct": layouts.OF_THE_MODEL, "-fp16": 2, "-e8m0": 1}
_SCALE_WORDS = {
    "": "",
    "-ct": ", scales of the model's dtype",
    "-fp16": ", FP16 scales",
    "-e8m0": ", E8M0 scales",
}


def _blocks(found: re.Match[str]) -> WeightFormat:
    high, wide = int(found["high"] or 128), int(found["wide"] or 128)
    scale = _scale(found)
    label = f"FP8, {high}×{wide} blocks{_scale_words(found)}"
    size = layouts.fp8_blocks(high, wide, scale)
    return WeightFormat(found[0], label, 8 + 8 * (scale or 2) / (high * wide), size, value_bits=8)


def _one(found: re.Match[str]) -> WeightFormat:
    return _SINGLE[found[0]]


_SINGLE = {
    f.name: f
    for f in (
        WeightFormat("nvfp4-a16", "NVFP4, activations in 16 bits", 4.5, layouts.nvfp4(1)),
        WeightFormat("bitnet", "BitNet", 2, layouts.bitnet, value_bits=2),
        WeightFormat("mlx-mxfp4", "MLX MXFP4", 4.25, layouts.where_whole(32, layouts.mxfp4), _ALL),
        WeightFormat(
            "mlx-nvfp4", "MLX NVFP4", 4.5, layouts.where_whole(16, layouts.nvfp4(0)), _ALL
        ),
        WeightFormat(
            "mlx-mxfp8",
            "MLX MXFP8",
            8.25,
            layouts.where_whole(32, layouts.mxfp8),
            _ALL,
            value_bits=8,
        ),
    )
}


def _mlx(found: re.Match[str]) -> WeightFormat:
    bits, group = int(found["bits"]), int(found["group"] or 64)
    size = layouts.mlx(bits, group)
    label = f"MLX {bits} bit, g{group}"
    return WeightFormat(found[0], label, bits + 32 / group, size, _ALL, value_bits=bits)


def _hqq(found: re.Match[str]) -> WeightFormat:
    bits, (group, words) = int(found["bits"]), _group(found)
    nominal = (3.2 if bits == 3 else bits) + _per(32, group)
    label = f"HQQ {bits} bit{words}"
    return WeightFormat(found[0], label, nominal, layouts.hqq(bits, group), value_bits=bits)


def _group(found: re.Match[str]) -> tuple[int, str]:
    """The group (0 = a whole row) and how it is said."""
    if found["row"]:
        return 0, ", one scale per channel"
    group = int(found["group"] or 128)
    return group, f", g{group}"


def _per(bits: float, group: int) -> float:
    return bits / group if group else 0.0


_SIZE = r"[1-9]\d{0,5}"
_GROUP = rf"(?:-(?:g(?P<group>{_SIZE})|(?P<row>channel)))?"
_EXTRAS = "(?P<zeros>-asym)?(?P<static>-static)?"
_RELATIVES: tuple[tuple[str, Callable[[re.Match[str]], WeightFormat]], ...] = (
    ("awq-int4" + _GROUP, _awq),
    ("gptq-int(?P<bits>[2348])" + _GROUP + "(?P<plain>-no-order)?", _gptq),
    ("w(?P<bits>[2348])a16" + _GROUP + "(?P<zeros>-zp)?(?P<order>-order)?", _packed),
    (rf"int8(?:-g(?P<group>{_SIZE}))?(?P<zeros>-zp)?", _bytes),
    (
        rf"int8(?P<one>-tensor)?(?P<scale>-ct|-fp16)?{_EXTRAS}(?P<smooth>-smooth)?",
        _int8,
    ),
    (r"fp8(?P<row>-channel)?(?P<scale>-ct)?(?P<static>-static)?", _fp8),
    (
        rf"fp8-block(?:-(?P<high>{_SIZE})x(?P<wide>{_SIZE}))?(?P<scale>-ct|-e8m0)?",
        _blocks,
    ),
    ("|".join(_SINGLE), _one),
    ("hqq-int(?P<bits>[12348])" + _GROUP, _hqq),
    ("mlx-(?P<bits>[234568])bit(?:-g(?P<group>32|64|128))?", _mlx),
)


FORMATS: Mapping[str, WeightFormat] = _Formats(_PUBLISHED)
"""Every format by its name in the machine contract, GGUF mixes apart (``engine.formats.gguf``)."""
