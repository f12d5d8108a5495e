"""The expanded browser's rows in columns, as Qt's table asks for them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from typing_extensions import override

from engine.text import printable
from engine.units import UnitSystem
from engine.words import tr, tr_later
from gui.browser.listing import Sort, Wanted
from gui.browser.rows import (
    BADGE_ROLE,
    CHOSEN_ROLE,
    FAVOURITE_ROLE,
    ROW_ROLE,
    Badge,
    Row,
    parameters_short,
    spoken_fit,
    spoken_place,
    tooltip,
)
from gui.kit.format import DASH, size_number, tokens_short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gui.browser.rows import ShownRows

Index = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()


class Column(IntEnum):
    """Columns, left to right."""

    NAME = 0
    AUTHOR = 1
    PARAMETERS = 2
    FORMAT = 3
    WEIGHTS = 4
    CONTEXT = 5
    SPARE = 6


TITLES = (
    tr_later("Name"),
    tr_later("Author"),
    tr_later("Parameters"),
    tr_later("Format"),
    tr_later("Stored"),
    tr_later("Context"),
    tr_later("To spare"),
)
SORTS = {
    Column.NAME: Sort.NAME,
    Column.PARAMETERS: Sort.PARAMETERS,
    Column.WEIGHTS: Sort.WEIGHTS,
    Column.CONTEXT: Sort.CONTEXT,
    Column.SPARE: Sort.MARGIN,
}
RIGHT = frozenset({Column.PARAMETERS, Column.WEIGHTS, Column.CONTEXT, Column.SPARE})


class TableModel(QAbstractTableModel):
    """The rows in the order given; knows nothing of filters or sorting."""

    more_wanted = Signal()
    """The view came to the end, and there is more at the source."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: ShownRows | None = None
        self._badges: Mapping[str, Badge] = {}
        self._has_more = False
        self._wanted = Wanted()
        self._favourites: tuple[str, ...] = ()
        self.unit = UnitSystem.BINARY

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
            self.beginInsertRows(_NO_PARENT, length, len(rows) - 1)
            self._rows = rows
            self.endInsertRows()
        self._rows = rows
        self.dataChanged.emit(self.index(0, 0), self.index(length - 1, len(Column) - 1))

    def set_badges(self, badges: Mapping[str, Badge], changed: Iterable[str]) -> None:
        """Show ``badges``; only the rows in ``changed`` are painted anew."""
        self._badges = badges
        found = {place for key in changed if (place := self.place(key)) is not None}
        if found:
            last = len(Column) - 1
            self.dataChanged.emit(self.index(min(found), 0), self.index(max(found), last))

    def set_look(self, unit: UnitSystem, wanted: Wanted, favourites: tuple[str, ...]) -> None:
        """Write sizes in ``unit``; mark the order, the model in the window and favourites."""
        if (unit, wanted, favourites) == (self.unit, self._wanted, self._favourites):
            return
        self.unit, self._wanted, self._favourites = unit, wanted, favourites
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(Column) - 1)
        if self.rowCount():
            last = self.index(self.rowCount() - 1, len(Column) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def place(self, key: str) -> int | None:
        """Row number of ``key``; None where it isn't shown."""
        return None if self._rows is None else self._rows.place(key)

    @override
    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() or self._rows is None else len(self._rows)

    @override
    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(Column)

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if section in RIGHT else Qt.AlignmentFlag.AlignLeft
            return side | Qt.AlignmentFlag.AlignVCenter
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        title = tr(TITLES[section])
        if section == Column.WEIGHTS:
            title = f"{title} {self.unit.value}"
        sorts = SORTS.get(Column(section)) is self._wanted.sort
        # The arrow only where the order holds to the end of the table.
        is_sorted = self._rows is None or self._rows.is_sorted
        return f"{title} {self._wanted.arrow}" if sorts and is_sorted else title

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or self._rows is None or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        badge = self._badges.get(row.key)
        match role:
            case Qt.ItemDataRole.DisplayRole:
                found: object = self._text(row, badge, Column(index.column()))
            case Qt.ItemDataRole.AccessibleTextRole:
                found = self._spoken(row, badge, Column(index.column()))
            case Qt.ItemDataRole.ToolTipRole:
                found = tooltip(row, badge, self.unit)
            case Qt.ItemDataRole.TextAlignmentRole:
                is_right = index.column() in RIGHT
                side = Qt.AlignmentFlag.AlignRight if is_right else Qt.AlignmentFlag.AlignLeft
                found = side | Qt.AlignmentFlag.AlignVCenter
            case _:
                found = self._own(role, row, badge, index.row())
        return found

    def _own(self, role: int, row: Row, badge: Badge | None, place: int) -> object:
        """What is asked for under a role of this list; only that is worked out, at every paint."""
        if role == CHOSEN_ROLE:
            chosen = self._wanted.chosen
            return place in {self.place(chosen), self.place(chosen.partition(":")[0])}
        if role == FAVOURITE_ROLE:
            return row.is_among(self._favourites)
        return {ROW_ROLE: row, BADGE_ROLE: badge}.get(role)

    def _text(self, row: Row, badge: Badge | None, column: Column) -> str:
        stored = row.weight_bytes or (badge.weight_bytes if badge else None)
        match column:
            case Column.NAME:
                text = printable(row.name, 200)
            case Column.AUTHOR:
                text = printable(row.owner, 200)
            case Column.PARAMETERS:
                text = parameters_short(row.parameters) if row.parameters else DASH
            case Column.FORMAT:
                text = row.weight_format or DASH
            case Column.WEIGHTS:
                # Three figures do where two decimals would be five.
                digits = 1 if stored and stored >= 100 * 10**9 else 2
                text = size_number(stored, self.unit, digits) if stored else DASH
            case Column.CONTEXT:
                text = tokens_short(row.context) if row.context else DASH
            case Column.SPARE:
                text = badge.text(self.unit) if badge else ""
        return text

    def _spoken(self, row: Row, badge: Badge | None, column: Column) -> str:
        text = self._text(row, badge, column)
        if column is Column.NAME:
            marks = [tr("gated")] if row.gated else []
            marks += [tr("favourite")] if row.is_among(self._favourites) else []
            marks += [words] if (words := spoken_place(row, self.unit)) else []
            return ", ".join([text, *marks])
        if column is Column.SPARE and badge is not None:
            return ", ".join(spoken_fit(badge, self.unit))
        return tr("not known") if text == DASH else text

    @override
    def canFetchMore(self, parent: Index) -> bool:
        return self._has_more and not parent.isValid()

    @override
    def fetchMore(self, parent: Index) -> None:
        self._has_more = False
        self.more_wanted.emit()
