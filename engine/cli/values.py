"""Values of options as a person types them; what can't be read is said in one sentence."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from engine.units import parse_bytes, parse_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

_MOMENT = "a time like 2026-11-20T10:00"
_T = TypeVar("_T")


def tokens(text: str) -> int:
    """Tokens, also written 32k."""
    # Some take -1, as vLLM's context does; what may be negative is the contract's to say.
    return whole_number(text) if text.startswith("-") else _read(parse_tokens, text)


def sizes(text: str) -> int:
    """Bytes, also written 24GiB."""
    return _read(parse_bytes, text)


def whole_number(text: str) -> int:
    """A whole number."""
    return _read(int, text, "a whole number")


def number(text: str) -> float:
    """A number, with a point or a comma."""
    return _read(float, text.replace(",", "."), "a number")


def numbers(text: str) -> list[float]:
    """Numbers between commas."""
    return [number(part) for part in text.split(",")]


def integers(text: str) -> list[int]:
    """Whole numbers between commas."""
    return [whole_number(part) for part in text.split(",")]


def endpoint(text: str) -> str:
    """An address of the web."""
    from engine.source.reference import is_web_address  # noqa: PLC0415 - seldom needed

    if not is_web_address(text):
        message = f"{text[:80]!r} is no address that starts with http:// or https://"
        raise argparse.ArgumentTypeError(message)
    return text


def device_number(text: str) -> int:
    """How many devices, at least one."""
    return _from_one(text, "a number of devices")


def count(text: str) -> int:
    """How many samples, at least one."""
    return _from_one(text, "a number of samples")


def seconds(text: str) -> float:
    """A pause between samples: 0.1 to 3,600 s."""
    found = number(text)
    if not 0.1 <= found <= 3600:
        message = f"{text!r} is not between 0.1 and 3600 seconds"
        raise argparse.ArgumentTypeError(message)
    return found


def moment(text: str) -> float:
    """Unix time of ``2026-11-20T10:00``, in this computer's time where no zone is given."""
    return _read(lambda written: datetime.fromisoformat(written).timestamp(), text, _MOMENT)


def _from_one(text: str, what: str) -> int:
    found = whole_number(text)
    if found < 1:
        message = f"{text!r} is not {what}"
        raise argparse.ArgumentTypeError(message)
    return found


def _read(read: Callable[[str], _T], text: str, what: str = "") -> _T:
    try:
        return read(text)
    except ValueError as error:
        message = f"{text[:80]!r} is not {what}" if what else str(error).rstrip(".")
        raise argparse.ArgumentTypeError(message) from error
