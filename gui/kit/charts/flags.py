"""Markers over the time chart: a thin line from the axis up, with a flag that can be pointed at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QPolygonF

if TYPE_CHECKING:
    from engine.telemetry.markers import Marker
    from gui.kit.charts.layout import PanelLayout
    from gui.kit.charts.measured import Live
    from gui.kit.charts.pens import Canvas

_FLAG = 7
_NEAR_PX = 5


def paint(canvas: Canvas, place: PanelLayout, live: Live) -> None:
    """The markers of the window that are about this device or about all."""
    window = live.window
    if window is None or place.panel.uuid not in live.series:
        return
    painter = canvas.painter
    for moment, marker in _of(place, live):
        x = canvas.snap(window.x(moment, place.time))
        name = "over" if marker.is_trouble else "text.secondary"
        color = canvas.theme.color(name)
        bottom = place.scale.bottom
        canvas.line(QLineF(x, bottom - 3 * _FLAG, x, bottom), color, dash=(2, 2))
        top = bottom - 3 * _FLAG
        flag = QPolygonF([QPointF(x, top), QPointF(x + _FLAG, top + 3), QPointF(x, top + _FLAG)])
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        painter.setRenderHint(painter.RenderHint.Antialiasing)
        painter.drawPolygon(flag)


def near(place: PanelLayout, live: Live, x: float) -> Marker | None:
    """The marker whose flag is under ``x``, if there is one."""
    if live.window is None:
        return None
    window = live.window
    found = [
        (abs(window.x(moment, place.time) + _FLAG / 2 - x), marker)
        for moment, marker in _of(place, live)
    ]
    off, marker = min(found, key=lambda pair: pair[0], default=(_NEAR_PX + 1, None))
    return marker if off <= _NEAR_PX else None


def rect(place: PanelLayout) -> QRectF:
    """Where the flags stand."""
    row = QRectF(place.time)
    row.setTop(place.scale.bottom - 3 * _FLAG - 3)
    row.setBottom(place.scale.bottom)
    return row


def boxes(place: PanelLayout, live: Live) -> list[QRectF]:
    """What the flags cover."""
    if live.window is None:
        return []
    row = rect(place)
    places = (live.window.x(moment, place.time) for moment, _ in _of(place, live))
    return [QRectF(x - 1, row.top(), _FLAG + 2, row.height()) for x in places]


def _of(place: PanelLayout, live: Live) -> list[tuple[float, Marker]]:
    window = live.window
    if window is None:
        return []
    return [
        (moment, marker)
        for moment, marker in live.markers
        if window.start_s <= moment <= window.end_s and marker.uuid in ("", place.panel.uuid)
    ]
