"""How a row is painted: hairlines, and a bar for the share of the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from typing_extensions import override

from gui.kit.figures_table import EDGE, ROW_ROLE, Index, RowDelegate
from gui.live.holds_model import COLUMNS
from gui.live.present import Kind, Row

if TYPE_CHECKING:
    from PySide6.QtCore import QRect
    from PySide6.QtGui import QPainter
    from PySide6.QtWidgets import QStyleOptionViewItem

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


class HoldsDelegate(RowDelegate):
    """Paints cells from the theme; the selection is the whole row."""

    @override
    def is_ruled(self, index: Index) -> bool:
        row: Row = index.data(ROW_ROLE)
        return row.kind is not Kind.TOTAL

    @override
    def paint_cell(
        self, painter: QPainter, shown: QStyleOptionViewItem, index: Index, theme: Theme
    ) -> None:
        row: Row = index.data(ROW_ROLE)
        column = COLUMNS[index.column()]
        inside = shown.rect.adjusted(EDGE if index.column() == 0 else 8, 0, -8, -1)
        if column.key == "share":
            self._paint_bar(painter, inside, row, theme)
        else:
            self.paint_text(painter, shown, inside, elided=not column.is_number)

    @staticmethod
    def _paint_bar(painter: QPainter, inside: QRect, row: Row, theme: Theme) -> None:
        """A bar on the scale of the whole device; what is held never vanishes."""
        ink = _INKS.get(row.kind)
        if ink is None or not row.size_bytes or row.size_bytes < 0:
            return
        width = max(inside.width() * min(row.share, 1.0), _LEAST_BAR)
        top = inside.top() + (inside.height() - _BAR_HEIGHT) / 2
        painter.fillRect(QRectF(inside.left(), top, width, _BAR_HEIGHT), theme.color(ink))
