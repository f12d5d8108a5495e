"""One request answered through the whole house."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from engine.contract.answer import answer
from engine.contract.request import parse
from engine.fit import solve
from engine.fit.verdict import Fit
from engine.sizing import size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.contract.answer import Notes
    from engine.contract.desk import Desk
    from engine.contract.request import Request


def respond(desk: Desk, mapping: Mapping[str, object]) -> tuple[dict[str, object], Fit]:
    """The answer to ``mapping``, and whether it fits and starts.

    Raises:
        PlimsollError: bad input.
    """
    request = parse(mapping)
    plan = desk.plan(request)
    sizing = size(plan.model, plan.deployment, plan.machine)
    limits = solve.limits(plan.model, plan.deployment, plan.machine)
    found = answer(request.id, sizing, limits, plan.notes)
    if plan.flow is not None:
        found["traffic"] = asdict(plan.flow)
    if request.inverse and plan.notes.capacity_known:
        from engine.contract.inverse import answers  # noqa: PLC0415 - only where it is asked

        found["inverse"] = answers(plan.model, plan.deployment, plan.machine)
    if request.others:
        return _beside(desk, request, found, plan.notes)
    fit = sizing.verdict.outcome if plan.notes.capacity_known else Fit.UNKNOWN
    return found, fit


def _beside(
    desk: Desk, request: Request, found: dict[str, object], notes: Notes
) -> tuple[dict[str, object], Fit]:
    """The answer with those of the further models, on the machine they share."""
    from engine.contract.together import beside  # noqa: PLC0415 - only where it is asked
    from engine.together import together  # noqa: PLC0415 - see above

    tenants, machine = desk.tenants(request)
    placed = together(tenants, machine)
    found["together"] = beside(placed, request, notes)
    return found, placed.outcome if notes.capacity_known else Fit.UNKNOWN
