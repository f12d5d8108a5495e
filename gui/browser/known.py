"""Every model that is known, one row each: catalogue, this computer, what one keeps, the Hub's.

The Hub's answers come in at the end; the rows that were there keep their places. No Qt.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.source import catalogue
from gui.browser import sources
from gui.browser.columns import Columns
from gui.browser.rows import Place, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gui.browser.rows import Badge, Row


class Known:
    """The rows of the one list, and where each of them came from."""

    def __init__(self, own_row: Callable[[str], Row]) -> None:
        """``own_row`` makes the row of a reference that nothing else tells of."""
        self._own_row = own_row
        self._here: tuple[Row, ...] | None = None
        self._kept: tuple[str, ...] = ()
        self._found: dict[str, Row] = {}
        self._learned: dict[str, Row] = {}
        """Rows that a person keeps, with what was read when they were opened."""
        self._by_path: dict[str, Row] = {}
        self.badges: dict[str, Badge] = {}
        """By the key of their row."""
        self.columns = Columns(())
        self.own = Columns(())
        """Favourites, then what was opened, in that order."""
        self._build()

    @property
    def is_counted(self) -> bool:
        """Whether this computer has been searched."""
        return self._here is not None

    @property
    def counts(self) -> dict[Source, int]:
        """How many models a source has without a search, where that is known."""
        counted = (Source.ALL, Source.LOCAL) if self.is_counted else (Source.ALL,)
        return {source: len(self.columns.standing(source)) for source in counted}

    def repository_of(self, name: str) -> Row | None:
        """The row of the repository of which ``name`` is one file; None for a whole model."""
        repository, _, file = name.partition(":")
        return self.columns.get(repository) if file else None

    def of(self, source: Source) -> Columns:
        """All rows among which ``source`` narrows."""
        return self.own if source is Source.OWN else self.columns

    def set_here(self, rows: Iterable[Row]) -> None:
        """What this computer holds now."""
        self._here = tuple(rows)
        self._build()

    def set_kept(self, references: Iterable[str]) -> None:
        """What a person keeps, or opened last."""
        kept = tuple(references)
        if kept != self._kept:
            self._kept = kept
            self._build()

    def find(self, reference: str) -> Row | None:
        """The row that ``reference`` means: a key, or a path."""
        return self._by_path.get(reference) or self.columns.get(reference)

    def arriving(self, found: Iterable[Row]) -> tuple[Row, ...]:
        """Those of the rows of an answer that nothing here tells of yet, by any spelling."""
        new = {row.key.casefold(): row for row in found}
        return tuple(row for key, row in new.items() if self.columns.get(key) is None)

    def add_found(self, found: Iterable[Row]) -> None:
        """Take in a page of the Hub's: new rows at the end, known ones with what it adds."""
        rows = [self._found.setdefault(row.key.casefold(), row) for row in found]
        self.columns.extend(self.arriving(rows))
        for row in rows:
            there = self.columns.get(row.key)
            if there is not None and Place.HUB not in there.places:
                self.columns.replace(sources.on_the_hub_too(there, row))
        self.columns.answer(row.key for row in rows)
        self.columns.set_badges(self.badges)

    def set_badges(self, badges: Mapping[str, Badge]) -> None:
        """Take over what was worked out of some rows."""
        self.badges.update(badges)
        self.columns.set_badges(badges)
        self.own.set_badges(badges)

    def replace(self, row: Row) -> None:
        """Put ``row`` in the place of the one with its key."""
        self.columns.replace(row)
        key = row.key.casefold()
        (self._found if key in self._found else self._learned)[key] = row
        self._build_own()

    def _build(self) -> None:
        """All rows anew, as more is known of where they are."""
        rows = {entry.id.casefold(): sources.catalogue_row(entry) for entry in catalogue.entries()}
        for here in self._here or ():
            key = here.key.casefold()
            if key in rows and not rows[key].path:
                rows[key] = sources.here_too(rows[key], here)
            else:
                # Two files whose names differ by case alone are two models.
                rows[here.path if key in rows else key] = here
        self._by_path = {row.path: row for row in rows.values() if row.path}
        for reference in self._kept:
            key = reference.casefold()
            if reference not in self._by_path and key not in rows:
                rows[key] = self._learned.get(key) or self._own_row(reference)
        answered = self.columns.answered_keys
        for key, found in self._found.items():
            rows[key] = sources.on_the_hub_too(rows[key], found) if key in rows else found
        self.columns = Columns(rows.values())
        self.columns.answer(answered)
        self.columns.keep(self._kept)
        self.columns.set_badges(self.badges)
        self._build_own()

    def _build_own(self) -> None:
        rows = (self.find(reference) for reference in self._kept)
        # Without its downloads a row stands where it was put, not by how popular it is.
        self.own = Columns(replace(row, downloads=None) for row in rows if row is not None)
        self.own.keep(self.own.places)
        self.own.set_badges(self.badges)
