"""The one picture on paper: the painter of the screen, as vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF

from gui.kit.charts import painter as paints
from gui.kit.charts.axis import TimeWindow
from gui.kit.charts.layout import TABLE_FROM_RANKS, Style, lay_out
from gui.kit.charts.measured import Live
from gui.kit.charts.scene import scene_for
from gui.kit.charts.series import Sample, Series

if TYPE_CHECKING:
    from engine.report.document import Figure
    from engine.report.measured import MeasuredRun
    from gui.report.sheet import Sheet

_HEIGHT = 268
_LEAST_RUN_S = 1.0


def place(sheet: Sheet, figure: Figure) -> None:
    """Draw ``figure`` over the whole width, and its caption below."""
    scene = scene_for(figure.sizing, figure.unit, figure.rank)
    # A run belongs to a rank here, also where its device is on another computer.
    panels = tuple(replace(panel, uuid=_key(panel.rank)) for panel in scene.panels)
    scene = replace(scene, panels=panels)
    sheet.ensure(_HEIGHT + 40)
    rect = QRectF(sheet.left, sheet.y, sheet.width, _HEIGHT)
    one = len(scene.panels) == 1
    style = Style(sheet.theme, pad=0, lens=one, patterns=True, paper=True)
    if len(scene.panels) < TABLE_FROM_RANKS:
        live = Live(
            series={_key(rank): _series(run) for rank, run in figure.runs.items()},
            window=_window(figure),
            unit=figure.unit,
        )
        sheet.painter.save()
        paints.paint(sheet.painter, scene, lay_out(scene, rect, style), style, live)
        sheet.painter.restore()
    sheet.y += _HEIGHT + 4
    sheet.paragraph(figure.caption, sheet.font("caption"), "text.tertiary")
    sheet.y += 8


def _key(rank: int) -> str:
    return f"rank {rank}"


def _series(run: MeasuredRun) -> Series:
    return Series.of(
        Sample(time_s, used) for time_s, used in zip(run.times_s, run.used_bytes, strict=True)
    )


def _window(figure: Figure) -> TimeWindow | None:
    if not figure.runs:
        return None
    end = max(run.length_s for run in figure.runs.values())
    return TimeWindow(0.0, max(end, _LEAST_RUN_S), from_start=True)
