"""The whole arithmetic in one call: model, deployment and machine in, budget and verdict out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.fit.judge import judge
from engine.runtimes import registry

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.fit.verdict import Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Sizing:
    """One answer."""

    budget: Budget
    verdict: Verdict


def size(model: Model, deployment: Deployment, machine: Machine) -> Sizing:
    """The budget of ``model`` under ``deployment`` on ``machine``, and the verdict on it.

    Pure and fast enough to run at every edit.

    Raises:
        DeploymentError: the deployment is impossible; names the field to correct.
    """
    budget = registry.get(deployment.runtime).plan(model, deployment, machine)
    return Sizing(budget, judge(budget))
