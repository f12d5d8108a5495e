"""Rows of the browser: one model each, and the Qt model that shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from typing_extensions import override

from engine.fit.verdict import Fit
from engine.source.reference import one_spelling
from engine.text import printable
from engine.units import UnitSystem, format_bytes, in_unit
from engine.words import figures, tr, tr_later
from gui.kit.format import count, exact_bytes, margin, tokens_short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.source.raw import RawModel

Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()
ROW_ROLE = Qt.ItemDataRole.UserRole + 1
BADGE_ROLE = Qt.ItemDataRole.UserRole + 2
CHOSEN_ROLE = Qt.ItemDataRole.UserRole + 3
FAVOURITE_ROLE = Qt.ItemDataRole.UserRole + 4
GIB_100 = 100 * 2**30


class Source(StrEnum):
    """What the one list is narrowed to."""

    ALL = "all"
    HUB = "hub"
    LOCAL = "local"
    OWN = "own"
    """Favourites, and what was opened last."""


class Place(StrEnum):
    """Where a model was found; one may be in several places."""

    CATALOGUE = tr_later("In the catalogue")
    HERE = tr_later("On this computer")
    HUB = tr_later("On the Hub")


PLACE_MARKS = {Place.HERE: "hard-drive", Place.HUB: "cloud"}
"""Pictures beside a row; most are in the catalogue, so that one needs none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user picked. ``fetch`` reads it and belongs in a worker."""

    label: str
    fetch: Callable[[CancelToken], RawModel] = field(repr=False)
    beside: bool = False
    """Whether it is to run on the same machine as the model in the window."""
    said: str | Path | None = field(repr=False, default=None)
    """What finds it again."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One model. What isn't known is None or empty, never 0."""

    key: str
    """Its id; the selection is kept by it."""
    name: str
    owner: str
    """Organisation, or where on this computer it was found."""
    fetch: Callable[[CancelToken], RawModel] = field(repr=False)
    parameters: int | None = None
    weight_format: str = ""
    context: int | None = None
    downloads: int | None = None
    likes: int | None = None
    size_bytes: int | None = None
    """Of its weights on this computer."""
    gated: bool | None = None
    stored_bytes: int | None = None
    """Of its weights on the Hub, where only that is known."""
    takes: tuple[str, ...] = ()
    """What it takes in: ``Text``, ``Images``, ``Sound``; empty where that isn't known."""
    licence: str = ""
    updated: str = ""
    """When its repository changed last, ISO 8601."""
    path: str = ""
    """Where it lies on this computer, if it does."""
    beside: str = ""
    """What lies beside its weights, in words."""
    model: Callable[[], Model] | None = field(repr=False, default=None)
    """Gives what can be sized without asking anybody; None where nothing is known here."""
    bits: float | None = None
    """What a weight takes on average, measured over the tensors of its file."""
    is_file: bool = False
    """Whether it is one file of a repository on the Hub."""
    places: frozenset[Place] = frozenset()
    afresh: Callable[[CancelToken], RawModel] | None = field(repr=False, default=None)
    """Reads it from the Hub, where ``fetch`` wouldn't."""

    def choice(self, *, afresh: bool = False, beside: bool = False) -> Choice:
        """Picking this row.

        Args:
            afresh: as its repository is now, where that can be asked.
            beside: to run on the same machine as the model in the window.
        """
        fetch = self.afresh if afresh and self.afresh is not None else self.fetch
        return Choice(self.key, fetch, beside, Path(self.path) if self.path else self.key)

    @property
    def reference(self) -> str:
        """The text that finds it again."""
        return self.path if self.path and self.places <= {Place.HERE} else self.key

    def is_among(self, references: tuple[str, ...]) -> bool:
        """Whether it was kept there, by its id however it is spelled, or by its path."""
        kept = _spellings(references)
        return one_spelling(self.key) in kept or (bool(self.path) and self.path in kept)

    def _of_the_file(self, unit: UnitSystem) -> Iterable[str]:
        """``4.58 GiB  4.83 bits a weight``."""
        if self.stored_bytes:
            yield format_bytes(self.stored_bytes, unit, digits=2)
        if self.bits is not None:
            yield tr("{number} bits a weight").format(number=figures(f"{self.bits:.2f}"))

    @property
    def weight_bytes(self) -> int | None:
        """Of its weights as stored, without reading anything."""
        return self.size_bytes or self.stored_bytes

    def facts(self, unit: UnitSystem = UnitSystem.BINARY) -> str:
        """``8.0 B  BF16  128k``: what is known, in the order of the drawing."""
        if self.is_file:
            return "  ".join(self._of_the_file(unit))
        found = [parameters_short(self.parameters)] if self.parameters else []
        if self.weight_format:
            found.append(self.weight_format)
        if self.size_bytes:
            found.append(format_bytes(self.size_bytes, unit, digits=1))
        if self.context:
            found.append(tokens_short(self.context))
        elif self.model is not None:
            found.append(tr("context unknown"))
        return "  ".join(found)


@lru_cache(maxsize=8)
def _spellings(references: tuple[str, ...]) -> frozenset[str]:
    """Asked for with every row that is painted."""
    return frozenset(map(one_spelling, references))


@dataclass(frozen=True, slots=True)
class Badge:
    """Whether a row fits the plan; ``fit`` None where it was not worked out."""

    fit: Fit | None
    margin_bytes: int | None
    word: str
    """Shown in place of a margin: ``Unknown``, ``Context 4k``, ``Size it``."""
    reason: str
    weight_bytes: int | None = None
    """Of its weights as stored; None where they were not read."""

    def text(self, system: UnitSystem) -> str:
        """``+1.3 GiB``, or the word."""
        if self.margin_bytes is None:
            return self.word
        # Three figures are enough to see that a model is far too large.
        digits = 0 if abs(self.margin_bytes) >= GIB_100 else 1
        return margin(self.margin_bytes, system, digits)


def parameters_short(number: int) -> str:
    """``8.0 B``, ``752 M``: one decimal from a billion on."""
    for scale, least, decimals, letter in _SCALES:
        # From the rounded figure on, or 999.9 M would read "1000 M".
        if number >= least:
            return f"{figures(f'{number / scale:.{decimals}f}')} {letter}"
    return f"{number / 10**3:.0f} k"


_SCALES = (
    (10**12, 999_950_000_000, 2, "T"),
    (10**9, 999_500_000, 1, "B"),
    (10**6, 999_500, 0, "M"),
)
"""Unit, the least number that is written in it, decimals, letter."""


class ShownRows(Protocol):
    """Rows in the order of the list."""

    is_sorted: bool
    """Whether the order holds throughout."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Row: ...

    def place(self, key: str) -> int | None:
        """Where ``key`` stands; None where it isn't shown."""
        ...

    def continues(self, other: ShownRows) -> bool:
        """Whether it is ``other``, perhaps with more rows at its end, or more known of some."""
        ...


class RowModel(QAbstractListModel):
    """The rows in the order given; knows nothing of filters or sorting."""

    more_wanted = Signal()
    """The view came to the end, and there is more at the source."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: ShownRows | None = None
        self._badges: Mapping[str, Badge] = {}
        self._chosen = ""
        self._favourites: tuple[str, ...] = ()
        self._unit = UnitSystem.BINARY
        self._has_more = False

    @property
    def rows(self) -> ShownRows | None:
        """What is shown; None before anything is."""
        return self._rows

    def set_rows(self, rows: ShownRows, *, has_more: bool = False) -> None:
        """Show ``rows``: more of the same are appended, anything else replaces them."""
        before, length = self._rows, self.rowCount()
        self._has_more = has_more
        if before is None or not rows.continues(before):
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
            return
        if len(rows) > length:
            self.beginInsertRows(NO_PARENT, length, len(rows) - 1)
            self._rows = rows
            self.endInsertRows()
        self._rows = rows
        self._tell(0, length - 1)

    def set_badges(self, badges: Mapping[str, Badge], changed: Iterable[str]) -> None:
        """Show ``badges``; only the rows in ``changed`` are painted anew."""
        self._badges = badges
        found = (self.place(key) for key in changed)
        places = sorted(place for place in found if place is not None)
        first = 0
        for n, place in enumerate(places):
            if n + 1 == len(places) or places[n + 1] != place + 1:
                self._tell(places[first], place)
                first = n + 1

    def set_unit(self, unit: UnitSystem) -> None:
        """Write margins in ``unit``."""
        self._unit = unit
        if self._rows:
            self._tell(0, self.rowCount() - 1)

    def set_favourites(self, favourites: tuple[str, ...]) -> None:
        """Mark the rows whose reference is among ``favourites``."""
        if favourites != self._favourites:
            self._favourites = favourites
            if self._rows:
                self._tell(0, self.rowCount() - 1)

    def set_chosen(self, model_id: str) -> None:
        """Mark the model that is in the window now.

        One file of a repository (``org/name:file``) marks the repository's row.
        """
        for name in (self._chosen, model_id):
            self._chosen = name
            place = self.place(self._chosen_key)
            if place is not None:
                self._tell(place, place)

    @property
    def _chosen_key(self) -> str:
        is_shown = self.place(self._chosen) is not None
        return self._chosen if is_shown else self._chosen.partition(":")[0]

    def _tell(self, first: int, last: int) -> None:
        self.dataChanged.emit(self.index(first), self.index(last))

    def place(self, key: str) -> int | None:
        """Row number of ``key``; None where it isn't shown."""
        return None if self._rows is None else self._rows.place(key)

    @property
    def unit(self) -> UnitSystem:
        """Unit of the margins."""
        return self._unit

    @override
    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() or self._rows is None else len(self._rows)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or self._rows is None or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        badge = self._badges.get(row.key)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                found: object = row.name
            case Qt.ItemDataRole.ToolTipRole:
                found = tooltip(row, badge, self._unit)
            case Qt.ItemDataRole.AccessibleTextRole:
                found = _spoken(row, badge, self._unit)
            case _:
                found = self._own(role, row, badge, index.row())
        return found

    def _own(self, role: int, row: Row, badge: Badge | None, place: int) -> object:
        """What is asked for under a role of this list; only that is worked out, at every paint."""
        if role == CHOSEN_ROLE:
            return place == self.place(self._chosen_key)
        if role == FAVOURITE_ROLE:
            return row.is_among(self._favourites)
        return {ROW_ROLE: row, BADGE_ROLE: badge}.get(role)

    @override
    def canFetchMore(self, parent: Index) -> bool:
        return self._has_more and not parent.isValid()

    @override
    def fetchMore(self, parent: Index) -> None:
        self._has_more = False
        self.more_wanted.emit()


def tooltip(row: Row, badge: Badge | None, unit: UnitSystem) -> str:
    """Everything that the row may have cut; as plain lines."""
    lines = [f"{row.key}", f"{row.owner}  {row.facts(unit)}".strip()]
    if row.parameters:
        lines.append(tr("{number} parameters").format(number=count(row.parameters)))
    if row.gated:
        lines.append(tr("Gated: its files are behind the publisher’s terms"))
    lines += [where(row, unit), row.beside, row.path]
    if badge is not None:
        if badge.margin_bytes is not None:
            size = exact_bytes(abs(badge.margin_bytes))
            words = tr("{size} to spare") if badge.margin_bytes >= 0 else tr("{size} over")
            lines.append(words.format(size=size))
        lines.append(in_unit(badge.reason, unit))
    return "\n".join(printable(line, 300) for line in lines if line)


def where(row: Row, unit: UnitSystem = UnitSystem.BINARY) -> str:
    """``In the catalogue, on this computer with 14.96 GiB``; empty where nobody told of it."""
    found: list[str] = []
    for place in Place:
        if place not in row.places:
            continue
        words = tr(place.value)
        if place is Place.HERE and row.size_bytes:
            size = format_bytes(row.size_bytes, unit, digits=2)
            words = tr("On this computer with {size}").format(size=size)
        found.append(words[0].lower() + words[1:] if found else words)
    return ", ".join(found)


def spoken_place(row: Row, unit: UnitSystem) -> str:
    """Where the row is, unless it is where most are: that need not be said of each."""
    return "" if row.places == frozenset({Place.CATALOGUE}) else where(row, unit)


_SPOKEN = {
    Fit.FITS: tr_later("fits"),
    Fit.TIGHT: tr_later("tight"),
    Fit.DOES_NOT_FIT: tr_later("doesn't fit"),
    Fit.UNKNOWN: tr_later("unknown"),
}


def _spoken(row: Row, badge: Badge | None, unit: UnitSystem) -> str:
    parts = [row.name, row.owner, *row.facts(unit).split("  "), spoken_place(row, unit)]
    if badge is not None:
        parts += spoken_fit(badge, unit)
    return ", ".join(printable(part, 200) for part in parts if part)


def spoken_fit(badge: Badge, unit: UnitSystem) -> list[str]:
    """The verdict as a screen reader says it: the word, and what the badge shows beside it."""
    word = tr(_SPOKEN[badge.fit]) if badge.fit else ""
    text = badge.text(unit)
    both = [word] if text.casefold() == word.casefold() else [word, text]
    return [part for part in both if part]
