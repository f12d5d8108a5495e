"""Sizes as people type them, and as they are written to be typed over. No Qt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.units import parse_bytes

if TYPE_CHECKING:
    from engine.units import UnitSystem

_BARE_BELOW = 1_000_000
"""A number below this without a unit is meant in the unit of the window."""


def read(text: str, unit: UnitSystem) -> int:
    """Bytes meant by ``24``, ``23,6 GiB`` or ``25390809088``.

    Raises:
        ValueError: no size.
    """
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = float(_BARE_BELOW)
    return parse_bytes(text if number >= _BARE_BELOW else f"{text.strip()} {unit.value}")


def typed(size_bytes: int, unit: UnitSystem) -> str:
    """A size as it may be typed: rounded where that says the same, else to the byte."""
    if not size_bytes:
        return ""
    rounded = f"{size_bytes / unit.factor:g} {unit.value}"
    return rounded if parse_bytes(rounded) == size_bytes else f"{size_bytes} B"
