"""The first page: what a manager needs to know, and what would change it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.fit.verdict import Fit
from engine.report import tables, what_if, words
from engine.report.document import Block, Facts, Figure, Heading
from engine.units import format_gib
from engine.words import begun_small, figures, grouped, tr, tr_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.budget.model import Budget, RankBudget
    from engine.deployment.spec import Deployment
    from engine.fit.solve import Limits
    from engine.report.measured import MeasuredRun
    from engine.sizing import Sizing
    from engine.units import UnitSystem

_MOST_RANKS_DRAWN = 4
"""More would be too small on paper; the fullest is drawn, and the tables carry the rest."""


def blocks(
    sizing: Sizing,
    limits: Limits,
    plan: Deployment,
    unit: UnitSystem,
    runs: Mapping[int, MeasuredRun],
) -> list[Block]:
    """Facts, picture, regions of the rank that decides, and what would change the answer."""
    budget = sizing.budget
    binding = binding_rank(sizing)
    draws_all = len(budget.ranks) <= _MOST_RANKS_DRAWN
    heading = tr("Predicted memory and the measured run") if runs else tr("Predicted memory")
    made: list[Block] = [
        Facts(_facts(sizing, limits, unit)),
        Heading(heading),
        Figure(
            sizing=sizing,
            runs=runs,
            unit=unit,
            caption=_caption(budget, binding, unit, runs, draws_all=draws_all),
            rank=None if draws_all else binding.rank,
        ),
    ]
    if len(budget.ranks) > 1:
        made.append(Heading(_binding_heading(budget, binding)))
    made.append(tables.regions(budget, binding, unit))
    if (what := what_if.table(sizing, plan, unit)) is not None:
        fits = sizing.verdict.fit in {Fit.FITS, Fit.TIGHT}
        made += [
            Heading(tr("What would change the answer") if fits else tr("What would fit")),
            what,
        ]
    return made


def binding_rank(sizing: Sizing) -> RankBudget:
    """The rank that decides."""
    return next(r for r in sizing.budget.ranks if r.rank == sizing.verdict.binding_rank)


def _binding_heading(budget: Budget, binding: RankBudget) -> str:
    alike = next(g for g in tables.alike(budget.ranks) if binding in g)
    if len(alike) == len(budget.ranks):
        return tr("Each of the {alike} ranks").format(alike=len(alike))
    decides = tr("Rank {rank}, the one that decides").format(rank=binding.rank)
    others = tuple(r for r in alike if r is not binding)
    if not others:
        return decides
    names = begun_small(tables.rank_names(others))
    return tr_count(
        "{decides}; {names} is like it", "{decides}; {names} are like it", len(others)
    ).format(decides=decides, names=names)


def _facts(sizing: Sizing, limits: Limits, unit: UnitSystem) -> tuple[tuple[str, str], ...]:
    budget = sizing.budget
    plan = budget.deployment
    line = format_gib(budget.ranks[0].slot.device.allocatable.likely_bytes, unit)
    share = plan.gpu_memory_utilization
    context = plan.max_model_len
    longest = _limit(
        limits.max_context, lambda tokens: tr("{tokens} tokens").format(tokens=grouped(tokens))
    )
    most = _limit(limits.max_concurrency, words.requests)
    return (
        (tr("Weights"), words.weights(budget)),
        (tr("KV cache"), words.kv_cache(budget)),
        (
            tr("Context"),
            tr("{context} tokens").format(context=grouped(context))
            if context
            else tr("not limited"),
        ),
        (tr("At once"), words.requests(plan.concurrency)),
        (tr("Parallel"), f"TP {plan.tensor_parallel_size} × PP {plan.pipeline_parallel_size}"),
        (tr("Utilisation"), tr("{share} of {line}").format(share=figures(f"{share}"), line=line))
        if share
        else (tr("Load line"), line),
        (
            tr("Longest context, {concurrency} at once").format(
                concurrency=grouped(plan.concurrency)
            ),
            longest,
        ),
        (
            tr("Most at once, {context} each").format(context=grouped(context))
            if context
            else tr("Most at once"),
            most,
        ),
    )


def _limit(found: int | None, written: Callable[[int], str]) -> str:
    """A limit in words: 0 is one that is known, None is not."""
    if found is None:
        return tr("not known")
    return written(found) if found else tr("none fits")


def _caption(
    budget: Budget,
    binding: RankBudget,
    unit: UnitSystem,
    runs: Mapping[int, MeasuredRun],
    *,
    draws_all: bool,
) -> str:
    sentences = [
        tr("Bar: plan by region, {value}. Load line: what can be allocated.").format(
            value=unit.value
        )
    ]
    if not draws_all:
        sentences.append(
            tr("Rank {rank} of {ranks}.").format(rank=binding.rank, ranks=len(budget.ranks))
        )
    run = next(iter(runs.values()), None)
    if run is not None:
        start = datetime.fromtimestamp(run.started_s, UTC)
        sentences.append(tr("Curve: all use of the device."))
        sentences.append(
            tr("Run of {day}, {start:%H:%M} UTC, {seen} samples.").format(
                day=words.day(start.date()), start=start, seen=grouped(len(run.seen))
            )
        )
    return tr("Figure 1. ") + " ".join(sentences)
