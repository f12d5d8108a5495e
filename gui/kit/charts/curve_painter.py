"""Paints the curve: the stack of a plan over its context, under the load line."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPainterPath, QPolygonF

from engine.budget.model import STACK_ORDER
from engine.units import format_gib
from engine.words import tr
from gui.kit.charts import inks
from gui.kit.charts.axis import tick_values
from gui.kit.charts.callouts import beside, box_size, callout, mark
from gui.kit.charts.fit_painter import axis_of_contexts
from gui.kit.charts.layout import Scale
from gui.kit.charts.log_axis import LogAxis
from gui.kit.charts.pens import snapped
from gui.kit.format import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.budget.model import Region
    from gui.kit.charts.fit_scene import CurveScene, Layer
    from gui.kit.charts.pens import Canvas
    from gui.kit.theme import Theme

_TICK = 5
_LEAST_TICK_PX = 26


class CurvePlaces:
    """Where the curve's parts stand in ``size``."""

    def __init__(self, theme: Theme, ratio: float, scene: CurveScene, size: QRectF) -> None:
        grown = theme.text_scale
        self.plot = snapped(size.adjusted(24, 24 * grown, -74 * grown, -46 * grown), ratio)
        low, high = scene.contexts[0], scene.contexts[-1]
        self.x = LogAxis(low, high, self.plot.left(), self.plot.right())
        self.scale = Scale(0, scene.axis_max_bytes, self.plot.top(), self.plot.bottom())

    def point(self, scene: CurveScene) -> QPointF:
        """The plan: its context, and the top of its stack as far as that is on the picture."""
        x = self.x.at(min(max(scene.point.context, self.x.low), self.x.high))
        top = self.scale.y(_top_bytes(scene))
        return QPointF(x, min(max(top, self.plot.top() + 8), self.plot.bottom()))


def paint_curve(canvas: Canvas, scene: CurveScene, places: CurvePlaces) -> None:
    """All that changes only with the curve."""
    painter, plot = canvas.painter, places.plot
    painter.save()
    painter.setClipRect(plot)
    for region in STACK_ORDER:
        for contexts, layers in _runs(scene, region):
            _layer(canvas, places, contexts, layers)
    _over(canvas, scene, places)
    painter.restore()
    edge = canvas.theme.color("line.control.edge")
    canvas.line(QLineF(plot.left(), plot.bottom(), plot.right(), plot.bottom()), edge)
    x = canvas.snap(plot.right())
    canvas.line(QLineF(x, plot.top(), x, plot.bottom()), canvas.theme.color("line.hair"))
    axis_of_contexts(canvas, plot, places.x)
    _axis_of_memory(canvas, scene, places)
    _load_line(canvas, scene, places)


def paint_curve_point(canvas: Canvas, scene: CurveScene, places: CurvePlaces) -> None:
    """The plan's context, and how high its stack is."""
    theme, plot = canvas.theme, places.plot
    at = places.point(scene)
    x = at.x()
    _longest(canvas, scene, places)
    accent = theme.color("accent")
    canvas.line(QLineF(QPointF(x, plot.top()), QPointF(x, plot.bottom())), accent, 1, dash=(3, 3))
    mark(canvas, at)
    font = theme.font("small.strong.num")
    callout(canvas, beside(box_size(scene.point.text, font), at, plot), scene.point.text, font)


def _runs(scene: CurveScene, region: Region) -> Iterator[tuple[list[int], list[Layer]]]:
    """The stretches over which ``region`` is there."""
    pairs = [
        (context, next((layer for layer in stack or () if layer.region is region), None))
        for context, stack in zip(scene.contexts, scene.stacks, strict=True)
    ]
    for is_there, group in groupby(pairs, key=lambda pair: pair[1] is not None):
        if is_there:
            found = list(group)
            yield [c for c, _ in found], [layer for _, layer in found if layer is not None]


def _layer(
    canvas: Canvas, places: CurvePlaces, contexts: Sequence[int], layers: Sequence[Layer]
) -> None:
    region = layers[0].region
    whole = [layer.bottom_bytes for layer in layers]
    spare = [layer.spare_from_bytes for layer in layers]
    tops = [layer.top_bytes for layer in layers]
    for low, high, is_spare in ((whole, spare, False), (spare, tops, True)):
        path = _between(places, contexts, low, high)
        if path.boundingRect().height() < 0.25:
            continue
        ink = inks.ink(canvas.theme, region, is_spare=is_spare)
        _fill(canvas, path, ink, places.plot)
    line = QPolygonF([_place(places, c, top) for c, top in zip(contexts, tops, strict=True)])
    if max(top - low for top, low in zip(tops, whole, strict=True)) > 0:
        canvas.polyline(line, canvas.theme.color("surface.base"), 1)


def _fill(canvas: Canvas, path: QPainterPath, ink: inks.Ink, plot: QRectF) -> None:
    painter = canvas.painter
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
    inks.fill(painter, path.boundingRect().intersected(plot), ink)
    painter.restore()


def _over(canvas: Canvas, scene: CurveScene, places: CurvePlaces) -> None:
    """What lies above the load line, in red."""
    for contexts, stacks in _stretches(scene):
        tops = [max(stack[-1].top_bytes, scene.load_line_bytes) for stack in stacks]
        path = _between(places, contexts, [scene.load_line_bytes] * len(tops), tops)
        if path.boundingRect().height() >= 1:
            _fill(canvas, path, inks.over_ink(canvas.theme), places.plot)


def _stretches(scene: CurveScene) -> Iterator[tuple[list[int], list[tuple[Layer, ...]]]]:
    pairs = zip(scene.contexts, scene.stacks, strict=True)
    for is_there, group in groupby(pairs, key=lambda pair: pair[1] is not None):
        if is_there:
            found = list(group)
            yield [c for c, _ in found], [stack for _, stack in found if stack]


def _between(
    places: CurvePlaces, contexts: Sequence[int], low: Sequence[int], high: Sequence[int]
) -> QPainterPath:
    upper = [_place(places, c, size) for c, size in zip(contexts, high, strict=True)]
    lower = [_place(places, c, size) for c, size in zip(contexts, low, strict=True)]
    path = QPainterPath()
    path.addPolygon(QPolygonF([*upper, *reversed(lower)]))
    path.closeSubpath()
    return path


def _place(places: CurvePlaces, context: int, size_bytes: int) -> QPointF:
    return QPointF(places.x.at(context), places.scale.y(size_bytes))


def _top_bytes(scene: CurveScene) -> int:
    """Top of the stack that is nearest to the plan's."""
    known = [
        (abs(context - scene.point.context), stack[-1].top_bytes)
        for context, stack in zip(scene.contexts, scene.stacks, strict=True)
        if stack
    ]
    return min(known)[1] if known else 0


def _axis_of_memory(canvas: Canvas, scene: CurveScene, places: CurvePlaces) -> None:
    theme, plot = canvas.theme, places.plot
    font = theme.font("caption.num")
    height = QFontMetricsF(font).height()
    edge, ink = theme.color("line.control.edge"), theme.color("text.tertiary")
    taken = places.scale.y(scene.load_line_bytes)
    for size, text in tick_values(places.scale, scene.unit, _LEAST_TICK_PX * theme.text_scale):
        y = canvas.snap(places.scale.y(size))
        canvas.line(QLineF(plot.right(), y, plot.right() + _TICK, y), edge)
        if abs(y - taken) > height:
            row = QRectF(plot.right() + _TICK + 3, y - height / 2, 60, height)
            canvas.text(row, text, font, ink)
    row = QRectF(plot.right() + _TICK + 3, plot.top() - height - 4, 40, height)
    canvas.text(row, scene.unit.value, font, ink)


def _load_line(canvas: Canvas, scene: CurveScene, places: CurvePlaces) -> None:
    theme, plot = canvas.theme, places.plot
    color = theme.color("chart.loadline")
    y = canvas.snap(places.scale.y(scene.load_line_bytes), 2)
    canvas.line(QLineF(plot.left() - 8, y, plot.right() + 5, y), color, 2)
    font = theme.font("small.strong.num")
    text = format_gib(scene.load_line_bytes, scene.unit, digits=1, unit=False)
    metrics = QFontMetricsF(font)
    tag = QRectF(
        plot.right() + 5, y - metrics.height() / 2 - 1, metrics.horizontalAdvance(text) + 12, 0
    )
    tag.setHeight(metrics.height() + 2)
    canvas.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    canvas.painter.setPen(Qt.PenStyle.NoPen)
    canvas.painter.setBrush(color)
    canvas.painter.drawRoundedRect(canvas.snapped(tag), 3, 3)
    canvas.text(tag, text, font, theme.color("accent.on"), Qt.AlignmentFlag.AlignCenter)


def _longest(canvas: Canvas, scene: CurveScene, places: CurvePlaces) -> None:
    """Where the plan stops fitting."""
    if scene.longest is None or not places.x.low < scene.longest < places.x.high:
        return
    theme, plot = canvas.theme, places.plot
    x = canvas.snap(places.x.at(scene.longest))
    canvas.line(QLineF(x, plot.top(), x, plot.bottom()), theme.color("map.contour"), 1, dash=(5, 4))
    words = tr("Fits up to {tokens}").format(tokens=count(scene.longest))
    small = theme.font("caption")
    box = box_size(words, small)
    box.moveBottom(plot.top() - 1)
    box.moveLeft(max(plot.left(), min(x - box.width() / 2, plot.right() - box.width())))
    callout(canvas, box, words, small, border="line.control.edge")
