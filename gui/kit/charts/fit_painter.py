"""Paints the fit map: cells, limit, labels, the plan point."""

from __future__ import annotations

from functools import lru_cache, partial
from math import isnan, nan
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QImage, QPainter, QPainterPath, QPen, QPolygonF

from engine.fit.margin_classes import CLASSES, margin_class, runs
from engine.words import grouped, tr
from gui.kit.charts import inks
from gui.kit.charts.callouts import (
    MARK_REACH,
    beside,
    box_size,
    callout,
    free_place,
    mark,
)
from gui.kit.charts.log_axis import LogAxis
from gui.kit.charts.pens import RIGHT, snapped
from gui.kit.format import tokens_short

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.fit.fit_map import FitMap
    from gui.kit.charts.fit_scene import MapScene
    from gui.kit.charts.pens import Canvas
    from gui.kit.theme import Theme

_TICK = 5
_LEAST_TICK_PX = 44
_LEAST_ROW_PX = 22
_ASIDE = (0, 30, -30, 60, -60, 90, -90)
"""Where else the words of an area may stand, in pixels from its middle."""
_SPOT_PX = 12
_LEAST_SHARE = 0.04
"""Of the map; a smaller area bears no words."""
_UNKNOWN = "unknown.soft"


class MapPlaces:
    """Where the map's parts stand in ``size``."""

    def __init__(self, theme: Theme, ratio: float, scene: MapScene, size: QRectF) -> None:
        grown = theme.text_scale
        self.plot = snapped(size.adjusted(70 * grown, 16, -24 * grown, -46 * grown), ratio)
        axes = scene.map.axes
        self.x = LogAxis(axes.least_context, axes.most_context, self.plot.left(), self.plot.right())
        self.y = LogAxis(1, axes.most_requests, self.plot.bottom(), self.plot.top())

    def point(self, tokens: float, requests: float) -> QPointF:
        """The place of a plan, within the plot."""
        axes = (self.x, self.y)
        inside = (
            min(max(v, axis.low), axis.high)
            for v, axis in zip((tokens, requests), axes, strict=True)
        )
        x, y = inside
        return QPointF(self.x.at(x), self.y.at(y))


def paint_map(canvas: Canvas, scene: MapScene, places: MapPlaces) -> None:
    """All that changes only with the map: cells, axes, limits and words."""
    _cells(canvas, scene, places)
    canvas.frame(places.plot.adjusted(0, 0, -1, -1), canvas.theme.color("line.control.edge"))
    axis_of_contexts(canvas, places.plot, places.x)
    _axis_of_requests(canvas, places)
    _limits(canvas, scene, places)


def paint_point(canvas: Canvas, scene: MapScene, places: MapPlaces) -> None:
    """The plan point with its lines to the axes, and the words that keep clear of it."""
    theme, plot = canvas.theme, places.plot
    at = places.point(scene.point.context, scene.point.requests)
    accent = theme.color("accent")
    left, bottom = QPointF(plot.left(), at.y()), QPointF(at.x(), plot.bottom())
    for end in (left, bottom):
        canvas.line(QLineF(at, end), accent, 1, dash=(3, 3))
    mark(canvas, at)
    font = theme.font("small.strong.num")
    box = beside(box_size(scene.point.text, font), at, plot)
    callout(canvas, box, scene.point.text, font)
    taken = [
        box,
        QRectF(at.x() - MARK_REACH, at.y() - 10, 2 * MARK_REACH, 20),
        QRectF(left, at).adjusted(0, -1, 0, 1),
        QRectF(at, bottom).adjusted(-1, 0, 1, 0),
    ]
    _limit_words(canvas, scene, places, taken)
    _area_words(canvas, scene, places, taken)


def cells_image(scene: MapScene, canvas: Canvas) -> QImage:
    """One pixel a cell, the first row at the bottom; transparent where no margin is known."""
    rows = scene.map.margins
    image = QImage(len(rows[0]), len(rows), QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    colors = [canvas.theme.color(name).rgba() for name in CLASSES]
    for j, row in enumerate(rows):
        y = len(rows) - 1 - j
        for i, margin in enumerate(row):
            if not isnan(margin):
                image.setPixel(i, y, colors[margin_class(margin, scene.edges_bytes)])
    return image


def unknown_ink(theme: Theme) -> inks.Ink:
    """The fill of what isn't known, or isn't offered: no colour of a margin."""
    return inks.Ink(theme.color(_UNKNOWN), theme.mixed("unknown", 0.4, _UNKNOWN), "bdiag")


def axis_of_contexts(canvas: Canvas, plot: QRectF, axis: LogAxis) -> None:
    """Ticks, numbers and title below."""
    theme = canvas.theme
    font = theme.font("caption.num")
    height = QFontMetricsF(font).height()
    edge, ink = theme.color("line.control.edge"), theme.color("text.tertiary")
    for tokens in axis.ticks(_LEAST_TICK_PX * theme.text_scale):
        x = canvas.snap(min(max(axis.at(tokens), plot.left()), plot.right() - 1))
        canvas.line(QLineF(x, plot.bottom(), x, plot.bottom() + _TICK), edge)
        row = QRectF(x - 40, plot.bottom() + _TICK + 1, 80, height)
        canvas.text(row, tokens_short(tokens), font, ink, Qt.AlignmentFlag.AlignCenter)
    title = QRectF(plot.left(), plot.bottom() + _TICK + 2 + height, plot.width(), height + 2)
    small, soft = theme.font("small"), theme.color("text.secondary")
    words = tr("Context, tokens per request")
    canvas.text(title, words, small, soft, Qt.AlignmentFlag.AlignCenter)


def _axis_of_requests(canvas: Canvas, places: MapPlaces) -> None:
    theme, plot = canvas.theme, places.plot
    font = theme.font("caption.num")
    height = QFontMetricsF(font).height()
    edge, ink = theme.color("line.control.edge"), theme.color("text.tertiary")
    for requests in places.y.ticks(_LEAST_ROW_PX * theme.text_scale):
        y = canvas.snap(min(max(places.y.at(requests), plot.top()), plot.bottom() - 1))
        canvas.line(QLineF(plot.left() - _TICK, y, plot.left(), y), edge)
        row = QRectF(plot.left() - 60, y - height / 2, 60 - _TICK - 4, height)
        canvas.text(row, grouped(requests), font, ink, RIGHT)
    canvas.painter.save()
    canvas.painter.translate(plot.left() - 46 * theme.text_scale, plot.center().y())
    canvas.painter.rotate(-90)
    row = QRectF(-plot.height() / 2, -10, plot.height(), 20)
    small, soft = theme.font("small"), theme.color("text.secondary")
    canvas.painter.setFont(small)
    canvas.painter.setPen(soft)
    canvas.painter.drawText(row, Qt.AlignmentFlag.AlignCenter, tr("Requests at once"))
    canvas.painter.restore()


def _cells(canvas: Canvas, scene: MapScene, places: MapPlaces) -> None:
    painter, plot = canvas.painter, places.plot
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, on=False)
    if any(isnan(margin) for row in scene.map.margins for margin in row):
        inks.fill(painter, plot, unknown_ink(canvas.theme))
    if canvas.style.paper:
        _cells_on_paper(canvas, scene, plot)
    else:
        painter.drawImage(plot, cells_image(scene, canvas))


def _cells_on_paper(canvas: Canvas, scene: MapScene, plot: QRectF) -> None:
    """Rectangles instead of pixels, and a hatch over what doesn’t fit, for print without colour."""
    over = QPainterPath()
    over.setFillRule(Qt.FillRule.WindingFill)
    for run in runs(scene.map.margins, scene.edges_bytes):
        place = QRectF(
            plot.left() + run.left * plot.width(),
            plot.bottom() - run.top * plot.height(),
            (run.right - run.left) * plot.width(),
            (run.top - run.bottom) * plot.height(),
        )
        # A hair wider, so that no seam shows between neighbours.
        canvas.painter.fillRect(place.adjusted(0, -0.3, 0.3, 0), canvas.theme.color(run.name))
        if run.is_over:
            over.addRect(place)
    if over.isEmpty():
        return
    canvas.painter.save()
    canvas.painter.setClipPath(over)
    hatch = canvas.theme.mixed("over", 0.45, CLASSES[0])
    inks.lines(canvas.painter, plot, hatch, "bdiag")
    canvas.painter.restore()


def _limits(canvas: Canvas, scene: MapScene, places: MapPlaces) -> None:
    theme = canvas.theme
    color = theme.color("map.contour")
    canvas.painter.save()
    canvas.painter.setClipRect(places.plot)
    for line, width, dash in (
        (scene.alternative, theme.sizes["line.map.alternative"], (5, 4)),
        (scene.map.limit, theme.sizes["line.map.limit"], None),
    ):
        if len(line) < 2:
            continue
        pen = QPen(color, width)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        if dash:
            pen.setDashPattern([part / width for part in dash])
        canvas.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        canvas.painter.setPen(pen)
        canvas.painter.drawPolyline(QPolygonF([places.point(*p) for p in line]))
    canvas.painter.restore()


def _limit_words(canvas: Canvas, scene: MapScene, places: MapPlaces, taken: list[QRectF]) -> None:
    font = canvas.theme.font("caption")
    for line, text, shares in (
        (scene.map.limit, tr("Limit of this plan"), (0.16, 0.3, 0.08, 0.45, 0.6, 0.75, 0.9)),
        (scene.alternative, scene.alternative_text, (0.4, 0.55, 0.25, 0.7, 0.12, 0.85)),
    ):
        if len(line) < 2:
            continue
        path = QPainterPath()
        path.addPolygon(QPolygonF([places.point(*p) for p in reversed(line)]))
        size = box_size(text, font)
        centres = (path.pointAtPercent(share) for share in shares)
        box = free_place(centres, size, places.plot, taken)
        if box is not None:
            taken.append(box)
            callout(canvas, box, text, font, border="line.control.edge")


def _area_words(canvas: Canvas, scene: MapScene, places: MapPlaces, taken: list[QRectF]) -> None:
    font = canvas.theme.font("body.strong")
    metrics = QFontMetricsF(font)
    words = (tr("Fits"), tr("Doesn’t fit"), scene.other)
    lines = [*_along(scene.map.limit, places), *_along(scene.alternative, places)]
    for text, belongs, share in zip(words, _AREAS, _middles(scene.map), strict=True):
        middle = share and QPointF(
            places.plot.left() + share[0] * places.plot.width(),
            places.plot.bottom() - share[1] * places.plot.height(),
        )
        if middle is None:
            continue
        box = QRectF(0, 0, metrics.horizontalAdvance(text) + 12, metrics.height() + 4)
        around = [middle + QPointF(dx, dy) for dy in _ASIDE for dx in _ASIDE]
        around.sort(key=partial(_distance, middle))
        inside = [place for place in around if belongs(_margin_at(scene, places, place))]
        room = places.plot.adjusted(4, 4, -4, -4)
        # Off the lines where there is such a place, else across one.
        found = free_place(inside, box, room, [*taken, *lines])
        found = found or free_place(inside, box, room, taken)
        if found is None:
            continue
        taken.append(found)
        if belongs is isnan:
            canvas.painter.fillRect(found, canvas.theme.color(_UNKNOWN))
        ink = canvas.theme.color("text.primary")
        canvas.text(found, text, font, ink, Qt.AlignmentFlag.AlignCenter)


def _along(line: Sequence[tuple[float, float]], places: MapPlaces) -> list[QRectF]:
    """Spots along ``line``, so close to each other that no words fit between two."""
    if len(line) < 2:
        return []
    path = QPainterPath()
    path.addPolygon(QPolygonF([places.point(*p) for p in line]))
    steps = max(1, int(path.length() / _SPOT_PX))
    spots = (path.pointAtPercent(step / steps) for step in range(steps + 1))
    return [QRectF(spot.x() - 1, spot.y() - 1, 2, 2) for spot in spots]


def _distance(other: QPointF, place: QPointF) -> float:
    off = place - other
    return off.x() ** 2 + off.y() ** 2


def _margin_at(scene: MapScene, places: MapPlaces, place: QPointF) -> float:
    """The margin of the cell at a place; NaN outside."""
    rows, plot = scene.map.margins, places.plot
    if not plot.contains(place):
        return nan
    i = int((place.x() - plot.left()) / plot.width() * len(rows[0]))
    j = int((plot.bottom() - place.y()) / plot.height() * len(rows))
    return rows[min(j, len(rows) - 1)][min(i, len(rows[0]) - 1)]


def _fits(margin: float) -> bool:
    return margin >= 0


def _is_over(margin: float) -> bool:
    return margin < 0


_AREAS: tuple[Callable[[float], bool], ...] = (_fits, _is_over, isnan)


@lru_cache(maxsize=4)
def _middles(found: FitMap) -> tuple[tuple[float, float] | None, ...]:
    """The centre of each area's cells, in parts of the map, if there are enough for words."""
    rows = found.margins
    width, height = len(rows[0]), len(rows)
    made: list[tuple[float, float] | None] = []
    for belongs in _AREAS:
        cells = [(i, j) for j, row in enumerate(rows) for i, m in enumerate(row) if belongs(m)]
        if len(cells) < _LEAST_SHARE * width * height:
            made.append(None)
            continue
        x, y = (sum(places) / len(cells) for places in zip(*cells, strict=True))
        made.append(((x + 0.5) / width, (y + 0.5) / height))
    return tuple(made)
