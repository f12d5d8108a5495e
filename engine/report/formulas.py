"""How each figure is worked out: the calculation with its numbers, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.report.document import Formula
from engine.text import printable
from engine.units import UnitSystem, format_gib, in_unit
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget
    from engine.evidence import Estimate


def of_rank(budget: Budget, rank: RankBudget, unit: UnitSystem) -> list[Formula]:
    """Every region of ``rank`` with its parts, and what a sequence takes."""
    made: list[Formula] = []
    state = budget.sequence_state
    if state.formula:
        where = tr(" on one rank") if budget.deployment.ranks > 1 else ""
        share = tr("One more token takes {bytes_per_token} B{where}").format(
            bytes_per_token=grouped(state.bytes_per_token), where=where
        )
        made.append(Formula(tr("One sequence"), "", printable(state.formula, 400), share))
    for region in Region:
        estimate = rank.regions[region].estimate
        if not estimate.high_bytes:
            continue
        parts = [p for p in estimate.parts if p.label and p.high_bytes]
        if len(parts) == 1 and parts[0].formula == estimate.formula:
            parts = []
        made.append(_formula(region.label, estimate, unit, _source(estimate, short=bool(parts))))
        made += [_formula(f"– {part.label}", part, unit, _source(part)) for part in parts]
    return made


def _formula(name: str, estimate: Estimate, unit: UnitSystem, source: str) -> Formula:
    size = format_gib(estimate.likely_bytes, unit)
    formula = printable(in_unit(estimate.formula, unit), 400)
    return Formula(printable(name, 80), size, formula, in_unit(source, unit))


def _source(estimate: Estimate, *, short: bool = False) -> str:
    """Basis and source; the basis alone where the parts below name theirs."""
    basis, source = estimate.basis.word, printable(estimate.source, 400)
    if short or not source:
        return basis
    said = source.lower().startswith(basis.lower())
    return (
        source[0].upper() + source[1:]
        if said
        else tr("{basis}: {source}").format(basis=basis, source=source)
    )
