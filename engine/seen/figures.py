"""Values of foreign JSON as ours: converted at this door, or missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, cast

from engine.seen.model import NOT_STATED
from engine.text import printable
from engine.units import GIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.telemetry.snapshot import Missing

_LARGEST: Final = 2**60
_LONGEST = 200


def count(value: object) -> int | Missing:
    """A whole number from 0 on."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST
    return cast("int", value) if is_count else NOT_STATED


def positive(value: object) -> int | Missing:
    """A whole number from 1 on."""
    return count(value) or NOT_STATED


def gib_bytes(value: object) -> int | None:
    """Bytes of a number of GiB, whatever the runtime calls them; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    size = value * GIB
    return round(size) if math.isfinite(size) and 0 <= size <= _LARGEST else None


def text(value: object) -> str:
    """A text of one line, cut to a sane length; empty where it is none."""
    return printable(value, _LONGEST) if isinstance(value, str) else ""


def version(value: object) -> str | Missing:
    """A release as the runtime writes it."""
    return text(value) or NOT_STATED


def fields(value: Any) -> dict[str, Any]:
    """A JSON object; empty where it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def rows(value: object, most: int = 256) -> list[dict[str, Any]]:
    """The objects of a JSON list, as many as a sane runtime sends."""
    if not isinstance(value, list):
        return []
    listed = cast("list[object]", value)[:most]
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def total(values: Iterable[int | Missing]) -> int | Missing:
    """The sum of those that are there; missing where none is."""
    found = [value for value in values if isinstance(value, int)]
    return sum(found) if found else NOT_STATED


def raw(labels: Mapping[str, Any], known: frozenset[str]) -> dict[str, str]:
    """What is not among the ``known``, as it stood."""
    return {
        text(name): printable(str(value), _LONGEST)
        for name, value in list(labels.items())[:_LONGEST]
        if name not in known
    }
