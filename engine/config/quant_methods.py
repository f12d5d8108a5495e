"""Which weight format each quantisation method of a config comes to.

Every figure that bytes depend on is read: bits, group and block size, zero points, order. What
is no figure at all is a ``ConfigError``; what may merely be newer than these rules is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.config.facts import Facts, is_mapping
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Pairs = tuple[tuple[str, str], ...]
"""(module path, format); an empty format leaves the module alone."""

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
        raise q.bad(
            key, value, tr("whole bits from 1 to {widest} are needed").format(widest=_WIDEST)
        )
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
        wanted = tr("-1 (the whole row) or a size from 1 to {largest_group} is needed").format(
            largest_group=_LARGEST_GROUP
        )
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
        raise q.bad(key, q.raw(key), tr("two sizes such as [128, 128] are needed"))
    high, wide = sizes
    return "fp8-block" if high == wide == 128 else f"fp8-block-{high}x{wide}"


def _fp8(q: Facts) -> str:
    if q.has("weight_block_size"):
        return blocks(q, "weight_block_size")
    return "fp8-static" if q.word("activation_scheme") == "static" else "fp8"


def _stated_bits(q: Facts) -> int | None:
    return next((n for key in ("bits", "w_bit", "wbits") if (n := weight_bits(q, key))), None)


def _group(q: Facts) -> int:
    return group_size(q, "q_group_size" if q.has("q_group_size") else "group_size")


def _awq(q: Facts) -> str:
    bits, version = _stated_bits(q), q.word("version", "gemm").lower()
    if bits != 4:
        raise UnknownLayoutError(tr("AWQ in {value} bits").format(value=bits or tr("unstated")))
    if version not in ("gemm", "exllama", "ipex"):
        raise UnknownLayoutError(tr("AWQ as {version!r:.40}").format(version=version))
    return named("awq-int4", _group(q))


def _gptq(q: Facts) -> str:
    bits = _stated_bits(q)
    q.flag("desc_act")
    if bits not in (2, 3, 4, 8):
        raise UnknownLayoutError(tr("GPTQ in {value} bits").format(value=bits or tr("unstated")))
    packing = q.word("checkpoint_format", "gptq").lower()
    if packing not in ("gptq", "gptq_v2") or q.raw("is_marlin_format"):
        raise UnknownLayoutError(tr("GPTQ packed as {packing!r:.40}").format(packing=packing))
    if q.raw("modules_in_block_to_quantize"):
        raise UnknownLayoutError(tr("GPTQ of other modules than the usual ones"))
    return named(f"gptq-int{bits}", _group(q))


def gptq_modules(q: Facts) -> Pairs:
    """Expression -> format where GPTQModel's ``dynamic`` gives modules another than the rest.

    Raises:
        UnknownLayoutError: an entry's layout is not known, or there are too many.
    """
    found: list[tuple[str, str]] = []
    for key, entry in _entries(q, "dynamic"):
        if not key.startswith("-:"):
            own = Facts({**q.stated, **entry.stated}, path=entry.path)
            found.append(("re:" + key.removeprefix("+:"), _gptq(own)))
    return tuple(found)


_AUTO_ROUND = {("mx_fp", 4): "mxfp4", ("mx_fp", 8): "mxfp8"}


def _auto_round(q: Facts) -> str:
    # Its first files name the packing after the kernel that they are read by.
    kind, packing = q.word("data_type", "int"), q.word("packing_format") or q.word("backend")
    if kind != "int":
        found = _AUTO_ROUND.get((kind, weight_bits(q, "bits") or 0))
        if found is None or q.raw("extra_config"):
            raise UnknownLayoutError(f"auto-round's {kind!r:.40}")
        return _in_its_groups(q, found)
    if packing.endswith("awq"):
        return _awq(q)
    # Its own packing keeps no group index; what it writes for GPTQ names that method.
    return f"{_gptq(q)}-no-order"


def _bitsandbytes(q: Facts) -> str:
    if q.flag("load_in_8bit") or q.flag("_load_in_8bit"):
        return "int8"
    if q.flag("load_in_4bit") or q.flag("_load_in_4bit"):
        return "nf4" if q.flag("bnb_4bit_use_double_quant") else "nf4-plain"
    raise UnknownLayoutError(tr("bitsandbytes in neither 4 nor 8 bits"))


_ALGORITHMS = {
    "fp8": "fp8-static", "fp8_pb_wo": "fp8-block", "fp8_block_scales": "fp8-block",
    "fp8_per_channel_per_token": "fp8-channel", "mxfp8": "mxfp8", "nvfp4": "nvfp4",
    "w4a16_nvfp4": "nvfp4-a16", "mxfp4": "mxfp4", "w8a16": "int8",
    "w8a8_sq_per_channel": "int8-static-smooth",
}  # fmt: skip
_GROUPS = {"nvfp4": 16, "nvfp4-a16": 16, "mxfp4": 32, "mxfp8": 32}


_MIXED = ("nvfp4", "nvfp4-a16", "mxfp4", "fp8-static", "fp8-block", "fp8-channel", "mxfp8")


def _modelopt(q: Facts) -> str:
    algorithm = q.word("quant_algo").lower()
    if algorithm == "mixed_precision":
        kinds = {name for _module, name in quantized_layers(q)}
        found = next((name for name in _MIXED if name in kinds), "")
    else:
        found = _ALGORITHMS.get(algorithm, "")
    if not found:
        raise UnknownLayoutError(f"modelopt's {algorithm or 'unstated algorithm'!r:.40}")
    return _in_its_groups(q, found)


def _in_its_groups(q: Facts, name: str) -> str:
    usual = _GROUPS.get(name)
    if usual and group_size(q, default=usual) != usual:
        raise UnknownLayoutError(
            tr("{upper} in groups of {raw}").format(upper=name.upper(), raw=q.raw("group_size"))
        )
    return name


def _fixed(name: str) -> Callable[[Facts], str]:
    return lambda q: _in_its_groups(q, name)


def quantized_layers(q: Facts) -> Pairs:
    """Module path -> format, where modelopt lists ``quantized_layers``.

    Raises:
        UnknownLayoutError: an entry's layout is not known, or there are too many.
    """
    found: list[tuple[str, str]] = []
    for module, entry in _entries(q, "quantized_layers"):
        algorithm = entry.word("quant_algo").lower()
        name = _ALGORITHMS.get(algorithm)
        if name is None:
            raise UnknownLayoutError(f"modelopt's {algorithm!r:.40}")
        found.append((module, _in_its_groups(entry, name)))
    return tuple(found)


def extra_config(q: Facts) -> Pairs:
    """Module path -> format where auto-round gives a module another than the rest; "" = none.

    Raises:
        UnknownLayoutError: an entry's layout is not known, or there are too many.
    """
    found: list[tuple[str, str]] = []
    for module, entry in _entries(q, "extra_config"):
        bits = weight_bits(entry, "bits") or _UNQUANTISED_BITS
        if is_expression(module):
            if bits < _UNQUANTISED_BITS:
                raise UnknownLayoutError(
                    tr("auto-round for modules like {module!r:.40}").format(module=module)
                )
            continue
        own = Facts({**q.stated, **entry.stated, "extra_config": None}, path=entry.path)
        found.append((module, "" if bits >= _UNQUANTISED_BITS else _auto_round(own)))
    return tuple(found)


_UNQUANTISED_BITS = 16


def is_expression(module: str) -> bool:
    """Whether auto-round's name for modules is an expression and no path."""
    return any(mark in module for mark in "*\\^$[(")


def _entries(q: Facts, key: str) -> Iterator[tuple[str, Facts]]:
    entries = q.raw(key)
    if not is_mapping(entries):
        return
    if len(entries) > _MOST_LAYERS:
        raise UnknownLayoutError(
            tr("a list of {entries} different layers").format(entries=grouped(len(entries)))
        )
    for module, entry in entries.items():
        yield module, Facts(entry if is_mapping(entry) else {}, path=q.name(key))


_MLX_MODES = {"mxfp4": (32, 4), "nvfp4": (16, 4), "mxfp8": (32, 8)}
"""Mode -> its only group and width."""
_MLX_OWN = frozenset({"bits", "group_size", "mode", "quant_method", "linear_class"})


def mlx(q: Facts) -> str:
    """The format of an MLX ``quantization`` object, or of one entry in it.

    Raises:
        UnknownLayoutError: MLX stores it by rules that are not known here.
    """
    mode = q.word("mode", "affine")
    usual_group, usual_bits = _MLX_MODES.get(mode, (64, None))
    bits, group = weight_bits(q, "bits", usual_bits), group_size(q, default=usual_group)
    if q.raw("global_scale"):
        raise UnknownLayoutError(tr("MLX with a scale of the whole tensor"))
    if mode in _MLX_MODES:
        if (group, bits) != _MLX_MODES[mode]:
            raise UnknownLayoutError(
                tr("MLX's {mode} in {bits} bits and groups of {group}").format(
                    mode=mode, bits=bits, group=group
                )
            )
        return f"mlx-{mode}"
    if mode != "affine":
        raise UnknownLayoutError(tr("MLX's mode {mode!r:.40}").format(mode=mode))
    if bits not in (2, 3, 4, 5, 6, 8) or group not in (32, 64, 128):
        raise UnknownLayoutError(
            tr("MLX in {value} bits and groups of {group}").format(
                value=bits or tr("unstated"), group=group
            )
        )
    return named(f"mlx-{bits}bit", group, usual=64)


def mlx_modules(q: Facts) -> Pairs:
    """Module path -> format where MLX gives a module another than the rest; "" = none.

    Raises:
        UnknownLayoutError: an entry's layout is not known, or there are too many.
    """
    found: list[tuple[str, str]] = []
    for module, entry in q.stated.items():
        if module in _MLX_OWN or not (is_mapping(entry) or isinstance(entry, bool)):
            continue
        if len(found) > _MOST_LAYERS:
            raise UnknownLayoutError(tr("MLX in very many different layers"))
        path = module.replace("switch_mlp", "experts")
        if is_mapping(entry):
            found.append((path, mlx(Facts(entry, path=q.name(module)))))
        else:
            found.append((path, mlx(q) if entry else ""))
    return tuple(found)


_TORCHAO_IN_BYTES = frozenset({"Int8DynamicActivationIntxWeightConfig", "IntxWeightOnlyConfig"})
"""Values of fewer bits, each in a byte of its own."""
_TORCHAO = {
    "Int8WeightOnlyConfig": "int8-asym",
    "Int8DynamicActivationInt8WeightConfig": "int8-asym",
    "Float8WeightOnlyConfig": "fp8-channel",
    "Float8DynamicActivationFloat8WeightConfig": "fp8-channel",
}


def _torchao(q: Facts) -> str:
    """The layouts of torchao from 0.15 on, which keeps its tensors in safetensors."""
    kinds = q.raw("quant_type")
    stated = kinds.get("default") if is_mapping(kinds) and len(kinds) == 1 else None
    if not is_mapping(stated):
        raise UnknownLayoutError(tr("torchao by a name or with modules of their own"))
    kind = Facts(stated, path=q.name("quant_type.default"))
    data = kind.sub("_data") or Facts({}, path=kind.path)
    granularity = data.sub("granularity")
    rows = granularity is None or granularity.word("_type", "PerRow") == "PerRow"
    name = _TORCHAO.get(kind.word("_type")) or _torchao_groups(kind, data)
    if name is None or kind.raw("_version") != 2 or not rows:
        raise UnknownLayoutError(f"torchao's {kind.word('_type') or 'unstated kind':.40}")
    if q.flag("include_input_output_embeddings"):
        raise UnknownLayoutError(tr("torchao with packed embeddings"))
    return name


def _torchao_groups(kind: Facts, data: Facts) -> str | None:
    grouping = data.sub("weight_granularity") or data.sub("granularity")
    packing = data.sub("intx_packing_format")
    if kind.word("_type") not in _TORCHAO_IN_BYTES or grouping is None or packing is None:
        return None
    size = (grouping.sub("_data") or grouping).raw("group_size")
    if packing.word("_data") != "UNPACKED_TO_INT8" or not isinstance(size, int) or size < 1:
        return None
    return f"int8-g{size}-zp"


def _quark(q: Facts) -> str:
    empty = Facts({}, path=q.path)
    whole = q.sub("global_quant_config") or empty
    weights, export = whole.sub("weight"), q.sub("export") or empty
    if weights is None or q.raw("layer_quant_config") or q.raw("layer_type_quant_config"):
        raise UnknownLayoutError(tr("Quark with another layout for some modules"))
    if export.word("weight_format", "real_quantized") != "real_quantized":
        raise UnknownLayoutError(tr("Quark without packed weights"))
    kind, scheme = weights.word("dtype"), weights.word("qscheme")
    size = group_size(weights, default=0)
    inputs = whole.sub("input_tensors")
    is_static = inputs is not None and not inputs.flag("is_dynamic")
    if kind == "fp4" and weights.word("scale_format") == "e8m0" and size == _GROUPS["mxfp4"]:
        return "mxfp4"
    if kind in ("int4", "uint4") and scheme == "per_group" and size and inputs is None:
        return named("awq-int4", size)
    name = _QUARK.get((kind, scheme))
    if name is None or (is_static and name != "fp8-ct"):
        raise UnknownLayoutError(f"Quark's {kind or 'unstated dtype':.20} {scheme:.20}")
    return f"{name}-static" if is_static else name


_QUARK = {
    ("fp8_e4m3", "per_tensor"): "fp8-ct",
    ("fp8_e4m3", "per_channel"): "fp8-channel-ct",
    ("int8", "per_channel"): "int8-ct-asym",
}
"""Scales have the model's dtype; INT8 has zero points even where it is symmetric."""


def _hqq(q: Facts) -> str:
    stated = q.sub("quant_config") or Facts({}, path=q.path)
    weights = stated.sub("weight_quant_params")
    if weights is None or stated.raw("scale_quant_params") or stated.raw("zero_quant_params"):
        raise UnknownLayoutError(tr("HQQ with quantised scales or modules of their own"))
    bits = weight_bits(weights, "nbits")
    if bits not in (1, 2, 3, 4, 8) or weights.raw("view_as_float"):
        raise UnknownLayoutError(tr("HQQ in {value} bits").format(value=bits or tr("unstated")))
    return named(f"hqq-int{bits}", group_size(weights, default=0))


def _bitnet(q: Facts) -> str:
    if q.word("linear_class", "bitlinear") not in ("bitlinear", "autobitlinear"):
        raise UnknownLayoutError(tr("BitNet as {word:.40}").format(word=q.word("linear_class")))
    if q.word("quantization_mode", "offline") == "online":
        raise UnknownLayoutError(tr("BitNet that is packed when it runs"))
    return "bitnet"


MODULES: Mapping[str, Callable[[Facts], Pairs]] = {
    "modelopt": quantized_layers,
    "fp8": quantized_layers,
    "auto-round": extra_config,
    "autoround": extra_config,
    "mlx": mlx_modules,
}
"""Method -> which modules have a format of their own."""
REST_IS_PLAIN = frozenset({"modelopt", "fp8"})
"""Methods whose list of modules names all that are quantised."""
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
    "eetq": _fixed("int8-fp16"),
    "bitnet": _bitnet,
    "hqq": _hqq,
    "torchao": _torchao,
    "quark": _quark,
    "mlx": mlx,
}
"""``quant_method`` -> its rule; compressed-tensors apart (``engine.config.compressed``)."""
