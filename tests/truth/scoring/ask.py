"""From a record to the engine's answer, through the machine contract and in this process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from engine.architecture.read import read
from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.fields import BY_NAME
from engine.contract.request import parse
from engine.evidence import Basis, exactly, total
from engine.runtimes import registry
from engine.sizing import size
from engine.source.raw import RawModel
from engine.units import GIB

if TYPE_CHECKING:
    from engine.contract.desk import Plan
    from engine.devices.device import Machine
    from engine.sizing import Sizing
    from tests.truth.scoring.records import Record

_UNNAMED_BYTES = 80 * GIB
"""Of a card that a record doesn't name: no score depends on the cards of the scoring machine."""

_STATED = "free memory before loading, as the record states it"


@dataclass(frozen=True, slots=True)
class Asked:
    """A record's request, and the answer to it."""

    record: Record
    plan: Plan
    sizing: Sizing

    def again(self, **changes: Any) -> Sizing:
        """The answer to the same request with other settings."""
        plan = self.plan
        return size(plan.model, plan.deployment.with_(**changes), plan.machine)


@cache
def _desk() -> Desk:
    return Desk(CancelToken())


def _with_free(plan: Plan, free_bytes: int) -> Machine:
    """The machine with so much held by others that a process finds ``free_bytes`` at its start."""
    from engine.runtimes.sglang import work

    machine, slots = plan.machine, []
    for slot in machine.slots:
        own = total(work.before_loading(slot.device, plan.deployment.ranks)).likely_bytes
        device = slot.device
        held = device.allocatable.likely_bytes - own - free_bytes
        if held < 0:
            device = replace(device, allocatable=exactly(free_bytes + own, Basis.MEASURED, _STATED))
        foreign = exactly(max(held, 0), Basis.MEASURED, _STATED)
        slots.append(replace(slot, device=device, foreign=foreign))
    return replace(machine, slots=tuple(slots))


def is_offered(runtime: str) -> bool:
    """Whether the engine plans ``runtime`` by now."""
    return runtime in registry.RUNTIMES


def ask(record: Record) -> Asked:
    """The answer to ``record``, which it keeps from nobody's Hub or disk.

    Raises:
        PlimsollError: the request cannot be answered.
    """
    # What the contract has no key for yet stays in the record.
    request = {key: value for key, value in record.request.items() if key in BY_NAME}
    if "gpu_count" in request and not request.keys() & {"gpu", "gpu_total_bytes"}:
        request["gpu_total_bytes"] = _UNNAMED_BYTES
    plan = _desk().plan(parse(request))
    draft = record.facts.get("draft_config")
    if draft is not None:
        # The request names a draft, and this one's is not bundled.
        read_draft = read(RawModel(id="draft", source="the record", config=draft))
        plan = replace(plan, deployment=replace(plan.deployment, draft_model=read_draft))
    free_bytes = record.facts.get("free_before_bytes")
    if free_bytes is not None:
        plan = replace(plan, machine=_with_free(plan, free_bytes))
    return Asked(record, plan, size(plan.model, plan.deployment, plan.machine))
