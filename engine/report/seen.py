"""What was seen of the plan's run beside what was planned, and the steps of sizing that it answers.

Plain values: a report reads neither devices nor logs (``engine.observed`` fills them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.report import logged, words
from engine.report.document import Align, Block, Cell, Column, Heading, Paragraph, Table, Tone
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.budget.model import Region
    from engine.evidence import Estimate
    from engine.report.logged import Logged
    from engine.units import UnitSystem

_WORDS = 400


@dataclass(frozen=True, slots=True)
class RegionSeen:
    """One region of one rank."""

    rank: int
    region: Region
    planned_bytes: int
    measured_bytes: int | None
    """None where it isn't known."""
    known_from: str
    """A line of the log, the driver, what remains; or why there is none."""


@dataclass(frozen=True, slots=True)
class PhaseSeen:
    """One phase of one rank, as far as it was seen."""

    rank: int
    phase: str
    expected: Estimate
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step of sizing: how it is answered."""

    title: str
    status: str
    words: str
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class Observed:
    """All that a report says of a run and of the steps."""

    regions: tuple[RegionSeen, ...] = ()
    phases: tuple[PhaseSeen, ...] = ()
    steps: tuple[Step, ...] = ()
    log: Logged | None = None
    """What the runtime's log states."""
    release: str = ""
    """Of the runtime that ran, as it or its log states it."""
    kernel: str = ""
    """The attention kernel that it chose, as its log states it."""


def measured(observed: Observed, unit: UnitSystem) -> list[Block]:
    """Error by region and by phase, and the log; nothing where nothing of the plan ran."""
    made: list[Block] = []
    if observed.regions:
        rows = tuple(_region(row, unit) for row in observed.regions)
        made += [Heading(tr("Error by region")), Table(_columns(tr("Region"), unit), rows)]
    if observed.phases:
        rows = tuple(_phase(row, unit) for row in observed.phases)
        told = tr(
            "What the plan’s own processes hold, without others; loading ends where the runtime "
            "has taken what it reserves."
        )
        made += [Heading(tr("Error by phase")), Paragraph(told, Tone.QUIET)]
        made.append(Table(_columns(tr("Phase"), unit), rows))
    if observed.log is not None:
        made += logged.blocks(observed.log, unit)
    return made


def checklist(steps: Sequence[Step], unit: UnitSystem) -> list[Block]:
    """The steps in order, each with its answer."""
    if not steps:
        return []
    columns = (
        Column("", 0.3, Align.RIGHT),
        Column(tr("Step"), 3.6),
        Column(tr("Answer"), 1.2, tone=Tone.STRONG),
        Column(unit.value, 1.2, Align.RIGHT),
        Column(tr("How"), 3.7, tone=Tone.QUIET),
    )
    rows = tuple(
        (
            Cell(str(number)),
            Cell(step.title),
            Cell(step.status),
            Cell(words.number(step.estimate.likely_bytes, unit), step.estimate.likely_bytes)
            if step.estimate
            else Cell(words.DASH),
            Cell(printable(step.words, _WORDS)),
        )
        for number, step in enumerate(steps, 1)
    )
    return [Table(columns, rows)]


def _columns(first: str, unit: UnitSystem) -> tuple[Column, ...]:
    return (
        Column(tr("Rank"), 0.6),
        Column(first, 2.2),
        Column(tr("Planned, {unit}").format(unit=unit.value), 1.1, Align.RIGHT),
        Column(tr("Measured"), 1.1, Align.RIGHT, Tone.STRONG),
        Column(tr("Difference"), 1.1, Align.RIGHT),
        Column(tr("Known from"), 3.6, tone=Tone.QUIET),
    )


def _region(row: RegionSeen, unit: UnitSystem) -> tuple[Cell, ...]:
    name = Cell(row.region.label, region=row.region)
    sizes = _sizes(row.planned_bytes, row.measured_bytes, unit)
    return Cell(str(row.rank)), name, *sizes, Cell(printable(row.known_from, _WORDS))


def _phase(row: PhaseSeen, unit: UnitSystem) -> tuple[Cell, ...]:
    low, high = row.expected.low_bytes, row.expected.high_bytes
    where = tr("within the range") if low <= row.peak_bytes <= high else tr("outside the range")
    sizes = _sizes(row.expected.likely_bytes, row.peak_bytes, unit)
    told = f"{where}, {words.span(row.expected, unit)}".removesuffix(", ")
    return Cell(str(row.rank)), Cell(row.phase), *sizes, Cell(told)


def _sizes(planned: int, found: int | None, unit: UnitSystem) -> tuple[Cell, ...]:
    shown = Cell(words.number(planned, unit), planned)
    if found is None:
        return shown, Cell(words.DASH), Cell(words.DASH)
    off = found - planned
    difference = words.difference(off, unit)
    return shown, Cell(words.number(found, unit), found), Cell(difference, off)
