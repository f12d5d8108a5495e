"""From a running runtime to the plan that it runs: its command line, and what its endpoint says.

The command line says what was asked for, the endpoint what came of it: a context that nobody
stated, Ollama's choice by the card's size, a release. Where both speak of the context, the endpoint
is right.
"""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.deployment.spec import Deployment
from engine.errors import DeploymentError, UsageError
from engine.launch import dialects
from engine.launch.read import Understood
from engine.runtimes import registry
from engine.seen.commanded import understood
from engine.seen.model import ModelSeen
from engine.telemetry.snapshot import Missing
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.seen.model import RuntimeSeen

_DEFAULTS: Final = {entry.name: entry.default for entry in fields(Deployment)}
_RELEASE: Final = re.compile(r"b?\d+(?:\.\d+)*")
_VISIBLE: Final = frozenset({"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"})
"""Variables of the environment that say how many devices a process may use."""


def of_processes(seen: RuntimeSeen) -> Understood:
    """The plan of ``seen``, its command lines read now. Asks the system: not for a UI thread.

    Raises:
        UsageError: its runtime can't be planned, or nothing names its model.
    """
    return matched(seen, (_words(pid) for pid in seen.pids), _environment)


def matched(
    seen: RuntimeSeen,
    commands: Iterable[tuple[int, tuple[str, ...]]],
    environment: Callable[[int, frozenset[str]], Mapping[str, str]],
) -> Understood:
    """The plan of ``seen``.

    Args:
        seen: what is known of it.
        commands: PID and command line of each of its processes, the head first.
        environment: the variables of a process that are named.

    Raises:
        UsageError: its runtime can't be planned, or nothing names its model.
    """
    if seen.runtime not in registry.RUNTIMES:
        message = tr("{label} is seen, and can’t be planned: its rules are not known here.")
        raise UsageError(message.format(label=seen.label), field="runtime")
    names = _variables(seen.runtime)
    found: Understood | None = None
    for pid, words in commands:
        read = understood(words, environment(pid, names)) if words else None
        if read is not None and read.runtime == seen.runtime:
            found = read
            break
    if found is None:
        found = Understood(seen.runtime, "", "", Deployment(runtime=seen.runtime), None, (), ())
    model = _model(seen, found)
    if not model:
        message = tr("Nothing of {label} names its model: pick one first.")
        raise UsageError(message.format(label=seen.label), field="model")
    return replace(found, model=model, deployment=_with_endpoint(found.deployment, seen))


def _model(seen: RuntimeSeen, found: Understood) -> str:
    """What the model is found by: as it was started, else a file that is here, else its name."""
    said = seen.model
    if seen.runtime == "ollama" and isinstance(said, ModelSeen):
        return said.name
    if found.model:
        return found.model
    if isinstance(said, Missing):
        return ""
    path = Path(said.file) if said.file else None
    return said.file if path is not None and path.is_absolute() and path.exists() else said.name


def _with_endpoint(plan: Deployment, seen: RuntimeSeen) -> Deployment:
    """``plan`` with what the endpoint says: its context always, the rest where nobody stated it."""
    changes = {
        name: value
        for name, value in seen.settings.items()
        if name == "max_model_len" or getattr(plan, name) == _DEFAULTS[name]
    }
    if plan.n_ctx is not None:  # cells of all slots together, which say more than one slot's part
        changes.pop("max_model_len", None)
    if isinstance(seen.version, str) and plan.runtime_version is None:
        changes |= _version(seen.runtime, seen.version)
    return plan.with_(**changes)


def _version(runtime: str, text: str) -> dict[str, str]:
    """The release, where it is one that the runtime's rules are keyed by."""
    dialect = dialects.of(runtime)
    if dialect is None or not _RELEASE.match(text):
        return {}
    try:
        dialect.version(text)
    except DeploymentError:
        return {}
    return {"runtime_version": text}


def _variables(runtime: str) -> frozenset[str]:
    dialect = dialects.of(runtime)
    rows = dialect.environment if dialect is not None else ()
    return _VISIBLE | {name for flag in rows for name in flag.names}


def _words(pid: int) -> tuple[int, tuple[str, ...]]:
    import psutil

    try:
        return pid, tuple(psutil.Process(pid).cmdline())
    except (psutil.Error, OSError):
        return pid, ()


def _environment(pid: int, names: frozenset[str]) -> dict[str, str]:
    """Those of the variables of a process of the same user; nothing else is looked at."""
    import psutil

    try:
        found = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}
    return {name: printable(found[name], 200) for name in names if name in found}
