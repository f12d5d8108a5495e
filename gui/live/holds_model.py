"""The table of holders as an item model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QBrush
from typing_extensions import override

from engine.telemetry.snapshot import Missing
from engine.words import tr, tr_later
from gui.kit import format as fmt
from gui.kit.figures_table import ROW_ROLE, FiguresModel, Index, alignment
from gui.live import told
from gui.live.present import HoldsState, Kind, Row

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Column:
    """One column: a key for the layout, and how it looks."""

    key: str
    is_number: bool = False
    color: str = "text.primary"
    tip: str = ""


COLUMNS = (
    Column("process", tip=tr_later("Who holds it")),
    Column(
        "pid",
        is_number=True,
        color="text.tertiary",
        tip=tr_later("The process's number in this system"),
    ),
    Column("runtime", color="text.secondary", tip=tr_later("What the command line gives away")),
    Column(
        "pool",
        is_number=True,
        color="text.secondary",
        tip=tr_later("How full the engine says its KV pool is"),
    ),
    Column(
        "requests",
        is_number=True,
        color="text.secondary",
        tip=tr_later("Requests that the engine works on + those that wait"),
    ),
    Column(
        "stated",
        is_number=True,
        color="text.secondary",
        tip=tr_later("What the engine says it holds altogether"),
    ),
    Column(
        "size",
        is_number=True,
        tip=tr_later("What this holds now; the column adds up to the whole device"),
    ),
    Column("share", color="text.secondary", tip=tr_later("Of the whole device")),
)


STATED = frozenset({"pool", "requests", "stated"})
"""What engines state of themselves: columns that are there while one does."""


class HoldsModel(FiguresModel[Row, Column]):
    """Rows in, text, fonts and colours out."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, parent)
        self._state: HoldsState | None = None
        self._text: dict[str, Callable[[Row], str]] = {
            "process": lambda row: row.label,
            "pid": lambda row: str(row.pid) if row.pid else "",
            "runtime": lambda row: row.runtime,
            "pool": lambda row: told.pool(row.seen) if row.seen else "",
            "requests": lambda row: told.requests(row.seen) if row.seen else "",
            "stated": self._stated,
            "size": self._size,
            "share": lambda _row: "",
        }

    def show_state(self, state: HoldsState | None) -> None:
        """Show the rows of ``state``, in place where their number is the same."""
        before, after = self._rows, state.rows if state else ()
        is_same = len(before) == len(after)
        if not is_same:
            self.beginResetModel()
        self._state, self._rows = state, after
        if is_same:
            self._tell_all()
        else:
            self.endResetModel()

    @property
    def tells_engines(self) -> bool:
        """Whether a row has figures that an engine states."""
        return any(row.seen is not None for row in self._rows)

    def row_of(self, pid: int, label: str) -> int:
        """Where a process (or, without a PID, a named row) is now; -1 if it is gone."""
        return next(
            (i for i, r in enumerate(self._rows) if r.pid == pid and (pid or r.label == label)), -1
        )

    @override
    def _tell_all(self) -> None:
        super()._tell_all()
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(COLUMNS) - 1)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.row_at(index.row()) if index.isValid() else None
        if row is None:
            return None
        column = COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text[column.key](row)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(row, column)
        if role in (Qt.ItemDataRole.FontRole, Qt.ItemDataRole.ForegroundRole):
            return self._look(row, column, role)
        plain = {
            ROW_ROLE: row,
            Qt.ItemDataRole.TextAlignmentRole: alignment(column),
            Qt.ItemDataRole.ToolTipRole: self._tip(row, column),
        }
        return plain.get(role)

    def _size(self, row: Row) -> str:
        if row.size_bytes is None or self._state is None:
            return fmt.DASH
        return fmt.size_number(row.size_bytes, self._state.unit)

    def _stated(self, row: Row) -> str:
        if row.seen is None or self._state is None:
            return ""
        stated = row.seen.stated_bytes
        return (
            fmt.DASH if isinstance(stated, Missing) else fmt.size_number(stated, self._state.unit)
        )

    def _spoken(self, row: Row, column: Column) -> str:
        if column.key == "share":
            return tr("{percent}%").format(percent=round(row.share * 100))
        if column.key == "size" and row.size_bytes is None:
            return tr("not known: {reason}").format(reason=row.tooltip)
        if column.key in STATED and row.seen is not None:
            return self._tip(row, column)
        return self._text[column.key](row)

    def _tip(self, row: Row, column: Column) -> str:
        if column.key in STATED and row.seen is not None and self._state is not None:
            return told.cell_tip(row.seen, column.key, self._state.unit)
        return row.tooltip

    def _look(self, row: Row, column: Column, role: int) -> object:
        if self._theme is None:
            return None
        is_whole = row.kind is Kind.TOTAL
        if role == Qt.ItemDataRole.FontRole:
            is_strong = column.key == "size" or is_whole
            return self._fonts[column.is_number, is_strong]
        color = column.color
        if (
            row.kind in (Kind.FREE, Kind.DRIVER, Kind.REST, Kind.APART, Kind.BESIDE)
            and column.key == "process"
        ):
            color = "text.secondary"
        if column.key == "size" and row.size_bytes is None:
            color = "text.tertiary"
        return QBrush(self._theme.color(color))

    @override
    def tip(self, column: Column) -> str:
        return tr(column.tip)

    @override
    def heading(self, column: Column) -> str:
        state = self._state
        unit = state.unit.value if state else "GiB"
        if column.key == "share":
            if state is None or state.total_bytes is None:
                return tr("Share")
            whole = fmt.size(state.total_bytes, state.unit)
            return tr("Share of {whole}").format(whole=whole)
        return {
            "process": tr("Process"),
            "pid": tr("PID"),
            "runtime": tr("Engine and model"),
            "pool": tr("KV pool"),
            "requests": tr("Requests"),
            "stated": tr("Stated {unit}").format(unit=unit),
            "size": unit,
        }[column.key]
