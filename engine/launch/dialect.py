"""What a runtime's module says of its commands."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from engine.deployment.spec import Deployment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.architecture.model import Model
    from engine.devices.device import Machine
    from engine.launch.flags import Flag, Version

NODE_DEVICES = 8
"""Devices of a node where nothing is said: as many as an HGX board holds."""
_DEFAULTS = {entry.name: entry.default for entry in fields(Deployment)}
_ABOUT_THE_PLAN = ("runtime", "runtime_version", "platform")


@dataclass(frozen=True, slots=True)
class Asked:
    """A plan that is to be written."""

    model: Model
    plan: Deployment
    machine: Machine
    version: Version
    path: str = ""
    """Where the model lies on a disk; empty for one of the Hub."""
    node_devices: int = NODE_DEVICES
    """Devices of each node that the plan is spread over where it outgrows one."""

    @property
    def name(self) -> str:
        """What a runtime finds the model by: its path, else its name on the Hub."""
        return self.path or self.model.id


@dataclass(slots=True)
class Spoken:
    """A plan in a runtime's own settings."""

    values: dict[str, Any]
    """Setting -> value, for the tables."""
    model: str = ""
    """What stands in the command for the model."""
    remarks: list[str] = field(default_factory=list[str])
    """What a person has to know of a word or of its absence, a sentence each."""

    def drop(self, *names: str) -> None:
        """Leave settings out that are said in another way, or in a remark."""
        for name in names:
            self.values.pop(name, None)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a command says of the plan."""

    changes: dict[str, Any]
    """Fields of the deployment."""
    model: str = ""
    draft: str = ""
    """The model that drafts tokens."""
    lost: tuple[str, ...] = ()
    """What was understood and can't be planned, a sentence each."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one runtime is started."""

    runtime: str
    program: tuple[str, ...]
    flags: tuple[Flag, ...]
    version: Callable[[str | None], Version]
    """Raises ``DeploymentError`` for what is no release."""
    speak: Callable[[Asked], Spoken]
    """A plan in the table's settings."""
    hear: Callable[[dict[str, Any], tuple[str, ...]], Heard]
    """Settings and positional words of a command as a plan."""
    environment: tuple[Flag, ...] = ()
    """Settings that are variables of the environment; rows are read and written as flags are."""
    harmless: Mapping[str, int] = field(default_factory=dict[str, int])
    """Flags that change no memory -> how many values each takes."""
    dashes: bool = False
    """Whether underscores in a flag are read as dashes."""


def stated(plan: Deployment) -> dict[str, Any]:
    """What ``plan`` states beside the runtime: every field that isn't at its default."""
    found = {name: getattr(plan, name) for name in _DEFAULTS if name not in _ABOUT_THE_PLAN}
    return {name: value for name, value in found.items() if value != _DEFAULTS[name]}


def harmless(one: str, none: str) -> Mapping[str, int]:
    """Flags that change no memory, by how many values each takes.

    Args:
        one: names with a value, between spaces.
        none: names of switches, between spaces.
    """
    return dict.fromkeys(one.split(), 1) | dict.fromkeys(none.split(), 0)
