"""The verdict as a small badge: colour, icon and figure, in lists and tables."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen, QPixmap
from PySide6.QtSvg import QSvgRenderer

from engine.fit.verdict import Fit
from gui.kit.icons import svg

if TYPE_CHECKING:
    from gui.kit.theme import Theme

LOOKS = {
    Fit.FITS: ("check", "fits"),
    Fit.TIGHT: ("triangle-alert", "tight"),
    Fit.DOES_NOT_FIT: ("x", "over"),
    Fit.UNKNOWN: ("circle-help", "unknown"),
}
"""Shape and colour; the word or sign is in the text."""


@cache
def _mark(name: str, color: str, size: int, ratio: float) -> QPixmap:
    """The icon with a stronger stroke: at 12 px the usual one is a single pale pixel."""
    text = svg(name, QColor(color)).replace(b'stroke-width="2"', b'stroke-width="2.6"')
    picture = QPixmap(QSize(size, size) * ratio)
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    QSvgRenderer(QByteArray(text)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return picture


def paint_badge(painter: QPainter, theme: Theme, top_right: QPoint, fit: Fit, text: str) -> int:
    """Draw a badge with its upper right corner at ``top_right``; returns its width."""
    return paint_look(painter, theme, top_right, LOOKS[fit], text)


def look_width(theme: Theme, text: str) -> int:
    """How wide the badge of ``text`` is."""
    metrics = QFontMetrics(theme.font("small.strong.num"))
    return 4 + theme.size("icon.small") + 4 + metrics.horizontalAdvance(text) + 6


def paint_look(
    painter: QPainter, theme: Theme, top_right: QPoint, look: tuple[str, str], text: str
) -> int:
    """Draw a badge of any look (icon, colour) with its upper right corner at ``top_right``."""
    font = theme.font("small.strong.num")
    picture, color = look
    mark, height = theme.size("icon.small"), theme.size("badge")
    whole = look_width(theme, text)
    place = QRect(top_right.x() - whole, top_right.y(), whole, height)
    painter.setFont(font)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(theme.color(color)) if theme.is_contrast else QPen(Qt.PenStyle.NoPen))
    painter.setBrush(theme.color(f"{color}.soft"))
    radius = theme.size("radius.badge")
    painter.drawRoundedRect(place, radius, radius)
    ink = theme.color(color)
    spot = QPoint(place.left() + 4, place.top() + (height - mark) // 2)
    painter.drawPixmap(spot, _mark(picture, ink.name(), mark, painter.device().devicePixelRatio()))
    painter.setPen(ink)
    painter.drawText(
        place.adjusted(8 + mark, 0, 0, 0),
        Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft,
        text,
    )
    return whole
