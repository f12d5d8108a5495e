"""What a runtime's own log states, beside what was planned for the same run.

Plain values, as in ``seen``: ``engine.observed`` fills them from a log that was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.report import words
from engine.report.document import (
    Align,
    Block,
    Bullets,
    Cell,
    Column,
    Heading,
    Paragraph,
    Table,
    Tone,
)
from engine.text import printable
from engine.units import UnitSystem, format_gib
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.budget.model import Region
    from engine.evidence import Estimate

_WORDS = 400
_MOST_ROWS = 64
"""Ranks state alike; what goes beyond eight of them says nothing new."""


@dataclass(frozen=True, slots=True)
class StatedRegion:
    """One region of one rank, as its log states it."""

    rank: str
    """As the log calls it; empty where it names none."""
    region: Region
    planned: Estimate | None
    """None where nothing is predicted."""
    stated_bytes: int
    lines: str
    """Numbers of the lines that say so."""


@dataclass(frozen=True, slots=True)
class Logged:
    """A log that was read."""

    about: str
    """``vLLM 0.33.0, 27 lines, 9 understood``."""
    headline: str
    """What became of the run."""
    sentences: tuple[str, ...]
    regions: tuple[StatedRegion, ...]
    remedies: tuple[tuple[str, int | None], ...]
    """What would have helped, with what it leaves in bytes where that is known."""


def blocks(log: Logged, unit: UnitSystem) -> list[Block]:
    """What became of the run, every region that is stated, and what would have helped."""
    told = " ".join(printable(each, _WORDS) for each in (f"{log.headline}.", *log.sentences))
    made: list[Block] = [
        Heading(tr("Stated by the log")),
        Paragraph(told),
        Paragraph(printable(log.about, _WORDS), Tone.QUIET),
    ]
    if log.regions:
        made.append(_table(log.regions, unit))
    if log.remedies:
        made += [Heading(tr("What would have helped")), Bullets(_remedies(log, unit))]
    return made


def _table(regions: Sequence[StatedRegion], unit: UnitSystem) -> Table:
    named = any(row.rank for row in regions)
    columns = (
        *((Column(tr("Rank"), 1.0),) if named else ()),
        Column(tr("Region"), 2.2),
        Column(tr("Planned, {unit}").format(unit=unit.value), 1.1, Align.RIGHT),
        Column(tr("Low {dash} high").format(dash=words.DASH), 1.7, Align.RIGHT, Tone.QUIET),
        Column(tr("Stated"), 1.1, Align.RIGHT, Tone.STRONG),
        Column(tr("Difference"), 1.1, Align.RIGHT),
        Column(tr("Line"), 1.6, tone=Tone.QUIET),
    )
    rows = tuple(
        (*((Cell(printable(row.rank, 40)),) if named else ()), *_row(row, unit))
        for row in regions[:_MOST_ROWS]
    )
    return Table(columns, rows)


def _row(row: StatedRegion, unit: UnitSystem) -> tuple[Cell, ...]:
    name, lines = Cell(row.region.label, region=row.region), Cell(printable(row.lines, 80))
    stated = Cell(words.number(row.stated_bytes, unit), row.stated_bytes)
    planned = row.planned
    if planned is None:
        return name, Cell(words.DASH), Cell(""), stated, Cell(words.DASH), lines
    off = row.stated_bytes - planned.likely_bytes
    return (
        name,
        Cell(words.number(planned.likely_bytes, unit), planned.likely_bytes),
        Cell(words.span(planned, unit)),
        stated,
        Cell(words.difference(off, unit), off),
        lines,
    )


def _remedies(log: Logged, unit: UnitSystem) -> tuple[str, ...]:
    return tuple(
        label
        if margin is None
        else tr("{label}: {margin}").format(
            label=printable(label, 120),
            margin=format_gib(margin, unit, signed=True, digits=1),
        )
        for label, margin in log.remedies
    )
