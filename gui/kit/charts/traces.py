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
    return x, _ys(scale, kept)


def _ys(scale: Scale, values: NDArray[np.float64]) -> NDArray[np.float64]:
    return scale.bottom - (values - scale.low_bytes) * scale.pixels_per_byte


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
        upper = _edge(xs[start:stop], high[start:stop], np.maximum)
        lower = _edge(xs[start:stop], low[start:stop], np.minimum)
        ring = [QPointF(a, b) for a, b in zip(*_placed(scale, *upper), strict=True)]
        back = [QPointF(a, b) for a, b in zip(*_placed(scale, *lower), strict=True)]
        canvas.painter.drawPolygon(QPolygonF(ring + back[::-1]))


def _edge(
    xs: NDArray[np.float64], values: NDArray[np.float64], outermost: np.ufunc
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """One point a pixel: an edge that runs to and fro takes several frames to fill."""
    places = np.floor(xs)
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    if 2 * starts.size >= xs.size:
        return xs, values
    # The last place goes to where the line ends.
    kept = np.r_[places[starts[:-1]], xs[-1]]
    return kept, outermost.reduceat(values, starts)


def _placed(
    scale: Scale, xs: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[list[float], list[float]]:
    return xs.tolist(), _ys(scale, values).tolist()
