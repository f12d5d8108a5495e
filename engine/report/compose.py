"""From a sizing to a report: what it says, in which order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.devices import catalogue
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.report import (
    alternatives,
    compared,
    engineer,
    fit_page,
    front,
    glossary,
    provenance,
    seen,
    starting,
    tables,
    words,
)
from engine.report.document import Block, Command, Heading, PageBreak, ReportDocument
from engine.report.measured import measured_runs
from engine.report.seen import Observed
from engine.text import printable
from engine.units import UnitSystem, format_gib
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import date

    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Device
    from engine.fit.solve import Limits
    from engine.report.compared import Compared
    from engine.report.measured import MeasuredRun, Snapshot
    from engine.sizing import Sizing

_GIB = tr_later("1 GiB = 1,073,741,824 bytes")
_GB = tr_later("1 GB = 1,000,000,000 bytes")
_SIMULATED = tr_later("The machine is simulated: it isn’t there, and nothing was measured.")


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
    compared: tuple[Compared, ...] = ()
    """Plans that stand side by side with this one."""
    observed: Observed | None = None
    """What was seen of a run, and the steps of sizing."""


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
    if budget.machine.is_simulated:
        # What was made up is no evidence, least of all in what is handed on.
        about, recording = replace(about, observed=None), None
    runs = _by_rank(budget, measured_runs(recording or ()))
    model_id = printable(budget.model.id, 200)
    where = _where(budget)
    return ReportDocument(
        title=tr("Memory sizing: {model_id} on {where}").format(model_id=model_id, where=where),
        subject=tr("{model_id} on {where}, {runtime}").format(
            model_id=model_id, where=where, runtime=words.runtime(budget)
        ),
        headline=about.headline or verdict.headline,
        detail=_about_machine(budget) + _detail(sizing, about.unit),
        on=about.on,
        footer=_footer(budget, about),
        blocks=(
            *front.blocks(sizing, limits, about.plan or budget.deployment, about.unit, runs),
            PageBreak(),
            *_parts(sizing, about, runs),
        ),
        version=about.version,
    )


def _parts(sizing: Sizing, about: About, runs: Mapping[int, MeasuredRun]) -> Iterator[Block]:
    """The engineer's pages; a part of which nothing is known is left out."""
    budget, unit = sizing.budget, about.unit
    plan = about.plan or budget.deployment
    binding = front.binding_rank(sizing)
    side_by_side = compared.blocks(about.compared, unit, 3) if about.compared else []
    measured: list[Block] = [tables.measured(budget, runs, unit)] if runs else []
    observed = about.observed or Observed()
    measured += seen.measured(observed, unit)
    held_for = provenance.table(budget, plan, about, observed)
    for heading, blocks in (
        (tr("Assumptions"), engineer.assumptions(budget, about.assumptions, about.warnings, unit)),
        (tr("Ranks and phases"), engineer.ranks(budget, binding, unit)),
        (tr("How the figures are worked out"), engineer.sums(budget, binding, unit)),
        (tr("Needed, and held in reserve"), engineer.reserves(binding, unit)),
        (tr("How far the plan goes"), fit_page.blocks(sizing, plan, unit, 2)),
        (tr("Other choices"), alternatives.blocks(sizing, plan, unit)),
        (tr("Plans side by side"), side_by_side),
        (tr("Measured"), measured),
        (tr("Checklist"), seen.checklist(observed.steps, unit)),
        (tr("Start it"), _starting(sizing, plan, unit)),
        (tr("Words"), [glossary.table(budget, unit)]),
        (tr("What the figures hold for"), [held_for]),
    ):
        if blocks:
            yield Heading(heading, is_part=True)
            yield from blocks


def _starting(sizing: Sizing, plan: Deployment, unit: UnitSystem) -> list[Block]:
    """The command of the runtime, and ours, which gives the same answer."""
    told = Command(words.command(sizing.budget.model.id, plan, sizing.budget))
    return [*starting.blocks(sizing, plan, unit), Heading(tr("The same in a terminal")), told]


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


def _about_machine(budget: Budget) -> str:
    """What a reader of the first page has to know before all else."""
    return tr(_SIMULATED) + " " if budget.machine.is_simulated else ""


def _detail(sizing: Sizing, unit: UnitSystem) -> str:
    verdict = sizing.verdict
    if verdict.fit is Fit.UNKNOWN:
        return _begun(verdict.detail)
    if verdict.worst_margin_bytes == verdict.margin_bytes:
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
            revision=printable(revision[:12], 24), source=words.source(budget.model.source)
        )
        if revision
        else _begun(words.source(budget.model.source)),
        tr(_GIB if about.unit is UnitSystem.BINARY else _GB),
    ]
    if about.version:
        parts.append(tr("Plimsoll {version}").format(version=about.version))
    return ". ".join(parts) + "."


def _begun(text: str) -> str:
    """``text`` as the beginning of a sentence."""
    return text[:1].upper() + text[1:]
