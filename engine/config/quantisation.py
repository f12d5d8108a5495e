"""How a config says its weights are stored: the format, what it leaves alone, the KV dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.config.compressed import EVERY_LINEAR, formats
from engine.config.expressions import first_not_understood
from engine.config.facts import Facts, is_mapping
from engine.config.quant_methods import METHODS, UnknownLayoutError, by_module, mlx

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.config.compressed import Targets

_KEPT_KEYS = (
    "modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude",
    "llm_int8_skip_modules",
)  # fmt: skip
_MOST_PATTERNS = 100_000
PLAIN = {
    "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "half": "fp16",
    "float32": "fp32", "fp32": "fp32", "float": "fp32",
}  # fmt: skip
_NARROW = ("float8", "float4", "fp8", "fp4")
"""Dtypes of single elements that come with scales of some layout."""
_METHODS_NAMED = ("awq", "gptq", "fp8", "compressed-tensors", "bitsandbytes", "modelopt")
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
    targets: tuple[tuple[str, str], ...] = ()
    """(target, format) where a checkpoint gives module groups their own (compressed-tensors)."""
    experts_as: str = ""
    """Format of the routed experts where it is another (``expert_dtype``)."""


def stored_format(root: Facts, text: Facts) -> Stored:
    """What the config says about storage.

    Raises:
        ConfigError: a field of it is of the wrong type or no such value; names the field.
    """
    dtype, plain, why = _dtype(root, text)
    q = _quantisation(root, text)
    if q is None:
        return _mlx(root, dtype, plain, why)
    kept, kv_dtype = _kept(q.stated), _kv_dtype(q.stated)
    try:
        targets, by_layer = _formats(q)
    except UnknownLayoutError as unknown:
        reason = f"the weights are stored by {unknown}, whose layout is not known"
        return Stored(plain, dtype, kept, kv_dtype, reason)
    odd = first_not_understood((*kept, *(target for target, _ in targets)))
    if odd is not None:
        reason = f"its quantisation names modules by {odd:.40}, which is not understood"
        return Stored(plain, dtype, (), kv_dtype, reason)
    by_target = dict(reversed(targets))
    found = by_target.get(EVERY_LINEAR) or next(iter(by_target.values()))
    narrow = (q.raw("expert_dtype") or text.raw("expert_dtype")) == "fp4"
    return Stored(
        weight_format=found,
        dtype=dtype,
        unquantised=kept,
        kv_cache_dtype=kv_dtype,
        by_module=by_layer,
        experts_as="mxfp4" if narrow else "",
        targets=() if tuple(by_target) == (EVERY_LINEAR,) else targets,
    )


def _formats(q: Facts) -> tuple[Targets, tuple[tuple[str, str], ...]]:
    """The formats by target, and by module path where a checkpoint lists every one.

    Raises:
        UnknownLayoutError: a layout whose bytes are not known here.
    """
    method = str(q.raw("quant_method") or "").lower().replace("_", "-")
    if not method and q.has("quant_algo"):
        method = "modelopt"
    if not method and q.path == "quantization":
        return ((EVERY_LINEAR, mlx(q)),), ()
    if method == "compressed-tensors" or (not method and q.has("config_groups")):
        return formats(q), ()
    rule = METHODS.get(method)
    if rule is None:
        raise UnknownLayoutError(f"{method or 'an unnamed method':.40}")
    return ((EVERY_LINEAR, rule(q)),), by_module(q)


def _dtype(root: Facts, text: Facts) -> tuple[str, str, str]:
    """Dtype, its format, and why it is a guess; empty where it is none.

    Raises:
        ConfigError: it is no dtype.
    """
    for owner in (text, root):
        for key in ("dtype", "torch_dtype"):
            if owner.stated.get(key) is None:
                continue
            word = owner.word(key).removeprefix("torch.")
            if word in PLAIN:
                plain = PLAIN[word]
                text.origins["dtype"] = "stated"
                return _DTYPES[plain], plain, ""
            if word.startswith(_NARROW):
                reason = f"the weights are said to be {word:.40}: counted at 16 bits each"
                return "bfloat16", "bf16", reason
            if word != "auto":
                raise owner.bad(key, word, "bfloat16, float16 or float32 is needed")
    text.origins["dtype"] = "derived"
    return "bfloat16", "bf16", ""


def _quantisation(root: Facts, text: Facts) -> Facts | None:
    for owner in (root, text):
        for key in ("quantization_config", "compression_config"):
            value = owner.stated.get(key)
            if value is None:
                continue
            if not is_mapping(value) or not value:
                wanted = f"an object with quant_method ({', '.join(_METHODS_NAMED)} …) is needed"
                raise owner.bad(key, value, wanted)
            inner = value.get("quantization")
            merged = {**value, **inner} if is_mapping(inner) else value
            is_mlx = root.stated.get("quantization") == value and "quant_method" not in value
            return Facts(merged, path="quantization" if is_mlx else owner.name(key))
    return None


def _mlx(root: Facts, dtype: str, plain: str, why: str) -> Stored:
    value = root.stated.get("quantization")
    if value is None:
        return Stored(plain, dtype, reason=why)
    if not is_mapping(value) or not value:
        raise root.bad("quantization", value, "an object with bits and group_size is needed")
    try:
        return Stored(mlx(Facts(value, path="quantization")), dtype)
    except UnknownLayoutError as unknown:
        reason = f"the weights are stored by {unknown}, whose layout is not known"
        return Stored(plain, dtype, reason=reason)


def _kept(config: Mapping[str, object]) -> tuple[str, ...]:
    found: list[str] = []
    for key in _KEPT_KEYS:
        value = config.get(key)
        if isinstance(value, list):
            names = [v for v in value[:_MOST_PATTERNS] if isinstance(v, str)]  # pyright: ignore[reportUnknownVariableType]
            found += names
    # GPTQModel's "dynamic": "-:" and an expression leave modules alone; auto-round lists bits.
    rules, extra = config.get("dynamic"), config.get("extra_config")
    if is_mapping(rules):
        found += ["re:" + key[2:] for key in rules if key.startswith("-:")]
    if is_mapping(extra):
        found += list(extra)
    return tuple(found[:_MOST_PATTERNS])


def _kv_dtype(config: Mapping[str, object]) -> str | None:
    scheme = config.get("kv_cache_scheme") or config.get("kv_cache_quant_algo")
    if is_mapping(scheme):
        return "fp8" if scheme.get("num_bits") == 8 and scheme.get("type") == "float" else None
    if isinstance(scheme, str):
        return {"fp8": "fp8", "nvfp4": "nvfp4"}.get(scheme.lower())
    return None
