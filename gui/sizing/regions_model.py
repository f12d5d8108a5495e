"""The table of regions as an item model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QBrush, QColor, QFont
from typing_extensions import override

from engine.report import terms
from engine.words import tr, tr_later
from gui.kit.figures_table import ROW_ROLE, FiguresModel, Index, alignment

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.sizing.present import RegionRow


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a key for the layout, the heading and the text of a row."""

    key: str
    heading: str
    text: Callable[[RegionRow], str]
    is_number: bool = False
    is_strong: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell as it is painted."""

    row: RegionRow
    text: str
    font: QFont
    color: QColor
    alignment: Qt.AlignmentFlag


_LOOKS: dict[int, Callable[[Cell], object]] = {
    Qt.ItemDataRole.TextAlignmentRole: lambda cell: cell.alignment,
    Qt.ItemDataRole.FontRole: lambda cell: cell.font,
    Qt.ItemDataRole.ForegroundRole: lambda cell: QBrush(cell.color),
}


def columns(unit: str, ranks: tuple[str, ...], *, is_live: bool = False) -> tuple[Column, ...]:
    """The columns for one rank (no names), or for several side by side, under their names.

    While the plan runs, what is measured stands beside what was planned.
    """
    if is_live:
        return (
            Column("region", tr("Region"), lambda r: r.label),
            Column(
                "planned", tr("Planned {unit}").format(unit=unit), lambda r: r.size, is_number=True
            ),
            Column(
                "measured",
                tr("Measured {unit}").format(unit=unit),
                lambda r: r.live.measured if r.live else "",
                is_number=True,
                is_strong=True,
            ),
            Column(
                "difference",
                tr("Difference"),
                lambda r: r.live.difference if r.live else "",
                is_number=True,
            ),
            Column("known from", tr("Known from"), lambda r: r.live.known_from if r.live else ""),
            Column("note", tr("Note"), lambda r: r.live.note if r.live else ""),
        )
    if ranks:
        sizes = tuple(_rank_column(rank, name) for rank, name in enumerate(ranks))
        head = Column("region", tr("Region, {unit}").format(unit=unit), lambda r: r.label)
        tail = (
            Column("least", tr("Least"), lambda r: r.least, is_number=True),
            Column("basis", tr("Basis"), lambda r: r.basis),
            Column("note", tr("How it is worked out"), lambda r: r.note),
        )
        return (head, *sizes, *tail)
    return (
        Column("region", tr("Region"), lambda r: r.label),
        Column("size", unit, lambda r: r.size, is_number=True, is_strong=True),
        Column("span", tr("Low – high"), lambda r: r.span, is_number=True),
        Column("least", tr("Least"), lambda r: r.least, is_number=True),
        Column("basis", tr("Basis"), lambda r: r.basis),
        Column("note", tr("How it is worked out"), lambda r: r.note),
    )


def _rank_column(rank: int, name: str) -> Column:
    def text(row: RegionRow) -> str:
        return row.per_rank[rank]

    return Column("rank", name, text, is_number=True, is_strong=rank == 0)


class RegionsModel(FiguresModel["RegionRow", Column]):
    """Rows in, text, fonts and colours out."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(columns("GiB", ()), parent)
        self._ranks: tuple[str, ...] = ()
        self._unit = "GiB"
        self._is_live = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns in force."""
        return self._columns

    def set_rows(self, rows: tuple[RegionRow, ...], unit: str, ranks: tuple[str, ...]) -> bool:
        """Show ``rows``; ``ranks`` names the columns where each rank has its own.

        Returns whether the columns changed.
        """
        is_live = any(row.live is not None for row in rows)
        changed = (unit, ranks, is_live) != (self._unit, self._ranks, self._is_live)
        if changed or len(rows) != len(self._rows):
            self.beginResetModel()
            self._rows, self._unit, self._ranks, self._is_live = rows, unit, ranks, is_live
            self._columns = columns(unit, ranks, is_live=is_live)
            self.endResetModel()
            return True
        before, self._rows = self._rows, rows
        self._tell_changed(before)
        return False

    def index_of(self, region: object) -> int:
        """The row number of ``region``; -1 where there is none."""
        return next((i for i, row in enumerate(self._rows) if row.region == region), -1)

    def _tell_changed(self, before: tuple[RegionRow, ...]) -> None:
        """Have painted only what reads differently: most edits change two rows of ten."""
        for number, (old, new) in enumerate(zip(before, self._rows, strict=True)):
            if old == new:
                continue
            for place, column in enumerate(self._columns):
                if old.is_absent != new.is_absent or column.text(old) != column.text(new):
                    cell = self.index(number, place)
                    self.dataChanged.emit(cell, cell)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], self._columns[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return column.text(row)
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._tooltip(row, column)
        if role in _LOOKS:
            cell = self.cell(index)
            return cell and _LOOKS[role](cell)
        return row if role == ROW_ROLE else None

    def cell(self, index: Index) -> Cell | None:
        """All that painting a cell takes, in one call: the roles one by one cost ten."""
        if self._theme is None:
            return None
        row, column = self._rows[index.row()], self._columns[index.column()]
        totals = row.region is None and column.key in _TOTALS
        is_off = column.key == "difference" and row.live is not None and row.live.is_off
        font = self._fonts[column.is_number, column.is_strong or totals or is_off]
        color = self._theme.color(self._color(row, column))
        return Cell(row, column.text(row), font, color, alignment(column))

    @staticmethod
    def _tooltip(row: RegionRow, column: Column) -> str:
        if column.key in ("size", "planned") and not row.is_absent:
            return row.exact
        if column.key == "region" and row.region is not None:
            # The note has no column of its own where the table is narrow.
            return "\n".join(filter(None, (tr(terms.REGIONS[row.region]), row.note)))
        if column.key in ("note", "region"):
            return row.note
        return tr(_EXPLAINED.get(column.key, ""))

    @staticmethod
    def _color(row: RegionRow, column: Column) -> str:
        if row.is_absent:
            return "text.disabled"
        if column.key == "difference" and row.live is not None and row.live.is_off:
            return "tight"
        totals = row.region is None and column.key in _TOTALS
        if totals or column.is_strong or column.key in ("region", "basis"):
            return "text.primary"
        return "text.secondary"

    @override
    def heading(self, column: Column) -> str:
        return column.heading

    @override
    def tip(self, column: Column) -> str:
        return tr(_EXPLAINED.get(column.key, ""))


_TOTALS = frozenset({"region", "size", "least", "rank", "planned", "measured"})
"""Columns in which the load line is the sum."""
_EXPLAINED = {
    "size": tr_later("What the runtime will hold, most likely"),
    "span": tr_later("Between these two the figure lies, as far as measured records tell"),
    "least": tr_later("The least that the architecture needs; the rest is the runtime's reserve"),
    "basis": tr_later("How the figure is known"),
    "rank": tr_later("What this rank will hold, most likely"),
    "planned": tr_later("What the runtime will hold, most likely"),
    "measured": tr_later("What it holds now; what is held adds up to the measurement"),
    "difference": tr_later("Measured less planned"),
    "known from": tr_later("Where the measured figure comes from"),
}
