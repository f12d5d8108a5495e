"""Our count and that of the built model, class by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QBrush, QFontMetrics
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)
from typing_extensions import override

from engine.words import tr
from gui.sizing.verify_words import HEADINGS

if TYPE_CHECKING:
    from PySide6.QtGui import QPainter

    from gui.kit.theme import Theme
    from gui.sizing.verify_words import Row

Index = QModelIndex | QPersistentModelIndex
_EDGE = 16
_GAP = 8
_LAST = len(HEADINGS) - 1
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEAST_ROWS = 4


class _RowDelegate(QStyledItemDelegate):
    """Hairlines between the classes; the selection is the whole row."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme: Theme | None = None

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        if self.theme is None:
            return
        shown = QStyleOptionViewItem(option)
        self.initStyleOption(shown, index)
        if shown.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(shown.rect, self.theme.color("surface.selected"))
        if index.row() < index.model().rowCount() - 1:
            painter.setPen(self.theme.color("line.hair"))
            painter.drawLine(shown.rect.bottomLeft(), shown.rect.bottomRight())
        left = _EDGE if index.column() == 0 else _GAP
        right = _EDGE if index.column() == _LAST else _GAP
        painter.setFont(shown.font)
        painter.setPen(shown.palette.color(shown.palette.ColorRole.Text))
        inside = shown.rect.adjusted(left, 0, -right, -1)
        painter.drawText(inside, shown.displayAlignment, shown.text)


class VerifyTable(QTableWidget):
    """Rows of text; as high as its rows, and scrolled where there is no room for them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(HEADINGS), parent)
        self.setObjectName("verified classes")
        self.setAccessibleName(tr("Parameters by class: counted here and built"))
        self._theme: Theme | None = None
        self._delegate = _RowDelegate(self)
        self.setItemDelegate(self._delegate)
        self.setShowGrid(False)
        self.setFrameShape(QTableWidget.Shape.NoFrame)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().hide()
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setSectionsClickable(False)
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        head.setStyleSheet(
            f"QHeaderView::section:first {{ padding-left: {_EDGE}px; }}"
            f"QHeaderView::section:last {{ padding-right: {_EDGE}px; }}"
        )
        for place, heading in enumerate(HEADINGS):
            item = QTableWidgetItem(tr(heading))
            item.setTextAlignment(_RIGHT if place else _LEFT)
            self.setHorizontalHeaderItem(place, item)

    def set_theme(self, theme: Theme) -> None:
        """Take fonts, colours and heights of ``theme``."""
        self._theme = theme
        self._delegate.theme = theme
        height = theme.size("row.table")
        self.verticalHeader().setMinimumSectionSize(height)
        self.verticalHeader().setDefaultSectionSize(height)
        self.horizontalHeader().setFixedHeight(theme.size("header.table"))
        self.horizontalHeader().setFont(theme.font("caption.medium"))

    def show_rows(self, rows: tuple[Row, ...]) -> None:
        """Show ``rows``, the selected one kept where it still is."""
        if self._theme is None:
            return
        self.setRowCount(len(rows))
        for number, row in enumerate(rows):
            for place, text in enumerate(row.cells):
                self.setItem(number, place, self._item(self._theme, row, place, text))
        self._share_width(rows)
        self.setMaximumHeight(self.sizeHint().height())
        self.updateGeometry()

    @staticmethod
    def _item(theme: Theme, row: Row, place: int, text: str) -> QTableWidgetItem:
        item = QTableWidgetItem(text)
        item.setTextAlignment(_RIGHT if place else _LEFT)
        apart = row.differs and place == _LAST
        strong = ".strong" if row.is_total or apart else ""
        item.setFont(theme.font(f"table{strong}{'.num' if place else ''}"))
        plain = "text.secondary" if place == _LAST and not row.is_total else "text.primary"
        item.setForeground(QBrush(theme.color("over" if apart else plain)))
        return item

    def _share_width(self, rows: tuple[Row, ...]) -> None:
        """Numbers are never cut: their columns are as wide as the widest."""
        if self._theme is None:
            return
        metrics = QFontMetrics(self._theme.font("table.strong.num"))
        head = QFontMetrics(self._theme.font("small.strong"))
        texts = [row.cells[1] for row in rows] + [row.cells[2] for row in rows]
        least = max(head.horizontalAdvance(tr(heading)) for heading in HEADINGS)
        width = max(least, *(metrics.horizontalAdvance(text) for text in texts)) + 4 * _GAP
        for place in range(1, len(HEADINGS)):
            self.horizontalHeader().resizeSection(place, width)

    def _height(self, rows: int) -> int:
        head = self.horizontalHeader().height()
        return head + rows * self.verticalHeader().defaultSectionSize()

    @override
    def sizeHint(self) -> QSize:
        return QSize(560, self._height(self.rowCount()))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(480, self._height(min(_LEAST_ROWS, self.rowCount())))
