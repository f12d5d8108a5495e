"""Bytes of one element in the dtypes that files and configs name."""

from __future__ import annotations

from functools import lru_cache

from engine.words import tr

_WIDTHS = {
    "float64": 8,
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e8m0fnu": 1,
    "int64": 8,
    "uint64": 8,
    "int32": 4,
    "uint32": 4,
    "int16": 2,
    "uint16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
_ALIASES = {
    "f64": "float64",
    "fp32": "float32",
    "f32": "float32",
    "float": "float32",
    "bf16": "bfloat16",
    "f16": "float16",
    "fp16": "float16",
    "half": "float16",
    "f8_e4m3": "float8_e4m3fn",
    "f8_e4m3fn": "float8_e4m3fn",
    "float8_e4m3": "float8_e4m3fn",
    "f8_e5m2": "float8_e5m2",
    "f8_e8m0": "float8_e8m0fnu",
    "i64": "int64",
    "u64": "uint64",
    "i32": "int32",
    "u32": "uint32",
    "i16": "int16",
    "u16": "uint16",
    "i8": "int8",
    "u8": "uint8",
}


@lru_cache(maxsize=256)
def canonical(name: str) -> str | None:
    """The PyTorch name of a dtype: ``BF16`` and ``torch.bfloat16`` are ``bfloat16``."""
    lowered = name.lower().removeprefix("torch.")
    resolved = _ALIASES.get(lowered, lowered)
    return resolved if resolved in _WIDTHS else None


@lru_cache(maxsize=256)
def element_bytes(name: str) -> int:
    """Bytes of one element.

    Raises:
        ValueError: the dtype is not known, so nothing may be computed with it.
    """
    resolved = canonical(name)
    if resolved is None:
        message = tr("{name!r} is not a known dtype.").format(name=name)
        raise ValueError(message)
    return _WIDTHS[resolved]
