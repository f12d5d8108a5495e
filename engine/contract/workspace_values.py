"""Values of a workspace's file, checked one by one: each complaint names its key."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from engine.errors import PlimsollError, WorkspaceError
from engine.source.by_hand import Measures
from engine.source.origin import Located, Named, Origin, Pasted, named
from engine.source.reference import HubReference, PathReference
from engine.source.reference import parse as reference
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TEXT = 4096
"""Characters of a name or path."""
MAX_MEASURE = 2**53


def plain_origin(origin: Origin | None) -> dict[str, object] | None:
    """Where a model comes from, as a file says it."""
    match origin:
        case None:
            return None
        case Named():
            stated = {"name": origin.name, "revision": origin.revision, "file": origin.file}
        case Located():
            stated = {"path": origin.path, "name": origin.name}
        case Pasted():
            return {"pasted": origin.text}
        case Measures():
            return {"measures": {f.name: getattr(origin, f.name) for f in fields(Measures)}}
    return {key: value for key, value in stated.items() if value}


def read_draft(value: object, where: str) -> Named | Located | None:
    """The model that drafts tokens; ``where`` names the key in a complaint."""
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise wrong(where, tr("the name or path of a model"))
    try:
        meant = reference(value)
        if isinstance(meant, PathReference):
            return Located(meant.path)
        if isinstance(meant, HubReference):
            return named(meant.repo_id, meant.revision, meant.file)
        return named(value)
    except PlimsollError as error:
        raise WorkspaceError(error.message, field=where) from error


def read_origin(value: object, where: str) -> Origin | None:
    """What ``plain_origin`` wrote.

    Raises:
        WorkspaceError: it is nothing of the kind; names the key.
    """
    if value is None:
        return None
    kept = object_of(value, where)
    if "measures" in kept:
        refuse_others(kept, {"measures"}, f"{where}.")
        return _read_measures(
            object_of(kept["measures"], f"{where}.measures"), f"{where}.measures."
        )
    if "pasted" in kept:
        refuse_others(kept, {"pasted"}, f"{where}.")
        text = kept["pasted"]
        if not isinstance(text, str) or text.lstrip()[:1] != "{":
            raise wrong(f"{where}.pasted", tr("the text of a config.json"))
        return Pasted(text)
    if "path" in kept:
        refuse_others(kept, {"path", "name"}, f"{where}.")
        # A file may be called anything; whoever shows the name writes hidden characters out.
        path = _needed(kept, "path", f"{where}.", is_path=True)
        return Located(path, text_of(kept, "name", f"{where}.", is_path=True))
    refuse_others(kept, {"name", "revision", "file"}, f"{where}.")
    name = _needed(kept, "name", f"{where}.")
    revision = text_of(kept, "revision", f"{where}.") or None
    try:
        return named(name, revision, text_of(kept, "file", f"{where}."))
    except PlimsollError as error:
        raise WorkspaceError(error.message, field=where) from error


def _read_measures(kept: Mapping[str, object], where: str) -> Measures:
    optional = ("hidden_size", "vocab_size", "max_position_embeddings")
    needed = ("parameters", "num_hidden_layers", "num_key_value_heads", "head_dim")
    refuse_others(kept, {*optional, *needed, "name"}, where)
    found: dict[str, Any] = {"name": text_of(kept, "name", where) or "entered by hand"}
    for key in (*needed, *optional):
        value = number_of(kept, key, where, needed=key in needed)
        if value is not None:
            found[key] = value
    return Measures(**found)


def given_or(kept: Mapping[str, object], key: str, default: object) -> object:
    """What stands under ``key``, or ``default`` where nothing does."""
    value = kept.get(key)
    return default if value is None else value


def number_of(
    kept: Mapping[str, object], key: str, where: str, *, needed: bool = False
) -> int | None:
    """A whole number from 1 on under ``key``; None where there is none and none is needed."""
    value = kept.get(key)
    if value is None and not needed:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_MEASURE:
        raise wrong(f"{where}{key}", tr("a whole number of at least 1"))
    return value


def _needed(kept: Mapping[str, object], key: str, where: str, *, is_path: bool = False) -> str:
    text = text_of(kept, key, where, is_path=is_path)
    if not text:
        raise wrong(f"{where}{key}", tr("given: it says which model is meant"))
    return text


def text_of(kept: Mapping[str, object], key: str, where: str, *, is_path: bool = False) -> str:
    """The text under ``key``; empty where there is none. One of a path may hold all but NUL."""
    value = kept.get(key)
    if value is None:
        return ""
    if isinstance(value, str) and len(value) <= MAX_TEXT:
        shown = value.replace("\0", "") if is_path else printable(value, MAX_TEXT)
    else:
        shown = None
    if shown != value or not isinstance(value, str):
        wanted = tr("a text of at most {most} visible characters").format(most=MAX_TEXT)
        raise wrong(f"{where}{key}", wanted)
    return value


def object_of(value: object, where: str) -> Mapping[str, object]:
    """``value`` as an object in braces."""
    if not isinstance(value, dict):
        raise wrong(where, tr("an object in braces"))
    return cast("dict[str, object]", value)


def choice_of(value: object, where: str, choices: list[str] | tuple[str, ...]) -> str:
    """``value`` as one of ``choices``."""
    if value not in choices:
        raise wrong(where, tr("one of {choices}").format(choices=", ".join(choices)))
    return str(value)


def refuse_others(kept: Mapping[str, object], known: set[str], where: str) -> None:
    """Raise where an object has a key that nobody knows."""
    extra = sorted(set(kept) - known)
    if extra:
        key = printable(extra[0], 80)
        words = tr("a workspace has no key {key}.").format(key=where + key)
        raise WorkspaceError(words, field=where + key)


def wrong(where: str, wanted: str) -> WorkspaceError:
    """The complaint about the key ``where``, which must be what is ``wanted``."""
    words = tr("{key} must be {wanted}.").format(key=where, wanted=wanted)
    return WorkspaceError(words, field=where)
