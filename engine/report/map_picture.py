"""The map of plans as inline SVG: what fits, what doesn’t, and the limit between them."""

from __future__ import annotations

from html import escape
from math import ceil, log2
from typing import TYPE_CHECKING

from engine.fit.margin_classes import edges_bytes, runs
from engine.report import inks
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.report.document import MapFigure

_WIDTH, _HEIGHT = 720, 340
_LEFT, _TOP, _RIGHT, _BOTTOM = 70, 12, 690, 290
_MOST_TICKS = 9


def fit_map(figure: MapFigure) -> str:
    """Cells, limit, axes and the plan; its label says the same to those who hear it."""
    return "".join(_drawn(figure))


def _drawn(figure: MapFigure) -> Iterator[str]:
    found = figure.map
    ink = inks.color("text.primary")
    yield (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(figure.spoken)}" '
        f'font-size="12" fill="{ink}"><defs><pattern id="over" width="8" height="8" '
        f'patternUnits="userSpaceOnUse"><path d="M0 8L8 0" stroke="{inks.color("over")}" '
        'stroke-opacity="0.45"/></pattern></defs>'
    )
    wide, high = _RIGHT - _LEFT, _BOTTOM - _TOP
    yield (
        f'<rect x="{_LEFT}" y="{_TOP}" width="{wide}" height="{high}" '
        f'fill="{inks.color("unknown.soft")}"/>'
    )
    over: list[str] = []
    for run in runs(found.margins, edges_bytes(figure.total_bytes, figure.unit)):
        # A hair wider, so that no seam shows between neighbours.
        x, y = _LEFT + run.left * wide, _BOTTOM - run.top * high
        across, down = (
            (run.right - run.left) * wide + 0.3,
            (run.top - run.bottom) * high + 0.3,
        )
        place = f"M{x:.1f} {y:.1f}h{across:.1f}v{down:.1f}h-{across:.1f}z"
        yield f'<path d="{place}" fill="{inks.color(run.name)}"/>'
        if run.is_over:
            over.append(place)
    # One shape: a browser writes a hatch into its PDF once for each.
    yield f'<path d="{"".join(over)}" fill="url(#over)"/>'
    if len(found.limit) > 1:
        points = " ".join(f"{_x(figure, t):.1f},{_y(figure, n):.1f}" for t, n in found.limit)
        contour = inks.color("map.contour")
        yield f'<polyline points="{points}" fill="none" stroke="{contour}" stroke-width="2"/>'
    yield from _axes(figure)
    yield from _point(figure)
    yield "</svg>"


def _x(figure: MapFigure, tokens: float) -> float:
    low, high = figure.map.axes.least_context, figure.map.axes.most_context
    share = log2(min(max(tokens, low), high) / low) / log2(high / low)
    return _LEFT + share * (_RIGHT - _LEFT)


def _y(figure: MapFigure, requests: float) -> float:
    most = figure.map.axes.most_requests
    return _BOTTOM - log2(min(max(requests, 1), most)) / log2(most) * (_BOTTOM - _TOP)


def _axes(figure: MapFigure) -> Iterator[str]:
    shown, ink = figure.map.axes, inks.color("text.tertiary")
    edge = inks.color("line.control.edge")
    yield f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="{edge}"/>'
    for tokens in _octaves(shown.least_context, shown.most_context):
        x = _x(figure, tokens)
        yield f'<path d="M{x:.1f} {_BOTTOM}v5" stroke="{edge}"/>'
        yield f'<text x="{x:.1f}" y="{_BOTTOM + 18}" text-anchor="middle" fill="{ink}">'
        yield f"{grouped(tokens)}</text>"
    for requests in _octaves(1, shown.most_requests):
        y = _y(figure, requests)
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{ink}">'
        yield f"{grouped(requests)}</text>"
    middle = (_TOP + _BOTTOM) / 2
    yield f'<text x="{(_LEFT + _RIGHT) / 2:g}" y="{_BOTTOM + 38}" text-anchor="middle">'
    yield f"{escape(tr('Context, tokens per request'))}</text>"
    yield f'<text transform="translate(16 {middle:g}) rotate(-90)" text-anchor="middle">'
    yield f"{escape(tr('Requests at once'))}</text>"


def _octaves(low: int, high: int) -> list[int]:
    """Octaves of an axis, thinned where there are too many."""
    first, last = ceil(log2(low)), int(log2(high))
    every = max(1, ceil((last - first + 1) / _MOST_TICKS))
    return [2**n for n in range(first, last + 1, every)]


def _point(figure: MapFigure) -> Iterator[str]:
    """The ring of the plan with its words, on the side where there is room."""
    x, y = _x(figure, figure.context), _y(figure, figure.requests)
    accent, ground = inks.color("accent"), inks.color("surface.base")
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{ground}" stroke="{accent}" '
    yield 'stroke-width="2.5"/>'
    on_right = x < (_LEFT + _RIGHT) / 2
    left, anchor = (x + 14, "start") if on_right else (x - 14, "end")
    yield f'<text x="{left:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}" stroke="{ground}" '
    yield 'stroke-width="6" stroke-linejoin="round" paint-order="stroke">'
    yield f"{escape(figure.point)}</text>"
