"""What tables of figures share: rows as an item model, their look, and how a row is painted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    Qt,
)
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

from gui.kit.charts import inks

if TYPE_CHECKING:
    from PySide6.QtCore import QRect
    from PySide6.QtGui import QFont, QPainter

    from engine.budget.model import Region
    from gui.kit.theme import Theme

Index = QModelIndex | QPersistentModelIndex
NO_PARENT = QModelIndex()
ROW_ROLE = Qt.ItemDataRole.UserRole + 1
SWATCH = 12
EDGE = 16
"""Before the first column, and behind the last where that has room too."""
_LIST_PADDING = 5
"""Beside a cell's text; with what Qt leaves there itself, as much as beside the header's."""
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class _Column(Protocol):
    @property
    def is_number(self) -> bool: ...


R = TypeVar("R")
C = TypeVar("C", bound=_Column)


def alignment(column: _Column) -> Qt.AlignmentFlag:
    """Numbers stand at the right, words at the left."""
    return _RIGHT if column.is_number else _LEFT


class FiguresModel(QAbstractTableModel, Generic[R, C]):
    """Rows and columns, and the theme's fonts for them; what a cell shows is the subclass's."""

    def __init__(self, columns: tuple[C, ...], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[R, ...] = ()
        self._columns = columns
        self._theme: Theme | None = None
        self._fonts: dict[tuple[bool, bool], QFont] = {}
        """By whether it is for numbers, and whether it is strong."""

    def heading(self, column: C) -> str:
        """What stands over ``column``."""
        raise NotImplementedError

    def tip(self, column: C) -> str:
        """What the column is, in a sentence."""
        raise NotImplementedError

    def set_theme(self, theme: Theme) -> None:
        """Take fonts and colours of ``theme``."""
        self._theme = theme
        self._fonts = {
            (number, strong): theme.font(
                f"table{'.strong' if strong else ''}{'.num' if number else ''}"
            )
            for number in (False, True)
            for strong in (False, True)
        }
        self._tell_all()

    def row_at(self, index: int) -> R | None:
        """The row number ``index``."""
        return self._rows[index] if 0 <= index < len(self._rows) else None

    def _tell_all(self) -> None:
        if self._rows:
            last = self.index(len(self._rows) - 1, len(self._columns) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    @override
    def rowCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    @override
    def columnCount(self, parent: Index = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._columns)

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self._columns):
            return None
        column = self._columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return self.heading(column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(column)
        return self.tip(column) if role == Qt.ItemDataRole.ToolTipRole else None


def dress(table: QTableView, head_style: str = "") -> None:
    """Make ``table`` one without grid and frame whose row is what is selected.

    Args:
        table: the table.
        head_style: further style of its headings.
    """
    table.setShowGrid(False)
    table.setFrameShape(QTableView.Shape.NoFrame)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
    table.setTabKeyNavigation(False)
    table.setWordWrap(False)
    table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    table.verticalHeader().hide()
    head = table.horizontalHeader()
    head.setHighlightSections(False)
    head.setTextElideMode(Qt.TextElideMode.ElideRight)
    head.setSectionsClickable(False)
    head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    head.setStyleSheet(f"{head_style}QHeaderView::section:first {{ padding-left: {EDGE}px; }}")


LAST_PADDED = f"QHeaderView::section:last {{ padding-right: {EDGE}px; }}"
"""Style of headings whose last column ends before the table's edge."""


def dress_as_list(table: QTableView) -> None:
    """The look of a list on a page of the settings: whole rows, no grid, nothing to edit."""
    table.setShowGrid(False)
    table.setTabKeyNavigation(False)
    table.setWordWrap(False)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setMinimumHeight(160)
    table.setStyleSheet(f"QTableView::item {{ padding: 0 {_LIST_PADDING}px; }}")
    table.verticalHeader().hide()
    head = table.horizontalHeader()
    head.setHighlightSections(False)
    head.setSectionsClickable(False)


def set_heights(table: QTableView, theme: Theme, row: int = 0, head: int = 0) -> None:
    """Give the rows and headings of ``table`` their heights, as in ``theme`` where they are 0."""
    height = row or theme.size("row.table")
    table.verticalHeader().setMinimumSectionSize(height)
    table.verticalHeader().setDefaultSectionSize(height)
    table.horizontalHeader().setFixedHeight(head or theme.size("header.table"))
    table.horizontalHeader().setFont(theme.font("caption.medium"))


def paint_swatch(painter: QPainter, inside: QRect, region: Region, theme: Theme) -> None:
    """Paint the swatch of ``region`` at the left of ``inside``, and leave there what is free."""
    top = inside.top() + (inside.height() - SWATCH) / 2
    square = QRectF(inside.left(), top, SWATCH, SWATCH)
    inks.rounded_swatch(painter, square, region, theme)
    inside.adjust(SWATCH + 8, 0, 0, 0)


class RowDelegate(QStyledItemDelegate):
    """Hairlines, and no focus box: the row is what is selected."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme: Theme | None = None

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        if self.theme is None:
            return
        shown = QStyleOptionViewItem(option)
        self.initStyleOption(shown, index)
        is_selected = bool(shown.state & QStyle.StateFlag.State_Selected)
        self.paint_ground(
            painter, shown.rect, self.theme, selected=is_selected, ruled=self.is_ruled(index)
        )
        self.paint_cell(painter, shown, index, self.theme)

    @staticmethod
    def paint_ground(
        painter: QPainter, place: QRect, theme: Theme, *, selected: bool, ruled: bool
    ) -> None:
        """What lies behind a cell, and the line below it where it is ``ruled``."""
        if selected:
            painter.fillRect(place, theme.color("surface.selected"))
        if ruled:
            painter.setPen(theme.color("line.hair"))
            painter.drawLine(place.bottomLeft(), place.bottomRight())

    def is_ruled(self, index: Index) -> bool:
        """Whether a line is drawn below ``index``."""
        return True

    def paint_cell(
        self, painter: QPainter, shown: QStyleOptionViewItem, index: Index, theme: Theme
    ) -> None:
        """Paint what the cell shows."""
        raise NotImplementedError

    @staticmethod
    def paint_text(
        painter: QPainter, shown: QStyleOptionViewItem, inside: QRect, *, elided: bool = False
    ) -> None:
        """Paint the text of a cell; numbers are never ``elided``."""
        painter.setFont(shown.font)
        painter.setPen(shown.palette.color(shown.palette.ColorRole.Text))
        text = shown.text
        if elided:
            text = shown.fontMetrics.elidedText(text, Qt.TextElideMode.ElideRight, inside.width())
        painter.drawText(inside, shown.displayAlignment, text)
