"""Icons in the colours of the theme, sharp at every scale, and the app's own mark."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

import resources

_RATIOS = (1.0, 1.25, 1.5, 2.0, 3.0)
_MARK_SIZES = (16, 32, 48, 128, 512)


def icon(name: str, color: QColor, size: int = 16, gap: int = 0) -> QIcon:
    """The Lucide icon ``name`` (file name without ending) drawn in ``color``.

    ``gap`` is kept free to the right of it: styles put the text of a button too near.
    """
    return QIcon(_icon(name, color.name(), size, gap))


def pixmap(name: str, color: QColor, size: int = 16, ratio: float = 1.0) -> QPixmap:
    """One picture of ``size`` device-independent pixels at a device pixel ratio."""
    return _render(svg(name, color), size, ratio, 0)


def svg(name: str, color: QColor) -> bytes:
    """The SVG text of the icon, with ``color`` put in."""
    text = resources.path("icons", f"{name}.svg").read_text(encoding="utf-8")
    return text.replace("currentColor", color.name()).encode()


def draw(painter: QPainter, name: str, color: QColor, rect: QRectF) -> None:
    """Draw the icon as lines, for paper."""
    QSvgRenderer(QByteArray(svg(name, color))).render(painter, rect)


def app_icon() -> QIcon:
    """The app's mark, each size from its own drawing."""
    made = QIcon()
    for size in _MARK_SIZES:
        picture = QPixmap()
        picture.loadFromData(resources.path("icons", f"app-{size}.png").read_bytes())
        made.addPixmap(picture)
    return made


@cache
def _icon(name: str, color: str, size: int, gap: int) -> QIcon:
    made = QIcon()
    text = svg(name, QColor(color))
    for ratio in _RATIOS:
        made.addPixmap(_render(text, size, ratio, gap))
    return made


def _render(text: bytes, size: int, ratio: float, gap: int) -> QPixmap:
    picture = QPixmap(QSize(size + gap, size) * ratio)
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    QSvgRenderer(QByteArray(text)).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return picture
