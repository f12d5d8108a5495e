"""Numbers as a person reads them: the only rounding on screen.

Sizes come from ``engine.units``, so that window, report and terminal round alike. The
separators are those of the window's language, since a mixture of two in one window would make
1.234 ambiguous. What is typed in may use either (``gui.kit.fields``).
"""

from __future__ import annotations

from engine.units import UnitSystem, format_gib
from engine.words import figures, grouped, tr_count

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"


def size(size_bytes: int, system: UnitSystem = UnitSystem.BINARY, digits: int = 2) -> str:
    """``14.99 GiB``."""
    return format_gib(size_bytes, system, digits=digits)


def size_number(size_bytes: int, system: UnitSystem = UnitSystem.BINARY, digits: int = 2) -> str:
    """``14.99``: for columns whose heading carries the unit."""
    return format_gib(size_bytes, system, digits=digits, unit=False)


def margin(size_bytes: int, system: UnitSystem = UnitSystem.BINARY, digits: int = 1) -> str:
    """``+1.3 GiB`` or a minus sign; the sign stays when the number rounds to 0.0."""
    return format_gib(size_bytes, system, digits=digits, signed=True)


def size_range(
    low_bytes: int, high_bytes: int, system: UnitSystem = UnitSystem.BINARY, digits: int = 2
) -> str:
    """``4.12 - 5.89`` with an en dash; empty for a point."""
    if low_bytes == high_bytes:
        return ""
    low = size_number(low_bytes, system, digits)
    high = size_number(high_bytes, system, digits)
    return f"{low} {DASH} {high}"


def count(number: int) -> str:
    """``8,192``."""
    return grouped(number).replace("-", MINUS)


def exact_bytes(size_bytes: int) -> str:
    """``5,710,544,896 bytes``: what every tooltip of a rounded size says."""
    return tr_count("{n} byte", "{n} bytes", size_bytes).format(n=count(size_bytes))


def tokens_short(tokens: int) -> str:
    """``32k`` for whole multiples of 1,024, ``1M`` for 2**20, else the number itself."""
    if tokens >= 2**20 and tokens % 2**20 == 0:
        return f"{tokens // 2**20}M"
    if tokens >= 2**10 and tokens % 2**10 == 0:
        return f"{tokens // 2**10}k"
    return count(tokens)


def parameters(number: int) -> str:
    """``8.03 B``, ``135 M``: three figures."""
    for factor, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= factor:
            scaled = number / factor
            digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
            return f"{figures(f'{scaled:.{digits}f}')} {letter}"
    return str(number)
