"""A runtime's plan after what this machine's own runs taught."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from engine.budget.learned import applied

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine

_Plan = TypeVar("_Plan", bound="Callable[..., Budget]")


def taught(plan: _Plan) -> _Plan:
    """``plan`` of a runtime, whose budgets follow the machine's lessons where it has any."""

    @wraps(plan)
    def after(self: Any, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        budget = plan(self, model, deployment, machine)
        if not machine.lessons:
            return budget
        return applied(budget, machine.lessons, lambda d: plan(self, model, d, machine))

    return cast("_Plan", after)
