"""Runtimes that start another one: what they hand to it, and its budget under their own name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, cast

from engine.runtimes import foreign, llama_cpp, registry

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine

_OWN_WORDS = ("runtime", "runtime_version", "weight_format", "kv_cache_dtype", "platform")


@dataclass(frozen=True, slots=True)
class Beneath:
    """What reaches the runtime that is started."""

    deployment: Deployment
    machine: Machine
    """The devices that it may see."""
    notes: tuple[str, ...] = ()
    """Every default set on the way, one sentence each."""
    warnings: tuple[str, ...] = ()
    context: int | None = None
    """Tokens of a request, where the runtime beneath is told of more."""


class Starter(Protocol):
    """A runtime that starts another one."""

    def beneath(self, model: Model, deployment: Deployment, machine: Machine) -> Beneath:
        """What it hands to that one.

        Raises:
            DeploymentError: it would refuse; names the setting.
        """
        ...


def stripped(deployment: Deployment) -> Deployment:
    """``deployment`` for the runtime beneath: only what that one knows, and its newest rules."""
    below = registry.family(deployment.runtime)
    kept = foreign.without(deployment, below)
    return kept.with_(runtime=below, runtime_version=registry.get(below).versions[0])


def budget(model: Model, asked: Deployment, version: str, found: Beneath) -> Budget:
    """The budget of the runtime beneath, told as that of the one that was asked for.

    Args:
        model: the model.
        asked: the plan as it was asked for.
        version: release of the runtime that was asked for, where the plan states none.
        found: what reaches the one beneath.

    Raises:
        DeploymentError: the one beneath would refuse; names the setting.
    """
    below = registry.get(found.deployment.runtime).plan(model, found.deployment, found.machine)
    own = {name: getattr(asked, name) for name in _OWN_WORDS}
    own["runtime_version"] = asked.runtime_version or version
    return replace(
        below,
        deployment=below.deployment.with_(**own),
        assumptions=(*found.notes, *below.assumptions),
        warnings=(*foreign.warnings(asked, asked.runtime), *found.warnings, *below.warnings),
    )


def placements(model: Model, deployment: Deployment, machine: Machine) -> tuple[Deployment, ...]:
    """Plans with less on the GPUs that llama.cpp would try by itself, the gentlest first.

    Raises:
        DeploymentError: llama.cpp would refuse the plan whatever its placement.
    """
    if deployment.runtime == "llama.cpp":
        return llama_cpp.placements(model, deployment, machine)
    starter = cast("Starter", registry.get(deployment.runtime))
    found = starter.beneath(model, deployment, machine)
    return tuple(
        deployment.with_(n_cpu_moe=tried.n_cpu_moe, n_gpu_layers=tried.n_gpu_layers)
        for tried in llama_cpp.placements(model, found.deployment, found.machine)
    )
