"""Several models on one machine: the plan in force, and those beside it. Values only; no Qt.

What the others hold is taken before the plan in force starts (``engine.together``): its verdict,
its limits and its picture are those beside all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.fit.judge import judge
from engine.fit.verdict import Fit
from engine.runtimes import registry
from engine.sizing import size
from engine.together import Tenant, together, worst_of
from engine.words import tr
from gui.kit import format as fmt
from gui.sizing.plan import Neighbour, machine_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.model import Model
    from engine.devices.device import Machine
    from engine.sizing import Sizing
    from engine.together import Placed
    from engine.units import UnitSystem
    from gui.sizing.plan import Plan

MOST = 5
"""Models beside the one that is planned."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The plan in force where it came to lie, and those beside it."""

    sizing: Sizing
    beside: tuple[Placed, ...] = ()
    """In their order of start."""

    @property
    def machine(self) -> Machine:
        """As the plan's model finds it."""
        return self.sizing.budget.machine


def answer(model: Model, plan: Plan, here: Machine) -> Answer:
    """Size ``model`` under ``plan``, after the models beside it.

    Raises:
        PlimsollError: no such device, or a plan that is impossible.
    """
    machine = machine_for(plan, here)
    if not plan.beside:
        return Answer(size(model, plan.deployment, machine))
    tenants = [Tenant(other.model, other.deployment) for other in plan.beside]
    try:
        *others, own = together((*tenants, Tenant(model, plan.deployment)), machine).placed
    except DeploymentError:
        # Its own trouble is said as when it is alone.
        size(model, plan.deployment, machine)
        raise
    return Answer(own.sizing, tuple(others))


def added(plan: Plan, other: Neighbour) -> Plan:
    """The plan with ``other`` beside it."""
    return plan.with_(beside=(*plan.beside, other))


def removed(plan: Plan, index: int) -> Plan:
    """The plan without the model beside it at ``index``."""
    return plan.with_(beside=plan.beside[:index] + plan.beside[index + 1 :])


def swapped(model: Model, plan: Plan, index: int) -> tuple[Model, Plan]:
    """The model beside the plan at ``index`` with its plan, and ``model`` in its place."""
    own = Neighbour(model, plan.deployment, plan.assumes_context)
    chosen = plan.beside[index]
    return chosen.model, plan.with_(
        deployment=chosen.deployment,
        assumes_context=chosen.assumes_context,
        beside=(*plan.beside[:index], own, *plan.beside[index + 1 :]),
    )


def outcome(own: Sizing, others: Sequence[Placed]) -> Fit:
    """The verdict on the whole machine: the worst of those on its models."""
    return worst_of([own.verdict.outcome, *(p.sizing.verdict.outcome for p in others)])


def deciding(own: Sizing, others: Sequence[Placed]) -> Placed | None:
    """The one of ``others`` that decides the verdict; None where the plan's own is as bad."""
    worst = outcome(own, others)
    if own.verdict.outcome is worst:
        return None
    alike = [placed for placed in others if placed.sizing.verdict.outcome is worst]
    return min(alike, key=lambda placed: placed.sizing.verdict.margin_bytes)


def margin(placed: Placed, unit: UnitSystem) -> str:
    """``+1.3 GiB``; a model that the runtime refuses has no margin that counts, nor a bound."""
    verdict = placed.sizing.verdict
    if verdict.outcome is Fit.UNKNOWN:
        return tr("unknown")
    return tr("won’t start") if verdict.refusals else fmt.margin(verdict.margin_bytes, unit)


def sentences(beside: Sequence[Placed], unit: UnitSystem) -> tuple[str, ...]:
    """One sentence for each model beside the plan: how it is run, and whether it fits."""
    return tuple(_sentence(placed, unit) for placed in beside)


def _sentence(placed: Placed, unit: UnitSystem) -> str:
    budget = placed.sizing.budget
    plan = budget.deployment
    return tr("Beside it: {model} with {runtime}, {tokens}; it holds {size}. {verdict}.").format(
        model=budget.model.id,
        runtime=registry.get(plan.runtime).label,
        tokens=tr("{count} × {context} tokens").format(
            count=fmt.count(plan.concurrency), context=fmt.count(plan.max_model_len or 0)
        ),
        size=fmt.size(placed.held_bytes, unit),
        verdict=headline(placed, unit),
    )


def headline(placed: Placed, unit: UnitSystem) -> str:
    """The verdict on one model, in ``unit``."""
    return judge(placed.sizing.budget, unit).headline
