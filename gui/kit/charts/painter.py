"""Paints a scene: the same code for the widget, the PDF and pictures in tests.

``paint_plan`` draws what changes only with the plan, the theme or the size; ``paint_live``
what may change with each sample. The widget keeps the first in a pixmap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from engine.budget.model import Region
from engine.units import format_gib
from engine.words import tr, tr_later
from gui.kit.charts import (
    axis,
    flags,
    inks,
    lens,
    measured,
    newest,
    notes,
    phase_strip,
    residue,
    stack,
    strains,
    table,
)
from gui.kit.charts.pens import RIGHT, Canvas

if TYPE_CHECKING:
    from engine.units import UnitSystem
    from gui.kit.charts.layout import PanelLayout, PictureLayout, Style
    from gui.kit.charts.measured import Live
    from gui.kit.charts.scene import PictureScene

_MARK_FROM_AXIS = 17
_MARK_RADIUS = 7
_LAST_MINUTE = (
    tr_later("The last minute, magnified"),
    tr_later("Last minute, magnified"),
    tr_later("Magnified"),
)
_HIGHLIGHT = 0.28
"""Tint of the band of the region that is pointed at or selected."""


def paint(
    painter: QPainter, scene: PictureScene, places: PictureLayout, style: Style, live: Live
) -> Canvas:
    """The whole picture at once; returns the canvas, which knows what was written where."""
    canvas = paint_plan(painter, scene, places, style)
    canvas.words += paint_live(painter, scene, places, style, live).words
    return canvas


def paint_plan(
    painter: QPainter, scene: PictureScene, places: PictureLayout, style: Style
) -> Canvas:
    """Bands, bars, ranges, labels and lens."""
    canvas = Canvas(painter, style)
    if places.is_table:
        table.paint(canvas, scene, places.size)
        return canvas
    for panel in places.panels:
        _bands(canvas, panel)
        stack.bar(canvas, panel)
        stack.labels(canvas, panel)
        _marks_over_bands(canvas, panel)
    if places.lens:
        lens.paint(canvas, places.panels[0], places.lens, scene.unit)
    return canvas


def paint_live(
    painter: QPainter, scene: PictureScene, places: PictureLayout, style: Style, live: Live
) -> Canvas:
    """Highlight, measurement, captions, load line and axes."""
    canvas = Canvas(painter, style)
    for panel in places.panels:
        if live.selected is not None:
            _highlight(canvas, panel, live.selected)
            _marks_over_bands(canvas, panel)
        measured.paint(canvas, panel, live)
        flags.paint(canvas, panel, live)
        strains.paint(canvas, panel, live)
        only = len(places.panels) == 1
        explains = only and live.explains and notes.has_room(canvas, panel, live)
        if only and not explains:
            _captions(canvas, panel, live)
        _load_line(canvas, panel, mark=panel is places.panels[-1])
        if explains:
            notes.paint(canvas, panel, newest.used_bytes(panel.panel, live))
        elif only:
            text = _load_text(canvas, panel)
            _aside(canvas, panel, scene.asides, text)
            measured.note(canvas, panel, live, scene.unit, text)
        used, age = newest.used_bytes(panel.panel, live), newest.age(panel.panel, live)
        more = tr("{age} ago").format(age=age) if age else residue.signed(panel.panel, live)
        _title(canvas, panel, scene.unit, used, more, is_old=bool(age))
        if scene.is_simulated:
            _simulated(canvas, panel)
        if panel.has_axis:
            figures = axis.tags(canvas, panel, scene.unit, used, age)
            axis.memory_axis(canvas, panel, scene.unit, figures)
        axis.time_axis(canvas, panel, live.window, scene.unit)
        phase_strip.paint(canvas, panel, live)
        if not explains:
            residue.callout(canvas, panel, live)
        measured.hairline(canvas, panel, live)
    if places.lens:
        held = measured.in_lens(canvas, places.panels[0], places.lens, live)
        panel = places.panels[0].panel
        lens.words(canvas, panel, places.lens, held)
        lens.load_line(canvas, panel, places.lens, scene.unit)
        title = _LAST_MINUTE if held else places.lens.title
        lens.title(canvas, places.lens, title)
    return canvas


def _aside(canvas: Canvas, place: PanelLayout, texts: tuple[str, ...], load_text: QRectF) -> None:
    """What the picture leaves out, small over the bar, as far as the load line's words let it."""
    font = canvas.theme.font("caption.num")
    height = QFontMetricsF(font).height()
    left = place.bar.left()
    end = load_text.left() if not load_text.isEmpty() else place.bands.right()
    text = canvas.fitting(texts, font, end - left - 8)
    row = QRectF(left, place.scale.top - height - 4, end - left, height)
    canvas.text(row, text, font, canvas.theme.color("text.tertiary"))


def _marks_over_bands(canvas: Canvas, place: PanelLayout) -> None:
    """What lies over the bands, and over the tint of a highlighted one too."""
    _edges(canvas, place)
    _frame(canvas, place)
    stack.over(canvas, place)
    if place.has_brackets and not place.panel.over_bytes:
        stack.brackets(canvas, place)


def _bands(canvas: Canvas, place: PanelLayout) -> None:
    theme, bands = canvas.theme, place.bands
    for segment in place.panel.segments:
        if segment.region is Region.HEADROOM:
            continue
        top, bottom = place.scale.y(segment.top_bytes), place.scale.y(segment.bottom_bytes)
        name = inks.color_name(segment.region)
        rect = canvas.snapped(QRectF(QPointF(bands.left(), top), QPointF(bands.right(), bottom)))
        canvas.painter.fillRect(rect, theme.mixed(name, theme.alpha("band")))


def _edges(canvas: Canvas, place: PanelLayout) -> None:
    theme, bands = canvas.theme, place.bands
    for segment in place.panel.segments:
        if segment.region is Region.HEADROOM or segment.is_open:
            continue
        color = theme.mixed(inks.color_name(segment.region), theme.alpha("bandEdge"))
        y = canvas.snap(place.scale.y(segment.top_bytes))
        canvas.line(QLineF(bands.left(), y, bands.right(), y), color)


def _frame(canvas: Canvas, place: PanelLayout) -> None:
    theme, bands = canvas.theme, place.bands
    x, bottom = canvas.snap(bands.right()), canvas.snap(bands.bottom())
    canvas.line(QLineF(x, bands.top() - 6, x, bottom), theme.color("line.hair"))
    edge = theme.color("line.control.edge")
    canvas.line(QLineF(place.bar.left(), bottom, bands.right(), bottom), edge)


def _title(
    canvas: Canvas, place: PanelLayout, unit: UnitSystem, used: int | None, more: str,
    *, is_old: bool,
) -> None:  # fmt: skip
    """Which rank, what it holds of what it can (measured if it is, else planned), how far off."""
    if place.title_y is None:
        return
    theme, panel = canvas.theme, place.panel
    bold, plain = theme.font("small.strong"), theme.font("small.num")
    fullest = theme.font("small.strong.num") if panel.is_fullest else plain
    height = QFontMetricsF(bold).height()
    row = QRectF(place.bar.left(), place.title_y - height / 2, 0, height)
    row.setRight(place.bands.right())
    canvas.text(row, panel.title, bold, theme.color("text.primary"))
    room = row.width() - QFontMetricsF(bold).horizontalAdvance(panel.title) - 8
    summary = panel.summary if used is None else panel.summary_of(used, unit)
    held = format_gib(panel.held_bytes if used is None else used, unit, digits=1, unit=False)
    off = (f"{summary}, {more}", f"{held}, {more}") if more else ()
    words = canvas.fitting((*off, summary, held), fullest, room)
    name = "text.primary" if panel.is_fullest else "text.secondary"
    color = theme.color("text.tertiary" if is_old else name)
    canvas.text(row, words, fullest, color, RIGHT)


def _simulated(canvas: Canvas, place: PanelLayout) -> None:
    """Say over what looks measured that it is not."""
    theme = canvas.theme
    font, text = theme.font("small.strong"), tr("Simulated")
    metrics = QFontMetricsF(font)
    width, height = metrics.horizontalAdvance(text) + 12, metrics.height() + 4
    row = QRectF(place.time.left() + 8, place.time.top() + 8, width, height)
    canvas.painter.fillRect(row, theme.color("text.primary"))
    canvas.text(row, text, font, theme.color("surface.base"), Qt.AlignmentFlag.AlignCenter)


def _load_line(canvas: Canvas, place: PanelLayout, *, mark: bool) -> None:
    """The load line with its mark and its words; painted last, over everything."""
    theme = canvas.theme
    color = theme.color("chart.loadline")
    y = canvas.snap(place.scale.y(place.panel.load_line_bytes), 2)
    right = place.bands.right() + 5
    canvas.line(QLineF(place.bar.left() - 14, y, right, y), color, 2)
    if not mark:
        return
    center = QPointF(place.bands.right() - _MARK_FROM_AXIS, y)
    canvas.painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    canvas.painter.setPen(QPen(color, 2))
    canvas.painter.setBrush(Qt.BrushStyle.NoBrush)
    canvas.painter.drawEllipse(center, _MARK_RADIUS, _MARK_RADIUS)


def _load_text(canvas: Canvas, place: PanelLayout) -> QRectF:
    """The words above the load line; returns where they stand, empty if they have no room."""
    theme, panel = canvas.theme, place.panel
    font = theme.font("small.medium.num")
    metrics = QFontMetricsF(font)
    right = place.bands.right() - 2 * _MARK_FROM_AXIS
    y = place.scale.y(max(panel.load_line_bytes, 0))
    text = canvas.fitting(panel.load_texts, font, right - place.time_left)
    if not text or panel.over_bytes:
        return QRectF()
    width = metrics.horizontalAdvance(text)
    rect = QRectF(right - width, y - 5 - metrics.height(), width, metrics.height())
    canvas.text(rect, text, font, theme.color("accent.text"))
    return rect


def _captions(canvas: Canvas, place: PanelLayout, live: Live) -> None:
    """The sums in the bands, where neither a measurement nor the edge of a band is in the way."""
    theme = canvas.theme
    font = theme.font("small.num")
    height = QFontMetricsF(font).height()
    left = place.time_left + 4
    for caption in place.panel.captions:
        # What lies above the load line has its own words.
        ceiling = min(caption.top_bytes, place.panel.load_line_bytes)
        top, bottom = place.scale.y(ceiling), place.scale.y(caption.bottom_bytes)
        if bottom - top < 0.8 * height:
            continue
        text = canvas.fitting(caption.texts, font, place.bands.right() - left - 8)
        width = QFontMetricsF(font).horizontalAdvance(text)
        row = QRectF(left, (top + bottom - height) / 2, width, height)
        is_taken = any(row.intersects(other) for other, _ in canvas.words)
        if text and not is_taken and not measured.crosses(place, live, row):
            canvas.text(row, text, font, theme.color("text.secondary"))
    _reserve_caption(canvas, place)


def _reserve_caption(canvas: Canvas, place: PanelLayout) -> None:
    theme, panel = canvas.theme, place.panel
    font = theme.font("small.num")
    height = QFontMetricsF(font).height()
    line = place.scale.y(max(panel.load_line_bytes, panel.stack_bytes))
    room = line - place.scale.y(panel.total_bytes)
    text = canvas.fitting((panel.reserve_text,), font, place.time.width() - 16)
    if text and room > 2.6 * height:
        # The words of the load line stand just above it, so these keep to the upper half.
        middle = line - room + (room - height) / 2
        row = QRectF(place.time_left + 4, middle - height / 2, place.time.width(), height)
        canvas.text(row, text, font, theme.color("text.secondary"))


def _highlight(canvas: Canvas, place: PanelLayout, region: Region) -> None:
    segment = place.panel.segment(region)
    if segment is None:
        return
    top, bottom = place.scale.y(segment.top_bytes), place.scale.y(segment.bottom_bytes)
    bands = place.bands
    rect = QRectF(QPointF(bands.left(), top), QPointF(bands.right(), max(bottom, top + 2)))
    tint = canvas.theme.mixed(inks.color_name(region), _HIGHLIGHT)
    canvas.painter.fillRect(canvas.snapped(rect), tint)
