"""The engineer's pages: what is assumed, every rank and phase, the sums behind the figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.report import formulas, reserve, tables, words
from engine.report.document import Block, Bullets, Heading, Paragraph, Tone
from engine.text import printable
from engine.units import in_unit
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.budget.model import Budget, RankBudget
    from engine.units import UnitSystem


def assumptions(
    budget: Budget, assumed: Iterable[str], warned: Iterable[str], unit: UnitSystem
) -> list[Block]:
    """What the figures rest on, in sentences.

    Args:
        budget: with its own assumptions and warnings.
        assumed: further ones, from the request.
        warned: further warnings, from the request.
        unit: of sizes in them.
    """
    told = (
        (tr("What is only a bound"), budget.bounds if budget.doubts else ()),
        (tr("What was not said"), (*assumed, *budget.assumptions)),
        (tr("Warnings"), (*budget.refusals, *budget.model.notes, *warned, *budget.warnings)),
    )
    made: list[Block] = []
    for heading, sentences in told:
        if sentences:
            made += [Heading(heading), Bullets(_clean(sentences, unit))]
    return made


def ranks(budget: Budget, binding: RankBudget, unit: UnitSystem) -> list[Block]:
    """Range, basis and source of every region and phase, once for ranks that are alike."""
    used = {e.estimate.basis for rank in budget.ranks for e in rank.regions.values()}
    made: list[Block] = [Paragraph(words.bases(used), Tone.QUIET)]
    if len(budget.ranks) > 1:
        made += [Heading(tr("Every rank")), tables.all_ranks(budget, unit)]
    for group in _binding_first(budget.ranks, binding):
        name = tables.rank_names(group)
        many = len(budget.ranks) > 1
        made += [
            Heading(tr("{ranks}: regions").format(ranks=name) if many else tr("Regions")),
            tables.sources(budget, group[0], unit),
            Heading(tr("{ranks}: phases").format(ranks=name) if many else tr("Phases")),
            tables.phases(group[0], unit),
        ]
    return [*made, Heading(tr("Devices")), tables.devices(budget, unit)]


def _binding_first(
    all_ranks: tuple[RankBudget, ...], binding: RankBudget
) -> Sequence[tuple[RankBudget, ...]]:
    return sorted(tables.alike(all_ranks), key=lambda group: binding not in group)


def sums(budget: Budget, binding: RankBudget, unit: UnitSystem) -> list[Block]:
    """Every figure of the rank that decides, worked out."""
    return [*formulas.of_rank(budget, binding, unit)]


def reserves(binding: RankBudget, unit: UnitSystem) -> list[Block]:
    """The architecture's least beside what is held, where the two differ."""
    found = reserve.table(binding, unit)
    if found is None:
        return []
    told = tr(
        "Least is what the architecture itself cannot do without; the rest is the runtime’s: what "
        "it rounds up, keeps ready or takes in advance."
    )
    return [Paragraph(told, Tone.QUIET), found]


def _clean(sentences: Iterable[str], unit: UnitSystem) -> tuple[str, ...]:
    return tuple(printable(in_unit(s, unit), 400) for s in dict.fromkeys(sentences))
