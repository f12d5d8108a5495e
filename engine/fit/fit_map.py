"""How far a plan goes in both directions: margins over context and requests, and the limit.

Every figure comes from the runtime's own budget. Not every cell costs one: margins are planned
on a coarse lattice, which is refined wherever the plan in the middle of a patch is not what the
patch's corners let expect, and only what lies between plans that agree is interpolated. The limit
is no edge between cells: on every row it is searched to the token.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isnan, log2, nan
from typing import TYPE_CHECKING

from engine.fit.lattice import filled
from engine.fit.limit_line import limit_line, roundest
from engine.fit.plane import Plane, nothing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.fit.plane import Axes

CELLS = 64
"""Columns and rows."""
_AGREES_WITHIN = 128
"""What the plans around a cell tell within this part of a device is not planned."""


@dataclass(frozen=True, slots=True, eq=False)
class FitMap:
    """Margins of plans that differ in context and requests only.

    Shapes:
        ``margins``: rows × columns, rows from the fewest requests up; bytes, negative where the
        plan is over, NaN where no margin is known or the runtime refuses the plan.
        ``limit``: (tokens, requests) along the line where plans stop fitting, contexts falling.
        Empty where it lies outside of the axes, or where no limit is known.
    """

    axes: Axes
    contexts: tuple[int, ...]
    requests: tuple[float, ...]
    """Of the rows; between two whole numbers of requests the margin is in between too."""
    margins: tuple[tuple[float, ...], ...]
    limit: tuple[tuple[float, float], ...]
    unknown: str
    """Why some margins, or all, are not known; empty where all are."""
    refused: str
    """Why the runtime refuses even the least of these plans; empty where it doesn't."""


@dataclass(frozen=True, slots=True, eq=False)
class MarginTable:
    """Margins at whole octaves, each of one plan.

    Shapes:
        ``margins``: requests × contexts; bytes, NaN as in ``FitMap``.
    """

    contexts: tuple[int, ...]
    requests: tuple[int, ...]
    margins: tuple[tuple[float, ...], ...]


def fit_map(
    model: Model,
    deployment: Deployment,
    machine: Machine,
    shown: Axes,
    check: Callable[[], None] = nothing,
) -> FitMap:
    """The map of ``deployment`` whatever its own context and requests.

    Args:
        model: any.
        deployment: its ``max_model_len`` and ``concurrency`` are what the map varies.
        machine: where it runs.
        shown: the axes.
        check: called before each plan; what it raises ends the work.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    plane = Plane(model, deployment, machine, check)
    unknown, is_bounded = plane.doubt(shown)
    contexts = _columns(shown)
    rows = tuple(2**place for place in _places(1, shown.most_requests))
    whole = _whole_rows(rows)
    tolerance_bytes = machine.slots[0].device.total_bytes // _AGREES_WITHIN
    line: tuple[tuple[float, float], ...] = ()
    if not unknown:
        margins = filled(plane.margin, contexts, whole, tolerance_bytes)
        line = limit_line(plane, shown)
    elif is_bounded:
        # Of what is in doubt only what is sure counts: too much at the least, or room at the
        # most. What lies between is not known, and never shown as fitting.
        most = filled(plane.most_margin, contexts, whole, tolerance_bytes)
        sure = filled(plane.sure_margin, contexts, whole, tolerance_bytes)
        margins = [
            [high if high < 0 else low if low >= 0 else nan for high, low in zip(*row, strict=True)]
            for row in zip(most, sure, strict=True)
        ]
    else:
        margins = [[nan] * len(contexts)] * len(whole)
    refused = plane.refusal(shown)
    cells = _between(margins, whole, rows)
    return FitMap(shown, contexts, rows, cells, line, unknown, refused)


def limit(
    model: Model,
    deployment: Deployment,
    machine: Machine,
    shown: Axes,
    check: Callable[[], None] = nothing,
) -> tuple[tuple[float, float], ...]:
    """Only the limit of ``deployment``, as in ``FitMap``.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    plane = Plane(model, deployment, machine, check)
    unknown, _ = plane.doubt(shown)
    return () if unknown else limit_line(plane, shown)


def margin_table(
    model: Model,
    deployment: Deployment,
    machine: Machine,
    shown: Axes,
    check: Callable[[], None] = nothing,
) -> MarginTable:
    """The map in figures: for those who read it, or hear it.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    plane = Plane(model, deployment, machine, check)
    _, is_bounded = plane.doubt(shown)
    contexts = octaves(shown.least_context, shown.most_context)
    requests = octaves(1, shown.most_requests)
    margins = tuple(
        tuple(plane.certain(tokens, number) if is_bounded else nan for tokens in contexts)
        for number in requests
    )
    return MarginTable(contexts, requests, margins)


def certain_margin_bytes(
    model: Model, deployment: Deployment, machine: Machine, context: int, requests: int
) -> int | None:
    """The margin of one plan of the map; None where it isn't known, or the plan is refused.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    plane = Plane(model, deployment, machine, nothing)
    found = plane.certain(context, requests)
    return None if isnan(found) or not plane.is_bounded(context) else int(found)


def octaves(least: int, most: int) -> tuple[int, ...]:
    """``least``, twice that and so on, and ``most``."""
    doubled = (least << n for n in range((most // least).bit_length()))
    return tuple(dict.fromkeys((*doubled, most)))


def _places(least: int, most: int, part: float = 0.5) -> Iterator[float]:
    """A point of each cell of a logarithmic axis, in octaves: its middle, or another ``part``."""
    for cell in range(CELLS):
        yield log2(least) + log2(most / least) * (cell + part) / CELLS


def _columns(shown: Axes) -> tuple[int, ...]:
    """The roundest number of tokens near the middle of each column.

    Caches grow in blocks of 16 to 256 tokens: full blocks lie on even surfaces, and what lies
    between them would look like noise.
    """
    ends = (shown.least_context, shown.most_context)
    edges = zip(_places(*ends, 0.25), _places(*ends, 0.75), strict=True)
    return tuple(roundest(max(1, round(2**low)), max(1, round(2**high))) for low, high in edges)


def _whole_rows(rows: tuple[float, ...]) -> list[int]:
    """The whole numbers of requests to plan with: those beside every row, thinned where dense."""
    return sorted({floor(rows[0]), *(round(row) for row in rows), ceil(rows[-1])})


def _between(
    margins: list[list[float]], whole: list[int], rows: tuple[float, ...]
) -> tuple[tuple[float, ...], ...]:
    """Margins of the rows, of which some lie between two whole numbers of requests."""
    made: list[tuple[float, ...]] = []
    below = 0
    for row in rows:
        while below + 2 < len(whole) and whole[below + 1] <= row:
            below += 1
        share = (row - whole[below]) / (whole[below + 1] - whole[below])
        pair = zip(margins[below], margins[below + 1], strict=True)
        made.append(tuple(low + (high - low) * share for low, high in pair))
    return tuple(made)
