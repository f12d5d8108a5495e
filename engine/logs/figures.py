"""Printed figures as values: bytes with the rounding of their last digit, counts, words."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from engine.units import GIB, KIB, MIB, TIB

if TYPE_CHECKING:
    from engine.logs.reading import Value

_FACTORS = {
    "B": 1, "bytes": 1,
    "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB,
    "kB": 1000, "KB": 1000, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}  # fmt: skip
_UNITS = frozenset({*_FACTORS, "count", "number"})
_SIZE = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?"
)
"""As programs print one. Decimal itself takes more: other scripts' digits, ``nan``, ``1_000``."""
_MOST = 2**60
"""Beyond this a figure is a slip of whoever printed it: PyTorch has printed 17179869184 GiB."""


def value_of(text: str, unit: str) -> tuple[Value, int] | None:
    """What ``text`` in ``unit`` means, and half a unit of its last digit in bytes.

    Args:
        text: as it stands in the log.
        unit: a unit of bytes, ``size`` for a text that has its own, ``count``, ``number`` or
            ``text``.

    Returns:
        None where the text is no such value, or no plausible one.
    """
    if unit == "text":
        return text.strip(), 0
    if unit == "size":
        match = _SIZE.fullmatch(text.strip())
        text, unit = (match[1], match[2]) if match is not None else ("", "")
    plain = text.strip().replace(",", "")
    if unit not in _UNITS or not _NUMBER.fullmatch(plain):
        return None
    number = Decimal(plain)
    if abs(number) > _MOST:
        return None
    if unit in ("count", "number"):
        return (int(number) if unit == "count" else float(number)), 0
    found = number * _FACTORS[unit]
    if abs(found) > _MOST:
        return None
    exponent = number.as_tuple().exponent
    digits = max(0, -exponent) if isinstance(exponent, int) else 0
    half = 0 if _FACTORS[unit] == 1 else round(_FACTORS[unit] / 10**digits / 2)
    return round(found), half
