"""The pictures on paper: the painters of the screen, as vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QPen

from engine.budget.drawn import drawn_bytes
from engine.budget.model import STACK_ORDER, Region
from engine.fit.margin_classes import edges_bytes
from engine.report.document import BarsFigure, Figure, MapFigure
from engine.units import format_gib
from engine.words import tr
from gui.kit.charts import fit_painter, inks
from gui.kit.charts import painter as paints
from gui.kit.charts.axis import TimeWindow
from gui.kit.charts.fit_scene import MapScene, PlanPoint
from gui.kit.charts.layout import TABLE_FROM_RANKS, Style, lay_out
from gui.kit.charts.measured import Live
from gui.kit.charts.pens import Canvas
from gui.kit.charts.scene import scene_for
from gui.kit.charts.series import Sample, Series

if TYPE_CHECKING:
    from engine.report.measured import MeasuredRun
    from gui.report.sheet import Sheet

_PART_OF_PAGE = 0.22
"""What the picture of the plan takes, before it fills or yields what its page has or lacks."""
_LEAST_OF_PAGE, _MOST_OF_PAGE = 0.15, 0.33
_MAP_HEIGHT = 300
_LETTER, _BAR, _LINE_WORDS = 24, 20, 16
_PITCH = _BAR + 12 + _LINE_WORDS
_CAPTION = 40
_LEAST_RUN_S = 1.0


def height(sheet: Sheet, figure: Figure | MapFigure | BarsFigure) -> float:
    """How high ``figure`` is with its caption."""
    match figure:
        case Figure():
            drawn = _plan_height(sheet)
        case MapFigure():
            drawn = _MAP_HEIGHT
        case BarsFigure():
            drawn = len(figure.bars) * _PITCH
    return drawn + _CAPTION


def _plan_height(sheet: Sheet) -> float:
    """It yields for all that belongs on its page, else for the next block, else for nothing."""
    usual, least = sheet.bottom * _PART_OF_PAGE, sheet.bottom * _LEAST_OF_PAGE
    wanted = (usual + sheet.draft.room, usual - sheet.draft.lack - 1, usual)
    height = next(each for each in wanted if each >= least)
    return round(min(height, sheet.bottom * _MOST_OF_PAGE))


def place(sheet: Sheet, figure: Figure | MapFigure | BarsFigure) -> None:
    """Draw ``figure`` over the whole width, and its caption below."""
    caption = figure.caption
    match figure:
        case Figure():
            caption = " ".join((caption, *(f"{told}." for told in _plan(sheet, figure))))
        case MapFigure():
            _map(sheet, figure)
        case BarsFigure():
            _bars(sheet, figure)
    sheet.paragraph(caption, sheet.font("caption"), "text.tertiary")
    sheet.y += 8


def _plan(sheet: Sheet, figure: Figure) -> tuple[str, ...]:
    """Draw the plan; returns in words what has no place in the picture."""
    scene = scene_for(figure.sizing, figure.unit, figure.rank)
    # A run belongs to a rank here, also where its device is on another computer.
    panels = tuple(replace(panel, uuid=_key(panel.rank)) for panel in scene.panels)
    scene = replace(scene, panels=panels)
    sheet.ensure(height(sheet, figure))
    rect = QRectF(sheet.left, sheet.y, sheet.width, _plan_height(sheet))
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
    sheet.y += _plan_height(sheet) + 4
    return scene.asides[:1]


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


def _map(sheet: Sheet, figure: MapFigure) -> None:
    sheet.ensure(height(sheet, figure))
    scene = MapScene(
        map=figure.map,
        edges_bytes=edges_bytes(figure.total_bytes, figure.unit),
        point=PlanPoint(figure.context, figure.requests, figure.point),
        alternative=(),
        alternative_text="",
        other=tr("Not known"),
        name="",
        description="",
    )
    sheet.painter.save()
    canvas = Canvas(sheet.painter, Style(sheet.theme, paper=True))
    place = QRectF(sheet.left - 12, sheet.y, sheet.width + 24, _MAP_HEIGHT)
    places = fit_painter.MapPlaces(sheet.theme, canvas.ratio, scene, place)
    fit_painter.paint_map(canvas, scene, places)
    fit_painter.paint_point(canvas, scene, places)
    sheet.painter.restore()
    sheet.y += _MAP_HEIGHT + 4


def _bars(sheet: Sheet, figure: BarsFigure) -> None:
    sheet.ensure(height(sheet, figure))
    painter, theme = sheet.painter, sheet.theme
    most = max(
        max(sum(drawn_bytes(rank, r) for r in Region), rank.slot.device.total_bytes)
        for _, rank in figure.bars
    )
    scale = (sheet.width - _LETTER) / most
    for letter, rank in figure.bars:
        line = rank.slot.device.allocatable.likely_bytes
        x = sheet.left + _LETTER + line * scale
        words = tr("Load line: {size}").format(size=format_gib(line, figure.unit))
        room = QRectF(sheet.left, sheet.y, x - sheet.left, _LINE_WORDS)
        sheet.write(words, sheet.font("caption"), "accent", room, Qt.AlignmentFlag.AlignRight)
        top = sheet.y + _LINE_WORDS
        name = QRectF(sheet.left, top + 2, _LETTER, _BAR)
        sheet.write(letter, sheet.font("body.strong"), "text.primary", name)
        start = sheet.left + _LETTER
        for region in STACK_ORDER:
            width = drawn_bytes(rank, region) * scale
            ink = inks.ink(theme, region, patterns=True)
            # A gap tells neighbours apart where nothing has a colour.
            inks.fill(painter, QRectF(start, top, max(0.0, width - 1), _BAR), ink)
            start += width
        painter.setPen(QPen(theme.color("chart.loadline"), 2))
        painter.drawLine(QLineF(x, top - 3, x, top + _BAR + 3))
        sheet.y += _PITCH
