"""What a person keeps of the browser: favourites, recents, folders of models. No Qt.

A model is kept by the text that finds it again: its id, or its path on this computer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.source.reference import one_spelling
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gui.browser.rows import Row

MOST_RECENT = 20
MOST_KEPT = 500
"""Favourites, and folders; more is a mistake."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """The newest first, each once."""

    favourites: tuple[str, ...] = ()
    recents: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Searched for models, beside the stores of other programs."""

    def with_recent(self, reference: str) -> Shelf:
        """A copy in which ``reference`` was opened last."""
        return replace(self, recents=_first(reference, self.recents, MOST_RECENT))

    def with_favourite(self, reference: str, *, kept: bool) -> Shelf:
        """A copy that keeps ``reference``, or no longer does."""
        if kept:
            return replace(self, favourites=_first(reference, self.favourites, MOST_KEPT))
        return replace(self, favourites=_without(reference, self.favourites))

    def with_folder(self, folder: str, *, kept: bool) -> Shelf:
        """A copy in which ``folder`` is searched, or no longer is."""
        if kept:
            return replace(self, folders=_first(folder, self.folders, MOST_KEPT))
        return replace(self, folders=_without(folder, self.folders))

    def without_recent(self, reference: str) -> Shelf:
        """A copy in which ``reference`` was not opened."""
        return replace(self, recents=_without(reference, self.recents))

    @property
    def references(self) -> tuple[str, ...]:
        """Favourites, then what was opened, each once."""
        return each_once((*self.favourites, *self.recents))


def favourite_turned(shelf: Shelf, row: Row, *, kept: bool) -> tuple[str, Shelf]:
    """The edit that keeps ``row`` or no longer does, in words, and the shelf after it."""
    if kept:
        words, shelf = tr("Add favourite {name}"), shelf.with_favourite(row.reference, kept=True)
    else:
        words = tr("Remove favourite {name}")
        for reference in (row.key, row.path):
            shelf = shelf.with_favourite(reference, kept=False)
    return words.format(name=row.name), shelf


def forgotten(shelf: Shelf, row: Row) -> tuple[str, Shelf]:
    """The edit after which ``row`` was not opened."""
    after = shelf.without_recent(row.key).without_recent(row.path)
    return tr("Forget {name}").format(name=row.name), after


def folder_turned(shelf: Shelf, folder: str, *, searched: bool) -> tuple[str, Shelf]:
    """The edit after which ``folder`` is searched, or no longer is."""
    words = tr("Search {name}") if searched else tr("Stop searching {name}")
    after = shelf.with_folder(folder, kept=searched)
    return words.format(name=Path(folder).name or folder), after


def _first(item: str, items: tuple[str, ...], most: int) -> tuple[str, ...]:
    return (item, *_without(item, items))[:most]


def _without(item: str, items: tuple[str, ...]) -> tuple[str, ...]:
    spelled = one_spelling(item)
    return tuple(other for other in items if one_spelling(other) != spelled)


def each_once(items: Iterable[str]) -> tuple[str, ...]:
    """``items`` without those that only spell an earlier one otherwise."""
    first: dict[str, str] = {}
    for item in items:
        first.setdefault(one_spelling(item), item)
    return tuple(first.values())
