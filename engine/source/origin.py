"""Where a model came from, as a value that a file can keep and that finds the model again."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TypeGuard

from engine.errors import SourceError
from engine.source.by_hand import Measures
from engine.source.reference import HubReference, OllamaReference, is_hub_name, parse
from engine.text import printable
from engine.words import tr


@dataclass(frozen=True, slots=True)
class Named:
    """A model of the catalogue, the Hub or Ollama's library."""

    name: str
    revision: str | None = None
    """Commit, branch or tag on the Hub; None for whatever it has now."""
    file: str = ""
    """One of its files, or the name of a quantisation."""

    @property
    def text(self) -> str:
        """What a person would type to mean it."""
        at = f"@{self.revision}" if self.revision else ""
        return f"{self.name}{at}{':' if self.file else ''}{self.file}"


@dataclass(frozen=True, slots=True)
class Located:
    """A file or folder of this computer."""

    path: str
    name: str = ""
    """What the store it lies in calls it; empty for what the file says itself."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """A config.json as it was pasted."""

    text: str


Origin = Named | Located | Pasted | Measures


def named(name: str, revision: str | None = None, file: str = "") -> Named:
    """The same after a check, for what comes out of a file.

    Raises:
        SourceError: not the name of a model but a path, an address, or nothing at all.
    """
    origin = Named(name, None if revision == "main" else revision, file)
    meant = parse(origin.text)
    is_tag = isinstance(meant, OllamaReference) and f"{meant.name}:{meant.tag}" == name
    is_plain = meant is None and is_hub_name(name)
    if is_tag or is_plain or meant == HubReference(name, origin.revision, file):
        return origin
    raise SourceError(tr("“{name}” is no name of a model.").format(name=printable(origin.text, 80)))


def _is_commit(revision: str | None) -> TypeGuard[str]:
    return bool(revision and re.fullmatch(r"[0-9a-f]{40}", revision))


def label(origin: Origin) -> str:
    """What to call the model before it is read."""
    match origin:
        case Named():
            short = origin.revision[:7] if _is_commit(origin.revision) else origin.revision
            return printable(replace(origin, revision=short).text, 200)
        case Located():
            return printable(origin.name or PurePath(origin.path).name or origin.path, 200)
        case Pasted():
            return tr("pasted config")
        case Measures():
            return printable(origin.name, 200)
