"""Where everything in the picture stands, in device-independent pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetricsF

from engine.budget.model import Region
from engine.units import GIB
from engine.words import tr_later
from gui.kit.charts.labels import capacity, spread

if TYPE_CHECKING:
    from gui.kit.charts.scene import Panel, PictureScene, Segment
    from gui.kit.theme import Theme

LENS_FROM_WIDTH = 900
THIN_PX = 12
TABLE_FROM_RANKS = 9
_TWO_ROWS_FROM_RANKS = 5
_COMPACT_LABELS_BELOW = 1100
_COMPACT_LENS_BELOW = 950
_TIME_GAP = 44
"""Between bar and time: room for the range brackets."""
_TIME_GAP_SMALL = 12
_PANEL_GAP = 27
_LENS_GAP = 24
_LENS_AXIS = 40
_LEAST_MAGNIFICATION = 4
_LENS_LEAD = 0.1
_LENS_TOTAL_WITHIN = 4 * GIB
_LENS_OVER_STACK = GIB // 2
_NAME_TO_VALUE = 12
_VALUE_TO_BAR = 34
_STACK_TITLES = (
    tr_later("Top of the stack, magnified"),
    tr_later("Top, magnified"),
    tr_later("Magnified"),
)
_THIN_TITLES = (
    tr_later("Thin regions, magnified"),
    tr_later("Thin, magnified"),
    tr_later("Magnified"),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """Bytes to y, linear, ``low_bytes`` at ``bottom``."""

    low_bytes: float
    high_bytes: float
    top: float
    bottom: float

    def y(self, size_bytes: float) -> float:
        """Where ``size_bytes`` stands."""
        share = (size_bytes - self.low_bytes) / (self.high_bytes - self.low_bytes)
        return self.bottom - share * (self.bottom - self.top)

    def bytes_at(self, y: float) -> float:
        """The inverse of ``y``."""
        share = (self.bottom - y) / (self.bottom - self.top)
        return self.low_bytes + share * (self.high_bytes - self.low_bytes)

    @property
    def pixels_per_byte(self) -> float:
        """Height of one byte."""
        return (self.bottom - self.top) / (self.high_bytes - self.low_bytes)


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """A region's label beside the bar, and the mark it leads to."""

    segment: Segment
    y: float
    mark_y: float


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """One device's chart."""

    panel: Panel
    scale: Scale
    bar: QRectF
    bands: QRectF
    """From the bar's right edge to the axis."""
    time_left: float
    labels: tuple[LabelPlace, ...]
    has_axis: bool
    has_brackets: bool
    title_y: float | None
    strip_height: float = 0.0
    """Below the bands, for the phases of a run."""

    @property
    def time(self) -> QRectF:
        """Where time runs."""
        return QRectF(QPointF(self.time_left, self.bands.top()), self.bands.bottomRight())


@dataclass(frozen=True, slots=True)
class LensLayout:
    """The magnified part of the first panel."""

    box: QRectF
    scale: Scale
    title: tuple[str, ...]
    """Wordings, longest first; translated where they are written."""
    link_x: float


@dataclass(frozen=True, slots=True)
class PictureLayout:
    """Everything."""

    size: QRectF
    panels: tuple[PanelLayout, ...]
    lens: LensLayout | None
    is_table: bool


@dataclass(frozen=True, slots=True)
class Style:
    """How the picture is to be laid out."""

    theme: Theme
    pad: float = 16
    """Empty at the left and right edge."""
    lens: bool | None = None
    """Whether to show the lens; None decides by the width."""
    patterns: bool = False
    """Hatch every region, for print without colour."""
    phases: bool = False
    """Whether the phases of a run have a strip below the chart."""
    paper: bool = False
    """Whether it is printed: no pixel grid, curves as curves."""


def lay_out(scene: PictureScene, size: QRectF, style: Style) -> PictureLayout:
    """Place ``scene`` in ``size``."""
    if len(scene.panels) >= TABLE_FROM_RANKS:
        return PictureLayout(size, (), None, is_table=True)
    if len(scene.panels) == 1:
        return _single(scene, size, style)
    return _multiples(scene, size, style)


def _single(scene: PictureScene, size: QRectF, style: Style) -> PictureLayout:
    theme, panel = style.theme, scene.panels[0]
    grown = theme.text_scale
    shows_lens = size.width() >= LENS_FROM_WIDTH * grown if style.lens is None else style.lens
    lens_width = 0.0
    if shows_lens:
        compact = size.width() < _COMPACT_LENS_BELOW
        lens_width = theme.size("chart.lens.width.compact" if compact else "chart.lens.width")
        lens_width *= grown
    top = size.top() + theme.size("chart.pad.top") * grown
    bottom = size.bottom() - _pad_bottom(style)
    scale = Scale(0, scene.axis_max_bytes, top, bottom)
    axis_x = size.right() - style.pad - axis_width(style) - lens_width
    axis_x -= _LENS_GAP if shows_lens else 0
    left = size.left() + style.pad + _label_width((panel,), size.width(), style)
    bar = QRectF(left, top, theme.size("chart.bar.width"), bottom - top)
    bands = QRectF(bar.right(), top, max(1.0, axis_x - bar.right()), bottom - top)
    placed = PanelLayout(
        panel=panel,
        scale=scale,
        bar=bar,
        bands=bands,
        time_left=bar.right() + _TIME_GAP,
        labels=_labels(panel, scale, style),
        has_axis=True,
        has_brackets=True,
        title_y=None,
        strip_height=_strip_height(style),
    )
    lens = None
    if shows_lens:
        axis = _LENS_AXIS * grown
        box = QRectF(size.right() - style.pad - lens_width, top, lens_width - axis, bottom - top)
        lens = _lens(panel, scale, box, box.left() - _LENS_GAP - 4)
    return PictureLayout(size, (placed,), lens, is_table=False)


def _pad_bottom(style: Style) -> float:
    name = "chart.pad.bottom.withPhases" if style.phases else "chart.pad.bottom"
    return style.theme.size(name) * style.theme.text_scale


def _strip_height(style: Style) -> float:
    bare = style.theme.size("chart.pad.bottom") * style.theme.text_scale
    return _pad_bottom(style) - bare


def axis_width(style: Style) -> float:
    """Room for ticks and tags right of the time."""
    return style.theme.size("chart.axis.width") * style.theme.text_scale


def _multiples(scene: PictureScene, size: QRectF, style: Style) -> PictureLayout:
    theme = style.theme
    grown = theme.text_scale
    count = len(scene.panels)
    rows = 2 if count >= _TWO_ROWS_FROM_RANKS else 1
    columns = -(-count // rows)
    label_width = _label_width(scene.panels[:: max(1, columns)], 0, style)
    left = size.left() + style.pad + label_width
    right = size.right() - style.pad - axis_width(style)
    width = (right - left - (columns - 1) * _PANEL_GAP) / columns
    bar_width = min(theme.size("chart.bar.width"), width * 0.4)
    row_height = size.height() / rows
    made: list[PanelLayout] = []
    for index, panel in enumerate(scene.panels):
        row, column = divmod(index, columns)
        ceiling = size.top() + row * row_height
        top = ceiling + (40 if rows == 1 else 34) * grown
        bottom = ceiling + row_height - _pad_bottom(style)
        x = left + column * (width + _PANEL_GAP)
        scale = Scale(0, scene.axis_max_bytes, top, bottom)
        bar = QRectF(x, top, bar_width, bottom - top)
        made.append(
            PanelLayout(
                panel=panel,
                scale=scale,
                bar=bar,
                bands=QRectF(bar.right(), top, width - bar_width, bottom - top),
                time_left=bar.right() + _TIME_GAP_SMALL,
                labels=_labels(panel, scale, style) if column == 0 else (),
                has_axis=column == columns - 1 or index == count - 1,
                has_brackets=False,
                title_y=ceiling + 15 * grown,
                strip_height=_strip_height(style),
            )
        )
    return PictureLayout(size, tuple(made), None, is_table=False)


def _label_width(panels: tuple[Panel, ...], width: float, style: Style) -> float:
    theme = style.theme
    compact = width < _COMPACT_LABELS_BELOW
    design = theme.size("chart.label.width.compact" if compact else "chart.label.width")
    names = QFontMetricsF(theme.font("small"))
    values = QFontMetricsF(theme.font("small.strong.num"))
    segments = [s for panel in panels for s in panel.segments]
    name = max((names.horizontalAdvance(s.label) for s in segments), default=0)
    value = max((values.horizontalAdvance(s.value) for s in segments), default=0)
    wanted = name + _NAME_TO_VALUE + value + _VALUE_TO_BAR
    return max(design if not theme.text_scale > 1 else 0, wanted) if width else wanted


def name_right(panel: PanelLayout, style: Style) -> float:
    """Where the names of the labels end."""
    values = QFontMetricsF(style.theme.font("small.strong.num"))
    widest = max((values.horizontalAdvance(p.segment.value) for p in panel.labels), default=0)
    return value_right(panel) - widest - _NAME_TO_VALUE


def value_right(panel: PanelLayout) -> float:
    """Where the numbers of the labels end."""
    return panel.bar.left() - _VALUE_TO_BAR


def _labels(panel: Panel, scale: Scale, style: Style) -> tuple[LabelPlace, ...]:
    """Labels of as many regions as have room, the largest first, from the top down."""
    gap = style.theme.size("chart.label.gap") * style.theme.text_scale
    low, high = scale.top + gap / 2, scale.bottom - gap / 3
    room = capacity(gap, low, high)
    kept = sorted(panel.segments, key=lambda s: -s.size_bytes)[:room]
    shown = [s for s in reversed(panel.segments) if s in kept]
    marks = [scale.y((s.bottom_bytes + s.top_bytes) / 2) for s in shown]
    places = spread(marks, gap, low, high)
    return tuple(
        LabelPlace(segment, y, mark) for segment, y, mark in zip(shown, places, marks, strict=True)
    )


def _lens(panel: Panel, scale: Scale, box: QRectF, link_x: float) -> LensLayout | None:
    above = [s for s in panel.segments if s.region is not Region.FOREIGN and s.size_bytes]
    if not above:
        return None
    thin_bytes = THIN_PX / scale.pixels_per_byte
    # Where nothing is thin, the edge of the stack is what is worth a closer look.
    edge = max(above[-1].bottom_bytes, panel.stack_bytes - round(scale.high_bytes / 20))
    start = next((s.bottom_bytes for s in above if s.size_bytes < thin_bytes), edge)
    above_stack = min(_LENS_OVER_STACK, (panel.stack_bytes - start) // 2)
    top = panel.stack_bytes + above_stack
    if panel.stack_bytes <= panel.total_bytes <= start + _LENS_TOTAL_WITHIN:
        top = panel.total_bytes
    widest = scale.high_bytes / _LEAST_MAGNIFICATION
    lead = min(top - start, widest) * _LENS_LEAD
    low = max(0.0, start - lead)
    high = min(float(top), low + widest)
    at_top = high >= panel.stack_bytes and panel.stack_bytes > panel.load_line_bytes * 0.9
    title = _STACK_TITLES if at_top else _THIN_TITLES
    return LensLayout(box, Scale(low, high, box.top(), box.bottom()), title, link_x)
