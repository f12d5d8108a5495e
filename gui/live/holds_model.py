"""The table of holders as an item model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QBrush, QFont
from typing_extensions import override

from engine.words import tr, tr_later
from gui.kit import format as fmt
from gui.live.present import HoldsState, Kind, Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.kit.theme import Theme

Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()
ROW_ROLE = Qt.ItemDataRole.UserRole + 1

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


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
        "size",
        is_number=True,
        tip=tr_later("What this holds now; the column adds up to the last row"),
    ),
    Column("share", color="text.secondary", tip=tr_later("Of the whole device")),
)


class HoldsModel(QAbstractTableModel):
    """Rows in, text, fonts and colours out."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._state: HoldsState | None = None
        self._theme: Theme | None = None
        self._fonts: dict[str, QFont] = {}
        self._text: dict[str, Callable[[Row], str]] = {
            "process": lambda row: row.label,
            "pid": lambda row: str(row.pid) if row.pid else "",
            "runtime": lambda row: row.runtime,
            "size": self._size,
            "share": lambda _row: "",
        }

    def set_theme(self, theme: Theme) -> None:
        """Take fonts and colours of ``theme``."""
        self._theme = theme
        names = ("table", "table.strong", "table.num", "table.strong.num")
        self._fonts = {name: theme.font(name) for name in names}
        self._tell_all()

    def show_state(self, state: HoldsState | None) -> None:
        """Show the rows of ``state``, in place where their number is the same."""
        before, after = self._rows, state.rows if state else ()
        is_same = len(before) == len(after)
        if not is_same:
            self.beginResetModel()
        self._state = state
        if is_same:
            self._tell_all()
        else:
            self.endResetModel()

    def row_of(self, pid: int, label: str) -> int:
        """Where a process (or, without a PID, a named row) is now; -1 if it is gone."""
        return next(
            (i for i, r in enumerate(self._rows) if r.pid == pid and (pid or r.label == label)), -1
        )

    def row_at(self, index: int) -> Row | None:
        """The row number ``index``."""
        return self._rows[index] if 0 <= index < len(self._rows) else None

    @property
    def _rows(self) -> tuple[Row, ...]:
        return self._state.rows if self._state else ()

    def _tell_all(self) -> None:
        if self._rows:
            last = self.index(len(self._rows) - 1, len(COLUMNS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(COLUMNS) - 1)

    @override
    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    @override
    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

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
            Qt.ItemDataRole.TextAlignmentRole: _RIGHT if column.is_number else _LEFT,
            Qt.ItemDataRole.ToolTipRole: row.tooltip,
        }
        return plain.get(role)

    def _size(self, row: Row) -> str:
        if row.size_bytes is None or self._state is None:
            return fmt.DASH
        return fmt.size_number(row.size_bytes, self._state.unit)

    def _spoken(self, row: Row, column: Column) -> str:
        if column.key == "share":
            return tr("{percent}%").format(percent=round(row.share * 100))
        if column.key == "size" and row.size_bytes is None:
            return tr("not known: {reason}").format(reason=row.tooltip)
        return self._text[column.key](row)

    def _look(self, row: Row, column: Column, role: int) -> object:
        if self._theme is None:
            return None
        is_whole = row.kind is Kind.TOTAL
        if role == Qt.ItemDataRole.FontRole:
            is_strong = column.key == "size" or is_whole
            name = f"table{'.strong' if is_strong else ''}{'.num' if column.is_number else ''}"
            return self._fonts[name]
        color = column.color
        if row.kind in (Kind.FREE, Kind.DRIVER, Kind.REST) and column.key == "process":
            color = "text.secondary"
        if column.key == "size" and row.size_bytes is None:
            color = "text.tertiary"
        return QBrush(self._theme.color(color))

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        column = COLUMNS[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return self._heading(column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _RIGHT if column.is_number else _LEFT
        if role == Qt.ItemDataRole.ToolTipRole:
            return tr(column.tip)
        return None

    def _heading(self, column: Column) -> str:
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
            "size": unit,
        }[column.key]
