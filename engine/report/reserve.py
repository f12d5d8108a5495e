"""What the architecture needs beside what the runtime sets aside, and why they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.report import words
from engine.report.document import Align, Cell, Column, Table, Tone
from engine.text import printable
from engine.units import in_unit
from engine.words import tr

if TYPE_CHECKING:
    from engine.budget.model import RankBudget, RegionBudget
    from engine.units import UnitSystem

_WHY = 400


def table(rank: RankBudget, unit: UnitSystem) -> Table | None:
    """One row for each region that holds more than its least; None where none does."""
    held = [e for r in Region if _over(e := rank.regions[r]) and r is not Region.HEADROOM]
    if not held:
        return None
    columns = (
        Column(tr("Region"), 2.0),
        Column(tr("Least"), 1.0, Align.RIGHT),
        Column(tr("Held"), 1.0, Align.RIGHT),
        Column(tr("More"), 1.0, Align.RIGHT, Tone.STRONG),
        Column(tr("Why"), 6.0, tone=Tone.QUIET),
    )
    totals = (
        sum(e.least_bytes or 0 for e in held),
        sum(e.estimate.likely_bytes for e in held),
    )
    last = (
        Cell(tr("Together")),
        *_sizes(*totals, unit),
        Cell(""),
    )
    return Table(columns, tuple(_row(entry, unit) for entry in held), last)


def _over(entry: RegionBudget) -> bool:
    """Whether the architecture states a least, and the runtime holds more."""
    return entry.least_bytes is not None and entry.estimate.likely_bytes > entry.least_bytes


def _row(entry: RegionBudget, unit: UnitSystem) -> tuple[Cell, ...]:
    why = printable(in_unit(entry.gap or entry.note, unit), _WHY)
    sizes = _sizes(entry.least_bytes or 0, entry.estimate.likely_bytes, unit)
    return Cell(entry.region.label, region=entry.region), *sizes, Cell(why)


def _sizes(least: int, held: int, unit: UnitSystem) -> tuple[Cell, ...]:
    return tuple(Cell(words.number(each, unit), each) for each in (least, held, held - least))
