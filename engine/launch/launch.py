"""A plan as it is started: every form of it, and what is to be known of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """What a form is for."""

    COMMAND = "command"
    PYTHON = "python"
    MODELFILE = "modelfile"
    SETTINGS = "settings"
    DOCKER = "docker"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"
    MULTI_NODE = "multi-node"
    RAY_SERVE = "ray-serve"


TITLES: Mapping[Kind, str] = {
    Kind.COMMAND: tr_later("Command"),
    Kind.PYTHON: "Python",
    Kind.MODELFILE: "Modelfile",
    Kind.SETTINGS: tr_later("Settings"),
    Kind.DOCKER: "Docker",
    Kind.COMPOSE: "Compose",
    Kind.KUBERNETES: "Kubernetes",
    Kind.MULTI_NODE: tr_later("Multi-node"),
    Kind.RAY_SERVE: "Ray Serve",
}


@dataclass(frozen=True, slots=True)
class Form:
    """One text to copy, its remarks in it as comments."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Launch:
    """How one plan is started."""

    runtime: str
    label: str
    """The runtime and its release, as people write them."""
    model: str
    """What the runtime finds the model by."""
    words: tuple[str, ...]
    """Program and arguments; empty where no command starts it."""
    environment: Mapping[str, str]
    forms: tuple[Form, ...]
    """At least one."""
    notes: tuple[str, ...]
    """What is to be known, one sentence each; the forms say it too."""
    unsaid: Mapping[str, str]
    """Settings of the plan that the runtime has no word for -> what to know of that."""
