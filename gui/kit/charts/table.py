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
    for panel, row in zip(scene.panels, places, strict=True):
        _row(canvas, scene, panel, row)


def _row(canvas: Canvas, scene: PictureScene, panel: Panel, row: QRectF) -> None:
    theme = canvas.theme
    bold, plain = theme.font("small.strong.num"), theme.font("small.num")
    font = bold if panel.is_fullest else plain
    metrics = QFontMetricsF(bold)
    name_width = metrics.horizontalAdvance(tr("Rank {rank}").format(rank="000")) + 4
    text_width = metrics.horizontalAdvance(panel.summary) + 8
    canvas.text(row, panel.title, font, theme.color("text.primary"), LEFT)
    canvas.text(row, panel.summary, font, theme.color("text.secondary"), RIGHT)
    bar = row.adjusted(name_width, row.height() * 0.2, -text_width, -row.height() * 0.2)
    if bar.width() < 24:
        return
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
