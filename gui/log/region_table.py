"""The table of a run: what its log states of each region, the prediction, and the line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QBrush, QFont, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)
from typing_extensions import override

from engine.words import tr, tr_later
from gui.kit.charts import inks

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QResizeEvent

    from engine.budget.model import Region
    from gui.kit.theme import Theme
    from gui.log.present import RegionLine

Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()
ROW_ROLE = Qt.ItemDataRole.UserRole + 1
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_SWATCH = 12
_SHARES = (0.34, 0.17, 0.18, 0.18, 0.13)
"""Of the width, by column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, the text of a row, and how it looks."""

    heading: str
    text: Callable[[RegionLine], str]
    is_number: bool = True
    font: str = "table.num"
    color: str = "text.primary"
    tip: str = ""


COLUMNS = (
    Column(tr_later("Region, {unit}"), lambda r: r.region.label, is_number=False, font="table"),
    Column(
        tr_later("Stated"),
        lambda r: r.stated,
        font="table.strong.num",
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


class RunRegions(QAbstractTableModel):
    """Rows in, text, fonts and colours out."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[RegionLine, ...] = ()
        self._unit = "GiB"
        self._theme: Theme | None = None
        self._fonts: dict[str, QFont] = {}

    def set_theme(self, theme: Theme) -> None:
        """Take fonts and colours of ``theme``."""
        self._theme = theme
        names = {column.font for column in COLUMNS}
        self._fonts = {name: theme.font(name) for name in names}
        self.show_rows(self._rows, self._unit)

    def show_rows(self, rows: tuple[RegionLine, ...], unit: str) -> None:
        """Show ``rows``."""
        self.beginResetModel()
        self._rows, self._unit = rows, unit
        self.endResetModel()

    def row_at(self, index: int) -> RegionLine | None:
        """The row number ``index``."""
        return self._rows[index] if 0 <= index < len(self._rows) else None

    def index_of(self, region: Region | None) -> int:
        """The row of ``region``; -1 where there is none."""
        return next((i for i, row in enumerate(self._rows) if row.region is region), -1)

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
        plain: dict[int, object] = {
            Qt.ItemDataRole.DisplayRole: column.text(row),
            Qt.ItemDataRole.ToolTipRole: row.tooltip,
            Qt.ItemDataRole.TextAlignmentRole: _RIGHT if column.is_number else _LEFT,
            ROW_ROLE: row,
        }
        if role in plain or self._theme is None:
            return plain.get(role)
        stands_out = index.column() == _DIFFERENCE and row.stands_out
        if role == Qt.ItemDataRole.FontRole:
            return self._fonts["table.strong.num" if stands_out else column.font]
        if role == Qt.ItemDataRole.ForegroundRole:
            return QBrush(self._theme.color("over" if stands_out else column.color))
        return None

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        column = COLUMNS[section]
        known: dict[int, object] = {
            Qt.ItemDataRole.DisplayRole: tr(column.heading).format(unit=self._unit),
            Qt.ItemDataRole.TextAlignmentRole: _RIGHT if column.is_number else _LEFT,
            Qt.ItemDataRole.ToolTipRole: tr(column.tip),
        }
        return known.get(role)


class _Delegate(QStyledItemDelegate):
    """Hairlines and swatches; the row is what is selected."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme: Theme | None = None

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = self.theme
        if theme is None:
            return
        shown = QStyleOptionViewItem(option)
        self.initStyleOption(shown, index)
        row: RegionLine = index.data(ROW_ROLE)
        if shown.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(shown.rect, theme.color("surface.selected"))
        painter.setPen(theme.color("line.hair"))
        painter.drawLine(shown.rect.bottomLeft(), shown.rect.bottomRight())
        last = index.column() == len(COLUMNS) - 1
        inside = shown.rect.adjusted(16 if index.column() == 0 else 4, 0, -16 if last else -4, -1)
        if index.column() == 0:
            top = inside.top() + (inside.height() - _SWATCH) / 2
            square = QRectF(inside.left(), top, _SWATCH, _SWATCH)
            inks.rounded_swatch(painter, square, row.region, theme)
            inside.adjust(_SWATCH + 8, 0, 0, 0)
        painter.setFont(shown.font)
        painter.setPen(shown.palette.color(shown.palette.ColorRole.Text))
        text = shown.text
        if index.column() in (0, len(COLUMNS) - 1):
            text = shown.fontMetrics.elidedText(text, Qt.TextElideMode.ElideRight, inside.width())
        painter.drawText(inside, shown.displayAlignment, text)


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
        self.setShowGrid(False)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalHeader().hide()
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setSectionsClickable(False)
        head.setStyleSheet(
            "QHeaderView::section { padding: 0 4px; }"
            "QHeaderView::section:first { padding-left: 16px; }"
            "QHeaderView::section:last { padding-right: 16px; }"
        )
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.selectionModel().currentRowChanged.connect(self._on_current_changed)

    def set_theme(self, theme: Theme) -> None:
        """Take colours, fonts and row height of ``theme``."""
        self._delegate.theme = theme
        self._rows.set_theme(theme)
        height = theme.size("row.table") * 5 // 4
        self.verticalHeader().setMinimumSectionSize(height)
        self.verticalHeader().setDefaultSectionSize(height)
        self.horizontalHeader().setFixedHeight(theme.size("header.table") * 3 // 2)
        self.horizontalHeader().setFont(theme.font("caption.medium"))
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
