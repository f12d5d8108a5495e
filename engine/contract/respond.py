"""One request answered through the whole house."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.contract.answer import answer
from engine.contract.request import parse
from engine.fit import solve
from engine.fit.verdict import Fit
from engine.sizing import size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.contract.desk import Desk


def respond(desk: Desk, mapping: Mapping[str, object]) -> tuple[dict[str, object], Fit]:
    """The answer to ``mapping``, and whether it fits.

    Raises:
        PlimsollError: bad input.
    """
    request = parse(mapping)
    plan = desk.plan(request)
    sizing = size(plan.model, plan.deployment, plan.machine)
    limits = solve.limits(plan.model, plan.deployment, plan.machine)
    fit = sizing.verdict.fit if plan.notes.capacity_known else Fit.UNKNOWN
    return answer(request.id, sizing, limits, plan.notes), fit
