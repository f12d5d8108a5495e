"""The memory axis with its two tags, and the time axis."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF

from engine.units import UnitSystem, format_gib
from engine.words import figures, tr, tr_later
from gui.kit.charts.labels import steps
from gui.kit.charts.pens import LEFT, RIGHT

if TYPE_CHECKING:
    from gui.kit.charts.layout import PanelLayout, Scale
    from gui.kit.charts.pens import Canvas

_LEAST_TICK_PX = 30
_LEAST_TIME_TICK_PX = 90
_LEAST_RUN_TICK_PX = 56
"""For a recording, whose ticks are bare numbers."""
_TICK = 5
_MINUS = "\N{MINUS SIGN}"
_TIME_UNITS = (
    (tr_later("{time} h"), 3600),
    (tr_later("{time} min"), 60),
    (tr_later("{time} s"), 1),
)
_TIME_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200)


@dataclass(frozen=True, slots=True)
class Tag:
    """A figure on the axis, in a box of its own colour."""

    size_bytes: int
    text: str
    ground: QColor
    color: QColor


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """What part of time is shown, in the seconds of the samples."""

    start_s: float
    end_s: float
    from_start: bool = False
    """Whether the ticks count from the start (a recording) or back from now."""
    clock_offset_s: float | None = None
    """Unix time at second 0, where the ticks are times of day: the window ends at no "now"."""

    def x(self, time_s: float, rect: QRectF) -> float:
        """Where a moment stands in ``rect``."""
        share = (time_s - self.start_s) / (self.end_s - self.start_s)
        return rect.left() + share * rect.width()

    def time_at(self, x: float, rect: QRectF) -> float:
        """The inverse of ``x``."""
        share = (x - rect.left()) / rect.width()
        return self.start_s + share * (self.end_s - self.start_s)


def tick_values(scale: Scale, unit: UnitSystem, least_px: float) -> list[tuple[float, str]]:
    """Bytes and words of the ticks of a memory axis."""
    low, high = scale.low_bytes / unit.factor, scale.high_bytes / unit.factor
    step = steps(high - low, scale.bottom - scale.top, least_px, binary=unit is UnitSystem.BINARY)
    digits = 0 if step >= 1 else 1 if step >= 0.1 else 2
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [
        (i * step * unit.factor, figures(f"{i * step:,.{digits}f}")) for i in range(first, last + 1)
    ]


def memory_axis(
    canvas: Canvas, place: PanelLayout, unit: UnitSystem, tags: tuple[Tag, ...]
) -> None:
    """Ticks and numbers right of the bands; numbers give way to the tags."""
    theme = canvas.theme
    font = theme.font("caption.num")
    metrics = QFontMetricsF(font)
    x = place.bands.right()
    boxes = _tag_boxes(canvas, place, tags)
    for size, text in tick_values(place.scale, unit, _LEAST_TICK_PX * theme.text_scale):
        y = canvas.snap(place.scale.y(size))
        canvas.line(QLineF(x, y, x + _TICK, y), theme.color("line.control.edge"))
        row = QRectF(x + 8, y - metrics.height() / 2, 60, metrics.height())
        if not any(row.intersects(box.adjusted(0, -1, 0, 1)) for box in boxes):
            canvas.text(row, text, font, theme.color("text.tertiary"))
    for tag, box in zip(tags, boxes, strict=True):
        _tag(canvas, tag, box)


def _tag_boxes(canvas: Canvas, place: PanelLayout, tags: tuple[Tag, ...]) -> list[QRectF]:
    """Boxes of the tags, each a little away from those before it."""
    font = canvas.theme.font("small.strong.num")
    metrics = QFontMetricsF(font)
    height = math.ceil(metrics.height()) + 2
    made: list[QRectF] = []
    for tag in tags:
        width = max(44.0 * canvas.theme.text_scale, metrics.horizontalAdvance(tag.text) + 12)
        y = place.scale.y(tag.size_bytes)
        for other in made:
            if abs(other.center().y() - y) < height:
                below = y >= other.center().y() - 0.5
                y = other.center().y() + (height if below else -height)
        y = min(max(y, place.scale.top), place.scale.bottom - height / 2 + 3)
        made.append(canvas.snapped(QRectF(place.bands.right() + 5, y - height / 2, width, height)))
    return made


def _tag(canvas: Canvas, tag: Tag, box: QRectF) -> None:
    canvas.painter.setPen(Qt.PenStyle.NoPen)
    canvas.painter.setBrush(tag.ground)
    radius = canvas.theme.size("radius.tag")
    canvas.painter.setRenderHint(canvas.painter.RenderHint.Antialiasing)
    canvas.painter.drawRoundedRect(box, radius, radius)
    font = canvas.theme.font("small.strong.num")
    canvas.text(box.adjusted(5, 0, -5, 0), tag.text, font, tag.color)


def time_axis(
    canvas: Canvas, place: PanelLayout, window: TimeWindow | None, unit: UnitSystem
) -> None:
    """Ticks and words under the chart; only the unit of the memory axis without a window."""
    theme = canvas.theme
    font = theme.font("caption.num")
    height = QFontMetricsF(font).height()
    below = place.bands.bottom() + place.strip_height
    top = below + max(7.0, height / 2)
    color = theme.color("text.tertiary")
    if place.has_axis:
        row = QRectF(place.bands.right() + 8, top, 40, height)
        canvas.text(row, unit.value, font, color)
    if window is None:
        return
    rect = place.time
    taken = rect.right() + 6
    for time_s, text in reversed(_time_ticks(window, rect.width() / theme.text_scale)):
        x = canvas.snap(window.x(time_s, rect))
        canvas.line(QLineF(x, below, x, below + 4), theme.color("line.control.edge"))
        width = QFontMetricsF(font).horizontalAdvance(text)
        at_left, at_right = x - rect.left() < 2, rect.right() - x < width / 2
        left = x if at_left else x - width if at_right else x - width / 2
        if left + width <= taken - 4 and left >= rect.left() - 1:
            align = LEFT if at_left else RIGHT if at_right else Qt.AlignmentFlag.AlignCenter
            canvas.text(QRectF(left, top, width, height), text, font, color, align)
            taken = left


def _time_ticks(window: TimeWindow, width: float) -> list[tuple[float, str]]:
    if window.clock_offset_s is not None:
        return _clock_ticks(window, window.clock_offset_s, width)
    span = window.end_s - window.start_s
    most = max(1, width / (_LEAST_RUN_TICK_PX if window.from_start else _LEAST_TIME_TICK_PX))
    # From two minutes on, whole minutes: "-90 s" takes a moment to read.
    least = 60 if span >= 120 else 1
    fitting = (s for s in _TIME_STEPS_S if s >= least and span / s <= most)
    step = next(fitting, _TIME_STEPS_S[-1])
    count = math.floor(span / step + 1e-9)
    words, factor = next((words, f) for words, f in _TIME_UNITS if step % f == 0)
    made: list[tuple[float, str]] = []
    for index in range(count + 1):
        value = index * step // factor
        first = index in {0, count}
        if window.from_start:
            word = tr(words).format(time=value) if index == 0 else str(value)
            made.append((window.start_s + index * step, word))
        else:
            back = f"{_MINUS}{value}"
            word = tr(words).format(time=back) if first or count <= 2 else back
            made.append((window.end_s - index * step, tr("now") if index == 0 else word))
    return made if window.from_start else made[::-1]


def _clock_ticks(window: TimeWindow, offset_s: float, width: float) -> list[tuple[float, str]]:
    """Ticks at round times of this computer's day."""
    span = window.end_s - window.start_s
    most = max(1, width / _LEAST_TIME_TICK_PX)
    step = next((s for s in _TIME_STEPS_S if span / s <= most), _TIME_STEPS_S[-1])
    zone_s = time.localtime(window.end_s + offset_s).tm_gmtoff
    form = "%H:%M:%S" if step % 60 else "%H:%M"
    first = math.ceil((window.start_s + offset_s + zone_s) / step)
    last = math.floor((window.end_s + offset_s + zone_s) / step)
    moments = (index * step - zone_s for index in range(first, last + 1))
    return [(at - offset_s, time.strftime(form, time.localtime(at))) for at in moments]


def tags(
    canvas: Canvas, place: PanelLayout, unit: UnitSystem, measured_bytes: int | None, age: str
) -> tuple[Tag, ...]:
    """The tag of the load line, and that of the last measurement."""
    theme = canvas.theme
    line = place.panel.load_line_bytes
    made = [Tag(line, _short(line, unit), theme.color("chart.loadline"), theme.color("accent.on"))]
    if measured_bytes is not None:
        ground = theme.color("text.tertiary" if age else "chart.measured")
        text = age or _short(measured_bytes, unit)
        made.append(Tag(measured_bytes, text, ground, theme.color("surface.base")))
    return tuple(made)


def _short(size_bytes: int, unit: UnitSystem) -> str:
    return format_gib(size_bytes, unit, digits=1, unit=False)
