"""What a person keeps of the browser, as a file to carry to another computer. No Qt."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, cast

from engine.errors import UsageError
from engine.source import files
from engine.source.bounded_json import parse_object
from engine.source.reference import is_elsewhere
from engine.text import printable
from engine.words import tr
from gui.browser.shelf import MOST_KEPT, MOST_RECENT, Shelf, each_once

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "plimsoll.shelf/1"
_MAX_FILE_BYTES = 2**20
_MOST = {"favourites": MOST_KEPT, "recents": MOST_RECENT, "folders": MOST_KEPT}
_LONGEST = 500


def written(shelf: Shelf) -> str:
    """The text of its file: three lists, the newest first."""
    lists = {field.name: getattr(shelf, field.name) for field in fields(Shelf)}
    return json.dumps({"schema": SCHEMA, **lists}, indent=1) + "\n"


def read(path: Path) -> Shelf:
    """The shelf in ``path``.

    Raises:
        PlimsollError: it can't be read, or isn't one; one sentence says what is wrong.
    """
    with files.opened(path) as (file, _):
        kept = parse_object(file.read(_MAX_FILE_BYTES), path.name, UsageError, unique_keys=True)
    if kept.get("schema") != SCHEMA:
        words = tr("{name} holds no favourites of Plimsoll: it has no schema {own}.")
        raise UsageError(words.format(name=path.name, own=SCHEMA), field="schema")
    return Shelf(**{key: _texts(kept, key, most, path.name) for key, most in _MOST.items()})


def near(shelf: Shelf) -> tuple[Shelf, tuple[str, ...]]:
    """``shelf`` without the folders that aren't on this computer, and those.

    Folders are searched without a further word; looking at another computer's would log in there.
    """
    far = tuple(folder for folder in shelf.folders if is_elsewhere(folder))
    return replace(shelf, folders=tuple(f for f in shelf.folders if f not in far)), far


def merged(now: Shelf, other: Shelf) -> Shelf:
    """``now`` with what ``other`` keeps beyond it behind; nothing of it goes for the other's."""
    both = {key: (*getattr(now, key), *getattr(other, key)) for key in _MOST}
    return replace(now, **{k: each_once(v)[: _MOST[k]] for k, v in both.items()})


def _texts(kept: dict[str, object], key: str, most: int, name: str) -> tuple[str, ...]:
    value = kept.get(key, [])
    items = cast("list[object]", value) if isinstance(value, list) else None
    if items is None or len(items) > most or not all(map(_is_reference, items)):
        words = tr("{name}: {key} must be a list of at most {most} names or paths.")
        raise UsageError(words.format(name=name, key=key, most=most), field=key)
    return tuple(cast("list[str]", items))


def _is_reference(item: object) -> bool:
    if not isinstance(item, str) or not 0 < len(item) <= _LONGEST:
        return False
    return printable(item) == item and item.lstrip()[:1] != "{"
