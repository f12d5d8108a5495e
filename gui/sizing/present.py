"""The state in words and numbers, ready to show. Pure functions; the only rounding here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.budget.drawn import drawn_bytes, drawn_estimate
from engine.budget.model import Region
from engine.devices import catalogue
from engine.devices.device import DeviceKind
from engine.evidence import Basis
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.overlay.regions import measured_regions
from engine.telemetry.snapshot import Missing
from engine.units import in_unit
from engine.words import tr, tr_count
from gui.kit import format as fmt
from gui.kit.charts.captions import bound_sign, drawn_sign
from gui.sizing.beside import deciding
from gui.sizing.explain import bound_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.architecture.model import Model
    from engine.budget.model import Budget, RankBudget, RegionBudget
    from engine.evidence import Estimate
    from engine.fit.changes import Change
    from engine.fit.verdict import Verdict
    from engine.overlay.overlay import RankOverlay
    from engine.overlay.regions import MeasuredRegion
    from engine.sizing import Sizing
    from engine.together import Placed
    from engine.units import UnitSystem
    from gui.sizing.view_model import State

COLORS = {
    Fit.FITS: "fits",
    Fit.TIGHT: "tight",
    Fit.DOES_NOT_FIT: "over",
    Fit.UNKNOWN: "unknown",
}
ICONS = {
    Fit.FITS: "check",
    Fit.TIGHT: "triangle-alert",
    Fit.DOES_NOT_FIT: "x",
    Fit.UNKNOWN: "circle-help",
}
_WRITTEN_SMALL = ("psutil", "llama.cpp", "ik_llama.cpp", "llamafile", "vLLM", "mlx")


@dataclass(frozen=True, slots=True)
class LiveCells:
    """What is measured of one region while the plan runs."""

    measured: str
    difference: str
    known_from: str
    note: str
    is_off: bool
    """Whether the difference is more than the plan's range explains."""


@dataclass(frozen=True, slots=True)
class RegionRow:
    """One line of the table of regions."""

    region: Region | None
    """None for the load line at the bottom."""
    label: str
    size: str
    span: str
    least: str
    basis: str
    note: str
    is_absent: bool
    exact: str
    """Tooltip of the size: the bytes."""
    per_rank: tuple[str, ...] = ()
    """The size on each rank, where there are several."""
    live: LiveCells | None = None
    """None while nothing of the plan runs."""


@dataclass(frozen=True, slots=True)
class Fact:
    """An answer beside the verdict: caption (long and short), number, unit."""

    caption: str
    short: str
    value: str
    unit: str
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """The verdict as shown: a status colour, an icon, two lines."""

    color: str
    icon: str
    headline: str
    detail: str
    tooltip: str = ""


def verdict(state: State) -> Words:
    """The verdict in force; or what keeps the plan from having one."""
    if state.problem:
        headline = tr("This plan can’t be worked out")
        return Words("over", "triangle-alert", headline, state.problem)
    if state.sizing is None and state.awaited:
        headline = tr("Not sized: its model isn’t here")
        return Words("unknown", "circle-help", headline, tr("The plan is kept meanwhile."))
    if state.sizing is None:
        headline, detail = tr("Pick a model"), tr("On the left, or drop a file here.")
        return Words("unknown", "circle-help", headline, detail)
    found = judge(state.sizing.budget, state.unit)
    decided = headline_of(state.sizing, state.beside, state.unit)
    told = deciding(state.sizing, state.beside)
    outcome, shown = found.outcome, margin_words(found)
    if told is not None:
        verdict = told.sizing.verdict
        outcome = verdict.outcome
        shown = tr("{model}: {verdict}").format(
            model=title(told.tenant.model), verdict=margin_words(verdict)
        )
    detail = f"{_others(state)} {_capital(found.detail)}".strip()
    return Words(COLORS[outcome], ICONS[outcome], decided, detail, shown)


def margin_words(found: Verdict) -> str:
    """``1,234 bytes to spare``, to the byte."""
    words = tr("{size} to spare") if found.margin_bytes >= 0 else tr("{size} over")
    return words.format(size=fmt.exact_bytes(abs(found.margin_bytes)))


def _others(state: State) -> str:
    """Beside what the plan runs; empty where it has the machine to itself."""
    if not state.beside:
        return ""
    held = sum(placed.held_bytes for placed in state.beside)
    return tr_count(
        "{others} beside it holds {size}.", "{others} beside it hold {size}.", len(state.beside)
    ).format(
        others=short_names(placed.tenant.model for placed in state.beside),
        size=fmt.size(held, state.unit, digits=1),
    )


def headline_of(own: Sizing, others: Sequence[Placed], unit: UnitSystem) -> str:
    """The plan's own answer, or that of the one beside it which decides, and which that is."""
    worst = deciding(own, others)
    if worst is None:
        return judge(own.budget, unit).headline
    verdict, name = judge(worst.sizing.budget, unit), title(worst.tenant.model)
    words = tr("{model}: {verdict}").format(model=name, verdict=verdict.headline)
    if verdict.refusals:
        words = tr("{model} won’t start").format(model=name)
    elif verdict.outcome is Fit.DOES_NOT_FIT:
        over = fmt.size(max(0, -verdict.margin_bytes), unit, digits=1)
        words = tr("Doesn’t fit: {size} over for {model}").format(size=over, model=name)
    before = others[: others.index(worst)]
    if not before:
        return words
    return tr("{answer} beside {others}").format(
        answer=words, others=short_names(placed.tenant.model for placed in before)
    )


def short_names(models: Iterable[Model]) -> str:
    """``Qwen2.5-7B and Llama-3.1-8B``, without their organisations."""
    names = [title(model) for model in models]
    if len(names) < 2:
        return "".join(names)
    return tr("{names} and {last}").format(names=", ".join(names[:-1]), last=names[-1])


def change_margin(change: Change, unit: UnitSystem) -> str:
    """The margin a change would bring, one decimal."""
    return fmt.margin(change.verdict.margin_bytes, unit)


def remarks(state: State) -> str:
    """What is to be known of the plan beside its answer: what counts for less than one may think.

    The terminal and the report say the same.
    """
    warnings = state.sizing.budget.warnings if state.sizing and not state.is_stale else ()
    return in_unit(" ".join((*state.notes, *warnings)), state.unit)


def title(model: Model) -> str:
    """The model's own name, without its organisation."""
    return model.id.rsplit("/", 1)[-1]


def subtitle(model: Model) -> str:
    """Organisation, parameters and revision."""
    organisation = model.id.rsplit("/", 1)[0] if "/" in model.id else tr(model.source)
    words = [organisation, tr("{n} parameters").format(n=fmt.parameters(model.parameters))]
    if model.revision:
        words.append(tr("revision {revision}").format(revision=model.revision[:7]))
    return "  ".join(filter(None, words))


def subtitle_details(model: Model) -> str:
    """The exact figures behind the subtitle."""
    lines = [
        tr("{n} parameters").format(n=fmt.count(model.parameters)),
        tr("from {source}").format(source=tr(model.source)),
    ]
    if model.revision:
        lines.append(tr("revision {revision}").format(revision=model.revision))
    return "\n".join(lines)


def where(state: State) -> str:
    """``RTX 4090, this computer``."""
    machine = state.machine or state.here
    text = tr("{device}, this computer") if machine.is_here else tr("{device}, not this computer")
    if machine.is_corrected:
        text = tr("{device} (corrected), this computer")
    if machine.slots[0].device.source.startswith("recording "):
        text = tr("{device}, recorded")
    if machine.place:
        return f"{device_name(state)}, {machine.place}"
    return text.format(device=device_name(state))


def device_name(state: State) -> str:
    """``RTX 4090``, ``4 × L40S`` or ``RTX 4090 + 2 × RTX 3060``."""
    machine = state.machine or state.here
    if state.plan.device is not None and catalogue.lists(state.plan.device):
        return machine.name
    name = machine.slots[0].device.name
    count = max(1, state.plan.deployment.ranks)
    return f"{count} {fmt.TIMES} {name}" if count > 1 else name


def rank_names(budget: Budget) -> tuple[str, ...]:
    """``Rank 0``, ``Rank 1``; the host's memory beside a device is no rank, but the host."""
    slots = [rank.slot for rank in budget.ranks]
    mixed = any(slot.device.kind is not DeviceKind.HOST for slot in slots)
    return tuple(
        tr("Host")
        if mixed and rank.slot.device.kind is DeviceKind.HOST
        else tr("Rank {rank}").format(rank=rank.rank)
        for rank in budget.ranks
    )


def region_rows(
    budget: Budget, chosen: int, unit: UnitSystem, *, side_by_side: bool
) -> tuple[RegionRow, ...]:
    """The table: every region in the fixed order, then the load line.

    Args:
        budget: the plan's.
        chosen: the rank whose figures are shown; with ``side_by_side`` only for the columns
            that all ranks share.
        unit: GiB or GB.
        side_by_side: whether each rank has a column.
    """
    ranks = budget.ranks if side_by_side else ()
    rows = (_row(budget, budget.ranks[chosen], region, unit, ranks) for region in Region)
    return (*rows, _load_line(budget.ranks[chosen], unit, ranks))


def _row(
    budget: Budget,
    rank: RankBudget,
    region: Region,
    unit: UnitSystem,
    ranks: tuple[RankBudget, ...],
) -> RegionRow:
    found = rank.regions[region]
    drawn = drawn_bytes(rank, region)
    is_grown = drawn > found.estimate.likely_bytes
    absent = max(drawn, found.estimate.high_bytes) == 0
    shown = drawn_estimate(rank, region)
    left = fmt.size(found.estimate.likely_bytes, unit)
    note = found.note
    if is_grown:
        note = tr("Needed by the plan; {size} are left for it").format(size=left)
    bound = bound_words(budget, region, shown)
    return RegionRow(
        region=region,
        label=region.label,
        size=fmt.DASH
        if absent
        else bound_sign(budget, region, shown) + fmt.size_number(drawn, unit),
        span=bound or _span(shown, unit),
        least=_least(found, unit, absent=absent),
        basis="" if absent else shown.basis.word,
        note=in_unit(_capital(note), unit),
        is_absent=absent,
        exact=_capital(f"{bound} {fmt.exact_bytes(drawn)}".strip()),
        per_rank=tuple(_number(budget, r, region, unit) for r in ranks),
    )


def _capital(text: str) -> str:
    """``text`` with a capital first, but not on names that are written small."""
    first = text.partition(" ")[0]
    return text if first.startswith(_WRITTEN_SMALL) or "/" in first else text[:1].upper() + text[1:]


def _number(budget: Budget, rank: RankBudget, region: Region, unit: UnitSystem) -> str:
    if rank.regions[region].estimate.high_bytes == 0:
        return fmt.DASH
    return drawn_sign(budget, rank, region) + fmt.size_number(drawn_bytes(rank, region), unit)


def _span(estimate: Estimate, unit: UnitSystem) -> str:
    if estimate.high_bytes == 0 or estimate.basis is Basis.SETTING:
        return ""
    return fmt.size_range(estimate.low_bytes, estimate.high_bytes, unit) or tr("exact")


def _least(found: RegionBudget, unit: UnitSystem, *, absent: bool) -> str:
    if absent or found.least_bytes is None:
        return fmt.DASH if absent else ""
    return fmt.size_number(found.least_bytes, unit) if found.least_bytes else "0"


def _load_line(rank: RankBudget, unit: UnitSystem, ranks: tuple[RankBudget, ...]) -> RegionRow:
    line = rank.slot.device.allocatable
    least = sum(r.least_bytes or 0 for r in rank.regions.values())
    total = fmt.size(rank.slot.device.total_bytes, unit)
    plan = sum(drawn_bytes(rank, region) for region in Region)
    over = plan - line.likely_bytes
    note = tr("What programs can get of {total}").format(total=total)
    if over > 0:
        note = tr("{size} less than the plan's {plan}").format(
            size=fmt.size(over, unit), plan=fmt.size(plan, unit)
        )
    return RegionRow(
        region=None,
        label=tr("Load line"),
        size=fmt.size_number(line.likely_bytes, unit),
        span=_span(line, unit),
        least=fmt.size_number(least, unit) if least else fmt.DASH,
        basis=line.basis.word,
        note=note,
        is_absent=False,
        exact=fmt.exact_bytes(line.likely_bytes),
        per_rank=tuple(
            fmt.size_number(r.slot.device.allocatable.likely_bytes, unit) for r in ranks
        ),
    )


def live_rows(
    rows: tuple[RegionRow, ...], budget: RankBudget, seen: RankOverlay, unit: UnitSystem
) -> tuple[RegionRow, ...]:
    """``rows`` with what is measured of each region of a running rank."""
    suspects = seen.residue.suspects if seen.residue and seen.residue.is_unexplained else ()
    named = suspects[0].region if suspects else None
    found = {m.region: m for m in measured_regions(budget, seen, unit=unit)}
    return tuple(
        replace(row, live=_live_cells(found[row.region], unit, is_off=row.region is named))
        if row.region is not None
        else replace(row, live=LiveCells(row.size, "", "", "", is_off=False))
        for row in rows
    )


def _live_cells(found: MeasuredRegion, unit: UnitSystem, *, is_off: bool) -> LiveCells:
    size, off = found.measured_bytes, found.difference_bytes
    if isinstance(size, Missing):
        return LiveCells(fmt.DASH, fmt.DASH, "", _capital(tr(size.reason)), is_off=False)
    if not size and not found.planned_bytes:
        return LiveCells(fmt.DASH, "", "", found.note, is_off=False)
    return LiveCells(
        fmt.size_number(size, unit),
        difference(off or 0, unit),
        found.known_from.label,
        found.note,
        is_off,
    )


def difference(size_bytes: int, unit: UnitSystem) -> str:
    """``+0.45``, two decimals; ``0.00`` without a sign where it rounds to that."""
    text = fmt.size_number(size_bytes, unit)
    is_nothing = not text.strip("-\N{MINUS SIGN}0.,")
    return fmt.size_number(0, unit) if is_nothing else text if size_bytes < 0 else f"+{text}"


def facts(state: State) -> tuple[Fact, Fact]:
    """The two inverse answers; a dash while they are searched or where there is none."""
    deployment = state.plan.deployment
    context = state.context
    longest = state.limits.max_context if state.limits else None
    most = state.limits.max_concurrency if state.limits else None
    of_each = tr("Most at once")
    if context:
        of_each = tr("Most at once, {tokens} each").format(tokens=fmt.count(context))
    return (
        Fact(
            tr("Longest context, {n} at once").format(n=fmt.count(deployment.concurrency)),
            tr("Longest context"),
            fmt.count(longest) if longest is not None else fmt.DASH,
            tr("tokens"),
            tr("The longest context that still fits with this many requests at once"),
        ),
        Fact(
            of_each,
            tr("Most at once"),
            fmt.count(most) if most is not None else fmt.DASH,
            tr_count("request", "requests", most or 0),
            tr("The most requests that still fit at this context"),
        ),
    )
