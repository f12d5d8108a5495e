"""What the devices really hold, drawn over the bands of the plan."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QFontMetricsF

from engine.budget.model import Region
from engine.units import UnitSystem, format_gib
from engine.words import tr
from gui.kit.charts import newest, residue, traces
from gui.kit.charts.axis import TimeWindow
from gui.kit.charts.past import ROWS
from gui.kit.charts.pens import RIGHT
from gui.kit.charts.series import Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from engine.overlay.overlay import Overlay
    from engine.telemetry.markers import Marker
    from engine.telemetry.strain import Strain
    from gui.kit.charts.layout import LensLayout, PanelLayout, Scale
    from gui.kit.charts.pens import Canvas
    from gui.kit.charts.scene import Panel
    from gui.kit.charts.series import Sample

_TIME, _USED, _PLAN, _KV = range(4)
_LENS_COLUMN = 16
_LENS_GAP = 16
"""Around the names of the regions."""
_LAST_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Live:
    """What is known beyond the plan when the picture is painted."""

    series: Mapping[str, Series] = field(default_factory=dict[str, Series])
    """By the device's uuid."""
    window: TimeWindow | None = None
    age: str = ""
    """How old the last sample is, where sampling has stopped."""
    selected: Region | None = None
    hover_s: float | None = None
    """The moment under the pointer."""
    wall_offset_s: float | None = None
    """Unix time at second 0 of the samples, where known."""
    unit: UnitSystem = UnitSystem.BINARY
    overlay: Overlay | None = None
    """What the samples show of the plan's run: phases, residue, live cache."""
    shift_s: float = 0.0
    """To be added to the overlay's moments, to have their places on the axis."""
    markers: tuple[tuple[float, Marker], ...] = ()
    """With their places on the axis, in order."""
    strains: tuple[Strain, ...] = ()
    """When memory ran short."""
    explains: bool = False
    """Whether the notes of the first start stand in place of the sums."""

    def of(self, panel: Panel) -> Series | None:
        """The samples of a panel's device, if there are any to show."""
        rank = self.overlay.of(panel.rank) if self.overlay else None
        found = self.series.get(rank.uuid if rank else panel.uuid)
        return found if found is not None and len(found) and self.window else None


def paint(canvas: Canvas, place: PanelLayout, live: Live) -> None:
    """Share of the plan, KV cache in use, others, the gaps and the line of everything."""
    series, window = live.of(place.panel), live.window
    if series is None or window is None:
        return
    values = series.window(window.start_s, window.end_s)
    rect = place.time
    canvas.painter.save()
    canvas.painter.setClipRect(rect.adjusted(0, -3, 0, 2))
    xs = rect.left() + (values[_TIME] - window.start_s) * (
        rect.width() / (window.end_s - window.start_s)
    )
    theme = canvas.theme
    others = np.maximum(values[_USED] - values[_PLAN], 0.0)
    share = theme.color("chart.share")
    share.setAlphaF(theme.alpha("share"))
    traces.area(canvas, place.scale, xs, (others, values[_USED]), share)
    kv = place.panel.segment(Region.KV_CACHE)
    if kv is not None:
        teal = theme.color("region.kv")
        teal.setAlphaF(theme.alpha("kvLive"))
        floor = np.full_like(values[_KV], float(kv.bottom_bytes))
        traces.area(canvas, place.scale, xs, (floor, floor + values[_KV]), teal)
        _kv_words(canvas, place, live)
    width = theme.sizes["line.chart.foreign"]
    traces.line(canvas, place.scale, (xs, others), theme.color("text.tertiary"), width)
    width = theme.sizes["line.chart.measured"]
    color = theme.color("chart.measured")
    drawn = traces.line(canvas, place.scale, (xs, values[_USED]), color, width)
    _gaps(canvas, place, drawn)
    _last_known(canvas, place.panel, place.scale, rect, live)
    canvas.painter.restore()


def _kv_words(canvas: Canvas, place: PanelLayout, live: Live) -> None:
    """``KV cache in use``, inside its area if that is high enough there."""
    series, window = live.of(place.panel), live.window
    kv = place.panel.segment(Region.KV_CACHE)
    if series is None or window is None or kv is None:
        return
    font = canvas.theme.font("caption.strong")
    metrics = QFontMetricsF(font)
    text = tr("KV cache in use")
    width, height = metrics.horizontalAdvance(text), metrics.height()
    row = QRectF(place.time.right() - 76 - width, 0, width, height)
    if row.left() < place.time.left() + 24:
        return
    times = (window.time_at(row.left(), place.time), window.time_at(row.right(), place.time))
    used = series.window(*times)[_KV]
    if not used.size or np.isnan(used).any():
        return
    bottom = place.scale.y(kv.bottom_bytes)
    if bottom - place.scale.y(kv.bottom_bytes + float(used.min())) >= height + 2:
        row.moveBottom(bottom - 3)
        canvas.text(row, text, font, canvas.theme.color("surface.base"))


def _gaps(canvas: Canvas, place: PanelLayout, drawn: list[tuple[float, float]]) -> None:
    """A dotted baseline where nothing was sampled."""
    y = canvas.snap(place.scale.bottom - 4)
    for (_, left), (right, _) in pairwise(drawn):
        if right - left > 2:
            color = canvas.theme.color("text.tertiary")
            canvas.line(QLineF(left, y, right, y), color, 1, dash=(1, 3))


def _last_known(canvas: Canvas, panel: Panel, scale: Scale, rect: QRectF, live: Live) -> None:
    """Where a device tells nothing any more, what it held last, grey and dotted up to the end."""
    last, window = newest.known(panel, live), live.window
    if last is None or last.used_bytes is None or window is None or not newest.age(panel, live):
        return
    y = canvas.snap(scale.y(last.used_bytes), 2)
    left = max(rect.left(), window.x(last.time_s, rect))
    canvas.line(QLineF(left, y, rect.right(), y), canvas.theme.color("text.tertiary"), 2, (2, 4))


def crosses(place: PanelLayout, live: Live, row: QRectF) -> bool:
    """Whether a measurement runs through ``row``, or its area lies behind it."""
    values = _beside(place, live, row)
    highest, lowest = _reach(place, values)
    is_below = highest < row.top() and bool(np.nanmax(values[_PLAN], initial=0.0) > 0)
    return _passes(highest, lowest, row) or is_below


def clear(place: PanelLayout, live: Live, rows: Sequence[QRectF]) -> list[QRectF]:
    """Those of ``rows``, one above the other, through which the line of everything doesn't run."""
    highest, lowest = _reach(place, _beside(place, live, rows[0]))
    return [row for row in rows if not _passes(highest, lowest, row)]


def _passes(highest: float, lowest: float, row: QRectF) -> bool:
    return highest - 4 < row.bottom() and lowest + 4 > row.top()


def _reach(place: PanelLayout, values: NDArray[np.float64]) -> tuple[float, float]:
    """The y of the most and of the least of ``values``; where there are none, of no row."""
    used = values[_USED][~np.isnan(values[_USED])]
    if not used.size:
        return math.inf, -math.inf
    return place.scale.y(float(used.max())), place.scale.y(float(used.min()))


def _beside(place: PanelLayout, live: Live, row: QRectF) -> NDArray[np.float64]:
    """The samples of the time that ``row`` covers.

    Shapes:
        Result: (4, n).
    """
    series, window = live.of(place.panel), live.window
    if series is None or window is None:
        return np.empty((ROWS, 0))
    left, right = (window.time_at(x, place.time) for x in (row.left() - 4, row.right() + 4))
    return series.window(left, right)


def note(
    canvas: Canvas, place: PanelLayout, live: Live, unit: UnitSystem, load_text: QRectF
) -> None:
    """``Measured now: 0.41 GiB, nothing of this plan is running``, where the line leaves room."""
    used, old = newest.used_bytes(place.panel, live), newest.age(place.panel, live)
    is_stopped = bool(live.age)
    if used is None or is_stopped or newest.is_running(place.panel, live) or _is_past(live):
        return
    font = canvas.theme.font("small.num")
    size = format_gib(used, unit)
    texts = (tr("Measured now: {size}").format(size=size),)
    if old:
        texts = (tr("Last known: {size}, {age} ago").format(size=size, age=old),)
    elif newest.is_idle(place.panel, live):
        idle = tr("Measured now: {size}, nothing of this plan is running").format(size=size)
        texts = (idle, *texts)
    text = canvas.fitting(texts, font, place.time.width() - 16)
    height, width = QFontMetricsF(font).height(), QFontMetricsF(font).horizontalAdvance(text)
    y = place.scale.y(used)
    row = QRectF(place.time.right() - 8 - width, y - 4 - height, width, height)
    taken = [load_text, *(r for r, _ in canvas.words)]
    edges = [place.scale.y(s.top_bytes) for s in place.panel.segments]
    for crosses_edges in (False, True):
        for top in (row.top(), y + 4, y + 10):
            row.moveTop(top)
            on_edge = any(row.top() + 2 < edge < row.bottom() - 2 for edge in edges)
            # What is old has no area of its own, but may have to stand on that of before.
            is_clear = clear(place, live, [row]) if old else not crosses(place, live, _slim(row))
            if (
                not text
                or on_edge != crosses_edges
                or not is_clear
                or not _is_free(place, row, taken)
            ):
                continue
            if on_edge or old:
                canvas.painter.fillRect(
                    row.adjusted(-4, 0, 4, 0), canvas.theme.color("chart.callout")
                )
            canvas.text(row, text, font, canvas.theme.color("text.secondary"), RIGHT)
            return
        row.moveTop(y - 4 - height)


def _slim(row: QRectF) -> QRectF:
    return row.adjusted(0, 3, 0, -3)


def _is_free(place: PanelLayout, row: QRectF, taken: list[QRectF]) -> bool:
    in_chart = place.scale.top <= row.top() and row.bottom() <= place.scale.bottom
    return in_chart and not any(row.intersects(other) for other in taken)


def _is_past(live: Live) -> bool:
    return live.window is not None and live.window.from_start


def hairline(canvas: Canvas, place: PanelLayout, live: Live) -> None:
    """The moment under the pointer: a dashed line, and its figures under the load line."""
    series, window = live.of(place.panel), live.window
    if series is None or window is None or live.hover_s is None:
        return
    sample = series.nearest(live.hover_s)
    if sample is None:
        return
    theme, rect = canvas.theme, place.time
    x = canvas.snap(min(max(window.x(sample.time_s, rect), rect.left()), rect.right()))
    top = place.scale.y(max(place.panel.load_line_bytes, place.panel.stack_bytes))
    canvas.line(QLineF(x, top, x, rect.bottom()), theme.color("text.tertiary"), dash=(3, 3))
    words = _readout(_sample_words(sample, live))
    font = theme.font("small.num")
    text = canvas.fitting(words, font, rect.width() - 12)
    metrics = QFontMetricsF(font)
    box = QRectF(0, top + 6, metrics.horizontalAdvance(text) + 12, metrics.height() + 4)
    box.moveRight(rect.right() - 4)
    canvas.painter.fillRect(canvas.snapped(box), theme.color("chart.callout"))
    canvas.frame(canvas.snapped(box).adjusted(0.5, 0.5, -0.5, -0.5), theme.color("line.hair"))
    canvas.text(box.adjusted(6, 0, -6, 0), text, font, theme.color("text.primary"))


def sentence(panels: tuple[Panel, ...], live: Live) -> str:
    """The figures at the cursor, of every device in the picture, for those who hear it."""
    if live.hover_s is None:
        return ""
    found = [(panel, live.series.get(panel.uuid)) for panel in panels]
    said: list[str] = []
    for panel, series in found:
        sample = series.nearest(live.hover_s) if series else None
        if sample is not None:
            words = ", ".join(_sample_words(sample, live))
            said.append(f"{panel.title}: {words}." if len(panels) > 1 else f"{words}.")
    return " ".join(said)


def _sample_words(sample: Sample, live: Live) -> list[str]:
    """The figures of one moment, most important first."""
    if sample.used_bytes is None:
        return [tr("no measurement")]
    made = [tr("{size} in use").format(size=format_gib(sample.used_bytes, live.unit))]
    if live.wall_offset_s is not None:
        clock = time.localtime(sample.time_s + live.wall_offset_s)
        made.insert(0, time.strftime("%H:%M:%S", clock))
    if sample.plan_bytes:
        others = max(0, sample.used_bytes - sample.plan_bytes)
        plan = format_gib(sample.plan_bytes, live.unit, unit=False)
        made.append(tr("this plan {size}").format(size=plan))
        made.append(tr("others {size}").format(size=format_gib(others, live.unit, unit=False)))
    if sample.kv_bytes is not None:
        kv = format_gib(sample.kv_bytes, live.unit, unit=False)
        made.append(tr("KV cache {size}").format(size=kv))
    return made


def _readout(words: list[str]) -> list[str]:
    return ["   ".join(words[:count]) for count in range(len(words), 0, -1)]


def in_lens(
    canvas: Canvas, place: PanelLayout, lens: LensLayout, live: Live
) -> tuple[float, float] | None:
    """The last minute in the lens; None if it runs elsewhere.

    Returns:
        From and to which y it runs where the names of the regions stand.
    """
    series, window = live.of(place.panel), live.window
    if series is None or window is None:
        return None
    start = window.end_s - _LAST_MINUTE_S
    values = series.window(start, window.end_s)
    used = values[_USED]
    seen = used[~np.isnan(used)]
    low, high = lens.scale.low_bytes, lens.scale.high_bytes
    if not seen.size or not bool(np.any((seen > low) & (seen < high))):
        return None
    theme = canvas.theme
    area = lens.box.adjusted(_LENS_COLUMN, 1, -1, -1)
    xs = area.left() + (values[_TIME] - start) * (area.width() / _LAST_MINUTE_S)
    canvas.painter.save()
    canvas.painter.setClipRect(area)
    share = theme.color("chart.share")
    share.setAlphaF(theme.alpha("share"))
    floor = np.full_like(used, low)
    traces.area(canvas, lens.scale, xs, (floor, np.maximum(used, low)), share)
    traces.line(canvas, lens.scale, (xs, used), theme.color("chart.measured"), 2)
    minute = replace(live, window=TimeWindow(start, window.end_s))
    _last_known(canvas, place.panel, lens.scale, area, minute)
    canvas.painter.restore()
    if newest.is_running(place.panel, live):
        residue.in_lens(canvas, place.panel, lens, float(seen[-1]), live)
    names = QFontMetricsF(theme.font("caption"))
    widest = max(names.horizontalAdvance(s.label) for s in place.panel.segments)
    beside = used[(xs <= area.left() + _LENS_GAP + widest) & ~np.isnan(used)]
    if not beside.size:
        return lens.box.bottom(), lens.box.bottom()
    return lens.scale.y(float(beside.max())) - 2, lens.scale.y(float(beside.min())) + 2
