"""A copied hardware report as a test's machine: the adapters answer from its raw readings."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pynvml

from engine.devices.here import this_machine
from engine.errors import TelemetryError
from engine.telemetry import plain, raw_systems
from engine.telemetry.adapters import cgroup, host_details
from engine.telemetry.adapters.amd import AmdAdapter
from engine.telemetry.adapters.apple import AppleAdapter
from engine.telemetry.adapters.host import reading
from engine.telemetry.adapters.intel import IntelAdapter
from engine.telemetry.adapters.intel_regions import Region
from engine.telemetry.adapters.nvidia import NvidiaAdapter
from engine.telemetry.adapters.second import Told
from engine.telemetry.adapters.windows import WindowsAdapter
from engine.telemetry.merge import merged
from engine.telemetry.raw_linux import lay_out
from engine.telemetry.snapshot import TelemetrySnapshot

if TYPE_CHECKING:
    from pathlib import Path

    from engine.devices.device import Machine
    from engine.telemetry.lane import Adapter
    from engine.telemetry.snapshot import DeviceReading


def machine_of(report: dict[str, Any], folder: Path) -> Machine:
    """The machine that the raw readings make; ``folder`` takes the report's files."""
    sources = report["sources"]
    lay_out(sources["files"] | sources.get("DRM", {}), folder)
    adapter = NvidiaAdapter(folder, binding=lambda: Answering(sources["NVML"]))
    notes, devices = [], []
    try:
        devices += adapter.sample()
    except TelemetryError as error:
        notes.append(error.message)
    devices += others_of(sources, folder)
    held = tuple(plain.process(row) for row in sources["processes"])
    memory = SimpleNamespace(**sources["psutil"])
    devices.append(reading(memory, cgroup.read(folder), held, host_details.read(folder)))
    snapshot = TelemetrySnapshot(time.monotonic(), time.time(), merged(devices), tuple(notes))
    # The program that wrote the report counts as nobody's use, as it did there.
    own = {report["own_pid"]} - {None}
    return this_machine(snapshot, instead_of=frozenset(own))


def others_of(sources: dict[str, Any], folder: Path) -> list[DeviceReading]:
    """What all but NVIDIA's GPUs read like; the files of the report lie in ``folder``."""
    regions = {
        address: tuple(Region(*row) for row in rows)
        for address, rows in sources.get("Intel regions", {}).items()
    }
    adapters: list[Adapter] = [
        AmdAdapter(folder, library=Library(sources.get("amdsmi", {}))),
        IntelAdapter(
            folder,
            regions=lambda card, _: regions.get(card.address, ()),
            library=Library(sources.get("Level Zero", {})),
        ),
    ]
    if "Apple" in sources:
        adapters.append(AppleAdapter(raw_systems.apple_again(sources["Apple"])))
    if "Windows" in sources:
        again = raw_systems.WindowsAgain(sources["Windows"])
        adapters.append(WindowsAdapter(lambda: again, lambda _: ("process", "")))
    return [reading for adapter in adapters for reading in adapter.sample()]


class Library:
    """A maker's library that says what the report says."""

    age_s = 0.0

    def __init__(self, said: dict[str, Any]) -> None:
        self._told = {at: Told(**told) for at, told in said.items() if isinstance(told, dict)}

    def ask(self, _: Path) -> dict[str, Told]:
        return self._told

    def close(self) -> None:
        pass


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
