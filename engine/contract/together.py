"""Several models on one machine as plain mappings (design, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.contract.answer import answer
from engine.fit import solve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.contract.answer import Notes
    from engine.contract.request import RequestId
    from engine.together import Together


def beside(found: Together, ids: Sequence[RequestId], notes: Notes) -> dict[str, object]:
    """Every model's answer where it came to lie, and what each device holds in the end.

    Args:
        found: the models where they came to lie.
        ids: of their requests, in the same order.
        notes: what was open.
    """
    models: list[dict[str, object]] = []
    for identity, placed in zip(ids, found.placed, strict=True):
        tenant, machine = placed.tenant, placed.sizing.budget.machine
        limits = solve.limits(tenant.model, tenant.deployment, machine)
        found_here = answer(identity, placed.sizing, limits, notes)
        models.append({"devices": list(placed.devices), "answer": found_here})
    known = notes.capacity_known
    devices = [
        {
            "device": slot.device.name,
            "allocatable_bytes": slot.device.allocatable.likely_bytes if known else None,
            "held": {
                "low": slot.foreign.low_bytes,
                "likely": slot.foreign.likely_bytes,
                "high": slot.foreign.high_bytes,
            },
        }
        for slot in found.machine.slots
    ]
    verdict = found.outcome.value if known else "unknown"
    return {"models": models, "devices": devices, "verdict": verdict}
