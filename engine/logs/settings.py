"""The settings that a log states: a dump of arguments, or the command that started it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.logs.figures import value_of
from engine.logs.patterns import settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.logs.reading import Value

_PAIR = re.compile(
    r"['\"]?(?<![\w-])([A-Za-z_]{1,40})['\"]?(?: ?= ?|: ?)"
    r"(?:Some\( {0,16})?('[^']{0,300}'|\"[^\"]{0,300}\"|[^\s,;(){}\[\]]{1,80})"
)
_OPTION = re.compile(
    r"(?<![\w-])--?([a-z][a-z0-9-]{0,40})"
    r"(?:[= ]{1,4}('[^']{0,300}'|\"[^\"]{0,300}\"|(?!-[a-z-])[^\s\"]{1,300}))?"
)
_BARE_MODEL = re.compile(r"vllm serve {1,4}(?!-)([^\s'\"]{1,300})")
_WORDS = {"true": True, "false": False}
_NOTHING = frozenset({"none", "null", "auto", "nan", ""})
_TEXTS = frozenset(
    {
        "model", "file", "kv_cache_dtype", "quantization", "dtype", "cache_type_k", "cache_type_v",
        "flash_attn",
    }
)  # fmt: skip
_FORMATS = {
    "fp8": "fp8", "awq": "awq-int4", "awq_marlin": "awq-int4", "gptq": "gptq-int4",
    "gptq_marlin": "gptq-int4", "bitsandbytes": "nf4", "mxfp4": "mxfp4",
}  # fmt: skip
"""What a runtime calls a format it makes or reads -> ours."""
_DTYPES = {"float32": "fp32", "float": "fp32"}
_INFERRED = 4294967295
"""What TGI prints for a number that it is yet to find."""


def stated(runtime: str, text: str) -> dict[str, Value]:
    """The settings in ``text`` by the keys of the machine contract; of two the later one."""
    names = settings_of(runtime)
    found: dict[str, Value] = {}
    bare = _BARE_MODEL.search(text)
    if bare is not None:
        found["model"] = bare[1]
    for name, raw in _pairs(text):
        key = names.get(name)
        if key is None:
            continue
        value = _value(key, raw)
        if value is not None:
            found[key] = value
    return found


def as_contract(settings: Mapping[str, Value]) -> dict[str, Value]:
    """``settings`` with what runtimes call otherwise in the contract's own words."""
    found = {k: v for k, v in settings.items() if k not in ("quantization", "dtype", "file")}
    format_name = _FORMATS.get(str(settings.get("quantization", "")).lower())
    dtype = _DTYPES.get(str(settings.get("dtype", "")).removeprefix("torch.").lower())
    # A checkpoint that is stored so says it itself; a format named on the command line is made.
    if format_name in ("fp8", "nf4") and "model" in settings:
        found["weight_format"] = format_name
    elif dtype:
        found["weight_format"] = dtype
    return found


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for match in _OPTION.finditer(text):
        yield match[1].replace("-", "_"), match[2] if match[2] is not None else "true"
    for match in _PAIR.finditer(text):
        yield match[1], match[2]


def _value(key: str, raw: str) -> Value | None:
    text = raw.strip("'\"")
    if text.lower() in _NOTHING and key != "flash_attn":
        return None
    if key in _TEXTS:
        return text.removeprefix("torch.")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    read = value_of(text, "number")
    number = float(read[0]) if read is not None else _INFERRED
    if abs(number) >= 2**53 or number == _INFERRED:
        return None
    return int(number) if number == int(number) and "." not in text else number
