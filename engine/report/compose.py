"""From a sizing to a report: what it says, in which order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.devices import catalogue
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.report import formulas, starting, tables, what_if, words
from engine.report.document import (
    Block,
    Bullets,
    Command,
    Facts,
    Figure,
    Heading,
    PageBreak,
    Paragraph,
    ReportDocument,
    Tone,
)
from engine.report.measured import measured_runs
from engine.runtimes.registry import RUNTIMES
from engine.text import printable
from engine.units import UnitSystem, format_gib, in_unit
from engine.words import begun_small, grouped, tr, tr_count, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import date

    from engine.budget.model import Budget, RankBudget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Device
    from engine.fit.solve import Limits
    from engine.report.measured import MeasuredRun, Snapshot
    from engine.sizing import Sizing

_MOST_RANKS_DRAWN = 4
"""More would be too small on paper; the fullest is drawn, and the tables carry the rest."""
_GIB = tr_later("1 GiB = 1,073,741,824 bytes")
_GB = tr_later("1 GB = 1,000,000,000 bytes")


@dataclass(frozen=True, slots=True)
class About:
    """What a report says of itself."""

    on: date
    plan: Deployment | None = None
    """The plan as asked, before defaults; None takes the budget's own."""
    unit: UnitSystem = UnitSystem.BINARY
    version: str = ""
    assumptions: tuple[str, ...] = ()
    """Further sentences, from the request."""
    warnings: tuple[str, ...] = ()
    headline: str = ""
    """The verdict where another model of the machine decides it; empty for the plan's own."""


def compose(
    sizing: Sizing, limits: Limits, about: About, recording: Iterable[Snapshot] | None = None
) -> ReportDocument:
    """The report on ``sizing``; the same inputs give an equal text.

    Args:
        sizing: budget and verdict.
        limits: how far the plan could go.
        about: date, unit, version, and the plan as asked.
        recording: telemetry snapshots of a run, if there was one.
    """
    if about.unit is not UnitSystem.BINARY:
        sizing = replace(sizing, verdict=judge(sizing.budget, about.unit))
    budget, verdict = sizing.budget, sizing.verdict
    runs = _by_rank(budget, measured_runs(recording or ()))
    model_id = printable(budget.model.id, 200)
    where = _where(budget)
    return ReportDocument(
        title=tr("Memory sizing: {model_id} on {where}").format(model_id=model_id, where=where),
        subject=tr("{model_id} on {where}, {runtime}").format(
            model_id=model_id, where=where, runtime=_runtime(budget)
        ),
        headline=about.headline or verdict.headline,
        detail=_detail(sizing, about.unit),
        on=about.on,
        footer=_footer(budget, about),
        blocks=(
            *_answer(sizing, limits, about, runs),
            PageBreak(),
            *_reasons(sizing, about),
            *_evidence(sizing, about, runs),
        ),
        version=about.version,
    )


def _by_rank(budget: Budget, runs: Mapping[str, MeasuredRun]) -> dict[int, MeasuredRun]:
    """The run of each rank: by uuid, else in order among devices of the same name."""
    found = {r.rank: runs[r.slot.uuid] for r in budget.ranks if r.slot.uuid in runs}
    if found or budget.machine.is_here:
        return found
    left = list(runs.values())
    for rank in budget.ranks:
        run = next((run for run in left if _is_like(run, rank.slot.device)), None)
        if run is not None:
            left.remove(run)
            found[rank.rank] = run
    return found


def _is_like(run: MeasuredRun, device: Device) -> bool:
    if run.total_bytes is None:
        return False  # The size decides between variants of one name.
    known = catalogue.match(run.device, run.total_bytes)
    return known is not None and known.name == device.name


def _where(budget: Budget) -> str:
    counts = Counter(printable(rank.slot.device.name, 80) for rank in budget.ranks)
    names = tr(" and ").join(
        n if count == 1 else tr("{count} × {n}").format(count=count, n=n)
        for n, count in counts.items()
    )
    if budget.machine.is_corrected:
        return tr("{devices}, corrected by hand").format(devices=names)
    return names


def _runtime(budget: Budget) -> str:
    plan = budget.deployment
    known = RUNTIMES.get(plan.runtime)
    label = known.label if known else plan.runtime
    return (
        tr("{label} {runtime_version}").format(
            label=label, runtime_version=printable(plan.runtime_version, 40)
        )
        if plan.runtime_version
        else label
    )


def _detail(sizing: Sizing, unit: UnitSystem) -> str:
    verdict = sizing.verdict
    if verdict.fit is Fit.UNKNOWN or verdict.worst_margin_bytes == verdict.margin_bytes:
        return verdict.detail
    worst = format_gib(abs(verdict.worst_margin_bytes), unit, digits=1)
    end = (
        tr("{worst} too little").format(worst=worst)
        if verdict.worst_margin_bytes < 0
        else tr("{worst} left").format(worst=worst)
    )
    return tr("{detail} At worst, with every estimate at its high end, there is {end}.").format(
        detail=verdict.detail, end=end
    )


def _footer(budget: Budget, about: About) -> str:
    revision = budget.model.revision
    parts = [
        tr("Model revision {revision}, {source}").format(
            revision=printable(revision[:12], 24), source=printable(budget.model.source, 80)
        )
        if revision
        else _source(budget.model.source),
        tr(_GIB if about.unit is UnitSystem.BINARY else _GB),
    ]
    if about.version:
        parts.append(tr("Plimsoll {version}").format(version=about.version))
    return ". ".join(parts) + "."


def _answer(
    sizing: Sizing, limits: Limits, about: About, runs: Mapping[int, MeasuredRun]
) -> list[Block]:
    budget, unit = sizing.budget, about.unit
    binding = budget.ranks[_binding(sizing)]
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
    plan = about.plan or budget.deployment
    if (what := what_if.table(sizing, plan, unit)) is not None:
        fits = sizing.verdict.fit in {Fit.FITS, Fit.TIGHT}
        made += [
            Heading(tr("What would change the answer") if fits else tr("What would fit")),
            what,
        ]
    return made


def _binding(sizing: Sizing) -> int:
    number = sizing.verdict.binding_rank
    return next(i for i, r in enumerate(sizing.budget.ranks) if r.rank == number)


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
        (tr("Utilisation"), tr("{share} of {line}").format(share=share, line=line))
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


def _source(source: str) -> str:
    said = printable(tr(source), 120)
    return said[:1].upper() + said[1:]


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
        tr("Bar: plan by region, {value}. Blue line: what can be allocated.").format(
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
        sentences.append(tr("Black line: all use of the device."))
        sentences.append(
            tr("Run of {day}, {start:%H:%M} UTC, {seen} samples.").format(
                day=words.day(start.date()), start=start, seen=grouped(len(run.seen))
            )
        )
    return tr("Figure 1. ") + " ".join(sentences)


def _reasons(sizing: Sizing, about: About) -> list[Block]:
    """Formulas with their numbers, the other ranks, assumptions and warnings."""
    budget, unit = sizing.budget, about.unit
    binding = budget.ranks[_binding(sizing)]
    used = {e.estimate.basis for rank in budget.ranks for e in rank.regions.values()}
    made: list[Block] = [
        Heading(tr("How the figures are worked out")),
        Paragraph(words.bases(used), Tone.QUIET),
    ]
    made += formulas.of_rank(budget, binding, unit)
    made += [Heading(tr("The peak of every phase")), tables.phases(binding, unit)]
    if len(budget.ranks) > 1:
        made += [Heading(tr("Every rank")), tables.all_ranks(budget, unit)]
        for group in tables.alike(budget.ranks):
            if binding not in group:
                made.append(Heading(tables.rank_names(group)))
                made.append(tables.regions(budget, group[0], unit))
    if budget.doubts:
        made += [Heading(tr("What is only a bound")), Bullets(_clean(budget.bounds, unit))]
    if assumed := (*about.assumptions, *budget.assumptions):
        made += [Heading(tr("Assumptions")), Bullets(_clean(assumed, unit))]
    if warned := (*budget.refusals, *budget.model.notes, *about.warnings, *budget.warnings):
        made += [Heading(tr("Warnings")), Bullets(_clean(warned, unit))]
    return made


def _clean(sentences: Iterable[str], unit: UnitSystem) -> tuple[str, ...]:
    return tuple(printable(in_unit(s, unit), 400) for s in dict.fromkeys(sentences))


def _evidence(sizing: Sizing, about: About, runs: Mapping[int, MeasuredRun]) -> list[Block]:
    """Measured run, devices, versions and the commands."""
    budget = sizing.budget
    made: list[Block] = []
    if runs:
        made += [Heading(tr("Measured")), tables.measured(budget, runs, about.unit)]
    made += [Heading(tr("Devices")), tables.devices(budget, about.unit)]
    model = budget.model
    versions = [tr("Rules of {runtime}.").format(runtime=_runtime(budget))]
    if model.revision:
        versions.append(
            tr("Model revision {revision}.").format(revision=printable(model.revision, 64))
        )
    versions.append(tr("Model description: {source}.").format(source=printable(model.source, 200)))
    if model.stored is not None:
        versions.append(tr("Weights: {source}.").format(source=printable(model.stored.source, 200)))
    if about.version:
        versions.append(tr("Plimsoll {version}.").format(version=about.version))
    made += [Heading(tr("Versions and sources")), Bullets(tuple(versions))]
    plan = about.plan or budget.deployment
    made += starting.blocks(sizing, plan, about.unit)
    made.append(Heading(tr("The same in a terminal")))
    made.append(Command(words.command(model.id, plan, budget)))
    return made
