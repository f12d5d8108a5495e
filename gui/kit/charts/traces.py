"""Lines and areas through measured samples, run by run, thinned to what a pixel can show."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QLineF, QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from gui.kit.charts.series import envelope, runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gui.kit.charts.layout import Scale
    from gui.kit.charts.pens import Canvas

_SMOOTH_UP_TO = 240
"""Points up to which a smooth line costs nothing to speak of; denser ones are drawn crisp."""


def _points(
    scale: Scale, xs: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, kept = envelope(xs, values)
    span = scale.high_bytes - scale.low_bytes
    height = scale.bottom - scale.top
    return x, scale.bottom - (kept - scale.low_bytes) * (height / span)


def line(
    canvas: Canvas,
    scale: Scale,
    line: tuple[NDArray[np.float64], NDArray[np.float64]],
    color: QColor,
    width: float,
) -> list[tuple[float, float]]:
    """Draw places and values as a line; returns from where to where it was drawn."""
    xs, values = line
    drawn: list[tuple[float, float]] = []
    for start, stop in runs(values):
        x, y = _points(scale, xs[start:stop], values[start:stop])
        drawn.append((float(x[0]), float(x[-1])))
        _draw(canvas, x, y, color, width)
    return drawn


def _draw(
    canvas: Canvas, x: NDArray[np.float64], y: NDArray[np.float64], color: QColor, width: float
) -> None:
    points = [QPointF(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    if len(points) == 1:
        points.append(points[0] + QPointF(1, 0))
    if len(points) <= _SMOOTH_UP_TO or canvas.style.paper:
        canvas.polyline(QPolygonF(points), color, width)
        return
    pen = QPen(color, width)
    pen.setCapStyle(Qt.PenCapStyle.SquareCap)
    canvas.painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    canvas.painter.setPen(pen)
    canvas.painter.drawLines([QLineF(a, b) for a, b in pairwise(points)])


def area(
    canvas: Canvas,
    scale: Scale,
    xs: NDArray[np.float64],
    edges: tuple[NDArray[np.float64], NDArray[np.float64]],
    color: QColor,
) -> None:
    """Fill between a lower and an upper edge, run by run."""
    low, high = edges
    canvas.painter.setPen(Qt.PenStyle.NoPen)
    canvas.painter.setBrush(color)
    canvas.painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    for start, stop in runs(high - low):
        if stop - start < 2 or float(np.max(high[start:stop] - low[start:stop])) <= 0:
            continue
        upper = _points(scale, xs[start:stop], high[start:stop])
        lower = _points(scale, xs[start:stop], low[start:stop])
        ring = [QPointF(a, b) for a, b in zip(*(p.tolist() for p in upper), strict=True)]
        back = [QPointF(a, b) for a, b in zip(*(p.tolist() for p in lower), strict=True)]
        canvas.painter.drawPolygon(QPolygonF(ring + back[::-1]))
