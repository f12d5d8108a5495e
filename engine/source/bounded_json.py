"""JSON from strangers: read only within limits of size, depth and number of values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.errors import PlimsollError

MAX_VALUES = 2_000_000
"""Commas and opening brackets in one document. The largest header that the safetensors format
allows (25 MB) holds some 250,000 tensors of 8 values each; a list of empty lists of the same
length would take half a gigabyte once parsed."""


def parse_object(
    data: bytes, what: str, error: type[PlimsollError], *, unique_keys: bool = False
) -> dict[str, object]:
    """The JSON object in ``data``.

    Args:
        data: the document in UTF-8, with or without a byte order mark.
        what: names the document in messages.
        error: the type of what is raised.
        unique_keys: refuse a key that occurs twice; otherwise the last one counts, as usual.

    Raises:
        PlimsollError: of type ``error``, when ``data`` is not one JSON object within the limits.
    """
    if sum(data.count(mark) for mark in (b",", b"[", b"{")) > MAX_VALUES:
        raise error(
            tr("{what} holds more than {max_values} values, too many for any model.").format(
                what=what, max_values=grouped(MAX_VALUES)
            )
        )
    try:
        parsed: object = json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_refusing_duplicates if unique_keys else None,
        )
    except UnicodeDecodeError as exc:
        raise error(
            tr("{what} is not text in UTF-8 (byte {start}).").format(what=what, start=exc.start)
        ) from exc
    except RecursionError as exc:
        raise error(tr("{what} is nested too deeply to be a model's.").format(what=what)) from exc
    except json.JSONDecodeError as exc:
        where = tr("line {lineno}, column {colno}").format(lineno=exc.lineno, colno=exc.colno)
        raise error(
            tr("{what} is not valid JSON: {msg} at {where}.").format(
                what=what, msg=exc.msg, where=where
            )
        ) from exc
    except _DuplicateKeyError as exc:
        raise error(
            tr("{what} names {key!r} twice.").format(what=what, key=exc.key), field=exc.key
        ) from exc
    except ValueError as exc:
        # Python refuses integers of more than 4,300 digits with a plain ValueError.
        raise error(tr("{what} holds a number too long to be one.").format(what=what)) from exc
    if not isinstance(parsed, dict):
        kind = tr("a list") if isinstance(parsed, list) else tr("a single value")
        raise error(
            tr("{what} holds {kind} where an object in braces was expected.").format(
                what=what, kind=kind
            )
        )
    return cast("dict[str, object]", parsed)


class _DuplicateKeyError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key[:80]


def _refusing_duplicates(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Build an object in which no key occurs twice."""
    made: dict[str, object] = {}
    for key, value in pairs:
        if key in made:
            raise _DuplicateKeyError(key)
        made[key] = value
    return made
