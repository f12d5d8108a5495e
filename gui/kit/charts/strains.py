"""Memory that runs short, as hatched bands along the foot of the time chart.

They keep to the foot because what was spilled has no height on this axis: it lies in other memory.
A device's spill is the lower band, the computer's own want the upper one; each has a hatch, a
stroke where it began, and words.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QFontMetricsF

from engine.telemetry.snapshot import Pressure
from engine.telemetry.strain import COMPUTER
from engine.units import format_gib
from engine.words import tr, tr_later
from gui.kit.charts import flags, inks, measured
from gui.kit.format import exact_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtCore import QPointF

    from engine.telemetry.strain import Strain
    from gui.kit.charts.axis import TimeWindow
    from gui.kit.charts.layout import PanelLayout
    from gui.kit.charts.measured import Live
    from gui.kit.charts.pens import Canvas
    from gui.kit.charts.scene import Panel

_HIGH = 6
_BEGIN_HIGH = 11
_LEAST_WIDE = 3
"""However short an episode is, it is seen."""
_REACH = 2
"""Pixels around a band that can be pointed at."""
_PAD = 4
_ROWS = 5
"""That are tried for the words, from the foot up."""


_SPILLS = tr_later("{size} runs from system RAM")
_SPILLED = tr_later("Up to {size} ran from system RAM")
_SCARCE = tr_later("System RAM is scarce, {size} left")
_WAS_SCARCE = tr_later("System RAM was scarce, down to {size}")
_PRESSURE = tr_later("Memory pressure")
_CRITICAL = tr_later("Memory pressure, critical")


def paint(canvas: Canvas, place: PanelLayout, live: Live) -> None:
    """Bands, strokes and words, where something ran short in the time that is shown."""
    shown = _shown(place.panel, live)
    if live.window is None or not shown:
        return
    for is_spill in (True, False):
        _bands(canvas, place, live.window, [s for s in shown if s.is_spill is is_spill])
    # One text for each band: that of its last episode.
    for strain in {strain.is_spill: strain for strain in shown}.values():
        _write(canvas, place, live, strain)


def near(place: PanelLayout, live: Live, at: QPointF) -> Strain | None:
    """The episode whose band is at a point, if there is one."""
    if live.window is None:
        return None
    for strain in reversed(_shown(place.panel, live)):
        band = _rect(place, live.window, strain).adjusted(-_REACH, -_REACH, _REACH, _REACH)
        if band.contains(at):
            return strain
    return None


def tooltip(strain: Strain, live: Live) -> str:
    """What happened, how far it went, and who says so."""
    lines = [f"{words(strain, live)[0]}."]
    if strain.worst_bytes is not None:
        most = tr("At most {size}.") if strain.is_spill else tr("At least {size} were left.")
        lines.append(most.format(size=exact_bytes(strain.worst_bytes)))
    for name, size in strain.holders[:4]:
        held = tr("{name}: {size} there").format(name=name, size=format_gib(size, live.unit))
        lines.append(held)
    lines.append(tr("Read from {source}.").format(source=strain.source))
    if strain.is_spill:
        slow = tr("System RAM is far slower than the memory of {device}.")
        lines.append(slow.format(device=tr(strain.name)))
    else:
        lines.append(tr("What runs may be swapped out, or killed by the system."))
    return "\n".join(lines)


def sentence(panels: Iterable[Panel], live: Live) -> str:
    """What runs short at the end of the window, for those who hear the picture."""
    told = {
        strain: words(strain, live)[0]
        for panel in panels
        for strain in _shown(panel, live)
        if _lasts(strain, live)
    }
    return " ".join(
        f"{tr(strain.name)}: {said}." if strain.is_spill else f"{said}."
        for strain, said in told.items()
    )


def words(strain: Strain, live: Live) -> tuple[str, ...]:
    """What runs short since when, longest wording first."""
    lasts = _lasts(strain, live)
    begun, ended = (_clock(at, live) for at in (strain.since_s, strain.until_s))
    size_bytes = strain.size_bytes if lasts else strain.worst_bytes
    size = "" if size_bytes is None else format_gib(size_bytes, live.unit, digits=1)
    what = tr(_what(strain, is_sized=bool(size), lasts=lasts)).format(size=size)
    shortest = tr("{size} in RAM").format(size=size) if strain.is_spill else tr("RAM is short")
    if not begun:
        return what, shortest
    when = tr("{what} since {begun}") if lasts else tr("{what}, {begun} to {ended}")
    return when.format(what=what, begun=begun, ended=ended), what, shortest


def _what(strain: Strain, *, is_sized: bool, lasts: bool) -> str:
    if strain.is_spill:
        return _SPILLS if lasts else _SPILLED
    if is_sized:
        return _SCARCE if lasts else _WAS_SCARCE
    return _CRITICAL if lasts and strain.pressure is Pressure.CRITICAL else _PRESSURE


def _clock(time_s: float, live: Live) -> str:
    if live.wall_offset_s is None:
        return ""
    return time.strftime("%H:%M", time.localtime(time_s + live.wall_offset_s))


def _shown(panel: Panel, live: Live) -> list[Strain]:
    """Those of the panel's device and of the computer in the window, in order of time."""
    series, window = live.of(panel), live.window
    if series is None or window is None:
        return []
    rank = live.overlay.of(panel.rank) if live.overlay else None
    keys = {rank.uuid if rank else panel.uuid, COMPUTER}
    return [
        strain
        for strain in live.strains
        if strain.uuid in keys
        and strain.since_s <= window.end_s
        and strain.until_s >= window.start_s
    ]


def _lasts(strain: Strain, live: Live) -> bool:
    """Whether it goes on at the end of the window, and how much it is then is known."""
    return not strain.is_over and live.window is not None and live.window.end_s >= strain.until_s


def _rect(place: PanelLayout, window: TimeWindow, strain: Strain) -> QRectF:
    chart = place.time
    left = max(window.x(strain.since_s, chart), chart.left())
    right = min(window.x(strain.until_s, chart), chart.right())
    wide = max(right - left, _LEAST_WIDE)
    bottom = place.scale.bottom - 1 - (0 if strain.is_spill else _HIGH + 1)
    return QRectF(min(left, chart.right() - wide), bottom - _HIGH, wide, _HIGH)


def _bands(canvas: Canvas, place: PanelLayout, window: TimeWindow, strains: list[Strain]) -> None:
    """The episodes of one band; those that touch on this scale are drawn as one."""
    drawn: list[QRectF] = []
    for strain in sorted(strains, key=lambda one: one.since_s):
        rect = canvas.snapped(_rect(place, window, strain))
        if drawn and rect.left() <= drawn[-1].right() + 1:
            drawn[-1] = drawn[-1].united(rect)
        else:
            drawn.append(rect)
    for rect in drawn:
        is_spill = strains[0].is_spill
        color = canvas.theme.color("over" if is_spill else "tight")
        inks.fill(canvas.painter, rect, inks.strain_ink(canvas.theme, is_spill=is_spill))
        canvas.frame(rect.adjusted(0.5, 0.5, -0.5, -0.5), color)
        if rect.left() > place.time.left() + 1:
            x = canvas.snap(rect.left(), 2)
            canvas.line(QLineF(x, rect.bottom() - _BEGIN_HIGH, x, rect.bottom()), color, 2)


def _write(canvas: Canvas, place: PanelLayout, live: Live, strain: Strain) -> None:
    """The words over the band, on a ground of their own: off flags and words, and off the line."""
    if live.window is None:
        return
    font, chart = canvas.theme.font("caption.strong.num"), place.time
    metrics = QFontMetricsF(font)
    text = canvas.fitting(words(strain, live), font, chart.width() - 4 * _PAD)
    if not text:
        return
    box = QRectF(0, 0, metrics.horizontalAdvance(text) + 2 * _PAD, metrics.height())
    left = _rect(place, live.window, strain).left()
    box.moveLeft(min(left, chart.right() - box.width() - _PAD))
    foot = place.scale.bottom - 2 * (_HIGH + 2)
    taken = [*(written for written, _ in canvas.words), *flags.boxes(place, live)]
    rows = [box.translated(0, foot - (row + 1) * (box.height() + 1)) for row in range(_ROWS)]
    free = [row for row in rows if not any(row.intersects(other) for other in taken)]
    best = measured.clear(place, live, free) if free else []
    for row in (*best, *free)[:1]:
        canvas.painter.fillRect(row, canvas.theme.color("chart.callout"))
        color = canvas.theme.color("over" if strain.is_spill else "tight")
        canvas.text(row.adjusted(_PAD, 0, 0, 0), text, font, color)
