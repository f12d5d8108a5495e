"""Our count and that of the built model, class by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QBrush, QFontMetrics
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)
from typing_extensions import override

from engine.words import tr
from gui.kit.figures_table import EDGE, LAST_PADDED, Index, RowDelegate, dress, set_heights
from gui.sizing.verify_words import HEADINGS

if TYPE_CHECKING:
    from PySide6.QtGui import QPainter

    from gui.kit.theme import Theme
    from gui.sizing.verify_words import Row

_GAP = 8
_WIDTH = 560
_LAST = len(HEADINGS) - 1
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEAST_ROWS = 4


class _Delegate(RowDelegate):
    """Hairlines between the classes."""

    @override
    def is_ruled(self, index: Index) -> bool:
        return index.row() < index.model().rowCount() - 1

    @override
    def paint_cell(
        self, painter: QPainter, shown: QStyleOptionViewItem, index: Index, theme: Theme
    ) -> None:
        left = EDGE if index.column() == 0 else _GAP
        right = EDGE if index.column() == _LAST else _GAP
        self.paint_text(painter, shown, shown.rect.adjusted(left, 0, -right, -1))


class VerifyTable(QTableWidget):
    """Rows of text; as high as its rows, and scrolled where there is no room for them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, len(HEADINGS), parent)
        self.setObjectName("verified classes")
        self.setAccessibleName(tr("Parameters by class: counted here and built"))
        self._theme: Theme | None = None
        self._delegate = _Delegate(self)
        self.setItemDelegate(self._delegate)
        dress(self, LAST_PADDED)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for place, heading in enumerate(HEADINGS):
            item = QTableWidgetItem(tr(heading))
            item.setTextAlignment(_RIGHT if place else _LEFT)
            self.setHorizontalHeaderItem(place, item)

    def set_theme(self, theme: Theme) -> None:
        """Take fonts, colours and heights of ``theme``."""
        self._theme = theme
        self._delegate.theme = theme
        set_heights(self, theme)

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
        return QSize(max(_WIDTH, self._least_width()), self._height(self.rowCount()))

    def _least_width(self) -> int:
        """No class is cut, and no number."""
        head = self.horizontalHeader()
        first = self.sizeHintForColumn(0) + EDGE + _GAP
        return first + sum(head.sectionSize(place) for place in range(1, len(HEADINGS)))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(self._least_width(), self._height(min(_LEAST_ROWS, self.rowCount())))
