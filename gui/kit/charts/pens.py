"""Lines and words on a painter, with edges on whole pixels where the device has pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen, QPolygonF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.kit.charts.layout import Style

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


class Canvas:
    """A painter with the theme and the pixel grid at hand."""

    def __init__(self, painter: QPainter, style: Style) -> None:
        self.painter = painter
        self.style = style
        self.theme = style.theme
        self.ratio = 4.0 if style.paper else painter.device().devicePixelRatio()
        self.words: list[tuple[QRectF, str]] = []
        """Every text painted and its place, so that a test can see that none overlap."""

    def snap(self, place: float, width: float = 1) -> float:
        """The nearest place where a line of ``width`` covers whole pixels."""
        pixels = max(1, round(width * self.ratio))
        offset = 0.5 if pixels % 2 else 0.0
        return (round(place * self.ratio - offset) + offset) / self.ratio

    def snapped(self, rect: QRectF) -> QRectF:
        """``rect`` with its edges on whole pixels."""
        return snapped(rect, self.ratio)

    def line(
        self, line: QLineF, color: QColor, width: float = 1, dash: tuple[float, float] | None = None
    ) -> None:
        """A crisp horizontal or vertical line."""
        pen = QPen(color, width)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if dash:
            pen.setDashPattern([dash[0] / width, dash[1] / width])
        self.painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        self.painter.setPen(pen)
        self.painter.drawLine(line)

    def smooth_line(self, line: QLineF, color: QColor, width: float) -> None:
        """A line between pixels."""
        self.polyline(QPolygonF([line.p1(), line.p2()]), color, width)

    def polyline(self, points: QPolygonF, color: QColor, width: float) -> None:
        """A smooth broken line."""
        pen = QPen(color, width)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        self.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.painter.setPen(pen)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.drawPolyline(points)

    def frame(self, rect: QRectF, color: QColor, width: float = 1) -> None:
        """A crisp rectangle without a fill."""
        pen = QPen(color, width)
        pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
        self.painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        self.painter.setPen(pen)
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.drawRect(rect)

    def text(
        self,
        rect: QRectF,
        text: str,
        font: QFont,
        color: QColor,
        align: Qt.AlignmentFlag = LEFT,
    ) -> None:
        """One line of text in ``rect``; what has no room is the caller's to shorten first."""
        if not text:
            return
        self.painter.setFont(font)
        self.painter.setPen(color)
        self.painter.drawText(rect, int(align | Qt.TextFlag.TextDontClip), text)
        bounds = QFontMetricsF(font).boundingRect(rect, int(align), text)
        self.words.append((bounds, text))

    @staticmethod
    def fitting(texts: Sequence[str], font: QFont, room: float) -> str:
        """The first of ``texts`` that is no wider than ``room``; empty if none is."""
        metrics = QFontMetricsF(font)
        return next((t for t in texts if metrics.horizontalAdvance(t) <= room), "")

    @staticmethod
    def elided(text: str, font: QFont, room: float) -> str:
        """``text`` shortened in the middle to ``room``; for names, never for numbers."""
        metrics = QFontMetricsF(font)
        return metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room)


def snapped(rect: QRectF, ratio: float) -> QRectF:
    """``rect`` with its edges on whole pixels, of which there are ``ratio`` to a unit."""
    left, top, right, bottom = (
        round(edge * ratio) / ratio
        for edge in (rect.left(), rect.top(), rect.right(), rect.bottom())
    )
    return QRectF(left, top, right - left, bottom - top)
