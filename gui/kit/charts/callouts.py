"""Marks and short texts over a picture, placed so that none covers another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtGui import QFont

    from gui.kit.charts.pens import Canvas

MARK_RADIUS = 8
MARK_REACH = 14
_PAD = QPointF(8, 3)


def mark(canvas: Canvas, at: QPointF) -> None:
    """The plan point, in the shape of the app's mark."""
    color = canvas.theme.color("accent")
    canvas.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    canvas.painter.setPen(QPen(color, 2))
    canvas.painter.setBrush(canvas.theme.color("surface.base"))
    canvas.painter.drawEllipse(at, MARK_RADIUS, MARK_RADIUS)
    y = canvas.snap(at.y(), 2)
    line = QLineF(at.x() - MARK_REACH, y, at.x() + MARK_REACH, y)
    canvas.line(line, color, 2)


def callout(canvas: Canvas, box: QRectF, text: str, font: QFont, border: str = "accent") -> None:
    """A short text in a box over the picture."""
    theme = canvas.theme
    canvas.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    canvas.painter.setPen(QPen(theme.color(border), 1))
    canvas.painter.setBrush(theme.color("chart.callout"))
    box = canvas.snapped(box).adjusted(0.5, 0.5, -0.5, -0.5)
    canvas.painter.drawRoundedRect(box, 3, 3)
    canvas.text(box, text, font, theme.color("text.primary"), Qt.AlignmentFlag.AlignCenter)


def box_size(text: str, font: QFont) -> QRectF:
    """Room for a callout, somewhere."""
    metrics = QFontMetricsF(font)
    width = metrics.horizontalAdvance(text) + 2 * _PAD.x()
    return QRectF(0, 0, width, metrics.height() + 2 * _PAD.y())


def beside(box: QRectF, at: QPointF, plot: QRectF) -> QRectF:
    """Up and to the left of the point, where the lines to the axes are not; else elsewhere."""
    gap = 12
    corners = (
        QPointF(at.x() - gap - box.width(), at.y() - gap - box.height()),
        QPointF(at.x() + gap, at.y() - gap - box.height()),
        QPointF(at.x() + gap, at.y() + gap),
        QPointF(at.x() - gap - box.width(), at.y() + gap),
    )
    inside = plot.adjusted(2, 2, -2, -2)
    for corner in corners:
        box.moveTopLeft(corner)
        if inside.contains(box):
            return box
    return box


def free_place(
    centres: Iterable[QPointF], box: QRectF, plot: QRectF, taken: list[QRectF]
) -> QRectF | None:
    """The first of ``centres`` at which ``box`` covers nothing that is ``taken``."""
    for centre in centres:
        placed = QRectF(box)
        placed.moveCenter(centre)
        placed.moveLeft(min(max(placed.left(), plot.left() + 4), plot.right() - 4 - box.width()))
        placed.moveTop(min(max(placed.top(), plot.top() + 4), plot.bottom() - 4 - box.height()))
        if not any(placed.adjusted(-4, -3, 4, 3).intersects(other) for other in taken):
            return placed
    return None
