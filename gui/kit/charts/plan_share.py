"""Which processes run the plan, as far as their names and command lines tell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.telemetry.commands import recognise
from engine.telemetry.mapped import held_bytes

if TYPE_CHECKING:
    from engine.telemetry.snapshot import DeviceReading, ProcessReading

_ENDINGS = re.compile(r"(?i)(?:[-_.](?:gguf|hf|instruct|it|chat))+$")
_LEAST_NAME = 4


@dataclass(frozen=True, slots=True)
class Planned:
    """What to look for."""

    runtime: str
    """Key of the machine contract."""
    model: str
    """Hub id, catalogue name or file name."""


def plan_bytes(reading: DeviceReading, planned: Planned) -> int | None:
    """What the plan's processes hold on a device; None where nobody says which there are."""
    if not isinstance(reading.processes, tuple):
        return None
    ours = [p for p in reading.processes if _runs(p, planned)]
    sizes = [size for p in ours if isinstance(size := held_bytes(p), int)]
    # A process that is there, but whose share the driver keeps to itself, is not nought.
    return None if len(sizes) < len(ours) else sum(sizes)


def _runs(process: ProcessReading, planned: Planned) -> bool:
    """Whether the process is of the plan's runtime and, if it names a model, of that model."""
    seen = recognise(process.name, process.command)
    if not seen.runtime or seen.runtime != planned.runtime:
        return False
    one, other = _plain(seen.model), _plain(planned.model)
    return len(one) < _LEAST_NAME or len(other) < _LEAST_NAME or one in other or other in one


def _plain(name: str) -> str:
    """The last part of a name, without endings and separators that differ between copies."""
    last = _ENDINGS.sub("", name.replace("\\", "/").rsplit("/", 1)[-1])
    return re.sub(r"[^a-z0-9]", "", last.lower())
