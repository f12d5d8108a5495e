"""What would change the answer: for a plan that fits, how far it is from not; else, what fits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.devices import catalogue
from engine.devices.device import DeviceKind
from engine.errors import DeploymentError
from engine.fit.changes import changes
from engine.fit.verdict import Fit, Verdict
from engine.report import devices, words
from engine.report.document import Cell, Column, Table, Tone
from engine.runtimes import registry
from engine.sizing import size
from engine.text import printable
from engine.units import in_unit
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.sizing import Sizing
    from engine.units import UnitSystem

_FITS = {Fit.FITS, Fit.TIGHT}
_MORE = (2, 4, 8, 16)
"""Devices of one kind in a computer, or in two."""


def _columns() -> tuple[Column, ...]:
    return (
        Column(tr("Change"), 3.0),
        Column(tr("Then"), 1.6, tone=Tone.STRONG),
        Column(tr("What happens"), 5.4, tone=Tone.QUIET),
    )


def table(sizing: Sizing, plan: Deployment, unit: UnitSystem) -> Table | None:
    """The rows, or None where nothing is known that would change it."""
    budget = sizing.budget
    if sizing.verdict.fit in _FITS:
        rows = _steps_further(sizing, plan, unit)
    else:
        rows = [
            _row(change.label, change.verdict, unit)
            for change in changes(budget.model, plan, budget.machine)
        ] or list(_on_other_machines(sizing, plan, unit))
    return Table(_columns(), tuple(rows), has_header=False) if rows else None


def _on_other_machines(
    sizing: Sizing, plan: Deployment, unit: UnitSystem
) -> Iterator[tuple[Cell, ...]]:
    """Where no change of the plan is enough: more of the same device, or a larger one."""
    slots = sizing.budget.machine.slots
    own = slots[0].device
    if own.kind is DeviceKind.DISCRETE:
        for count in _MORE:
            # llama.cpp spreads layers by itself; the others are told to share each.
            by_itself = registry.family(plan.runtime) == "llama.cpp"
            wider = plan if by_itself else plan.with_(tensor_parallel_size=count)
            machine = catalogue.machine(own, count)
            then = _verdict(sizing.budget, wider, machine) if count > len(slots) else None
            if then is not None and then.outcome in _FITS:
                label = tr("{count} × {n}").format(count=count, n=own.name)
                yield _row(label if by_itself else f"{label}, TP {count}", then, unit)
                break
    for device, other in devices.others(sizing, plan):
        if other.verdict.outcome in _FITS:
            count = len(slots)
            label = tr("{count} × {n}").format(count=count, n=device.name)
            yield _row(label if count > 1 else device.name, other.verdict, unit)


def _steps_further(sizing: Sizing, plan: Deployment, unit: UnitSystem) -> list[tuple[Cell, ...]]:
    budget, verdict = sizing.budget, sizing.verdict
    settled = budget.deployment
    steps: list[tuple[str, Deployment, Machine]] = []
    more = settled.concurrency + 1
    one_more = plan.with_(concurrency=more, live_tokens=None, batch_size=None)
    steps.append(
        (
            tr("One request more, {more} at once").format(more=grouped(more)),
            one_more,
            budget.machine,
        )
    )
    context = settled.max_model_len
    longest = budget.model.spec.max_position_embeddings
    if context and (longest is None or context * 2 <= longest):
        label = tr("Context {context} instead of {context_2}").format(
            context=grouped(context * 2), context_2=grouped(context)
        )
        longer = plan.with_(max_model_len=context * 2, live_tokens=None)
        steps.append((label, longer, budget.machine))
    if any(slot.foreign.likely_bytes for slot in budget.machine.slots):
        steps.append((tr("Everything else closed"), plan, budget.machine.emptied()))
    rows: list[tuple[Cell, ...]] = []
    for label, changed, machine in steps:
        then = _verdict(budget, changed, machine)
        if then is not None and then.margin_bytes != verdict.margin_bytes:
            rows.append(_row(label, then, unit))
    if verdict.worst_margin_bytes < verdict.margin_bytes:
        rows.append(_worst(verdict, unit))
    return rows


def _verdict(budget: Budget, plan: Deployment, machine: Machine) -> Verdict | None:
    try:
        return size(budget.model, plan, machine).verdict
    except DeploymentError:
        return None


def _row(label: str, verdict: Verdict, unit: UnitSystem) -> tuple[Cell, ...]:
    then = words.margin(verdict, unit)
    return (
        Cell(printable(label, 120)),
        Cell(then, verdict.margin_bytes),
        Cell(printable(in_unit(verdict.detail, unit), 240)),
    )


def _worst(verdict: Verdict, unit: UnitSystem) -> tuple[Cell, ...]:
    worst = replace(verdict, margin_bytes=verdict.worst_margin_bytes)
    what = tr("Still fits") if worst.margin_bytes >= 0 else tr("Wouldn’t fit any more")
    return (
        Cell(tr("Every estimate at its high end")),
        Cell(words.margin(worst, unit), worst.margin_bytes),
        Cell(what),
    )
