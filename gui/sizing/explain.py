"""One region explained: the calculation step by step, exact bytes, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.budget.drawn import drawn_bytes, drawn_estimate
from engine.budget.model import Region
from engine.budget.phases import peaks
from engine.evidence import Basis
from engine.units import in_unit
from engine.words import begun_small, tr, tr_count, tr_later
from gui.kit import format as fmt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.budget.model import Budget, RankBudget
    from engine.evidence import Estimate
    from engine.units import UnitSystem

_PARTS_SHOWN = 8
_WORKED_OUT = tr_later("How it is worked out")


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


def detail(budget: Budget, rank: RankBudget, region: Region | None, unit: UnitSystem) -> Detail:
    """The pane for ``region``, or for the load line with None."""
    if region is None:
        return _line_detail(budget, rank, unit)
    found = rank.regions[region]
    estimate = found.estimate
    passages = list(_formula(estimate, unit))
    if region is Region.KV_CACHE:
        passages += _missing_passages(budget, rank, unit, passages)
    if found.least_bytes is not None and estimate.high_bytes:
        least = f"{fmt.size(found.least_bytes, unit)} ({fmt.exact_bytes(found.least_bytes)})"
        passages.append(Passage(tr("Least that the architecture needs"), least))
    if found.gap:
        passages.append(Passage(tr("Why more is held"), found.gap))
    if not estimate.is_point:
        low, high = fmt.exact_bytes(estimate.low_bytes), fmt.exact_bytes(estimate.high_bytes)
        passages.append(Passage(tr("Between"), tr("{low} and {high}").format(low=low, high=high)))
    if not passages and found.note:
        passages.append(Passage(tr(_WORKED_OUT), found.note))
    if estimate.source:
        passages.append(_basis(estimate))
    bound = bound_words(budget, region, drawn_estimate(rank, region))
    exact = f"{bound} {fmt.exact_bytes(drawn_bytes(rank, region))}".strip()
    return Detail(region, region.label, exact, _in_unit(passages, unit))


def _in_unit(passages: list[Passage], unit: UnitSystem) -> tuple[Passage, ...]:
    """The passages with all sizes in ``unit``: the engine's rules write theirs in GiB."""
    return tuple(replace(passage, text=in_unit(passage.text, unit)) for passage in passages)


def _basis(estimate: Estimate) -> Passage:
    return Passage(tr("{basis}, from").format(basis=estimate.basis.word), tr(estimate.source))


def _missing_passages(
    budget: Budget, rank: RankBudget, unit: UnitSystem, told: list[Passage]
) -> Iterator[Passage]:
    """The equation of a sequence and what the plan needs, where the region tells neither."""
    text = " ".join(passage.text for passage in told)
    for head, sequence in _steps(budget.sequence_state.formula, tr("One sequence")):
        if sequence and sequence not in text:
            yield Passage(head, sequence, is_formula=True)
    if rank.has_pool and rank.needed.formula and rank.needed.formula not in text:
        yield from _formula(rank.needed.named(tr("Needed by the plan")), unit)


def _formula(estimate: Estimate, unit: UnitSystem) -> Iterator[Passage]:
    if estimate.formula:
        equals = "" if "=" in estimate.formula else f"\n= {fmt.exact_bytes(estimate.likely_bytes)}"
        for head, text in _steps(estimate.formula, estimate.label or tr(_WORKED_OUT)):
            yield Passage(head, text + equals, is_formula=True)
    shown = [p for p in estimate.parts if p.high_bytes]
    for part in shown[:_PARTS_SHOWN]:
        head = f"{tr(part.label) or tr('Part')}, {fmt.size(part.likely_bytes, unit)}"
        yield Passage(head, part.formula or fmt.exact_bytes(part.likely_bytes), is_formula=True)
    if len(shown) > _PARTS_SHOWN:
        rest = sum(p.likely_bytes for p in shown[_PARTS_SHOWN:])
        count = len(shown) - _PARTS_SHOWN
        head = tr_count("{n} further part", "{n} further parts", count).format(n=fmt.count(count))
        yield Passage(head, fmt.size(rest, unit), is_formula=True)


def _steps(formula: str, head: str) -> list[tuple[str, str]]:
    """The steps of ``formula`` under their captions; one without a caption continues the last."""
    found: list[tuple[str, str]] = []
    for step in formula.split("; "):
        caption, colon, text = step.partition(": ")
        if colon:
            found.append((caption[:1].upper() + caption[1:], text))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{step}")
        else:
            found.append((head, step))
    return found


def _line_detail(budget: Budget, rank: RankBudget, unit: UnitSystem) -> Detail:
    device = rank.slot.device
    line = device.allocatable
    kept = device.total_bytes - line.likely_bytes
    passages = [
        Passage(tr("The driver's total"), fmt.exact_bytes(device.total_bytes), is_formula=True),
        Passage(tr("Kept by the driver or the system"), fmt.size(kept, unit), is_formula=True),
    ]
    if device.label:
        passages.insert(0, Passage(tr("The maker's label"), device.label))
    if line.source:
        passages.append(_basis(line))
    for peak in peaks(rank, unit):
        held = fmt.size(peak.estimate.likely_bytes, unit)
        head = tr("Peak in {phase}, {size}").format(phase=begun_small(peak.phase.label), size=held)
        passages.append(Passage(head, peak.driver))
    if budget.assumptions:
        passages.append(
            Passage(tr("Assumed, since the plan doesn’t say"), "\n".join(budget.assumptions))
        )
    exact = fmt.exact_bytes(line.likely_bytes)
    return Detail(None, tr("Load line"), exact, _in_unit(passages, unit))


def bound_words(budget: Budget, region: Region, estimate: Estimate) -> str:
    """Which way a figure that is only a bound may be off; empty for the others."""
    direction = budget.direction(region)
    return direction.words if direction and estimate.basis is Basis.BOUND else ""
