"""Several models on one machine: placed on devices, sized one after the other.

What the first holds is what the second finds taken. Models start in the order given, so a
runtime that takes a share of the whole device (vLLM) is refused where an earlier one holds it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.errors import DeploymentError
from engine.evidence import total
from engine.fit.verdict import Fit
from engine.sizing import Sizing, size
from engine.words import tr, tr_count, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine.architecture.model import Model
    from engine.budget.model import RankBudget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine, Slot
    from engine.evidence import Estimate

_OUTSIDE = (Region.HEADROOM, Region.FOREIGN)
_BEFORE = tr_later("others")
_MOST_TRIED = 64
"""Sets of devices tried for one model: beyond that they are all alike."""
_ORDER = (Fit.FITS, Fit.TIGHT, Fit.UNKNOWN, Fit.DOES_NOT_FIT)


@dataclass(frozen=True, slots=True, eq=False)
class Tenant:
    """One of the models."""

    model: Model
    deployment: Deployment
    devices: tuple[int, ...] | None = None
    """Slots of the machine that it takes, in the order of ranks; None: where it fits best."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A model where it came to lie."""

    tenant: Tenant
    devices: tuple[int, ...]
    sizing: Sizing
    """On those devices, with what earlier models hold counted among the others'."""

    @property
    def held_bytes(self) -> int:
        """What it will really hold of its devices; the host's memory beside them not counted."""
        machine = self.sizing.budget.machine
        ranks = (r for r in self.sizing.budget.ranks if not _is_aside(r, machine))
        return sum(_held(rank).likely_bytes for rank in ranks)


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """All of them."""

    placed: tuple[Placed, ...]
    """In the order of start."""
    machine: Machine
    """With everything they hold counted as held by others."""

    @property
    def outcome(self) -> Fit:
        """The worst of their verdicts."""
        return worst_of(p.sizing.verdict.outcome for p in self.placed)


def worst_of(outcomes: Iterable[Fit]) -> Fit:
    """What is to be said of several models at once: the least good of what is said of each."""
    return max(outcomes, key=_ORDER.index)


def together(tenants: Sequence[Tenant], machine: Machine) -> Together:
    """Size ``tenants`` on ``machine`` in the order given.

    One without devices of its own goes where it fits with least to spare, so that the largest
    hole is left to those that follow; where it fits nowhere, to where it comes nearest.

    Raises:
        DeploymentError: a plan is impossible; names its model and the field to correct.
    """
    found: list[Placed] = []
    for tenant in tenants:
        try:
            placed = _place(tenant, machine)
        except DeploymentError as error:
            message = tr("{model}: {problem}").format(model=tenant.model.id, problem=error.message)
            raise DeploymentError(message, field=error.field) from error
        found.append(placed)
        machine = _after(placed, machine)
    return Together(tuple(found), machine)


def _place(tenant: Tenant, machine: Machine) -> Placed:
    if tenant.devices is not None:
        return _on(tenant, tenant.devices, machine)
    tried: list[Placed] = []
    refused: DeploymentError | None = None
    for devices in _choices(tenant.deployment, machine):
        if any(_fits(p) and len(p.devices) < len(devices) for p in tried):
            break  # fewer devices do
        try:
            tried.append(_on(tenant, devices, machine))
        except DeploymentError as error:
            refused = error
    if refused is not None and not tried:
        raise refused
    fitting = [p for p in tried if _fits(p)]
    if fitting:
        return min(fitting, key=lambda p: (len(p.devices), p.sizing.verdict.margin_bytes))
    return max(tried, key=lambda p: p.sizing.verdict.margin_bytes)


def _fits(placed: Placed) -> bool:
    return placed.sizing.verdict.outcome in (Fit.FITS, Fit.TIGHT)


def _choices(deployment: Deployment, machine: Machine) -> Iterator[tuple[int, ...]]:
    """Sets of devices for a plan: as many as it has ranks, and all of them."""
    there = range(len(machine.slots))
    wanted = min(deployment.ranks * deployment.data_parallel_size, len(machine.slots))
    tried: set[tuple[tuple[object, ...], ...]] = set()
    for devices in islice(combinations(there, wanted), _MOST_TRIED):
        alike = tuple(_figures(machine.slots[i]) for i in devices)
        if alike not in tried:
            tried.add(alike)
            yield devices
    if wanted == 1 and len(there) > 1:
        # llama.cpp and Transformers spread over whatever devices they see.
        yield tuple(there)


def _figures(slot: Slot) -> tuple[object, ...]:
    """All of a slot that a plan depends on: of devices that are alike one is tried."""
    device, others = slot.device, slot.foreign
    held = (others.low_bytes, others.likely_bytes, others.high_bytes)
    return (device.name, device.total_bytes, device.allocatable.likely_bytes, *held)


def _on(tenant: Tenant, devices: tuple[int, ...], machine: Machine) -> Placed:
    sizing = size(tenant.model, tenant.deployment, on(machine, devices))
    return Placed(tenant, devices, sizing)


def on(machine: Machine, devices: Sequence[int]) -> Machine:
    """``machine`` with only those of its devices.

    Raises:
        DeploymentError: it doesn't have them all.
    """
    there = len(machine.slots)
    if max(devices) >= there or len(set(devices)) != len(devices):
        last = tr("0 to {there}").format(there=there - 1) if there > 1 else "0"
        message = tr("devices {names}: {name} has {last}, each once.").format(
            names=", ".join(map(str, devices)), name=machine.name, last=last
        )
        raise DeploymentError(message, field="devices")
    if tuple(devices) == tuple(range(len(machine.slots))):
        return machine
    chosen = tr_count("device {names}", "devices {names}", len(devices)).format(
        names=", ".join(map(str, devices))
    )
    return replace(
        machine,
        name=f"{machine.name} ({chosen})",
        slots=tuple(machine.slots[i] for i in devices),
    )


def _after(placed: Placed, machine: Machine) -> Machine:
    """The machine as the next model finds it."""
    name = placed.sizing.budget.model.id
    used = placed.sizing.budget.machine
    held: dict[int, Estimate] = {}
    host = machine.host
    for rank in placed.sizing.budget.ranks:
        taken = _held(rank)
        if _is_aside(rank, used):
            host = _with(host, taken, name)
            continue
        # Ranks lie on the slots in their order; the same device may appear twice as a value.
        index = placed.devices[min(rank.rank, len(placed.devices) - 1)]
        held[index] = total([held[index], taken]) if index in held else taken
    slots = tuple(
        _with(slot, held[i], name) if i in held else slot for i, slot in enumerate(machine.slots)
    )
    if machine.slots[0] is machine.host:
        host = slots[0]
    return replace(machine, slots=slots, host=host)


def _is_aside(rank: RankBudget, machine: Machine) -> bool:
    """Whether it stands for the host's memory beside the machine's devices."""
    return rank.slot is machine.host and rank.slot not in machine.slots


def _held(rank: RankBudget) -> Estimate:
    return total(entry.estimate for region, entry in rank.regions.items() if region not in _OUTSIDE)


def holders(others: Estimate) -> tuple[Estimate, ...]:
    """What a slot's ``foreign`` is made of: what was there before, then model by model."""
    parts = others.parts
    if len(parts) == 2 and parts[0].label == _BEFORE:
        return (*holders(parts[0]), parts[1])
    return (others,)


def _with(slot: Slot, taken: Estimate, name: str) -> Slot:
    others = slot.foreign
    source = (
        tr("{source}; {name}").format(source=others.source, name=name)
        if others.high_bytes
        else name
    )
    grown = total([others.named(_BEFORE), taken.named(name)], source)
    return replace(slot, foreign=grown)
