"""What is held beyond the plan: named beside the line, and bracketed in the lens."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from engine.overlay import words
from engine.overlay.residue import LEAST_BYTES
from engine.units import format_gib
from engine.words import begun_small
from gui.kit.charts.pens import RIGHT

if TYPE_CHECKING:
    from PySide6.QtGui import QFont

    from gui.kit.charts.layout import LensLayout, PanelLayout
    from gui.kit.charts.measured import Live
    from gui.kit.charts.pens import Canvas
    from gui.kit.charts.scene import Panel

_COLUMN = 16
_PAD = 10
_FROM_AXIS = 26
_LEADER_X = 8
_BELOW_LINE = 36
_STEP = 6


class Excess(NamedTuple):
    """How far the measurement is from the plan, and the region that is named for it."""

    size_bytes: int
    region: str


def excess(panel: Panel, live: Live, used_bytes: float) -> Excess | None:
    """What is to be bracketed; None where the plan explains all, or nothing of it runs."""
    if live.overlay is None:
        # A picture of the past knows no phases: all above the likely figure is shown.
        more = int(used_bytes - panel.held_bytes)
        return Excess(more, "") if more >= LEAST_BYTES else None
    rank = live.overlay.of(panel.rank)
    found = rank.residue if rank else None
    if found is None or not found.is_unexplained:
        return None
    name = begun_small(found.suspects[0].region.label) if found.suspects else ""
    return Excess(found.size_bytes, name)


def signed(panel: Panel, live: Live) -> str:
    """``+2.3`` where a rank's plan doesn't explain what it holds; else empty."""
    rank = live.overlay.of(panel.rank) if live.overlay else None
    found = rank.residue if rank else None
    if found is None or not found.is_unexplained:
        return ""
    return format_gib(found.size_bytes, live.unit, digits=1, signed=True, unit=False)


def in_lens(canvas: Canvas, panel: Panel, lens: LensLayout, used_bytes: float, live: Live) -> None:
    """A dashed line at the plan, a bracket to the measurement, the size and the region's name."""
    found = excess(panel, live, used_bytes)
    if found is None:
        return
    theme = canvas.theme
    color = theme.color("tight")
    box = lens.box
    plan_y = lens.scale.y(used_bytes - found.size_bytes)
    plan_y = canvas.snap(min(max(plan_y, box.top()), box.bottom()))
    used_y = canvas.snap(lens.scale.y(used_bytes))
    left, right = box.left() + _COLUMN, box.right() - 1
    canvas.line(QLineF(left, plan_y, right, plan_y), color, 1, dash=(4, 3))
    x = right - 10
    width = theme.sizes["line.residue"]
    canvas.smooth_line(QLineF(x, plan_y, x, used_y), color, width)
    for y in (plan_y, used_y):
        canvas.smooth_line(QLineF(x - 4, y, x + 4, y), color, width)
    font = theme.font("caption.strong.num")
    height = QFontMetricsF(font).height()
    if abs(plan_y - used_y) < height:
        return
    row = QRectF(left, (plan_y + used_y - height) / 2, x - 8 - left, height)
    size = format_gib(found.size_bytes, live.unit, digits=1, signed=True, unit=False)
    text = canvas.fitting((f"{found.region} {size}".strip(), size), font, row.width())
    canvas.text(row, text, font, color, RIGHT)


def callout(canvas: Canvas, place: PanelLayout, live: Live) -> None:
    """``0.4 GiB more than planned: runtime`` in a box, with a line to where the run is now."""
    rank = live.overlay.of(place.panel.rank) if live.overlay else None
    found = rank.residue if rank else None
    series, window = live.of(place.panel), live.window
    if found is None or not found.is_unexplained or series is None or window is None:
        return
    last, newest = series.nearest(window.end_s), series.newest
    # What is named is about now: a picture of an earlier time says nothing of it.
    if last is None or last.used_bytes is None or newest is None or last.time_s < newest.time_s:
        return
    used_y = place.scale.y(last.used_bytes)
    head = words.residue_name(found, live.unit)
    for tail in (*words.residue_why(found), ""):
        box = _box(canvas, place, head, tail)
        if box is not None and _settle(canvas, place, live, box, used_y):
            _draw(canvas, box, QPointF(place.time.right() - _LEADER_X, used_y))
            _write(canvas, box, head, tail)
            return


def _box(canvas: Canvas, place: PanelLayout, head: str, tail: str) -> QRectF | None:
    """Room for both lines at the right end of the chart; None where it has not so much."""
    bold, plain = (QFontMetricsF(font) for font in _fonts(canvas))
    width = max(bold.horizontalAdvance(head), plain.horizontalAdvance(tail)) + 2 * _PAD
    if width > place.time.width() - _FROM_AXIS - _PAD:
        return None
    height = bold.height() + (plain.height() if tail else 0) + _PAD
    box = QRectF(0, 0, width, height)
    box.moveRight(place.time.right() - _FROM_AXIS)
    return box


def _fonts(canvas: Canvas) -> tuple[QFont, QFont]:
    return canvas.theme.font("small.strong.num"), canvas.theme.font("small")


def _write(canvas: Canvas, box: QRectF, head: str, tail: str) -> None:
    bold, plain = _fonts(canvas)
    row = box.adjusted(_PAD, _PAD / 2, -_PAD, 0)
    row.setHeight(QFontMetricsF(bold).height())
    canvas.text(row, head, bold, canvas.theme.color("text.primary"))
    if tail:
        row.translate(0, row.height())
        row.setHeight(QFontMetricsF(plain).height())
        canvas.text(row, tail, plain, canvas.theme.color("text.secondary"))


def _settle(canvas: Canvas, place: PanelLayout, live: Live, box: QRectF, used_y: float) -> bool:
    """Move ``box`` below the line, off the words if that can be. Returns whether it has room."""
    taken = [written for written, _ in canvas.words]
    first, last = used_y + _BELOW_LINE, place.time.bottom() - box.height() - 4
    for avoids_words in (True, False):
        top = first
        while top <= last:
            box.moveTop(top)
            is_free = not any(box.intersects(other) for other in taken)
            if (is_free or not avoids_words) and not _line_crosses(place, live, box):
                return True
            top += _STEP
    return False


def _line_crosses(place: PanelLayout, live: Live, box: QRectF) -> bool:
    """Whether the measured line runs through ``box``."""
    series, window = live.of(place.panel), live.window
    if series is None or window is None:
        return False
    times = (window.time_at(x, place.time) for x in (box.left() - 4, box.right() + 4))
    used = series.window(*times)[1]
    low, high = place.scale.bytes_at(box.bottom() + 4), place.scale.bytes_at(box.top() - 4)
    return bool(((used >= low) & (used <= high)).any())


def _draw(canvas: Canvas, box: QRectF, now: QPointF) -> None:
    theme = canvas.theme
    color = theme.color("tight")
    y = canvas.snap(box.center().y())
    x = canvas.snap(now.x())
    canvas.smooth_line(QLineF(box.right(), y, x, y), color, 1)
    canvas.smooth_line(QLineF(x, y, x, now.y() + 2), color, 1)
    canvas.smooth_line(QLineF(x - 3, now.y() + 2, x + 3, now.y() + 2), color, 1.5)
    canvas.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    canvas.painter.setPen(QPen(color, 1))
    canvas.painter.setBrush(theme.color("chart.callout"))
    canvas.painter.drawRoundedRect(canvas.snapped(box).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
    canvas.painter.setBrush(Qt.BrushStyle.NoBrush)
