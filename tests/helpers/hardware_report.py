"""A copied hardware report as a test's machine: the adapters answer from its raw readings."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pynvml

from engine.devices.here import this_machine
from engine.errors import TelemetryError
from engine.telemetry import plain
from engine.telemetry.adapters import cgroup, host_details
from engine.telemetry.adapters.host import reading
from engine.telemetry.adapters.nvidia import NvidiaAdapter
from engine.telemetry.snapshot import TelemetrySnapshot

if TYPE_CHECKING:
    from pathlib import Path

    from engine.devices.device import Machine


def machine_of(report: dict[str, Any], folder: Path) -> Machine:
    """The machine that the raw readings make; ``folder`` takes the report's files."""
    sources = report["sources"]
    for name, text in sources["files"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    adapter = NvidiaAdapter(folder, binding=lambda: Answering(sources["NVML"]))
    notes, devices = [], []
    try:
        devices += adapter.sample()
    except TelemetryError as error:
        notes.append(error.message)
    held = tuple(plain.process(row) for row in sources["processes"])
    memory = SimpleNamespace(**sources["psutil"])
    devices.append(reading(memory, cgroup.read(folder), held, host_details.read(folder)))
    snapshot = TelemetrySnapshot(time.monotonic(), time.time(), tuple(devices), tuple(notes))
    # The program that wrote the report counts as nobody's use, as it did there.
    own = {report["own_pid"]} - {None}
    return this_machine(snapshot, instead_of=frozenset(own))


class Answering:
    """NVIDIA's binding, whose answers come from a report."""

    def __init__(self, heard: dict[str, Any]) -> None:
        self._heard = heard

    def __getattr__(self, name: str) -> Any:
        found = getattr(pynvml, name)
        if not (name.startswith("nvml") and callable(found)):
            return found

        def ask(*cards: Any, **options: Any) -> Any:
            if name == "nvmlShutdown":
                return None
            given = [str(card).removeprefix("card ") for card in cards]
            question = name + "".join(f"[{one}]" for one in (*given, *options))
            answer = self._heard[question]
            if isinstance(answer, dict) and "error" in answer:
                raise pynvml.NVMLError(answer["error"])
            return _object(answer)

        return ask


def _object(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_object(one) for one in answer]
    return SimpleNamespace(**answer) if isinstance(answer, dict) else answer
