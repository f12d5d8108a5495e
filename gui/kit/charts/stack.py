"""The bar at the left: regions, hatches, ranges, labels, and the part above the load line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPolygonF

from engine.budget.model import Region
from gui.kit.charts import inks, layout
from gui.kit.charts.pens import RIGHT

if TYPE_CHECKING:
    from gui.kit.charts.layout import PanelLayout
    from gui.kit.charts.pens import Canvas
    from gui.kit.charts.scene import Segment

_OVER_BADGE_END = 40
_OVER_BADGE_PAD = 8


def bar(canvas: Canvas, place: PanelLayout) -> None:
    """The stack, and above the load line what the driver keeps."""
    panel, scale, rect = place.panel, place.scale, place.bar
    for segment in panel.segments:
        if segment.is_open:
            _open_bracket(canvas, place, segment)
            continue
        fill_segment(canvas, segment, scale, rect.left(), rect.width())
    reserve = QRectF(
        QPointF(rect.left(), scale.y(panel.total_bytes)),
        QPointF(rect.right(), scale.y(max(panel.load_line_bytes, panel.stack_bytes))),
    )
    if reserve.height() > 1:
        inks.fill(canvas.painter, canvas.snapped(reserve), inks.reserve_ink(canvas.theme))


def fill_segment(
    canvas: Canvas, segment: Segment, scale: layout.Scale, left: float, width: float
) -> None:
    """One region as a filled rectangle, with a hair of ground above it to set it apart."""
    for low, high, is_spare in segment.parts:
        top = max(scale.y(high), scale.top)
        bottom = min(scale.y(low), scale.bottom)
        rect = canvas.snapped(QRectF(left, top, width, bottom - top))
        at_top = high == segment.top_bytes or high in segment.edges
        if at_top and rect.height() > 2 and segment.region is not Region.HEADROOM:
            rect.setTop(rect.top() + 1)
        with_ink = inks.ink(
            canvas.theme, segment.region, is_spare=is_spare, patterns=canvas.style.patterns
        )
        inks.fill(canvas.painter, rect, with_ink)
        if canvas.theme.is_contrast and with_ink.hatch != "solid" and rect.height() > 1:
            edge = canvas.theme.color(inks.color_name(segment.region))
            canvas.frame(rect.adjusted(0.5, 0.5, -0.5, -0.5), edge)


def _open_bracket(canvas: Canvas, place: PanelLayout, segment: Segment) -> None:
    """Only the lower edge is known: two sides that end open, and no top."""
    color = canvas.theme.color(inks.color_name(segment.region))
    bottom = canvas.snap(place.scale.y(segment.bottom_bytes))
    known = place.scale.y(segment.top_bytes)
    top = max(place.scale.top, min(known, bottom - 48))
    if known < bottom - 1:
        fill_segment(canvas, segment, place.scale, place.bar.left(), place.bar.width())
    for x in (place.bar.left() + 1, place.bar.right() - 1):
        canvas.line(QLineF(x, bottom, x, top), color, 2, dash=(3, 3))
    canvas.line(QLineF(place.bar.left(), bottom - 1, place.bar.right(), bottom - 1), color, 2)


def over(canvas: Canvas, place: PanelLayout) -> None:
    """What doesn't fit: hatched in red from the load line to the top of the stack."""
    panel = place.panel
    if not panel.over_bytes:
        return
    theme = canvas.theme
    top, bottom = place.scale.y(panel.stack_bytes), place.scale.y(panel.load_line_bytes)
    rect = QRectF(QPointF(place.bands.left() + 1, top), QPointF(place.bands.right(), bottom))
    inks.fill(canvas.painter, canvas.snapped(rect), inks.over_ink(theme))
    outline = canvas.snapped(QRectF(place.bar.left(), top, place.bar.width(), bottom - top))
    canvas.frame(outline.adjusted(1, 1, -1, 0), theme.color("over"), 2)
    font = theme.font("small.strong.num")
    metrics = QFontMetricsF(font)
    text = canvas.fitting(
        panel.over_texts,
        font,
        place.bands.right() - place.time_left - 2 * _OVER_BADGE_PAD - 40,
    )
    if not text:
        return
    badge = QRectF(0, 0, metrics.horizontalAdvance(text) + 2 * _OVER_BADGE_PAD, 0)
    badge.setHeight(metrics.height() + 4)
    if badge.height() <= rect.height():
        badge.moveCenter(QPointF(place.time_left + 4 + badge.width() / 2, rect.center().y()))
    else:
        # Too little is over to write in it: above the line, clear of the mark at its end.
        badge.moveBottomRight(QPointF(place.bands.right() - _OVER_BADGE_END, rect.bottom() - 3))
    canvas.painter.fillRect(canvas.snapped(badge), theme.color("over.soft"))
    canvas.text(badge, text, font, theme.color("over"), Qt.AlignmentFlag.AlignCenter)


def brackets(canvas: Canvas, place: PanelLayout) -> None:
    """The range of each region's upper edge, one column each."""
    column = canvas.theme.size("chart.bracket.column")
    width = canvas.theme.sizes["line.chart.bracket"]
    x = place.bar.right() + 8
    for segment in place.panel.segments:
        if segment.low_bytes == segment.high_bytes or x > place.time_left - 2:
            continue
        low = place.scale.y(segment.low_bytes)
        high = max(place.scale.top - 4, place.scale.y(segment.high_bytes))
        color = canvas.theme.color(inks.color_name(segment.region))
        canvas.smooth_line(QLineF(x, low, x, high), color, width)
        for y in (low, high):
            canvas.smooth_line(QLineF(x - 2.5, y, x + 2.5, y), color, width)
        x += column


def labels(canvas: Canvas, place: PanelLayout) -> None:
    """Name, figure and leader of each region that has room for them."""
    theme = canvas.theme
    names, values = theme.font("small"), theme.font("small.strong.num")
    height = QFontMetricsF(values).height()
    name_right, value_right = layout.name_right(place, canvas.style), layout.value_right(place)
    bar_left = place.bar.left()
    for label in place.labels:
        row = QRectF(name_right - 1000, label.y - height / 2, 1000, height)
        canvas.text(row, label.segment.label, names, theme.color("text.secondary"), RIGHT)
        row.moveRight(value_right)
        canvas.text(row, label.segment.value, values, theme.color("text.primary"), RIGHT)
        color = theme.color(inks.color_name(label.segment.region))
        start = value_right + 4
        knee = (bar_left - start) * 0.42
        canvas.polyline(
            QPolygonF(
                [
                    QPointF(start, label.y),
                    QPointF(start + knee * 0.66, label.y),
                    QPointF(start + knee * 1.66, label.mark_y),
                    QPointF(bar_left - 2, label.mark_y),
                ]
            ),
            color,
            theme.sizes["line.chart.leader"],
        )
