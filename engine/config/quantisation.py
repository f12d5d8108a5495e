"""How a config says its weights are stored: the format, what it leaves alone, the KV dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.config.facts import is_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.config.facts import Facts

_KEPT_KEYS = (
    "modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude",
    "llm_int8_skip_modules",
)  # fmt: skip
_MOST_PATTERNS = 100_000
PLAIN = {
    "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "half": "fp16",
    "float32": "fp32", "fp32": "fp32", "float": "fp32",
}  # fmt: skip
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


@dataclass(frozen=True, slots=True)
class Stored:
    """The storage a config describes."""

    weight_format: str
    """Name in ``engine.formats``."""
    dtype: str
    """Dtype of what is not quantised."""
    unquantised: tuple[str, ...] = ()
    kv_cache_dtype: str | None = None
    reason: str = ""
    """Why the format is only a guess; empty where it is understood."""
    by_module: tuple[tuple[str, str], ...] = ()
    """Module path -> format, where a checkpoint mixes formats."""
    experts_as: str = ""
    """Format of the routed experts where it is another (``expert_dtype``)."""


def stored_format(root: Facts, text: Facts) -> Stored:
    """What the config says about storage.

    Raises:
        ConfigError: the dtype is no word.
    """
    dtype, plain = _dtype(root, text)
    config = _quantisation(root, text)
    if config is None:
        return _mlx(root, dtype, plain)
    method = str(config.get("quant_method") or config.get("quant_algo") or "").lower()
    inner = config.get("quantization")
    if is_mapping(inner):
        config = {**config, **inner}
    rule = _METHODS.get(method.replace("_", "-"))
    found = rule(config) if rule else None
    kept = _kept(config)
    kv_dtype = _kv_dtype(config)
    if found is None:
        name = method or "an unnamed method"
        reason = f"the weights are stored by {name}, whose layout is not known"
        return Stored(plain, dtype, kept, kv_dtype, reason)
    narrow = (config.get("expert_dtype") or text.raw("expert_dtype")) == "fp4"
    experts_as = "mxfp4" if narrow else ""
    return Stored(found, dtype, kept, kv_dtype, "", _by_module(config), experts_as)


def _dtype(root: Facts, text: Facts) -> tuple[str, str]:
    for owner in (text, root):
        for key in ("dtype", "torch_dtype"):
            if key in owner.stated:
                word = owner.word(key).removeprefix("torch.")
                if word in PLAIN:
                    plain = PLAIN[word]
                    text.origins["dtype"] = "stated"
                    return _DTYPES[plain], plain
    text.origins["dtype"] = "derived"
    return "bfloat16", "bf16"


def _quantisation(root: Facts, text: Facts) -> Mapping[str, object] | None:
    for owner in (root, text):
        for key in ("quantization_config", "compression_config"):
            value = owner.stated.get(key)
            if is_mapping(value) and value:
                return value
    return None


def _mlx(root: Facts, dtype: str, plain: str) -> Stored:
    value = root.stated.get("quantization")
    if is_mapping(value) and isinstance(value.get("bits"), int) and "group_size" in value:
        name = f"mlx-{value['bits']}bit"
        known = value["bits"] in (4, 5, 6, 8) and value["group_size"] == 64
        reason = "" if known else "this MLX bit width or group size is not known"
        return Stored(name if known else plain, dtype, reason=reason)
    return Stored(plain, dtype)


def _kept(config: Mapping[str, object]) -> tuple[str, ...]:
    found: list[str] = []
    for key in _KEPT_KEYS:
        value = config.get(key)
        if isinstance(value, list):
            names = [v for v in value[:_MOST_PATTERNS] if isinstance(v, str)]  # pyright: ignore[reportUnknownVariableType]
            found += names
    return tuple(found)


def _kv_dtype(config: Mapping[str, object]) -> str | None:
    scheme = config.get("kv_cache_scheme") or config.get("kv_cache_quant_algo")
    if is_mapping(scheme):
        return "fp8" if scheme.get("num_bits") == 8 and scheme.get("type") == "float" else None
    if isinstance(scheme, str):
        return {"fp8": "fp8", "nvfp4": "nvfp4"}.get(scheme.lower())
    return None


def _fp8(config: Mapping[str, object]) -> str | None:
    return "fp8-block" if config.get("weight_block_size") else "fp8"


def _bits(config: Mapping[str, object], names: Mapping[int, str]) -> str | None:
    bits = config.get("bits") or config.get("w_bit") or config.get("wbits")
    return names.get(bits) if isinstance(bits, int) else None


def _awq(config: Mapping[str, object]) -> str | None:
    return _bits(config, {4: "awq-int4"})


def _gptq(config: Mapping[str, object]) -> str | None:
    return _bits(config, {4: "gptq-int4", 8: "gptq-int8"})


def _auto_round(config: Mapping[str, object]) -> str | None:
    if str(config.get("data_type", "int")) != "int":
        return None
    packing = str(config.get("packing_format", ""))
    return _awq(config) if packing.endswith("awq") else _gptq(config)


def _bitsandbytes(config: Mapping[str, object]) -> str | None:
    if config.get("load_in_8bit") or config.get("_load_in_8bit"):
        return "int8"
    if config.get("load_in_4bit") or config.get("_load_in_4bit"):
        return "nf4" if config.get("bnb_4bit_use_double_quant") else "nf4-plain"
    return None


def _first_weights(config: Mapping[str, object]) -> Mapping[str, object]:
    groups = config.get("config_groups")
    if is_mapping(groups):
        for group in groups.values():
            if is_mapping(group) and is_mapping(group.get("weights")):
                return group["weights"]  # pyright: ignore[reportReturnType]  # checked above
    return {}


def _compressed_tensors(config: Mapping[str, object]) -> str | None:
    layout = str(config.get("format", ""))
    weights = _first_weights(config)
    bits, kind = weights.get("num_bits"), weights.get("type")
    strategy = str(weights.get("strategy", ""))
    if layout.startswith("nvfp4"):
        return "nvfp4"
    if layout.startswith("mxfp4"):
        return "mxfp4"
    if bits == 4 and kind == "int":
        return {32: "w4a16-g32", 128: "w4a16"}.get(weights.get("group_size"))  # pyright: ignore[reportArgumentType, reportCallIssue]
    if bits != 8:
        return None
    if kind == "int":
        return "int8"
    return {"tensor": "fp8", "block": "fp8-block"}.get(strategy, "fp8-channel")


_ALGORITHMS = {
    "fp8": "fp8", "fp8_pb_wo": "fp8-block", "fp8_block_scales": "fp8-block", "mxfp8": "mxfp8",
    "nvfp4": "nvfp4", "w4a16_nvfp4": "nvfp4", "nvfp4_awq": "nvfp4", "mxfp4": "mxfp4",
}  # fmt: skip


def _modelopt(config: Mapping[str, object]) -> str | None:
    algorithm = str(config.get("quant_algo", "")).lower()
    if algorithm == "mixed_precision":
        kinds = {name for _module, name in _by_module(config)}
        for name in ("nvfp4", "mxfp4", "fp8", "fp8-block", "mxfp8"):
            if name in kinds:
                return name
        return None
    return _ALGORITHMS.get(algorithm)


def _by_module(config: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    layers = config.get("quantized_layers")
    if not is_mapping(layers) or len(layers) > _MOST_PATTERNS:
        return ()
    found: list[tuple[str, str]] = []
    for module, entry in layers.items():
        if is_mapping(entry):
            name = _ALGORITHMS.get(str(entry.get("quant_algo", "")).lower())
            if name:
                found.append((module, name))
    return tuple(found)


_METHODS: Mapping[str, Callable[[Mapping[str, object]], str | None]] = {
    "fp8": _fp8,
    "fbgemm-fp8": lambda _config: "fp8-channel",
    "awq": _awq,
    "gptq": _gptq,
    "auto-round": _auto_round,
    "autoround": _auto_round,
    "compressed-tensors": _compressed_tensors,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": lambda _config: "mxfp4",
    "modelopt": _modelopt,
    "modelopt-fp4": lambda _config: "nvfp4",
    "nvfp4": lambda _config: "nvfp4",
}
