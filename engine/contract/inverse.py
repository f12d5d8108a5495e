"""Answers to the inverse questions as plain mappings (design, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.fit.inverse import inverse
from engine.text import printable

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.fit.inverse import Answer


def answers(model: Model, deployment: Deployment, machine: Machine) -> dict[str, object]:
    """Each question with its answer.

    Raises:
        DeploymentError: the deployment itself is impossible.
    """
    return {found.question: _answer(found) for found in inverse(model, deployment, machine)}


def _answer(found: Answer) -> dict[str, object]:
    binding = None
    if found.rank is not None and found.region is not None:
        binding = {"rank": found.rank, "region": found.region.value}
    return {
        "value": found.value,
        "settings": dict(found.settings),
        "binding": binding,
        "reason": printable(found.reason, 500),
    }
