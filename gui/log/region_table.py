"""The table of a run: what its log states of each region, the prediction, and the line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QObject, QSize, Qt, Signal
from PySide6.QtGui import QBrush
from PySide6.QtWidgets import QStyleOptionViewItem, QTableView, QWidget
from typing_extensions import override

from engine.words import tr, tr_later
from gui.kit.figures_table import (
    EDGE,
    LAST_PADDED,
    ROW_ROLE,
    FiguresModel,
    Index,
    RowDelegate,
    alignment,
    dress,
    paint_swatch,
    set_heights,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QPainter, QResizeEvent

    from engine.budget.model import Region
    from gui.kit.theme import Theme
    from gui.log.present import RegionLine

_SHARES = (0.34, 0.17, 0.18, 0.18, 0.13)
"""Of the width, by column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, the text of a row, and how it looks."""

    heading: str
    text: Callable[[RegionLine], str]
    is_number: bool = True
    is_strong: bool = False
    color: str = "text.primary"
    tip: str = ""


COLUMNS = (
    Column(tr_later("Region, {unit}"), lambda r: r.region.label, is_number=False),
    Column(
        tr_later("Stated"),
        lambda r: r.stated,
        is_strong=True,
        tip=tr_later("What the log says"),
    ),
    Column(
        tr_later("Predicted"),
        lambda r: r.predicted,
        tip=tr_later("What the plan of the same run predicts, most likely"),
    ),
    Column(
        tr_later("Difference"),
        lambda r: r.difference,
        tip=tr_later("Stated less predicted; bold where it lies outside the predicted range"),
    ),
    Column(
        tr_later("Line"),
        lambda r: r.lines,
        color="text.tertiary",
        tip=tr_later("Where the log says it"),
    ),
)
_DIFFERENCE = 3


class RunRegions(FiguresModel["RegionLine", Column]):
    """Rows in, text, fonts and colours out."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(COLUMNS, parent)
        self._unit = "GiB"

    def show_rows(self, rows: tuple[RegionLine, ...], unit: str) -> None:
        """Show ``rows``."""
        self.beginResetModel()
        self._rows, self._unit = rows, unit
        self.endResetModel()

    def index_of(self, region: Region | None) -> int:
        """The row of ``region``; -1 where there is none."""
        return next((i for i, row in enumerate(self._rows) if row.region is region), -1)

    @override
    def heading(self, column: Column) -> str:
        return tr(column.heading).format(unit=self._unit)

    @override
    def tip(self, column: Column) -> str:
        return tr(column.tip)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.row_at(index.row()) if index.isValid() else None
        if row is None:
            return None
        column = COLUMNS[index.column()]
        plain: dict[int, object] = {
            Qt.ItemDataRole.DisplayRole: column.text(row),
            Qt.ItemDataRole.ToolTipRole: row.tooltip,
            Qt.ItemDataRole.TextAlignmentRole: alignment(column),
            ROW_ROLE: row,
        }
        if role in plain or self._theme is None:
            return plain.get(role)
        stands_out = index.column() == _DIFFERENCE and row.stands_out
        if role == Qt.ItemDataRole.FontRole:
            return self._fonts[column.is_number, column.is_strong or stands_out]
        if role == Qt.ItemDataRole.ForegroundRole:
            return QBrush(self._theme.color("over" if stands_out else column.color))
        return None


class _Delegate(RowDelegate):
    """Hairlines and swatches."""

    @override
    def paint_cell(
        self, painter: QPainter, shown: QStyleOptionViewItem, index: Index, theme: Theme
    ) -> None:
        row: RegionLine = index.data(ROW_ROLE)
        is_first, is_last = index.column() == 0, index.column() == len(COLUMNS) - 1
        inside = shown.rect.adjusted(EDGE if is_first else 4, 0, -EDGE if is_last else -4, -1)
        if is_first:
            paint_swatch(painter, inside, row.region, theme)
        self.paint_text(painter, shown, inside, elided=is_first or is_last)


class RunRegionTable(QTableView):
    """The rows; the selection is a region. As high as its rows."""

    region_selected = Signal(object)
    """The ``RegionLine`` that was selected."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("run regions")
        self.setAccessibleName(tr("Stated and predicted, by region"))
        self._rows = RunRegions(self)
        self._delegate = _Delegate(self)
        self.setModel(self._rows)
        self.setItemDelegate(self._delegate)
        dress(self, "QHeaderView::section { padding: 0 4px; }" + LAST_PADDED)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.selectionModel().currentRowChanged.connect(self._on_current_changed)

    def set_theme(self, theme: Theme) -> None:
        """Take colours, fonts and row height of ``theme``."""
        self._delegate.theme = theme
        self._rows.set_theme(theme)
        row, head = theme.size("row.table") * 5 // 4, theme.size("header.table") * 3 // 2
        set_heights(self, theme, row, head)
        self._fit()

    def show_rows(self, rows: tuple[RegionLine, ...], unit: str, region: Region | None) -> None:
        """Show ``rows`` with ``region`` selected; tells nobody."""
        chosen = self.selectionModel()
        chosen.blockSignals(True)  # noqa: FBT003 - Qt's own way
        self._rows.show_rows(rows, unit)
        place = self._rows.index_of(region)
        if place >= 0:
            flags = QItemSelectionModel.SelectionFlag
            chosen.setCurrentIndex(self._rows.index(place, 0), flags.ClearAndSelect | flags.Rows)
        chosen.blockSignals(False)  # noqa: FBT003 - see above
        self._fit()
        self.viewport().update()

    def _fit(self) -> None:
        rows = self._rows.rowCount() * self.verticalHeader().defaultSectionSize()
        self.setFixedHeight(self.horizontalHeader().height() + rows)

    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        row = self._rows.row_at(current.row())
        if row is not None:
            self.region_selected.emit(row)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        width = self.viewport().width()
        for column, share in enumerate(_SHARES[:-1]):
            self.horizontalHeader().resizeSection(column, int(width * share))
        left = width - sum(int(width * share) for share in _SHARES[:-1])
        self.horizontalHeader().resizeSection(len(_SHARES) - 1, left)

    @override
    def sizeHint(self) -> QSize:
        return QSize(420, self.height())
