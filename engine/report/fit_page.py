"""How far the plan goes in both directions: the map, and the same in figures."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.fit.fit_map import fit_map, margin_table
from engine.fit.plane import axes
from engine.report import words
from engine.report.document import Align, Block, Cell, Column, Heading, MapFigure, Table
from engine.units import format_gib
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment
    from engine.fit.fit_map import FitMap, MarginTable
    from engine.sizing import Sizing
    from engine.units import UnitSystem


def blocks(sizing: Sizing, plan: Deployment, unit: UnitSystem, number: int) -> list[Block]:
    """The figure ``number`` and its table; nothing for a plan that has no map."""
    budget = sizing.budget
    model, machine = budget.model, budget.machine
    try:
        shown = axes(model, plan, machine)
        found = fit_map(model, plan, machine, shown)
        figures = margin_table(model, plan, machine, shown)
    except DeploymentError:
        return []
    context = budget.deployment.max_model_len or shown.least_context
    at_once = budget.deployment.concurrency
    point = tr("{context} × {requests}: {margin}").format(
        context=grouped(context),
        requests=grouped(at_once),
        margin=words.margin(sizing.verdict, unit),
    )
    figure = MapFigure(
        map=found,
        context=context,
        requests=at_once,
        point=point,
        total_bytes=machine.slots[0].device.total_bytes,
        unit=unit,
        caption=_caption(found, number),
        spoken=_spoken(found, point),
    )
    made: list[Block] = [figure]
    if any(not isnan(margin) for row in figures.margins for margin in row):
        made += [Heading(tr("The same in figures")), _table(figures, unit)]
    return made


def _caption(found: FitMap, number: int) -> str:
    parts = [
        tr("Figure {number}.").format(number=number),
        tr("Every place is a plan; the ring is this one. Hatched: it doesn’t fit."),
        tr("The darker, the more is to spare, or over."),
    ]
    if found.limit:
        parts.append(tr("Line: where plans stop fitting."))
    if found.unknown or found.refused:
        parts.append(tr("Grey: {why}").format(why=found.unknown or found.refused))
    return " ".join(parts)


def _spoken(found: FitMap, point: str) -> str:
    """The picture in words."""
    said = tr("Map of context against requests at once. This plan: {point}.").format(point=point)
    if not found.limit:
        return said
    (longest, few), (shortest, many) = found.limit[0], found.limit[-1]
    ends = tr("The limit runs from {longest} tokens × {few} to {shortest} tokens × {many}.")
    return f"{said} " + ends.format(
        longest=grouped(round(longest)),
        few=grouped(round(few)),
        shortest=grouped(round(shortest)),
        many=grouped(round(many)),
    )


def _table(found: MarginTable, unit: UnitSystem) -> Table:
    """Margins by context across and requests down."""
    columns = (
        Column(tr("At once, {unit} to spare").format(unit=unit.value), 1.6),
        *(Column(grouped(tokens), 1.0, Align.RIGHT) for tokens in found.contexts),
    )
    rows = tuple(
        (Cell(grouped(requests)), *(_cell(margin, unit) for margin in margins))
        for requests, margins in zip(found.requests, found.margins, strict=True)
    )
    return Table(columns, rows)


def _cell(margin: float, unit: UnitSystem) -> Cell:
    if isnan(margin):
        return Cell(words.DASH)
    size = int(margin)
    return Cell(format_gib(size, unit, signed=True, unit=False, digits=1), size)
