"""The tables of the report, as typed cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import RankBudget, Region
from engine.budget.phases import peaks
from engine.evidence import Basis, total
from engine.report import words
from engine.report.document import Align, Cell, Column, Table, Tone
from engine.text import printable
from engine.units import UnitSystem, format_gib, in_unit
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.budget.model import Budget
    from engine.report.measured import MeasuredRun

_HOW = 400


def regions(budget: Budget, rank: RankBudget, unit: UnitSystem) -> Table:
    """One rank: every region with its range, its basis and how it is worked out."""
    columns = (
        Column(tr("Region"), 2.3),
        Column(unit.value, 1.1, Align.RIGHT, Tone.STRONG),
        Column(tr("Low {dash} high").format(dash=words.DASH), 1.7, Align.RIGHT),
        Column(tr("Least"), 1.0, Align.RIGHT, Tone.QUIET),
        Column(tr("Basis"), 1.3),
        Column(tr("How it is worked out"), 4.6, Align.LEFT, Tone.QUIET),
    )
    rows = [_region_row(budget, rank, region, unit) for region in Region]
    line = rank.slot.device.allocatable
    rows.append(_plan_row(rank, unit))
    if rank.free_bytes > 0:
        free = rank.free_bytes
        rows.append(
            (
                Cell(tr("Free")),
                Cell(words.number(free, unit), free),
                *(Cell(""),) * 3,
                Cell(tr("Below the load line, above the plan")),
            )
        )
    totals = (
        Cell(tr("Load line")),
        Cell(words.number(line.likely_bytes, unit), line.likely_bytes),
        Cell(words.span(line, unit) if not line.is_point else ""),
        Cell(""),
        Cell(line.basis.word),
        Cell(_line_note(rank, unit)),
    )
    return Table(columns, tuple(rows), totals)


def sources(budget: Budget, rank: RankBudget, unit: UnitSystem) -> Table:
    """One rank: every region that holds anything, with its range, its basis and its source."""
    columns = (
        Column(tr("Region"), 2.3),
        Column(unit.value, 1.1, Align.RIGHT, Tone.STRONG),
        Column(tr("Low {dash} high").format(dash=words.DASH), 1.7, Align.RIGHT),
        Column(tr("Basis"), 1.3),
        Column(tr("Source"), 5.6, Align.LEFT, Tone.QUIET),
    )
    rows = [
        (
            *row[:3],
            row[4],
            Cell(printable(in_unit(rank.regions[region].estimate.source, unit), _HOW)),
        )
        for region in Region
        if (row := _region_row(budget, rank, region, unit))[1].text != words.DASH
    ]
    return Table(columns, tuple(rows))


def phases(rank: RankBudget, unit: UnitSystem) -> Table:
    """The peak of every phase of one rank, and what drives it."""
    columns = (
        Column(tr("Phase"), 2.0),
        Column(unit.value, 1.1, Align.RIGHT, Tone.STRONG),
        Column(tr("Low {dash} high").format(dash=words.DASH), 1.7, Align.RIGHT),
        Column(tr("Basis"), 1.3),
        Column(tr("What drives it"), 5.9, Align.LEFT, Tone.QUIET),
    )
    rows = tuple(
        (
            Cell(peak.phase.label),
            Cell(words.number(peak.estimate.likely_bytes, unit), peak.estimate.likely_bytes),
            Cell("" if peak.estimate.is_point else words.span(peak.estimate, unit)),
            Cell(peak.estimate.basis.word),
            Cell(printable(in_unit(peak.driver, unit), _HOW)),
        )
        for peak in peaks(rank, unit)
    )
    return Table(columns, rows)


def _plan_row(rank: RankBudget, unit: UnitSystem) -> tuple[Cell, ...]:
    """The sum of the regions, and of what is known to be least."""
    known = sum(entry.least_bytes or 0 for entry in rank.regions.values())
    planned = _planned_bytes(rank)
    return (
        Cell(tr("Planned")),
        Cell(words.number(planned, unit), planned),
        Cell(""),
        Cell(words.number(known, unit) if known else words.DASH, known),
        Cell(""),
        Cell(tr("All regions, each rounded by itself")),
    )


def _planned_bytes(rank: RankBudget) -> int:
    """All regions; of a pool that is too small, what the plan needs of it."""
    planned = rank.planned.likely_bytes
    if rank.has_pool:
        kv = rank.regions[Region.KV_CACHE].estimate.likely_bytes
        planned += max(0, rank.needed.likely_bytes - kv)
    return planned


def _region_row(
    budget: Budget, rank: RankBudget, region: Region, unit: UnitSystem
) -> tuple[Cell, ...]:
    entry = rank.regions[region]
    size, note = entry.estimate.likely_bytes, printable(in_unit(entry.note, unit), _HOW)
    grown = region is Region.KV_CACHE and rank.has_pool and rank.needed.likely_bytes > size
    if not entry.estimate.high_bytes and not grown:
        return (
            Cell(region.label, region=region, tone=Tone.QUIET),
            Cell(words.DASH, 0, tone=Tone.QUIET),
            Cell(""),
            Cell(words.DASH),
            Cell(""),
            Cell(note),
        )
    basis, spread = entry.estimate.basis, words.span(entry.estimate, unit)
    if grown:
        note = tr("Needed by the plan; {size} are left for it").format(size=format_gib(size, unit))
        size = rank.needed.likely_bytes
        basis, spread = rank.needed.basis, words.span(rank.needed, unit)
    least = entry.least_bytes
    direction = budget.direction(region)
    bound = direction.sign if direction and basis is Basis.BOUND else ""
    return (
        Cell(region.label, region=region),
        Cell(bound + words.number(size, unit), size),
        Cell(spread),
        Cell(words.DASH if least is None else words.number(least, unit), least),
        Cell(basis.word),
        Cell(note),
    )


def _line_note(rank: RankBudget, unit: UnitSystem) -> str:
    device = rank.slot.device
    planned = _planned_bytes(rank)
    over = planned - device.allocatable.likely_bytes
    if over > 0:
        return tr("{over} less than the plan’s {number}").format(
            over=format_gib(over, unit), number=words.number(planned, unit)
        )
    whole = format_gib(device.total_bytes, unit)
    return tr("What {allocator} can allocate of {whole}").format(
        allocator=words.allocator(device), whole=whole
    )


def alike(ranks: tuple[RankBudget, ...]) -> list[tuple[RankBudget, ...]]:
    """Ranks in groups whose tables would be the same."""
    groups: dict[tuple[object, ...], list[RankBudget]] = {}
    for rank in ranks:
        key = (
            rank.slot.device.name,
            rank.needed.likely_bytes,
            *(
                (e.estimate.low_bytes, e.estimate.likely_bytes, e.estimate.high_bytes, e.note)
                for e in rank.regions.values()
            ),
        )
        groups.setdefault(key, []).append(rank)
    return [tuple(group) for group in groups.values()]


def rank_names(ranks: tuple[RankBudget, ...]) -> str:
    """``Rank 0``, ``Ranks 1, 2 and 3``, ``Ranks 1 to 7``."""
    numbers = [rank.rank for rank in ranks]
    if len(numbers) == 1:
        return tr("Rank {numbers}").format(numbers=numbers[0])
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return tr("Ranks {numbers} to {numbers_2}").format(
            numbers=numbers[0], numbers_2=numbers[-1]
        )
    listed = ", ".join(str(n) for n in numbers[:-1])
    return tr("Ranks {listed} and {numbers}").format(listed=listed, numbers=numbers[-1])


def all_ranks(budget: Budget, unit: UnitSystem) -> Table:
    """One line per rank: what it holds, what it needs, what is left."""
    columns = (
        Column(tr("Rank"), 0.7),
        Column(tr("Device"), 2.6),
        Column(tr("Weights"), 1.0, Align.RIGHT),
        Column(tr("KV cache"), 1.0, Align.RIGHT),
        Column(tr("All else"), 1.0, Align.RIGHT),
        Column(tr("Planned use"), 1.1, Align.RIGHT, Tone.STRONG),
        Column(tr("Low {dash} high").format(dash=words.DASH), 1.7, Align.RIGHT),
        Column(tr("Load line"), 1.1, Align.RIGHT),
    )
    rows: list[tuple[Cell, ...]] = []
    for rank in budget.ranks:
        held = total(e.estimate for r, e in rank.regions.items() if r is not Region.HEADROOM)
        weights = rank.regions[Region.WEIGHTS].estimate.likely_bytes
        kv = rank.regions[Region.KV_CACHE].estimate.likely_bytes
        line = rank.slot.device.allocatable.likely_bytes
        sizes = (weights, kv, held.likely_bytes - weights - kv, held.likely_bytes)
        rows.append(
            (
                Cell(str(rank.rank)),
                Cell(printable(rank.slot.device.name, 80)),
                *(Cell(words.number(size, unit), size) for size in sizes),
                Cell(words.span(held, unit)),
                Cell(words.number(line, unit), line),
            )
        )
    return Table(columns, tuple(rows))


def devices(budget: Budget, unit: UnitSystem) -> Table:
    """Three capacities of every kind of device in the plan, and what others hold on it."""
    columns = (
        Column(tr("Device"), 2.4),
        Column(tr("Sold as"), 1.0, Align.RIGHT),
        Column(tr("Total"), 1.0, Align.RIGHT),
        Column(tr("Load line"), 1.0, Align.RIGHT, Tone.STRONG),
        Column(tr("Others"), 1.0, Align.RIGHT),
        Column(tr("Known from"), 4.2, Align.LEFT, Tone.QUIET),
    )
    rows: list[tuple[Cell, ...]] = []
    for slot in dict.fromkeys(rank.slot for rank in budget.ranks):
        device = slot.device
        total_source, line_source = device.source, device.allocatable.source
        repeated = total_source in line_source
        sources = (
            line_source
            if repeated
            else tr("{total_source}; {line_source}").format(
                total_source=total_source, line_source=line_source
            )
        )
        row = (
            Cell(printable(device.name, 80)),
            Cell(printable(device.label, 40)),
            Cell(words.number(device.total_bytes, unit), device.total_bytes),
            Cell(
                words.number(device.allocatable.likely_bytes, unit),
                device.allocatable.likely_bytes,
            ),
            Cell(words.number(slot.foreign.likely_bytes, unit), slot.foreign.likely_bytes),
            Cell(printable(sources, _HOW)),
        )
        if row not in rows:
            rows.append(row)
    return Table(columns, tuple(rows))


def measured(budget: Budget, runs: Mapping[int, MeasuredRun], unit: UnitSystem) -> Table:
    """What was seen in the run, beside what was planned."""
    columns = (
        Column(tr("Rank"), 0.7),
        Column(tr("Samples"), 1.0, Align.RIGHT),
        Column(tr("At first"), 1.0, Align.RIGHT),
        Column(tr("Most"), 1.0, Align.RIGHT, Tone.STRONG),
        Column(tr("At last"), 1.0, Align.RIGHT),
        Column(tr("Planned use"), 1.0, Align.RIGHT),
        Column(tr("Difference"), 1.1, Align.RIGHT),
        Column(tr("Known from"), 2.6, Align.LEFT, Tone.QUIET),
    )
    rows: list[tuple[Cell, ...]] = []
    for rank in budget.ranks:
        run = runs.get(rank.rank)
        if run is None:
            continue
        held = rank.planned.likely_bytes - rank.regions[Region.HEADROOM].estimate.likely_bytes
        most = max(run.seen)
        sizes = (run.seen[0], most, run.seen[-1], held)
        difference = words.difference(most - held, unit)
        rows.append(
            (
                Cell(str(rank.rank)),
                Cell(grouped(len(run.seen))),
                *(Cell(words.number(size, unit), size) for size in sizes),
                Cell(difference, most - held),
                Cell(printable(run.source, _HOW)),
            )
        )
    return Table(columns, tuple(rows))
