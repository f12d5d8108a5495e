"""Which weight format each quantisation method of a config comes to.

Every figure that bytes depend on is read: bits, group and block size, zero points, order. What
is no figure at all is a ``ConfigError``; what may merely be newer than these rules is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config.facts import Facts, is_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MOST_LAYERS = 100_000
_LARGEST_GROUP = 2**17
_WIDEST = 64


class UnknownLayoutError(Exception):
    """A statement whose bytes are not known; says in one clause which."""


def weight_bits(q: Facts, key: str, default: int | None = None) -> int | None:
    """The width ``key``.

    Raises:
        ConfigError: it is no width.
    """
    value = q.raw(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _WIDEST:
        raise q.bad(key, value, f"whole bits from 1 to {_WIDEST} are needed")
    return value


def group_size(q: Facts, key: str = "group_size", default: int = 128) -> int:
    """Columns that share a scale; 0 = the whole row, which configs write as -1.

    Raises:
        ConfigError: it is no such number.
    """
    value = q.raw(key)
    if value is None:
        return default
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not (value == -1 or 1 <= value <= _LARGEST_GROUP)
    ):
        wanted = f"-1 (the whole row) or a size from 1 to {_LARGEST_GROUP} is needed"
        raise q.bad(key, value, wanted)
    return max(value, 0)


def named(base: str, group: int, usual: int = 128) -> str:
    """``awq-int4``, ``awq-int4-g32``, ``awq-int4-channel``."""
    if group == usual:
        return base
    return f"{base}-g{group}" if group else f"{base}-channel"


def blocks(q: Facts, key: str) -> str:
    """The FP8 format of the blocks that ``key`` lists as rows and columns.

    Raises:
        ConfigError: it is no pair of sizes.
    """
    sizes = q.integers(key, low=1)
    if sizes is None or len(sizes) != 2 or max(sizes) > _LARGEST_GROUP:
        raise q.bad(key, q.raw(key), "two sizes such as [128, 128] are needed")
    high, wide = sizes
    return "fp8-block" if high == wide == 128 else f"fp8-block-{high}x{wide}"


def _fp8(q: Facts) -> str:
    return blocks(q, "weight_block_size") if q.has("weight_block_size") else "fp8"


def _stated_bits(q: Facts) -> int | None:
    return next((n for key in ("bits", "w_bit", "wbits") if (n := weight_bits(q, key))), None)


def _group(q: Facts) -> int:
    return group_size(q, "q_group_size" if q.has("q_group_size") else "group_size")


def _awq(q: Facts) -> str:
    bits, version = _stated_bits(q), q.word("version", "gemm").lower()
    if bits != 4:
        raise UnknownLayoutError(f"AWQ in {bits or 'unstated'} bits")
    if version not in ("gemm", "exllama", "ipex"):
        raise UnknownLayoutError(f"AWQ as {version!r:.40}")
    return named("awq-int4", _group(q))


def _gptq(q: Facts) -> str:
    bits = _stated_bits(q)
    q.flag("desc_act")
    if bits not in (2, 3, 4, 8):
        raise UnknownLayoutError(f"GPTQ in {bits or 'unstated'} bits")
    packing = q.word("checkpoint_format", "gptq").lower()
    if packing not in ("gptq", "gptq_v2") or q.raw("is_marlin_format"):
        raise UnknownLayoutError(f"GPTQ packed as {packing!r:.40}")
    if q.raw("lm_head") is True or q.raw("modules_in_block_to_quantize"):
        raise UnknownLayoutError("GPTQ of other modules than the usual ones")
    rules = q.raw("dynamic")
    if is_mapping(rules) and any(not key.startswith("-:") for key in rules):
        raise UnknownLayoutError("GPTQ with another layout for some modules (dynamic)")
    return named(f"gptq-int{bits}", _group(q))


def _auto_round(q: Facts) -> str:
    kind, packing = q.word("data_type", "int"), q.word("packing_format")
    if kind != "int":
        raise UnknownLayoutError(f"auto-round's {kind!r:.40}")
    extra = q.raw("extra_config")
    if is_mapping(extra) and not all(_is_unquantised(entry) for entry in extra.values()):
        raise UnknownLayoutError("auto-round with another layout for some modules (extra_config)")
    return _awq(q) if packing.endswith("awq") else _gptq(q)


def _is_unquantised(entry: object) -> bool:
    bits = entry.get("bits") if is_mapping(entry) else None
    return isinstance(bits, int) and bits >= 16


def _bitsandbytes(q: Facts) -> str:
    if q.flag("load_in_8bit") or q.flag("_load_in_8bit"):
        return "int8"
    if q.flag("load_in_4bit") or q.flag("_load_in_4bit"):
        return "nf4" if q.flag("bnb_4bit_use_double_quant") else "nf4-plain"
    raise UnknownLayoutError("bitsandbytes in neither 4 nor 8 bits")


_ALGORITHMS = {
    "fp8": "fp8", "fp8_pb_wo": "fp8-block", "fp8_block_scales": "fp8-block", "mxfp8": "mxfp8",
    "nvfp4": "nvfp4", "w4a16_nvfp4": "nvfp4", "nvfp4_awq": "nvfp4", "mxfp4": "mxfp4",
}  # fmt: skip
_GROUPS = {"nvfp4": 16, "mxfp4": 32, "mxfp8": 32}


def _modelopt(q: Facts) -> str:
    algorithm = q.word("quant_algo").lower()
    if algorithm == "mixed_precision":
        kinds = {name for _module, name in by_module(q)}
        found = next((n for n in ("nvfp4", "mxfp4", "fp8", "fp8-block", "mxfp8") if n in kinds), "")
    else:
        found = _ALGORITHMS.get(algorithm, "")
    if not found:
        raise UnknownLayoutError(f"modelopt's {algorithm or 'unstated algorithm'!r:.40}")
    return _in_its_groups(q, found)


def _in_its_groups(q: Facts, name: str) -> str:
    usual = _GROUPS.get(name)
    if usual and group_size(q, default=usual) != usual:
        raise UnknownLayoutError(f"{name.upper()} in groups of {q.raw('group_size')}")
    return name


def _fixed(name: str) -> Callable[[Facts], str]:
    return lambda q: _in_its_groups(q, name)


def by_module(q: Facts) -> tuple[tuple[str, str], ...]:
    """Module path -> format, where modelopt lists ``quantized_layers``.

    Raises:
        UnknownLayoutError: an entry's layout is not known, or there are too many.
    """
    layers = q.raw("quantized_layers")
    if not is_mapping(layers):
        return ()
    if len(layers) > _MOST_LAYERS:
        raise UnknownLayoutError(f"modelopt in {len(layers):,} different layers")
    found: list[tuple[str, str]] = []
    for module, entry in layers.items():
        own = Facts(entry if is_mapping(entry) else {}, path=q.name("quantized_layers"))
        algorithm = own.word("quant_algo").lower()
        name = _ALGORITHMS.get(algorithm)
        if name is None:
            raise UnknownLayoutError(f"modelopt's {algorithm!r:.40}")
        found.append((module, _in_its_groups(own, name)))
    return tuple(found)


def mlx(q: Facts) -> str:
    """The format of an MLX ``quantization`` object.

    Raises:
        UnknownLayoutError: MLX stores it by rules that are not known here.
    """
    bits, group = weight_bits(q, "bits"), group_size(q, default=64)
    if bits not in (2, 3, 4, 5, 6, 8) or group not in (32, 64, 128):
        raise UnknownLayoutError(f"MLX in {bits or 'unstated'} bits and groups of {group}")
    if q.word("mode", "affine") != "affine":
        raise UnknownLayoutError(f"MLX's mode {q.word('mode')!r:.40}")
    if any(is_mapping(v) or (isinstance(v, bool) and "." in k) for k, v in q.stated.items()):
        raise UnknownLayoutError("MLX with another layout for some modules")
    return named(f"mlx-{bits}bit", group, usual=64)


METHODS: Mapping[str, Callable[[Facts], str]] = {
    "fp8": _fp8,
    "fbgemm-fp8": _fixed("fp8-channel"),
    "awq": _awq,
    "gptq": _gptq,
    "auto-round": _auto_round,
    "autoround": _auto_round,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _fixed("mxfp4"),
    "modelopt": _modelopt,
    "modelopt-fp4": _fixed("nvfp4"),
    "nvfp4": _fixed("nvfp4"),
}
"""``quant_method`` -> its rule; compressed-tensors apart (``engine.config.compressed``)."""
