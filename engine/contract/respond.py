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
    from collections.abc import Mapping, Sequence

    from engine.contract.answer import Notes
    from engine.contract.desk import Desk
    from engine.contract.request import Request


def respond(
    desk: Desk, mapping: Mapping[str, object], before: Sequence[Mapping[str, object]] = ()
) -> tuple[dict[str, object], Fit]:
    """The answer to ``mapping``, and whether it fits and starts.

    Args:
        desk: finds model and machine.
        mapping: the request.
        before: requests of models that start earlier on the same machine.

    Raises:
        PlimsollError: bad input.
    """
    request = parse(mapping)
    earlier = tuple(map(parse, before))
    plan = desk.plan(request, earlier)
    sizing = size(plan.model, plan.deployment, plan.machine)
    limits = solve.limits(plan.model, plan.deployment, plan.machine)
    found = answer(request.id, sizing, limits, plan.notes)
    if plan.flow is not None:
        found["traffic"] = asdict(plan.flow)
    if request.inverse and plan.notes.capacity_known:
        from engine.contract.inverse import answers  # noqa: PLC0415 - only where it is asked

        found["inverse"] = answers(plan.model, plan.deployment, plan.machine)
    if request.others or earlier:
        return _beside(desk, request, earlier, found, plan.notes)
    fit = sizing.verdict.outcome if plan.notes.capacity_known else Fit.UNKNOWN
    return found, fit


def _beside(
    desk: Desk,
    request: Request,
    before: tuple[Request, ...],
    found: dict[str, object],
    notes: Notes,
) -> tuple[dict[str, object], Fit]:
    """The answer with those of the other models, on the machine they share."""
    from engine.contract.together import beside  # noqa: PLC0415 - only where it is asked
    from engine.together import together  # noqa: PLC0415 - see above

    tenants, machine = desk.tenants(request, before)
    placed = together(tenants, machine)
    names = [each.id for each in (*before, request, *request.others)]
    found["together"] = beside(placed, names, notes)
    return found, placed.outcome if notes.capacity_known else Fit.UNKNOWN
