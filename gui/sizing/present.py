"""The state in words and numbers, ready to show. Pure functions; the only rounding here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.evidence import Basis
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.units import UnitSystem
from gui.kit import format as fmt
from gui.kit.charts.captions import drawn_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.architecture.model import Model
    from engine.budget.model import Budget, RankBudget, RegionBudget
    from engine.evidence import Estimate
    from engine.fit.changes import Change
    from gui.sizing.view_model import State

COLORS = {
    Fit.FITS: "fits",
    Fit.TIGHT: "tight",
    Fit.DOES_NOT_FIT: "over",
    Fit.UNKNOWN: "unknown",
}
_ICONS = {
    Fit.FITS: "check",
    Fit.TIGHT: "triangle-alert",
    Fit.DOES_NOT_FIT: "x",
    Fit.UNKNOWN: "circle-help",
}
_PARTS_SHOWN = 8
_WORKED_OUT = "How it is worked out"
_BARE_FIGURE = re.compile(r"\b\d+\.\d\d\b(?! (?:GiB|GB|MiB|MB))")
_WRITTEN_SMALL = frozenset({"psutil", "llama.cpp", "vLLM"})


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


@dataclass(frozen=True, slots=True)
class Passage:
    """A caption with what it introduces; ``is_formula`` sets it in the fixed-width font."""

    caption: str
    text: str
    is_formula: bool = False


@dataclass(frozen=True, slots=True)
class Detail:
    """The pane beside the table: one region explained."""

    region: Region | None
    title: str
    exact: str
    passages: tuple[Passage, ...]


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
        headline = "This plan can’t be worked out"
        return Words("over", "triangle-alert", headline, state.problem)
    if state.sizing is None:
        return Words("unknown", "circle-help", "Pick a model", "On the left, or drop a file here.")
    found = state.sizing.verdict
    if state.unit is not UnitSystem.BINARY:
        found = judge(state.sizing.budget, state.unit)
    margin = fmt.exact_bytes(abs(found.margin_bytes))
    side = "to spare" if found.margin_bytes >= 0 else "over"
    return Words(
        COLORS[found.fit], _ICONS[found.fit], found.headline, found.detail, f"{margin} {side}"
    )


def change_margin(change: Change, unit: UnitSystem) -> str:
    """The margin a change would bring, one decimal."""
    return fmt.margin(change.verdict.margin_bytes, unit)


def title(model: Model) -> str:
    """The model's own name, without its organisation."""
    return model.id.rsplit("/", 1)[-1]


def subtitle(model: Model) -> str:
    """Organisation, parameters and revision."""
    organisation = model.id.rsplit("/", 1)[0] if "/" in model.id else model.source
    revision = f"revision {model.revision[:7]}" if model.revision else ""
    words = (organisation, f"{fmt.parameters(model.parameters)} parameters", revision)
    return "  ".join(filter(None, words))


def subtitle_details(model: Model) -> str:
    """The exact figures behind the subtitle."""
    lines = [f"{fmt.count(model.parameters)} parameters", f"from {model.source}"]
    if model.revision:
        lines.append(f"revision {model.revision}")
    return "\n".join(lines)


def where(state: State) -> str:
    """``RTX 4090, this computer``."""
    machine = state.machine or state.here
    here = "this computer" if machine.is_here else "not this computer"
    return f"{device_name(state)}, {here}"


def device_name(state: State) -> str:
    """``RTX 4090`` or ``4 × L40S``."""
    machine = state.machine or state.here
    name = machine.slots[0].device.name
    count = max(1, state.plan.deployment.ranks)
    return f"{count} {fmt.TIMES} {name}" if count > 1 else name


def region_rows(rank: RankBudget, unit: UnitSystem) -> tuple[RegionRow, ...]:
    """The table of one rank: every region in the fixed order, then the load line."""
    return (*_rows(rank, unit, ()), _load_line(rank, unit, ()))


def rank_rows(budget: Budget, chosen: int, unit: UnitSystem) -> tuple[RegionRow, ...]:
    """The table of several ranks side by side, with ``chosen`` for the other columns."""
    rank = budget.ranks[chosen]
    return (*_rows(rank, unit, budget.ranks), _load_line(rank, unit, budget.ranks))


def _rows(rank: RankBudget, unit: UnitSystem, ranks: tuple[RankBudget, ...]) -> Iterator[RegionRow]:
    for region in Region:
        found = rank.regions[region]
        estimate = found.estimate
        drawn = drawn_bytes(rank, region)
        is_grown = drawn > estimate.likely_bytes
        absent = max(drawn, estimate.high_bytes) == 0
        left = fmt.size_number(estimate.likely_bytes, unit)
        yield RegionRow(
            region=region,
            label=region.label,
            size=fmt.DASH if absent else fmt.size_number(drawn, unit),
            span=_span(rank.needed if is_grown else estimate, unit),
            least=_least(found, unit, absent=absent),
            basis="" if absent else (rank.needed if is_grown else estimate).basis.word,
            note=f"Needed by the plan; {left} are left for it"
            if is_grown
            else _in_words(found.note, unit),
            is_absent=absent,
            exact=fmt.exact_bytes(drawn),
            per_rank=tuple(_number(r, region, unit) for r in ranks),
        )


def _in_words(note: str, unit: UnitSystem) -> str:
    """The note with a capital first, but not on names that are written small.

    Notes give bare figures in GiB, as the table's heading usually says.
    """
    first = note.partition(" ")[0]
    words = note if first in _WRITTEN_SMALL else note[:1].upper() + note[1:]
    is_foreign = unit is not UnitSystem.BINARY and _BARE_FIGURE.search(note)
    return f"{words} (in {UnitSystem.BINARY.value})" if is_foreign else words


def _number(rank: RankBudget, region: Region, unit: UnitSystem) -> str:
    if rank.regions[region].estimate.high_bytes == 0:
        return fmt.DASH
    return fmt.size_number(drawn_bytes(rank, region), unit)


def _span(estimate: Estimate, unit: UnitSystem) -> str:
    if estimate.high_bytes == 0 or estimate.basis is Basis.SETTING:
        return ""
    return fmt.size_range(estimate.low_bytes, estimate.high_bytes, unit) or "exact"


def _least(found: RegionBudget, unit: UnitSystem, *, absent: bool) -> str:
    if found.least_bytes is None:
        return fmt.DASH if absent else ""
    return fmt.size_number(found.least_bytes, unit) if found.least_bytes else "0"


def _load_line(rank: RankBudget, unit: UnitSystem, ranks: tuple[RankBudget, ...]) -> RegionRow:
    line = rank.slot.device.allocatable
    least = sum(r.least_bytes or 0 for r in rank.regions.values())
    total = fmt.size(rank.slot.device.total_bytes, unit)
    plan = sum(drawn_bytes(rank, region) for region in Region)
    over = plan - line.likely_bytes
    note = f"What programs can get of {total}"
    if over > 0:
        note = f"{fmt.size(over, unit)} less than the plan's {fmt.size_number(plan, unit)}"
    return RegionRow(
        region=None,
        label="Load line",
        size=fmt.size_number(line.likely_bytes, unit),
        span=_span(line, unit),
        least=fmt.size_number(least, unit),
        basis=line.basis.word,
        note=note,
        is_absent=False,
        exact=fmt.exact_bytes(line.likely_bytes),
        per_rank=tuple(
            fmt.size_number(r.slot.device.allocatable.likely_bytes, unit) for r in ranks
        ),
    )


def detail(budget: Budget, rank: RankBudget, region: Region | None, unit: UnitSystem) -> Detail:
    """The pane for ``region``, or for the load line with None."""
    if region is None:
        return _line_detail(rank, unit)
    found = rank.regions[region]
    estimate = found.estimate
    passages = list(_formula(estimate, unit))
    if region is Region.KV_CACHE:
        passages += _missing_passages(budget, rank, unit, passages)
    if found.least_bytes is not None and estimate.high_bytes:
        least = f"{fmt.size(found.least_bytes, unit)} ({fmt.exact_bytes(found.least_bytes)})"
        passages.append(Passage("Least that the architecture needs", least))
    if found.gap:
        passages.append(Passage("Why more is held", found.gap))
    if not estimate.is_point:
        low, high = fmt.exact_bytes(estimate.low_bytes), fmt.exact_bytes(estimate.high_bytes)
        passages.append(Passage("Between", f"{low} and {high}"))
    if not passages and found.note:
        passages.append(Passage(_WORKED_OUT, found.note))
    if estimate.source:
        passages.append(Passage(f"{estimate.basis.word}, from", estimate.source))
    exact = fmt.exact_bytes(drawn_bytes(rank, region))
    return Detail(region, region.label, exact, tuple(passages))


def _missing_passages(
    budget: Budget, rank: RankBudget, unit: UnitSystem, told: list[Passage]
) -> Iterator[Passage]:
    """The equation of a sequence and what the plan needs, where the region tells neither."""
    text = " ".join(passage.text for passage in told)
    sequence = budget.sequence_state.formula
    if sequence and sequence not in text:
        yield Passage("One sequence", sequence, is_formula=True)
    if rank.has_pool and rank.needed.formula and rank.needed.formula not in text:
        yield from _formula(rank.needed.named("Needed by the plan"), unit)


def _formula(estimate: Estimate, unit: UnitSystem) -> Iterator[Passage]:
    if estimate.formula:
        steps = estimate.formula.split("; ")
        equals = "" if "=" in estimate.formula else f"\n= {fmt.exact_bytes(estimate.likely_bytes)}"
        for step in steps:
            caption, colon, text = step.partition(": ")
            head = caption[:1].upper() + caption[1:] if colon else estimate.label
            yield Passage(head or _WORKED_OUT, (text if colon else step) + equals, is_formula=True)
    shown = [p for p in estimate.parts if p.high_bytes]
    for part in shown[:_PARTS_SHOWN]:
        head = f"{part.label or 'Part'}, {fmt.size(part.likely_bytes, unit)}"
        yield Passage(head, part.formula or fmt.exact_bytes(part.likely_bytes), is_formula=True)
    if len(shown) > _PARTS_SHOWN:
        rest = sum(p.likely_bytes for p in shown[_PARTS_SHOWN:])
        count = len(shown) - _PARTS_SHOWN
        yield Passage(f"{count} further parts", fmt.size(rest, unit), is_formula=True)


def _line_detail(rank: RankBudget, unit: UnitSystem) -> Detail:
    device = rank.slot.device
    line = device.allocatable
    kept = device.total_bytes - line.likely_bytes
    passages = [
        Passage("The driver's total", fmt.exact_bytes(device.total_bytes), is_formula=True),
        Passage("Kept by the driver or the system", fmt.size(kept, unit), is_formula=True),
    ]
    if device.label:
        passages.insert(0, Passage("The maker's label", device.label))
    if line.source:
        passages.append(Passage(f"{line.basis.word}, from", line.source))
    return Detail(None, "Load line", fmt.exact_bytes(line.likely_bytes), tuple(passages))


def facts(state: State) -> tuple[Fact, Fact]:
    """The two inverse answers; a dash while they are searched or where there is none."""
    deployment = state.plan.deployment
    context = state.context
    longest = state.limits.max_context if state.limits else None
    most = state.limits.max_concurrency if state.limits else None
    each = f", {fmt.count(context)} each" if context else ""
    return (
        Fact(
            f"Longest context, {fmt.count(deployment.concurrency)} at once",
            "Longest context",
            fmt.count(longest) if longest is not None else fmt.DASH,
            "tokens",
            "The longest context that still fits with this many requests at once",
        ),
        Fact(
            f"Most at once{each}",
            "Most at once",
            fmt.count(most) if most is not None else fmt.DASH,
            "request" if most == 1 else "requests",
            "The most requests that still fit at this context",
        ),
    )
