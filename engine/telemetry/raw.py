"""What the sources say, word for word, and one snapshot made of just that: for a report.

Fit to pass on: processes are numbered anew and go without names, devices and containers have no
serial numbers. What is left is enough to make the same snapshot again somewhere else.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from engine.errors import TelemetryError
from engine.redaction import redacted
from engine.telemetry import plain, raw_linux, raw_systems
from engine.telemetry.adapters import nvidia, pci
from engine.telemetry.adapters.host import HostAdapter, folded, reading
from engine.telemetry.commands import recognise
from engine.telemetry.merge import merged
from engine.telemetry.snapshot import Missing, TelemetrySnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.telemetry.snapshot import DeviceReading, ProcessReading

MOST_BYTES: Final = 16 * 1024
"""Of one source."""
_FIRST_PID = 5_000_001
"""Above what any system gives, so that no number is somebody's process where it is read."""
_LONG_ID = re.compile(r"\b[0-9a-f]{32,}\b")
_STAND_INS = {
    "llama.cpp": "llama-server -m model-{}",
    "ollama": "ollama runner --model model-{}",
    "lmstudio": "llmster --model model-{}",
}
"""Command lines for the runtimes whose mapped files count as held."""


@dataclass(frozen=True, slots=True)
class RawReading:
    """The raw answers by source, and the snapshot that is made of them."""

    sources: dict[str, Any]
    snapshot: TelemetrySnapshot
    """As it was read; ``Masks`` makes it fit to pass on."""
    masks: Masks


def read(root: Path = Path("/"), *, asks_drivers: bool = True) -> RawReading:
    """Ask every source once; takes as long as the slowest driver takes to load."""
    masks = Masks()
    sources: dict[str, Any] = {}
    devices: list[DeviceReading] = []
    notes: list[str] = []
    if asks_drivers:
        heard: dict[str, Any] = {}
        adapter = nvidia.NvidiaAdapter(
            root, binding=lambda: Listening(nvidia.binding(), heard, masks)
        )
        try:
            devices.extend(adapter.sample())
        except TelemetryError as error:
            notes.append(error.message)
        adapter.close()
        sources["NVML"] = _cut(heard)
        more, found, why = _of_others(root, masks)
        sources |= {name: _cut(said) for name, said in more.items()}
        devices.extend(found)
        notes.extend(filter(None, (why,)))
    figures, files = HostAdapter(root).figures_and_files()
    devices.append(reading(*figures))
    memory, _, held, _ = figures
    sources["psutil"] = {"total": memory.total, "available": memory.available}
    sources["files"] = _cut({_masked(name): _masked(text) for name, text in files.items()})
    sources["processes"] = _cut_rows([plain.process_dict(masks.of(p)) for p in folded(held)])
    sources["PCI"] = [list(words) for words in pci.displays(root)]
    snapshot = TelemetrySnapshot(time.monotonic(), time.time(), merged(devices), tuple(notes))
    return RawReading(sources, snapshot, masks)


def _of_others(root: Path, masks: Masks) -> tuple[dict[str, Any], tuple[DeviceReading, ...], str]:
    """What the other makers' GPUs say through this system."""
    if sys.platform == "win32":
        return raw_systems.of_windows(masks)
    if sys.platform == "darwin":
        return *raw_systems.of_apple(masks), ""
    return *raw_linux.read(root, masks), ""


class Masks:
    """Stand-ins for what is nobody else's business; the same one for the same thing."""

    def __init__(self) -> None:
        self._pids: dict[int, int] = {0: 0}
        self._models: dict[str, int] = {}

    @property
    def own_pid(self) -> int | None:
        """The stand-in for this program, where it was among the processes."""
        return self._pids.get(os.getpid())

    def pid(self, pid: int) -> int:
        """The number that stands for the process ``pid``."""
        return self._pids.setdefault(pid, _FIRST_PID + len(self._pids) - 1)

    def of(self, process: ProcessReading) -> ProcessReading:
        """``process`` without name and command line; a runtime that maps models stays one."""
        found = recognise(process.name, process.command)
        stand_in = _STAND_INS.get(found.runtime, "")
        if stand_in:
            number = self._models.setdefault(found.model, len(self._models) + 1)
            stand_in = stand_in.format(number)
        name = stand_in.partition(" ")[0] or found.label or "process"
        return replace(process, pid=self.pid(process.pid), name=name, command=stand_in)

    def snapshot(self, snapshot: TelemetrySnapshot) -> TelemetrySnapshot:
        """``snapshot`` with all its processes masked."""
        return replace(snapshot, devices=tuple(self._device(d) for d in snapshot.devices))

    def _device(self, device: DeviceReading) -> DeviceReading:
        if isinstance(device.processes, Missing):
            return device
        return replace(device, processes=tuple(self.of(p) for p in device.processes))


class Listening:
    """NVIDIA's binding, whose answers are written down under the question and the card."""

    def __init__(self, binding: Any, heard: dict[str, Any], masks: Masks) -> None:
        self._binding = binding
        self._heard = heard
        self._masks = masks

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._binding, name)
        return self._asked(name, found) if name.startswith("nvml") and callable(found) else found

    def _asked(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def listen(*cards: Any, **options: Any) -> Any:
            given = [card.index if isinstance(card, _Card) else card for card in cards]
            question = name + "".join(f"[{one}]" for one in (*given, *options))
            try:
                answer = ask(*(c.handle if isinstance(c, _Card) else c for c in cards), **options)
            except self._binding.NVMLError as error:
                self._heard[question] = {"error": error.value}
                raise
            if name in {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetMigDeviceHandleByIndex"}:
                place = ".".join(map(str, given))
                self._heard[question] = f"card {place}"
                return _Card(place, answer)
            if name == "nvmlDeviceGetUUID":
                answer = f"GPU-{given[0]}"
            self._heard[question] = self._plain(answer)
            return answer

        return listen

    def _plain(self, answer: Any) -> Any:
        if isinstance(answer, (list, tuple)):
            return [self._plain(one) for one in cast("list[Any]", answer)]
        if hasattr(answer, "pid"):
            pid = self._masks.pid(answer.pid)
            instance = getattr(answer, "gpuInstanceId", None)
            return {"pid": pid, "usedGpuMemory": answer.usedGpuMemory, "gpuInstanceId": instance}
        if hasattr(answer, "_fields_"):
            return {name: self._plain(getattr(answer, name)) for name, *_ in answer._fields_}
        return answer.decode("ascii", "replace") if isinstance(answer, bytes) else answer


@dataclass(frozen=True, slots=True)
class _Card:
    """A card's handle and its place in the driver's list; ``0.1`` is a slice of the first."""

    index: str
    handle: Any


def _masked(text: str) -> str:
    return _LONG_ID.sub("<id>", redacted(text))


def _cut(answers: dict[str, Any]) -> dict[str, Any]:
    """As many answers, first to last, as the limit lets in."""
    kept: dict[str, Any] = {}
    room = MOST_BYTES - 64
    for question, answer in answers.items():
        room -= len(json.dumps({question: answer}))
        if room < 0:
            return {**kept, "cut": len(answers) - len(kept)}
        kept[question] = answer
    return kept


def _cut_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sizes = [len(json.dumps(row)) + 2 for row in rows]
    return [row for at, row in enumerate(rows) if sum(sizes[: at + 1]) <= MOST_BYTES]
