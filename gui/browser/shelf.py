"""What a person keeps of the browser: favourites, recents, folders of models. No Qt.

A model is kept by the text that finds it again: its id, or its path on this computer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
        return tuple(dict.fromkeys((*self.favourites, *self.recents)))


def _first(item: str, items: tuple[str, ...], most: int) -> tuple[str, ...]:
    return (item, *_without(item, items))[:most]


def _without(item: str, items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(other for other in items if other != item)
