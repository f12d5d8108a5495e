"""How a plan grows with its context: one budget for each context, everything else the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.fit.plane import nothing
from engine.runtimes import registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.fit.plane import Axes

POINTS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Budgets from the shortest to the longest context."""

    axes: Axes
    contexts: tuple[int, ...]
    budgets: tuple[Budget | None, ...]
    """None where the runtime refuses the plan."""


def curve(
    model: Model,
    deployment: Deployment,
    machine: Machine,
    shown: Axes,
    check: Callable[[], None] = nothing,
) -> Curve:
    """The curve of ``deployment`` at its own number of requests, whatever its context.

    Args:
        model: any.
        deployment: its ``max_model_len`` is what the curve varies.
        machine: where it runs.
        shown: of its axes only that of contexts matters.
        check: called before each plan; what it raises ends the work.
    """
    runtime = registry.get(deployment.runtime)
    contexts = _contexts(shown)
    budgets: list[Budget | None] = []
    for context in contexts:
        check()
        # A total of llama.cpp's would pin what varies here.
        plan = deployment.with_(max_model_len=context, n_ctx=None)
        try:
            found = runtime.plan(model, plan, machine)
        except DeploymentError:
            budgets.append(None)
        else:
            budgets.append(None if found.refusals else found)
    return Curve(shown, contexts, tuple(budgets))


def _contexts(shown: Axes) -> tuple[int, ...]:
    octaves = shown.most_context / shown.least_context
    places = (n / (POINTS - 1) for n in range(POINTS))
    return tuple(sorted({round(shown.least_context * octaves**place) for place in places}))
