"""The lens: the thin regions at the top of the stack, at several times the scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF
from PySide6.QtGui import QColor, QFontMetricsF, QPolygonF

from engine.budget.model import Region
from engine.units import UnitSystem, format_gib
from engine.words import tr
from gui.kit.charts import inks, stack
from gui.kit.charts.axis import tick_values
from gui.kit.charts.pens import LEFT, RIGHT

if TYPE_CHECKING:
    from gui.kit.charts.layout import LensLayout, PanelLayout
    from gui.kit.charts.pens import Canvas
    from gui.kit.charts.scene import Panel

COLUMN = 16
_INSET = 8
_LEAST_TICK_PX = 30
_TICK = 5


def paint(canvas: Canvas, place: PanelLayout, lens: LensLayout, unit: UnitSystem) -> None:
    """Frame, link to the main scale, regions and ticks."""
    panel = place.panel
    _link(canvas, place, lens)
    _regions(canvas, panel, lens)
    _reserve(canvas, panel, lens)
    _over(canvas, panel, lens)
    _ticks(canvas, panel, lens, unit)
    canvas.frame(canvas.snapped(lens.box).adjusted(0.5, 0.5, -0.5, -0.5), _edge(canvas))


def title(canvas: Canvas, lens: LensLayout, texts: tuple[str, ...]) -> None:
    """The words over the lens: the longest of ``texts`` that has room, in the language."""
    font = canvas.theme.font("caption")
    height = QFontMetricsF(font).height()
    room = lens.box.width() + 34 * canvas.theme.text_scale
    row = QRectF(lens.box.left(), lens.box.top() - height - 5, room, height)
    words = canvas.fitting([tr(text) for text in texts], font, room)
    canvas.text(row, words, font, canvas.theme.color("text.secondary"))


def words(canvas: Canvas, panel: Panel, lens: LensLayout, held: tuple[float, float] | None) -> None:
    """Names and figures of the regions that are high enough for a line of text.

    Args:
        canvas: where to write.
        panel: whose regions.
        lens: where they stand.
        held: from and to which y a measurement runs; figures give way to it, names move.
    """
    theme = canvas.theme
    names, values = theme.font("caption"), theme.font("caption.strong.num")
    height = QFontMetricsF(names).height()
    left, right = lens.box.left() + COLUMN + _INSET, lens.box.right() - _INSET
    rows: list[tuple[float, float, str, str]] = [
        (s.bottom_bytes, s.top_bytes, s.label, s.value) for s in panel.segments
    ]
    above = max(panel.load_line_bytes, panel.stack_bytes)
    rows.append((above, panel.total_bytes, panel.reserve_label, ""))
    line = lens.scale.y(panel.load_line_bytes)
    lines = [(line - 1, line + 1)] + ([held] if held else [])
    for low, high, label, value in rows:
        top, bottom = lens.scale.y(high), lens.scale.y(low)
        is_whole = top >= lens.box.top() - 1 and bottom <= lens.box.bottom() + 1
        seen = (max(top, lens.box.top()), min(bottom, lens.box.bottom()))
        top, bottom = _freest(seen, lines)
        if bottom - top < height - 1:
            continue
        row = QRectF(left, (top + bottom - height) / 2, right - left, height)
        shown = value if is_whole and not held else ""
        room = row.width() - QFontMetricsF(values).horizontalAdvance(shown) - 6
        name = canvas.elided(label, names, room)
        canvas.text(row, name, names, theme.color("text.secondary"), LEFT)
        if shown:
            canvas.text(row, shown, values, theme.color("text.primary"), RIGHT)


def _freest(span: tuple[float, float], lines: list[tuple[float, float]]) -> tuple[float, float]:
    """The longest part of ``span`` that none of ``lines`` (each from, to) runs through."""
    parts = [span]
    for top, bottom in lines:
        cut: list[tuple[float, float]] = []
        for a, b in parts:
            if bottom <= a or top >= b:
                cut.append((a, b))
            else:
                cut += [(a, top), (bottom, b)]
        parts = cut
    return max(parts, key=lambda part: part[1] - part[0])


def load_line(canvas: Canvas, panel: Panel, lens: LensLayout, unit: UnitSystem) -> None:
    """The load line across the lens, and its figure on the lens's axis."""
    if not lens.scale.low_bytes <= panel.load_line_bytes <= lens.scale.high_bytes:
        return
    color = canvas.theme.color("chart.loadline")
    y = canvas.snap(lens.scale.y(panel.load_line_bytes), 2)
    canvas.line(QLineF(lens.box.left(), y, lens.box.right(), y), color, 2)
    font = canvas.theme.font("caption.strong.num")
    height = QFontMetricsF(font).height()
    text = format_gib(panel.load_line_bytes, unit, digits=1, unit=False)
    row = QRectF(lens.box.right() + 9, y - height / 2, 40, height)
    canvas.text(row, text, font, canvas.theme.color("accent.text"))


def _edge(canvas: Canvas) -> QColor:
    return canvas.theme.color("line.control.edge")


def _link(canvas: Canvas, place: PanelLayout, lens: LensLayout) -> None:
    top = place.scale.y(lens.scale.high_bytes)
    bottom = place.scale.y(lens.scale.low_bytes)
    canvas.polyline(
        QPolygonF(
            [
                QPointF(lens.box.left(), lens.box.top()),
                QPointF(lens.link_x, top),
                QPointF(lens.link_x, bottom),
                QPointF(lens.box.left(), lens.box.bottom()),
            ]
        ),
        _edge(canvas),
        1,
    )


def _regions(canvas: Canvas, panel: Panel, lens: LensLayout) -> None:
    theme = canvas.theme
    for segment in panel.segments:
        top = max(lens.scale.y(segment.top_bytes), lens.box.top())
        bottom = min(lens.scale.y(segment.bottom_bytes), lens.box.bottom())
        if bottom <= top:
            continue
        if segment.region is not Region.HEADROOM:
            alpha = theme.alpha("band") * 1.6
            band = QRectF(lens.box.left(), top, lens.box.width(), bottom - top)
            tint = theme.mixed(inks.color_name(segment.region), alpha)
            canvas.painter.fillRect(canvas.snapped(band), tint)
        stack.fill_segment(canvas, segment, lens.scale, lens.box.left(), COLUMN)


def _reserve(canvas: Canvas, panel: Panel, lens: LensLayout) -> None:
    low = max(panel.load_line_bytes, panel.stack_bytes)
    top = max(lens.scale.y(panel.total_bytes), lens.box.top())
    bottom = min(lens.scale.y(low), lens.box.bottom())
    if bottom - top > 1:
        rect = QRectF(lens.box.left(), top, COLUMN, bottom - top)
        inks.fill(canvas.painter, canvas.snapped(rect), inks.reserve_ink(canvas.theme))


def _over(canvas: Canvas, panel: Panel, lens: LensLayout) -> None:
    if not panel.over_bytes or panel.stack_bytes <= lens.scale.low_bytes:
        return
    top = max(lens.scale.y(panel.stack_bytes), lens.box.top())
    bottom = min(lens.scale.y(panel.load_line_bytes), lens.box.bottom())
    if bottom > top:
        rect = canvas.snapped(QRectF(lens.box.left(), top, lens.box.width(), bottom - top))
        canvas.frame(rect.adjusted(1, 1, -1, -1), canvas.theme.color("over"), 2)


def _ticks(canvas: Canvas, panel: Panel, lens: LensLayout, unit: UnitSystem) -> None:
    theme = canvas.theme
    font = theme.font("caption.num")
    height = QFontMetricsF(font).height()
    x = lens.box.right()
    line_y = lens.scale.y(panel.load_line_bytes)
    for size, text in tick_values(lens.scale, unit, _LEAST_TICK_PX * theme.text_scale):
        y = lens.scale.y(size)
        at_edge = y < lens.box.top() + 2 or y > lens.box.bottom() - 2
        if abs(y - line_y) < height or at_edge:
            continue
        canvas.line(QLineF(x, canvas.snap(y), x + _TICK, canvas.snap(y)), _edge(canvas))
        canvas.text(
            QRectF(x + 9, y - height / 2, 40, height), text, font, theme.color("text.tertiary")
        )
