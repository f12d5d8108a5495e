"""The pictures of a report as inline SVG: bars of ranks or plans, and a measured run below."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from engine.budget.drawn import drawn_bytes
from engine.budget.model import STACK_ORDER, Region
from engine.report import inks, words
from engine.units import format_gib
from engine.words import figures, tr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.budget.model import RankBudget
    from engine.report.document import BarsFigure, Figure
    from engine.report.measured import MeasuredRun
    from engine.units import UnitSystem

_WIDTH, _LEFT, _RIGHT = 720, 64, 24
_BAR, _AXIS, _TOP = 34, 34, 26
_GAP, _GAP_WITH_LINE = 16, 34
_RUN = 130
_MOST_POINTS = 600
"""Of the measured line: more than there are pixels say nothing further."""
_TICKS = 8
_CHARACTER = 6.4
"""Width of a figure at this size, for what has room inside a segment."""


def plan(figure: Figure) -> str:
    """The plan on one scale; its label says the same to those who hear it."""
    ranks = [r for r in figure.sizing.budget.ranks if figure.rank in {None, r.rank}]
    named = [(tr("Rank {rank}").format(rank=r.rank) if len(ranks) > 1 else "", r) for r in ranks]
    run = next((figure.runs[r.rank] for r in ranks if r.rank in figure.runs), None)
    return "".join(_drawn(named, figure.unit, run))


def side_by_side(figure: BarsFigure) -> str:
    """Plans on one scale, by their letters."""
    return "".join(_drawn(figure.bars, figure.unit, None))


def _drawn(
    bars: Sequence[tuple[str, RankBudget]], unit: UnitSystem, run: MeasuredRun | None
) -> Iterator[str]:
    most = max(max(_top(rank), rank.slot.device.total_bytes) for _, rank in bars)
    lines = {rank.slot.device.allocatable.likely_bytes for _, rank in bars}
    pitch = _BAR + (_GAP if len(lines) == 1 else _GAP_WITH_LINE)
    below = _TOP + len(bars) * pitch + _AXIS
    height = below + (_RUN + _AXIS if run else 0)
    yield (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="'
        f'{escape(description(bars, unit))}" font-size="12" fill="{inks.color("text.primary")}">'
    )
    for number, (name, rank) in enumerate(bars):
        y = _TOP + number * pitch
        yield f'<text x="0" y="{y + _BAR / 2 + 4:g}">{escape(name)}</text>'
        yield from _bar(rank, y, most, unit)
        yield from _load_line(rank, y, most, unit, named=not number or len(lines) > 1)
    yield from _ticks(most, below - _AXIS, unit)
    if run:
        yield from _run(run, bars[0][1], below, unit)
    yield "</svg>"


def description(bars: Sequence[tuple[str, RankBudget]], unit: UnitSystem) -> str:
    """Each bar's regions and its load line, in words."""
    told: list[str] = []
    for name, rank in bars:
        sizes = [
            f"{region.label} {format_gib(drawn_bytes(rank, region), unit)}"
            for region in Region
            if drawn_bytes(rank, region)
        ]
        line = format_gib(rank.slot.device.allocatable.likely_bytes, unit)
        said = tr("{sizes}; load line {line}.").format(sizes=", ".join(sizes), line=line)
        told.append(f"{name}: {said}" if name else said)
    return " ".join(told)


def _top(rank: RankBudget) -> int:
    return sum(drawn_bytes(rank, region) for region in Region)


def _x(size_bytes: float, most: int) -> float:
    return _LEFT + size_bytes / most * (_WIDTH - _LEFT - _RIGHT)


def _bar(rank: RankBudget, y: int, most: int, unit: UnitSystem) -> Iterator[str]:
    start = 0
    for region in STACK_ORDER:
        size = drawn_bytes(rank, region)
        if not size:
            continue
        left, right = _x(start, most), _x(start + size, most)
        start += size
        said = escape(f"{region.label} {format_gib(size, unit)}")
        yield (
            f'<rect x="{left:.1f}" y="{y}" width="{right - left:.1f}" height="{_BAR}" '
            f'fill="{inks.fill(region)}" stroke="#fff" stroke-width="0.5"><title>{said}</title>'
            "</rect>"
        )
        text = f"{region.label} {words.number(size, unit)}"
        wide = len(text) * _CHARACTER + 8
        if wide < right - left:
            middle = (left + right) / 2
            yield (
                f'<rect x="{middle - wide / 2:.1f}" y="{y + 8}" width="{wide:.1f}" '
                f'height="{_BAR - 16}" fill="#fff"/><text x="{middle:.1f}" y="{y + _BAR / 2 + 4:g}"'
                f' text-anchor="middle">{escape(text)}</text>'
            )


def _load_line(
    rank: RankBudget, y: int, most: int, unit: UnitSystem, *, named: bool
) -> Iterator[str]:
    line = rank.slot.device.allocatable.likely_bytes
    x, blue = _x(line, most), inks.color("chart.loadline")
    yield f'<path d="M{x:.1f} {y - 6}V{y + _BAR + 6}" stroke="{blue}" stroke-width="2"/>'
    if named:
        said = escape(tr("Load line: {size}").format(size=format_gib(line, unit)))
        yield f'<text x="{x:.1f}" y="{y - 10}" text-anchor="end" fill="{blue}">{said}</text>'


def _ticks(most: int, y: int, unit: UnitSystem) -> Iterator[str]:
    edge, ink = inks.color("line.control.edge"), inks.color("text.tertiary")
    yield f'<path d="M{_LEFT} {y}H{_WIDTH - _RIGHT}" stroke="{edge}"/>'
    step = _step(most / unit.factor)
    for number in range(floor(most / unit.factor / step) + 1):
        x = _x(number * step * unit.factor, most)
        yield f'<path d="M{x:.1f} {y}v5" stroke="{edge}"/>'
        text = figures(f"{number * step:g}") + (f" {unit.value}" if not number else "")
        yield f'<text x="{x:.1f}" y="{y + 18}" text-anchor="middle" fill="{ink}">{text}</text>'


def _step(most: float) -> float:
    """The roundest step that makes no more than ``_TICKS`` of ``most``."""
    power = 10.0 ** floor(log10(most / _TICKS))
    return next(power * f for f in (1, 2, 5, 10) if most / (power * f) <= _TICKS)


def _run(run: MeasuredRun, rank: RankBudget, y: int, unit: UnitSystem) -> Iterator[str]:
    """All use of the device over time, under its load line."""
    line = rank.slot.device.allocatable.likely_bytes
    top = max(line, *run.seen) * 1.05
    length = max(run.length_s, 1.0)

    def up(size: float) -> float:
        return y + _RUN - size / top * _RUN

    blue, edge = inks.color("chart.loadline"), inks.color("line.control.edge")
    right = _WIDTH - _RIGHT
    yield f'<path d="M{_LEFT} {up(line):.1f}H{right}" stroke="{blue}" stroke-width="2"/>'
    yield f'<path d="M{_LEFT} {y}V{y + _RUN}H{right}" fill="none" stroke="{edge}"/>'
    points = [(t, u) for t, u in zip(run.times_s, run.used_bytes, strict=True) if u is not None]
    kept = points[:: ceil(len(points) / _MOST_POINTS)]
    places = " ".join(
        f"{_LEFT + t / length * (right - _LEFT):.1f},{up(used):.1f}" for t, used in kept
    )
    ink = inks.color("chart.measured")
    yield f'<polyline points="{places}" fill="none" stroke="{ink}" stroke-width="2"/>'
    most = escape(tr("Measured, at most {size}").format(size=format_gib(max(run.seen), unit)))
    yield f'<text x="{right - 8}" y="{y + _RUN - 10}" text-anchor="end">{most}</text>'
    there = f'x="{_LEFT - 8}" y="{up(line) + 4:.1f}" text-anchor="end" fill="{blue}"'
    yield f"<text {there}>{words.number(line, unit)}</text>"
    yield f'<text x="{_LEFT}" y="{y + _RUN + 16}">0 s</text>'
    yield f'<text x="{right}" y="{y + _RUN + 16}" text-anchor="end">{length:.0f} s</text>'
