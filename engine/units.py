"""Byte arithmetic and its text form. Bytes are ``int``; GiB means 2**30 and GB means 10**9."""

from __future__ import annotations

import re
from enum import StrEnum

from engine.words import figures

KIB = 2**10
MIB = 2**20
GIB = 2**30
TIB = 2**40

_BINARY = {"KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}
_DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_FACTORS = {"b": 1, **{k.lower(): v for k, v in (_BINARY | _DECIMAL).items()}}
_SIZE = re.compile(r"\s*([0-9]+(?:[.,][0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_COUNT = re.compile(r"\s*([0-9]+(?:[.,][0-9]+)?)\s*([km]?)\s*", re.IGNORECASE)
_PARAMETERS = re.compile(r"\s*([0-9]+(?:[.,][0-9]+)?)\s*([kmbt]?)\s*", re.IGNORECASE)
_LETTERS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_STATED = re.compile(
    r"(?<![\d.,])(\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?)([ \u00a0])([KMGT]iB)\b"
)
_AS_DECIMAL = dict(zip(_BINARY, _DECIMAL, strict=True))
_MINUS = "\N{MINUS SIGN}"


class UnitSystem(StrEnum):
    """How sizes are written: powers of 1024 (default) or of 1000."""

    BINARY = "GiB"
    DECIMAL = "GB"

    @property
    def factor(self) -> int:
        """Bytes in one GiB or one GB."""
        return GIB if self is UnitSystem.BINARY else 10**9


def ceil_div(numerator: int, denominator: int) -> int:
    """Integer division rounded up."""
    return -(-numerator // denominator)


def align_up(value: int, multiple: int) -> int:
    """The smallest multiple of ``multiple`` that is at least ``value``."""
    return ceil_div(value, multiple) * multiple


def format_gib(
    size_bytes: int,
    system: UnitSystem = UnitSystem.BINARY,
    *,
    digits: int = 2,
    signed: bool = False,
    unit: bool = True,
) -> str:
    """``size_bytes`` in GiB (or GB); the sign, a typographic minus, survives rounding to 0."""
    number = figures(f"{abs(size_bytes) / system.factor:,.{digits}f}")
    sign = _MINUS if size_bytes < 0 else "+" if signed else ""
    return f"{sign}{number} {system.value}" if unit else f"{sign}{number}"


def format_bytes(size_bytes: int, system: UnitSystem = UnitSystem.BINARY, digits: int = 2) -> str:
    """``size_bytes`` in the largest unit that keeps the number at 1 or more."""
    table = _BINARY if system is UnitSystem.BINARY else _DECIMAL
    sign = _MINUS if size_bytes < 0 else ""
    size = abs(size_bytes)
    for name, factor in reversed(table.items()):
        if size >= factor:
            return f"{sign}{figures(f'{size / factor:,.{digits}f}')} {name}"
    return f"{sign}{size} B"


def in_unit(text: str, system: UnitSystem) -> str:
    """``text`` with every size that it states in ``system``; rules and formulas write binary ones.

    A size is a number with its unit; as many decimals stay, and a whole number gets one.
    """
    if system is UnitSystem.BINARY:
        return text
    return _STATED.sub(_in_decimal, text)


def _in_decimal(stated: re.Match[str]) -> str:
    # The same swap of separators leads back to English.
    number = figures(stated[1])
    digits = max(len(number.partition(".")[2]), 1)
    factor, unit = _BINARY[stated[3]], _AS_DECIMAL[stated[3]]
    size = float(number.replace(",", "")) * factor / _DECIMAL[unit]
    return f"{figures(f'{size:,.{digits}f}')}{stated[2]}{unit}"


def parse_bytes(text: str) -> int:
    """Bytes meant by ``"24 GiB"``, ``"80GB"`` or ``"1024"``.

    Raises:
        ValueError: the text is not a size.
    """
    match = _SIZE.fullmatch(text)
    factor = _FACTORS.get((match[2] or "b").lower()) if match else None
    if match is None or factor is None:
        message = f"{text!r} is not a size such as 24 GiB or 80 GB."
        raise ValueError(message)
    return _times(match[1], factor)


def parse_tokens(text: str) -> int:
    """Tokens meant by ``"8192"``, ``"8,192"``, ``"32k"`` (x 1024) or ``"1m"`` (x 1024 x 1024).

    Raises:
        ValueError: the text is not a number of tokens.
    """
    grouped = re.sub(r"(?<=\d)[,.\s\u00a0\u202f'](?=\d{3}(?:\D|$))", "", text)
    match = _COUNT.fullmatch(grouped)
    if match is None:
        message = f"{text!r} is not a number of tokens such as 8192 or 32k."
        raise ValueError(message)
    factor = {"": 1, "k": KIB, "m": MIB}[match[2].lower()]
    return _times(match[1], factor)


def parse_parameters(text: str) -> int:
    """Parameters meant by ``"8B"``, ``"8.03 B"``, ``"135M"``, ``"1.2T"`` or ``"8030261248"``.

    Raises:
        ValueError: the text is not a number of parameters.
    """
    match = _PARAMETERS.fullmatch(text.replace(",", "") if text.count(",") > 1 else text)
    if match is None:
        message = f"{text!r} is not a number of parameters such as 8B or 135M."
        raise ValueError(message)
    return _times(match[1], _LETTERS[match[2].lower()])


def _times(number: str, factor: int) -> int:
    """A decimal numeral times ``factor``, rounded; whole numerals stay exact at any length."""
    if number.isdigit():
        return int(number) * factor
    return round(float(number.replace(",", ".")) * factor)
