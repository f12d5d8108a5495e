"""How a config says its weights are stored: the format, what it leaves alone, the KV dtype."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.config.compressed import EVERY_LINEAR, formats
from engine.config.expressions import first_not_understood
from engine.config.facts import Facts, is_mapping
from engine.config.quant_methods import (
    METHODS,
    MODULES,
    REST_IS_PLAIN,
    UnknownLayoutError,
    gptq_modules,
    is_expression,
    mlx,
    mlx_modules,
)
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.config.compressed import Targets
    from engine.config.quant_methods import Pairs

_KEPT_KEYS = (
    "modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude",
    "llm_int8_skip_modules", "skip_modules",
)  # fmt: skip
_MOST_PATTERNS = 100_000
PLAIN = {
    "bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16", "half": "fp16",
    "float32": "fp32", "fp32": "fp32", "float": "fp32",
}  # fmt: skip
_NARROW = ("float8", "float4", "fp8", "fp4")
"""Dtypes of single elements that come with scales of some layout."""
_SCALES_IN_FP32 = frozenset({"deepseek_v3", "deepseek_v32", "kimi_k2"})
"""Types whose checkpoints keep scales that are powers of two in fp32 all the same."""
_ON_LOADING = frozenset({"bitsandbytes", "torchao", "eetq", "hqq"})
"""Methods by which Transformers packs any linear layer it loads."""
_LISTS_HEAD = _ON_LOADING | {"compressed-tensors", "modelopt", "fp8", "quark", "bitnet"}
_TEXT_ALONE = frozenset({"awq", "gptq", "auto-round", "autoround", "mxfp4"})
"""Methods for the blocks of the text model."""
_BESIDE_EXPERTS = ("self_attn",)
"""What ``mxfp4`` leaves alone without a list: it knows the experts of gpt-oss alone."""
_HEAD = re.compile(r"head|embed_out|output_layer|^\*$")
_TOWER = re.compile(r"vision|visual|audio|speech")
_BESIDE_TEXT = re.compile(r"vis|audio|speech|tower|image|mm_|project|connector|^\*$")
_METHODS_NAMED = ("awq", "gptq", "fp8", "compressed-tensors", "bitsandbytes", "modelopt")
_WIDTHS = {"bfloat16": 2, "float16": 2, "float32": 4}
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
    kv_scale_bytes: int = 0
    """Stored scales of the keys and values of a layer."""
    reason: str = ""
    """Why the format is only a guess; empty where it is understood."""
    by_module: tuple[tuple[str, str], ...] = ()
    """Module path -> format, where a checkpoint mixes formats; an empty one leaves it alone."""
    rest_is_plain: bool = True
    """Whether modules that ``by_module`` does not list stay unquantised."""
    head_as: str = ""
    """Format of the output head, where it is quantised with the layers."""
    doubts: tuple[tuple[str, str], ...] = ()
    """(reason, direction) where bytes are counted by an assumption: ``upper``, ``lower`` …."""
    targets: tuple[tuple[str, str], ...] = ()
    """(target, format) where a checkpoint gives module groups their own (compressed-tensors)."""
    tower_unsaid: str = ""
    """Why it is open whether a tower is quantised: counted as it was."""
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
    method, kv_dtype = _method(q), _kv_dtype(q.stated)
    kept = _kept(q.stated) or (_BESIDE_EXPERTS if method == "mxfp4" else ())
    try:
        targets, modules = _formats(q, method)
    except UnknownLayoutError as unknown:
        reason = tr("the weights are stored by {unknown}, whose layout is not known").format(
            unknown=unknown
        )
        return Stored(plain, dtype, kept, kv_dtype, reason=reason)
    odd = first_not_understood((*kept, *(target for target, _ in targets)))
    if odd is not None:
        reason = tr("its quantisation names modules by {odd:.40}, which is not understood").format(
            odd=odd
        )
        return Stored(plain, dtype, (), kv_dtype, reason=reason)
    by_target = dict(reversed(targets))
    found = by_target.get(EVERY_LINEAR) or next(iter(by_target.values()))
    if found.startswith("fp8-block") and q.word("scale_fmt") == "ue8m0":
        found += "" if text.model_type in _SCALES_IN_FP32 else "-e8m0"
    narrow = (q.raw("expert_dtype") or text.raw("expert_dtype")) == "fp4"
    experts_as = "mxfp4" if narrow else plain if _keeps_experts(root, method) else ""
    return Stored(
        weight_format=found,
        dtype=dtype,
        unquantised=kept,
        kv_cache_dtype=kv_dtype,
        kv_scale_bytes=_kv_scale_bytes(q, method, dtype),
        by_module=modules,
        rest_is_plain=method in REST_IS_PLAIN,
        head_as=found
        if _packs_head(q, method, by_target, modules)
        else dict(modules).get("lm_head", ""),
        experts_as=experts_as,
        targets=() if tuple(by_target) == (EVERY_LINEAR,) else targets,
        doubts=tuple(_doubts(root, q, method, kept)),
        tower_unsaid=_tower_unsaid(root, q, method, kept),
    )


def _method(q: Facts) -> str:
    method = str(q.raw("quant_method") or "").lower().replace("_", "-").removeprefix("intel/")
    # As bitsandbytes was first published: Transformers takes it for that too.
    if not method and (q.raw("load_in_4bit") or q.raw("load_in_8bit")):
        return "bitsandbytes"
    if not method and q.has("quant_algo"):
        return "modelopt"
    if not method and q.path == "quantization":
        return "mlx"
    return "compressed-tensors" if not method and q.has("config_groups") else method


def _formats(q: Facts, method: str) -> tuple[Targets, Pairs]:
    """The formats by target, and by module path where a checkpoint lists some or all.

    Raises:
        UnknownLayoutError: a layout whose bytes are not known here.
    """
    if method == "compressed-tensors":
        return formats(q), ()
    rule, modules = METHODS.get(method), MODULES.get(method)
    if rule is None:
        raise UnknownLayoutError(f"{method or 'an unnamed method':.40}")
    if method == "gptq":
        return (*gptq_modules(q), (EVERY_LINEAR, rule(q))), ()
    return ((EVERY_LINEAR, rule(q)),), modules(q) if modules else ()


def _keeps_experts(root: Facts, method: str) -> bool:
    """Whether stacked experts stay as they are: no linear layers to Transformers 5."""
    return method in _ON_LOADING and str(root.raw("transformers_version") or "").startswith("5.")


def _packs_head(q: Facts, method: str, by_target: Mapping[str, str], modules: Pairs) -> bool:
    """Whether the output head is quantised with the layers.

    A quantiser that is given a list leaves alone what is on it, the head too; without a list,
    most leave the head alone by themselves.
    """
    if method == "gptq":
        return q.raw("lm_head") is True
    if modules or method not in _LISTS_HEAD or EVERY_LINEAR not in by_target:
        return False
    is_listed = any(isinstance(q.stated.get(key), list) for key in _KEPT_KEYS)
    return is_listed and not any(_HEAD.search(name) for name in _kept(q.stated))


def _doubts(root: Facts, q: Facts, method: str, kept: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What a quantisation leaves open, and on which side of the truth the count is then."""
    if method == "compressed-tensors" and "ignore" not in q.stated:
        yield tr("its quantisation does not say which modules it leaves alone"), "either"
    if method == "compressed-tensors" and q.raw("transform_config"):
        yield tr("its transforms may keep matrices of their own, which are not counted"), "lower"
    if method == "fbgemm-fp8":
        yield (
            tr("checkpoints of fbgemm leave attention unquantised without listing all of it"),
            "lower",
        )
    if method == "fp8" and q.has("quantized_layers"):
        yield tr("two quantisations are stated: what only one of them lists is in doubt"), "either"
    if method in _ON_LOADING and not root.has("transformers_version") and _has_experts(root):
        yield (
            tr("whether its experts are quantised depends on the Transformers that wrote it"),
            "lower",
        )


def _tower_unsaid(root: Facts, q: Facts, method: str, kept: tuple[str, ...]) -> str:
    """Why it is open whether a tower is quantised; empty where it is said or there is none."""
    towers = [key for key in root.stated if _TOWER.search(key) and is_mapping(root.stated[key])]
    lists_all = bool(q.raw("quantized_layers"))
    is_said = lists_all or any(_BESIDE_TEXT.search(pattern) for pattern in kept)
    if not towers or method in _TEXT_ALONE or is_said:
        return ""
    named = towers[0].removesuffix("_config")
    return tr("whether its {named:.20} tower is quantised is not said: counted as it was").format(
        named=named
    )


def _kv_scale_bytes(q: Facts, method: str, dtype: str) -> int:
    """Of a key's and a value's scale: fp32 in modelopt, the model's dtype in compressed-tensors."""
    scheme = q.raw("kv_cache_scheme") or q.raw("kv_cache_quant_algo")
    if method == "modelopt":
        return 2 * _WIDTHS["float32"] if scheme else 0
    is_static = is_mapping(scheme) and not scheme.get("dynamic")
    return 2 * _WIDTHS[dtype] if method == "compressed-tensors" and is_static else 0


def _has_experts(root: Facts) -> bool:
    nested = [value for value in root.stated.values() if is_mapping(value)]
    return any("expert" in key for stated in (root.stated, *nested) for key in stated)


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
                reason = tr(
                    "the weights are said to be {word:.40}: counted at 16 bits each"
                ).format(word=word)
                return "bfloat16", "bf16", reason
            if word != "auto":
                raise owner.bad(key, word, tr("bfloat16, float16 or float32 is needed"))
    text.origins["dtype"] = "derived"
    return "bfloat16", "bf16", ""


def _quantisation(root: Facts, text: Facts) -> Facts | None:
    for owner in (root, text):
        for key in ("quantization_config", "compression_config"):
            value = owner.stated.get(key)
            if value is None:
                continue
            if not is_mapping(value) or not value:
                wanted = tr("an object with quant_method ({names} …) is needed").format(
                    names=", ".join(_METHODS_NAMED)
                )
                raise owner.bad(key, value, wanted)
            inner = value.get("quantization")
            merged = {**value, **inner} if is_mapping(inner) else value
            is_mlx = root.raw("quantization") == value and "quant_method" not in value
            return Facts(merged, path="quantization" if is_mlx else owner.name(key))
    return None


def _mlx(root: Facts, dtype: str, plain: str, why: str) -> Stored:
    value = root.raw("quantization")
    if value is None:
        return Stored(plain, dtype, reason=why)
    if not is_mapping(value) or not value:
        raise root.bad("quantization", value, tr("an object with bits and group_size is needed"))
    q = Facts(value, path="quantization")
    try:
        found, modules = mlx(q), mlx_modules(q)
        head = dict(modules).get("lm_head", found) or plain
        doubts, tower = tuple(_doubts(root, q, "mlx", ())), _tower_unsaid(root, q, "mlx", ())
        return Stored(
            found,
            dtype,
            by_module=modules,
            rest_is_plain=False,
            head_as=head,
            doubts=doubts,
            tower_unsaid=tower,
        )
    except UnknownLayoutError as unknown:
        reason = tr("the weights are stored by {unknown}, whose layout is not known").format(
            unknown=unknown
        )
        return Stored(plain, dtype, reason=reason)


def _kept(config: Mapping[str, object]) -> tuple[str, ...]:
    found: list[str] = []
    for key in _KEPT_KEYS:
        value = config.get(key)
        if isinstance(value, list):
            names = [v for v in value[:_MOST_PATTERNS] if isinstance(v, str)]  # pyright: ignore[reportUnknownVariableType]
            found += names
    # "-:" and an expression leave modules alone in GPTQModel's "dynamic", 16 bits in auto-round's.
    rules, extra = config.get("dynamic"), config.get("extra_config")
    if is_mapping(rules):
        found += ["re:" + key[2:] for key in rules if key.startswith("-:")]
    if is_mapping(extra):
        found += ["re:" + key for key in extra if is_expression(key)]
    return tuple(found[:_MOST_PATTERNS])


def _kv_dtype(config: Mapping[str, object]) -> str | None:
    scheme = config.get("kv_cache_scheme") or config.get("kv_cache_quant_algo")
    if is_mapping(scheme):
        return "fp8" if scheme.get("num_bits") == 8 and scheme.get("type") == "float" else None
    if isinstance(scheme, str):
        return {"fp8": "fp8", "nvfp4": "nvfp4"}.get(scheme.lower())
    return None
