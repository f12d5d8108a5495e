"""What a run is doing, in a strip below the chart: names, and when prompts came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF

from engine.overlay.seen import RUNNING, Seen

if TYPE_CHECKING:
    from engine.overlay.seen import Span
    from gui.kit.charts.layout import PanelLayout
    from gui.kit.charts.measured import Live
    from gui.kit.charts.pens import Canvas

_GAP = 3
"""Between the chart and the strip, and round it."""
_THIN_PX = 4
"""A phase thinner than this is drawn as part of the one before."""
_TICK_PX = 2


def rect(place: PanelLayout) -> QRectF:
    """Where the strip stands; empty where it has no room."""
    top = place.bands.bottom() + _GAP
    height = max(place.strip_height - 2 * _GAP, 0)
    return QRectF(place.time.left(), top, place.time.width(), height)


def blocks(place: PanelLayout, live: Live) -> list[tuple[Span, float, float]]:
    """Phase by phase from which to which x it runs, thin ones taken into those before them."""
    overlay, window = live.overlay, live.window
    found = overlay.of(place.panel.rank) if overlay else None
    if found is None or window is None:
        return []
    made: list[tuple[Span, float, float]] = []
    for span in found.run.spans:
        start = max(span.start_s + live.shift_s, window.start_s)
        end = min(span.end_s + live.shift_s, window.end_s)
        if end <= start or span.phase not in (*RUNNING, Seen.AFTER):
            continue
        left, right = window.x(start, place.time), window.x(end, place.time)
        last = made[-1] if made else None
        is_next = last is not None and left - last[2] < 1
        is_thin = right - left < _THIN_PX
        if last is not None and is_next and (is_thin or last[0].label == span.label):
            made[-1] = (last[0], last[1], right)
        else:
            made.append((span, left, right))
    return made


def paint(canvas: Canvas, place: PanelLayout, live: Live) -> None:
    """Blocks with the names that have room, and a tick where a prompt began to be read."""
    strip = rect(place)
    if strip.height() <= 0:
        return
    theme = canvas.theme
    font = theme.font("caption")
    width = QFontMetricsF(font).horizontalAdvance
    named: list[QRectF] = []
    for span, left, right in blocks(place, live):
        block = canvas.snapped(QRectF(left, strip.top(), max(right - left - 1, 1), strip.height()))
        if span.phase in RUNNING:
            canvas.painter.fillRect(block, theme.color("surface.sunken"))
        name = span.label
        if width(name) + 8 <= block.width():
            row = block.adjusted(5, 0, 0, 0)
            row.setWidth(width(name))
            named.append(row)
            canvas.text(row, name, font, theme.color("text.secondary"))
    _ticks(canvas, place, live, named)


def _ticks(canvas: Canvas, place: PanelLayout, live: Live, named: list[QRectF]) -> None:
    """Through the strip, but through no name."""
    strip = rect(place)
    overlay, window = live.overlay, live.window
    found = overlay.of(place.panel.rank) if overlay else None
    if found is None or window is None:
        return
    drawn = strip.left() - _TICK_PX
    for began in found.run.prefills_s:
        moment = began + live.shift_s
        if not window.start_s <= moment <= window.end_s:
            continue
        x = canvas.snap(window.x(moment, place.time))
        if x - drawn >= 2 * _TICK_PX:
            drawn = x
            tick = QRectF(x, strip.top(), _TICK_PX, strip.height())
            if not any(row.adjusted(-3, 0, 3, 0).intersects(tick) for row in named):
                canvas.painter.fillRect(tick, canvas.theme.color("region.kv"))
