"""Plans side by side, as they were put beside each other in the window."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.fit.judge import judge
from engine.report import words
from engine.report.document import Align, BarsFigure, Block, Cell, Column, Heading, Table, Tone
from engine.text import printable
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.budget.model import RankBudget
    from engine.fit.solve import Limits
    from engine.sizing import Sizing
    from engine.units import UnitSystem


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """One of the plans."""

    name: str
    """Model, formats, runtime, device."""
    sizing: Sizing | None
    problem: str = ""
    """Why there is no answer."""
    limits: Limits | None = None
    """None where they aren't known."""

    @property
    def rank(self) -> RankBudget | None:
        """The rank that decides."""
        if self.sizing is None:
            return None
        bound = self.sizing.verdict.binding_rank
        return next(r for r in self.sizing.budget.ranks if r.rank == bound)


def blocks(plans: Sequence[Compared], unit: UnitSystem, number: int) -> list[Block]:
    """The figure ``number`` and a table of names, verdicts and sizes."""
    bars = tuple(
        (letter, plan.rank)
        for letter, plan in zip(ascii_uppercase, plans, strict=False)
        if plan.rank is not None
    )
    caption = tr(
        "Figure {number}. Bars: plans by region on one scale, {unit}; of several ranks the one "
        "that decides. Load lines: what can be allocated."
    ).format(number=number, unit=unit.value)
    made: list[Block] = [BarsFigure(bars, unit, caption)] if bars else []
    heading = Heading(tr("Their regions, {unit}").format(unit=unit.value))
    return [*made, _verdicts(plans, unit), heading, _sizes(plans, unit)]


def _verdicts(plans: Sequence[Compared], unit: UnitSystem) -> Table:
    columns = (
        Column("", 0.4, tone=Tone.STRONG),
        Column(tr("Plan"), 4.4),
        Column(tr("Verdict"), 3.4),
        Column(tr("Longest context"), 1.0, Align.RIGHT),
        Column(tr("Most at once"), 1.0, Align.RIGHT),
    )
    rows = tuple(
        (
            Cell(letter),
            Cell(printable(plan.name, 300)),
            Cell(_headline(plan, unit)),
            Cell(_limit(plan.limits and plan.limits.max_context)),
            Cell(_limit(plan.limits and plan.limits.max_concurrency)),
        )
        for letter, plan in zip(ascii_uppercase, plans, strict=False)
    )
    return Table(columns, rows)


def _headline(plan: Compared, unit: UnitSystem) -> str:
    """The verdict in ``unit``, in which it need not have been given; else why there is none."""
    if plan.sizing is None:
        return printable(plan.problem, 300)
    return judge(plan.sizing.budget, unit).headline


def _limit(found: int | None) -> str:
    return words.DASH if found is None else grouped(found)


def _sizes(plans: Sequence[Compared], unit: UnitSystem) -> Table:
    """Regions down and plans across: six plans have room, nine regions would not."""
    there = [
        (letter, plan.rank)
        for letter, plan in zip(ascii_uppercase, plans, strict=False)
        if plan.rank is not None
    ]
    columns = (
        Column(tr("Region"), 2.4),
        *(Column(letter, 1.0, Align.RIGHT) for letter, _ in there),
    )
    rows = [
        (
            Cell(region.label, region=region),
            *(_size(rank.regions[region].estimate.likely_bytes, unit) for _, rank in there),
        )
        for region in Region
        if any(rank.regions[region].estimate.likely_bytes for _, rank in there)
    ]
    needed = (
        Cell(tr("KV needed")),
        *(_size(rank.needed.likely_bytes, unit) for _, rank in there),
    )
    line = (
        Cell(tr("Load line")),
        *(_size(rank.slot.device.allocatable.likely_bytes, unit) for _, rank in there),
    )
    return Table(columns, (*rows, needed), line)


def _size(size_bytes: int, unit: UnitSystem) -> Cell:
    return Cell(words.number(size_bytes, unit) if size_bytes else words.DASH, size_bytes)
