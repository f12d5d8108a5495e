"""How a row is painted: hairlines, and a bar for the share of the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem
from typing_extensions import override

from gui.live.holds_model import COLUMNS, ROW_ROLE, Index
from gui.live.present import Kind, Row

if TYPE_CHECKING:
    from PySide6.QtCore import QRect
    from PySide6.QtGui import QPainter
    from PySide6.QtWidgets import QWidget

    from gui.kit.theme import Theme

_BAR_HEIGHT = 10
_LEAST_BAR = 2
_INKS = {
    Kind.RUNTIME: "chart.measured",
    Kind.PROCESS: "region.foreign",
    Kind.REST: "region.foreign",
    Kind.FREE: "region.headroom",
    Kind.DRIVER: "region.reserve",
}


class HoldsDelegate(QStyledItemDelegate):
    """Paints cells from the theme; the selection is the whole row."""

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
        row: Row = index.data(ROW_ROLE)
        if shown.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(shown.rect, theme.color("surface.selected"))
        if row.kind is not Kind.TOTAL:
            painter.setPen(theme.color("line.hair"))
            painter.drawLine(shown.rect.bottomLeft(), shown.rect.bottomRight())
        inside = shown.rect.adjusted(16 if index.column() == 0 else 8, 0, -8, -1)
        if COLUMNS[index.column()].key == "share":
            self._paint_bar(painter, inside, row, theme)
            return
        painter.setFont(shown.font)
        painter.setPen(shown.palette.color(shown.palette.ColorRole.Text))
        text = shown.text
        if not COLUMNS[index.column()].is_number:
            text = shown.fontMetrics.elidedText(text, Qt.TextElideMode.ElideRight, inside.width())
        painter.drawText(inside, shown.displayAlignment, text)

    @staticmethod
    def _paint_bar(painter: QPainter, inside: QRect, row: Row, theme: Theme) -> None:
        """A bar on the scale of the whole device; what is held never vanishes."""
        ink = _INKS.get(row.kind)
        if ink is None or not row.size_bytes or row.size_bytes < 0:
            return
        width = max(inside.width() * min(row.share, 1.0), _LEAST_BAR)
        top = inside.top() + (inside.height() - _BAR_HEIGHT) / 2
        painter.fillRect(QRectF(inside.left(), top, width, _BAR_HEIGHT), theme.color(ink))
