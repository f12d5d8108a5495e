"""Nine or more ranks: one line each, a lying bar on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QFontMetricsF

from engine.words import tr
from gui.kit.charts import inks
from gui.kit.charts.pens import LEFT, RIGHT

if TYPE_CHECKING:
    from gui.kit.charts.pens import Canvas
    from gui.kit.charts.scene import Panel, PictureScene

_LEAST_ROW = 20
_MOST_ROW = 30
_COLUMN_GAP = 32
_BESIDE_BAR = 8
_LEAST_BAR = 48


def rows(scene: PictureScene, size: QRectF, text_scale: float, pad: float) -> list[QRectF]:
    """Where each rank's line stands, column by column."""
    area = size.adjusted(pad, 12, -pad, -12)
    per_column = max(1, int(area.height() / (_LEAST_ROW * text_scale)))
    columns = -(-len(scene.panels) // per_column)
    per_column = -(-len(scene.panels) // columns)
    height = min(_MOST_ROW * text_scale, area.height() / per_column)
    width = (area.width() - (columns - 1) * _COLUMN_GAP) / columns
    return [
        QRectF(
            area.left() + (i // per_column) * (width + _COLUMN_GAP),
            area.top() + (i % per_column) * height,
            width,
            height,
        )
        for i in range(len(scene.panels))
    ]


def paint(canvas: Canvas, scene: PictureScene, size: QRectF) -> None:
    """All ranks."""
    places = rows(scene, size, canvas.theme.text_scale, canvas.style.pad)
    width = QFontMetricsF(canvas.theme.font("small.strong.num")).horizontalAdvance
    # As wide on every line, so that all bars begin and end alike.
    text_width = max(width(panel.summary) for panel in scene.panels) + _BESIDE_BAR
    room = places[0].width() - text_width - _LEAST_BAR
    names = (max(map(width, _names(panel))) for panel in scene.panels)
    name_width = min(max(names) + _BESIDE_BAR, max(room, width("000") + _BESIDE_BAR))
    for panel, row in zip(scene.panels, places, strict=True):
        high = row.height() * 0.2
        bar = row.adjusted(name_width, high, -text_width, -high)
        _write(canvas, panel, row, name_width - _BESIDE_BAR)
        _draw(canvas, scene, panel, bar)


def _names(panel: Panel) -> tuple[str, ...]:
    """What a rank is called, longest wording first."""
    return panel.title, tr("Rank {rank}").format(rank=panel.rank), str(panel.rank)


def _write(canvas: Canvas, panel: Panel, row: QRectF, name_room: float) -> None:
    theme = canvas.theme
    font = theme.font("small.strong.num" if panel.is_fullest else "small.num")
    name = canvas.fitting(_names(panel), font, name_room)
    canvas.text(row, name, font, theme.color("text.primary"), LEFT)
    canvas.text(row, panel.summary, font, theme.color("text.secondary"), RIGHT)


def _draw(canvas: Canvas, scene: PictureScene, panel: Panel, bar: QRectF) -> None:
    if bar.width() < _LEAST_BAR / 2:
        return
    theme = canvas.theme
    scale = bar.width() / scene.axis_max_bytes
    for segment in panel.segments:
        left, right = segment.bottom_bytes * scale, segment.top_bytes * scale
        rect = canvas.snapped(QRectF(bar.left() + left, bar.top(), right - left, bar.height()))
        inks.fill(canvas.painter, rect, inks.ink(theme, segment.region))
    if panel.over_bytes:
        left = panel.load_line_bytes * scale
        over = QRectF(bar.left() + left, bar.top(), panel.over_bytes * scale, bar.height())
        canvas.frame(canvas.snapped(over).adjusted(1, 1, -1, -1), theme.color("over"), 2)
    x = canvas.snap(bar.left() + panel.load_line_bytes * scale, 2)
    color = theme.color("chart.loadline")
    canvas.line(QLineF(x, bar.top() - 3, x, bar.bottom() + 3), color, 2)
