"""What the rest of the house needs to know of a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine


class Runtime(Protocol):
    """One inference runtime with its versioned rules."""

    name: str
    """Key in the machine contract: ``vllm``, ``llama.cpp``, ``transformers``."""
    label: str
    """As its makers write it."""
    versions: tuple[str, ...]
    """Versions whose rules are known, newest first; the first is the default."""
    kv_cache_dtypes: tuple[str, ...]
    """Choices for the plan strip, ``auto`` first."""

    def weight_formats(self, model: Model) -> tuple[str, ...]:
        """Formats this runtime can load ``model`` in, ``auto`` (as stored) first."""
        ...

    def plan(self, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        """The budget of every rank.

        Raises:
            DeploymentError: the deployment is impossible; names the field to correct.
        """
        ...
