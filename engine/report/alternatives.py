"""Other choices for the same plan, each sized by the real engine: formats and devices."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.errors import DeploymentError
from engine.fit import solve
from engine.fit.inverse import KV_LADDERS
from engine.fit.verdict import Fit
from engine.report import devices, words
from engine.report.document import Align, Block, Cell, Column, Heading, Paragraph, Table, Tone
from engine.runtimes import registry
from engine.runtimes.loading import loaded
from engine.sizing import size
from engine.text import printable
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.deployment.spec import Deployment
    from engine.devices.device import Device, Machine
    from engine.sizing import Sizing
    from engine.units import UnitSystem


def blocks(sizing: Sizing, plan: Deployment, unit: UnitSystem) -> list[Block]:
    """A table each of weight formats, cache formats and devices, where there is a choice."""
    made: list[Block] = []
    for heading, title, found in (
        (tr("Weight formats"), tr("Weights in"), _formats(sizing, plan)),
        (tr("Cache formats"), tr("Cache in"), _caches(sizing, plan)),
        (tr("Devices for the same plan"), tr("Device"), _devices(sizing, plan)),
    ):
        rows = tuple(_row(name, other, unit) for name, other in found)
        if len(rows) > 1:
            made += [Heading(heading), Table(_columns(title, unit), rows)]
    if made:
        told = tr(
            "The plan as it is stands first; each other line changes this one thing. Devices: of "
            "what is sold or often met with, the next sizes of the same maker, and of every maker "
            "the smallest that the plan fits on."
        )
        made.insert(0, Paragraph(told, Tone.QUIET))
    return made


def _columns(first: str, unit: UnitSystem) -> tuple[Column, ...]:
    return (
        Column(first, 2.6),
        Column(tr("Weights, {unit}").format(unit=unit.value), 1.2, Align.RIGHT),
        Column(tr("Cache needed"), 1.2, Align.RIGHT),
        Column(tr("All else"), 1.0, Align.RIGHT),
        Column(tr("Load line"), 1.1, Align.RIGHT),
        Column(tr("Then"), 1.8, tone=Tone.STRONG),
        Column(tr("Longest context"), 1.3, Align.RIGHT),
    )


def _row(name: str, sizing: Sizing, unit: UnitSystem) -> tuple[Cell, ...]:
    """The figures of the rank that decides; they add up to the load line with what is to spare."""
    budget, verdict = sizing.budget, sizing.verdict
    rank = next(r for r in budget.ranks if r.rank == verdict.binding_rank)
    line = rank.slot.device.allocatable.likely_bytes
    weights, cache = (
        rank.regions[Region.WEIGHTS].estimate.likely_bytes,
        rank.needed.likely_bytes,
    )
    rest = line - verdict.margin_bytes - weights - cache
    then = tr("won’t start") if verdict.refusals else words.margin(verdict, unit)
    longest = _longest(sizing)
    return (
        Cell(name),
        *(Cell(words.number(each, unit), each) for each in (weights, cache)),
        Cell(words.DASH) if verdict.fit is Fit.UNKNOWN else Cell(words.number(rest, unit), rest),
        Cell(words.number(line, unit), line),
        Cell(then, verdict.margin_bytes),
        Cell(words.DASH if longest is None else grouped(longest)),
    )


def _longest(sizing: Sizing) -> int | None:
    """The longest context at the plan's number at once; None where it isn't known, or none fits."""
    budget = sizing.budget
    try:
        return solve.max_context(budget.model, budget.deployment, budget.machine) or None
    except DeploymentError:
        return None


def _formats(sizing: Sizing, plan: Deployment) -> Iterator[tuple[str, Sizing]]:
    budget = sizing.budget
    yield words.weights(budget), sizing
    # What is stored in the chosen format needs no second line as stored.
    same = "auto" if loaded(budget.model, plan.runtime).name == plan.weight_format else ""
    changed = [
        plan.with_(weight_format=name)
        for name in solve.rungs(budget.model, plan.runtime)
        if name not in {plan.weight_format, same}
    ]
    for other in _sized(sizing, ((each, budget.machine) for each in changed)):
        yield words.weights(other.budget), other


def _caches(sizing: Sizing, plan: Deployment) -> Iterator[tuple[str, Sizing]]:
    budget = sizing.budget
    yield words.kv_cache(budget), sizing
    ladder = KV_LADDERS.get(registry.family(plan.runtime), {})
    for name, settings in ladder.items():
        if all(getattr(budget.deployment, key) == value for key, value in settings.items()):
            continue
        for other in _sized(sizing, [(plan.with_(**settings), budget.machine)]):
            yield words.cache_format(name), other


def _devices(sizing: Sizing, plan: Deployment) -> Iterator[tuple[str, Sizing]]:
    slots = sizing.budget.machine.slots
    if len({slot.device for slot in slots}) > 1:
        return  # Nothing else is a machine like this one.
    yield _named(slots[0].device, len(slots)), sizing
    for device, other in devices.others(sizing, plan):
        yield _named(device, len(slots)), other


def _named(device: Device, count: int) -> str:
    name = printable(device.name, 80)
    return name if count == 1 else tr("{count} × {n}").format(count=count, n=name)


def _sized(sizing: Sizing, plans: Iterable[tuple[Deployment, Machine]]) -> Iterator[Sizing]:
    """Those that the runtime takes."""
    for plan, machine in plans:
        with suppress(DeploymentError):
            yield size(sizing.budget.model, plan, machine)
