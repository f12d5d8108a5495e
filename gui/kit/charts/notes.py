"""Three numbered notes that explain bar, line and measurement at the first start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF

from engine.words import tr, tr_later
from gui.kit.charts import measured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gui.kit.charts.layout import PanelLayout
    from gui.kit.charts.measured import Live
    from gui.kit.charts.pens import Canvas

NOTES = (
    (
        tr_later("What the plan will hold"),
        tr_later("The bar at the left, region by region. Each edge runs on as a band."),
    ),
    (
        tr_later("The load line"),
        tr_later("All that programs can get. The driver or the system keeps the rest."),
    ),
    (
        tr_later("What is held now"),
        tr_later("Measured once a second, over the same bands."),
    ),
)
_RADIUS = 9
_INDENT = 18
_MOST_STEP = 70


def has_room(canvas: Canvas, place: PanelLayout, live: Live) -> bool:
    """Whether all three can be read whole, with no measurement running through them."""
    rows = _rows(canvas, place) if not place.panel.over_bytes else []
    return bool(rows) and not any(measured.crosses(place, live, row) for row in rows)


def paint(canvas: Canvas, place: PanelLayout, used: int | None) -> None:
    """The notes over the bands, and their numbers beside what they are about."""
    theme = canvas.theme
    title, words = theme.font("body.strong"), theme.font("small")
    line = QFontMetricsF(title).height()
    for number, row in enumerate(_rows(canvas, place)):
        if _crossed(place, [row]):
            canvas.painter.fillRect(canvas.snapped(row), theme.color("surface.base"))
        head, text = (tr(words) for words in NOTES[number])
        upper = QRectF(row.left() + 2 * _RADIUS + 10, row.top(), row.width(), line)
        lower = QRectF(upper.left(), upper.bottom(), row.width(), row.bottom() - upper.bottom())
        canvas.text(upper, head, title, theme.color("text.primary"))
        canvas.text(lower, text, words, theme.color("text.secondary"))
        _number(canvas, QPointF(row.left() + _RADIUS + 2, upper.center().y()), number + 1)
    for number, spot in enumerate(_spots(place, used)):
        _number(canvas, spot, number + 1)


def _rows(canvas: Canvas, place: PanelLayout) -> list[QRectF]:
    """Where the notes stand between the load line and the ground; nowhere without room.

    Evenly, as wide apart as there is room, and off the edges of the bands if that can be.
    """
    title = QFontMetricsF(canvas.theme.font("body.strong"))
    words = QFontMetricsF(canvas.theme.font("small"))
    height = title.height() + words.height()
    width = max(words.horizontalAdvance(tr(text)) for _head, text in NOTES) + 2 * _RADIUS + 14
    top = place.scale.y(place.panel.load_line_bytes) + 12
    bottom = place.time.bottom() - 2 * _RADIUS
    most = min(_MOST_STEP, (bottom - top - height) / (len(NOTES) - 1))
    if most < height or width > place.time.width() - _INDENT - 2 * _RADIUS:
        return []
    choices: list[list[QRectF]] = []
    for step in range(int(most), int(height) - 1, -2):
        spare = int(bottom - top - height - step * (len(NOTES) - 1))
        # The middle first, then ever farther from it.
        for shift in sorted(range(0, spare + 1, 2), key=lambda s: abs(2 * s - spare)):
            left, first = place.time_left + _INDENT, top + shift
            rows = [QRectF(left, first + n * step, width, height) for n in range(len(NOTES))]
            if not _crossed(place, rows):
                return rows
            choices.append(rows)
    return choices[0] if choices else []


def _crossed(place: PanelLayout, rows: list[QRectF]) -> bool:
    """Whether the edge of a band runs through one of ``rows``, or touches it."""
    edges = [place.scale.y(segment.top_bytes) for segment in place.panel.segments]
    return any(row.top() - 2 < edge < row.bottom() + 2 for row in rows for edge in edges)


def _spots(place: PanelLayout, used: int | None) -> Iterator[QPointF]:
    """Beside the bar, on the load line left of its mark, and at the end of the measurement."""
    largest = max(place.panel.segments, key=lambda s: s.top_bytes - s.bottom_bytes)
    middle = place.scale.y((largest.top_bytes + largest.bottom_bytes) / 2)
    yield QPointF((place.bar.right() + place.time_left) / 2, middle)
    yield QPointF(place.bands.right() - 48, place.scale.y(place.panel.load_line_bytes))
    end = place.scale.y(used) if used is not None else place.time.bottom()
    yield QPointF(place.bands.right() - 14, end - _RADIUS - 5)


def _number(canvas: Canvas, center: QPointF, number: int) -> None:
    painter, theme = canvas.painter, canvas.theme
    painter.setRenderHint(painter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("accent"))
    painter.drawEllipse(center, _RADIUS, _RADIUS)
    place = QRectF(center.x() - _RADIUS, center.y() - _RADIUS, 2 * _RADIUS, 2 * _RADIUS)
    painter.setFont(theme.font("caption.strong.num"))
    painter.setPen(theme.color("accent.on"))
    painter.drawText(place, int(Qt.AlignmentFlag.AlignCenter), str(number))
