"""NVIDIA GPUs through NVML (nvidia-ml-py): memory, reserve and processes of every card.

Each field is optional on its own: a card may answer its total and not its processes, or fall off
the bus while its neighbours go on. Nothing here asks a sleeping laptop GPU anything.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import TelemetryError
from engine.telemetry import commands
from engine.telemetry.adapters import pci
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, ProcessReading
from engine.text import printable
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable

_PCI_VENDOR = "0x10de"
_RETRY_S = 30.0
_UNIFIED = re.compile(r"\bGB10\b|\b(?:Jetson|Tegra|Orin|Thor|Xavier)\b")
"""Names of parts that share the system's memory; ``not supported`` alone proves nothing."""
_CORES_PER_SM = {6: 128, 7: 64, 8: 128, 9: 128, 10: 128, 11: 128, 12: 128}
_CORES_PER_SM_A100 = 64

# Codes of nvmlReturn_t (nvml.h); the binding has them as constants of the same meaning.
_REASONS = {
    1: tr_later("the driver was unloaded"),
    2: tr_later("the driver did not understand the question"),
    3: tr_later("not supported by this device or driver"),
    4: tr_later("no permission to read it"),
    9: tr_later("the NVIDIA driver is not loaded"),
    12: tr_later("no NVIDIA driver here (libnvidia-ml was not found)"),
    13: tr_later("this driver is too old to tell"),
    15: tr_later("the GPU fell off the bus"),
    16: tr_later("the GPU needs a reset"),
    18: tr_later("the driver was updated; restart the computer"),
}
_DRIVER_GONE = frozenset({1, 9, 18})


@dataclass(frozen=True, slots=True)
class _Card:
    """What does not change while a driver is loaded."""

    uuid: str
    name: str
    sm_count: int
    compute_capability: float
    handle: Any
    fault: str = ""
    """Why there is no handle, where there is none."""


def binding() -> Any:
    """NVIDIA's own binding, loaded when it is first needed."""
    import pynvml

    return pynvml


class NvidiaAdapter:
    """All NVIDIA devices that the driver lists; a device once seen stays listed."""

    name = "NVIDIA"

    def __init__(
        self,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
        binding: Callable[[], Any] = binding,
    ) -> None:
        """Nothing is opened before the first sample.

        Args:
            root: ``/``, or a made tree in tests.
            clock: tells seconds.
            binding: gives ``pynvml``, or what stands for it.
        """
        self._root = root
        self._binding = binding
        self._clock = clock
        self._cards: dict[str, _Card] = {}
        self._driver = ""
        self._is_open = False
        self._failed_at: float | None = None
        self._failure = TelemetryError(tr("NVML was not opened."))

    def open(self) -> None:
        """Load the library and list the cards.

        Raises:
            TelemetryError: no library, no driver, or the two do not match.
        """
        sleeper = pci.sleeping(self._root, _PCI_VENDOR)
        if sleeper:
            message = tr("The GPU at {sleeper} is asleep and is not woken to be measured.").format(
                sleeper=sleeper
            )
            raise TelemetryError(message)
        nvml = self._binding()
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            message = tr("NVIDIA devices cannot be read: {reason}.").format(reason=_reason(error))
            raise TelemetryError(message) from error
        try:
            self._driver = printable(str(nvml.nvmlSystemGetDriverVersion()), 32)
            listed = [_card(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError as error:
            nvml.nvmlShutdown()
            message = tr("NVIDIA devices cannot be listed: {reason}.").format(reason=_reason(error))
            raise TelemetryError(message) from error
        gone = tr("the driver no longer lists this GPU")
        before = {u: replace(c, handle=None, fault=gone) for u, c in self._cards.items()}
        self._cards = before | {card.uuid: card for card in listed}
        self._is_open = True

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading per card, in the driver's order.

        Raises:
            TelemetryError: the driver is gone and no card was ever seen.
        """
        if not self._is_open and not self._reopened():
            if not self._cards:
                raise self._failure
            reason = self._failure.message.rpartition(": ")[2].rstrip(".")
            return tuple(self._missing(card, reason) for card in self._cards.values())
        nvml = self._binding()
        readings = tuple(self._read(nvml, card) for card in self._cards.values())
        if readings and all(r.note == tr(_REASONS[1]) for r in readings):
            self._is_open = False
        return readings

    def close(self) -> None:
        """Let go of the driver."""
        if self._is_open:
            self._is_open = False
            nvml = self._binding()
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                return  # it went before us

    def _reopened(self) -> bool:
        """Open again, at most every 30 s; stale handles are replaced by UUID."""
        now = self._clock()
        if self._failed_at is not None and now - self._failed_at < _RETRY_S:
            return False
        try:
            self.open()
        except TelemetryError as error:
            self._failed_at, self._failure = now, error
            return False
        self._failed_at = None
        return True

    def _read(self, nvml: Any, card: _Card) -> DeviceReading:
        if card.handle is None:
            return self._missing(card, card.fault)
        try:
            total, used, free, reserved = _memory(nvml, card)
        except nvml.NVMLError as error:
            if error.value == 3 and _UNIFIED.search(card.name):
                return self._shared(nvml, card)
            return self._missing(card, _reason(error))
        if total == 0:
            return self._missing(card, tr("the driver states a total of 0"))
        return self._reading(
            card,
            pool=PoolKind.VRAM,
            total_bytes=total,
            used_bytes=used,
            free_bytes=free,
            reserved_bytes=reserved,
            processes=_processes(nvml, card),
        )

    def _shared(self, nvml: Any, card: _Card) -> DeviceReading:
        """A part without memory of its own: the system's figures, the driver's process list."""
        import psutil

        memory = psutil.virtual_memory()
        return self._reading(
            card,
            pool=PoolKind.UNIFIED,
            total_bytes=memory.total,
            used_bytes=memory.total - memory.available,
            free_bytes=memory.available,
            reserved_bytes=0,
            processes=_processes(nvml, card),
            note=tr("This GPU shares the computer's memory; its driver has no figure of its own."),
        )

    def _missing(self, card: _Card, reason: str) -> DeviceReading:
        gone = Missing(reason)
        return self._reading(
            card,
            pool=PoolKind.UNIFIED if _UNIFIED.search(card.name) else PoolKind.VRAM,
            total_bytes=gone,
            used_bytes=gone,
            free_bytes=gone,
            reserved_bytes=gone,
            processes=gone,
            note=reason,
        )

    def _reading(self, card: _Card, **fields: Any) -> DeviceReading:
        return DeviceReading(
            uuid=card.uuid,
            name=card.name,
            source=f"NVML {self._driver}",
            sm_count=card.sm_count,
            compute_capability=card.compute_capability,
            **fields,
        )


def _reason(error: Any) -> str:
    known = _REASONS.get(error.value)
    said = printable(str(error), 80)
    return tr(known) if known else tr("the driver answered: {error}").format(error=said)


def _card(nvml: Any, index: int) -> _Card:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        return _Card(f"gpu{index}", f"NVIDIA GPU {index}", 0, 0.0, None, _reason(error))
    major, minor = _optional(nvml, lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle), (0, 0))
    cores = _optional(nvml, lambda: nvml.nvmlDeviceGetNumGpuCores(handle), 0)
    per_sm = _CORES_PER_SM_A100 if (major, minor) == (8, 0) else _CORES_PER_SM.get(major, 0)
    return _Card(
        uuid=printable(str(_optional(nvml, lambda: nvml.nvmlDeviceGetUUID(handle), f"gpu{index}"))),
        name=printable(str(_optional(nvml, lambda: nvml.nvmlDeviceGetName(handle), "NVIDIA GPU"))),
        sm_count=cores // per_sm if per_sm else 0,
        compute_capability=major + minor / 10,
        handle=handle,
    )


def _optional(nvml: Any, ask: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return ask()
    except nvml.NVMLError:
        return otherwise


def _memory(nvml: Any, card: _Card) -> tuple[int, int, int, int | Missing]:
    """Total, used, free and reserved.

    Version 2 tells the reserve apart; whether its ``used`` contains the reserve differs between
    driver manuals and real output, so used = total - free - reserved. Version 1 counts it as used.
    """
    try:
        info = nvml.nvmlDeviceGetMemoryInfo(card.handle, version=nvml.nvmlMemory_v2)
    except nvml.NVMLError as error:
        if error.value in {15, 16, *_DRIVER_GONE}:
            raise
        info = nvml.nvmlDeviceGetMemoryInfo(card.handle)
        reserved = Missing(tr("this driver counts its reserve as used"))
        return info.total, info.total - info.free, info.free, reserved
    return info.total, info.total - info.free - info.reserved, info.free, info.reserved


def _processes(nvml: Any, card: _Card) -> tuple[ProcessReading, ...] | Missing:
    """Compute, graphics and MPS processes, one row per PID.

    A PID may stand in several lists with the same bytes: the largest counts, not the sum.
    """
    held: dict[int, int | None] = {}
    refusal, answered = "", False
    for kind in ("Compute", "Graphics", "MPSCompute"):
        ask = getattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses_v3")
        try:
            rows = ask(card.handle)
        except nvml.NVMLError as error:
            refusal = refusal or _reason(error)
            continue
        answered = True
        for row in rows:
            known = held.get(row.pid)
            used = row.usedGpuMemory
            held[row.pid] = used if known is None else max(known, used or 0)
    if not answered:
        return Missing(refusal)
    readings = (_process(pid, used) for pid, used in held.items())
    return tuple(sorted(readings, key=_order))


def _order(process: ProcessReading) -> tuple[int, int]:
    used = process.used_bytes
    return (0 if isinstance(used, Missing) else -used, process.pid)


def _process(pid: int, used: int | None) -> ProcessReading:
    import psutil

    name, command = tr("outside this container"), ""
    try:
        process = psutil.Process(pid)
        name = printable(process.name(), 64)
        command = commands.shown(process.cmdline())
    except psutil.NoSuchProcess:
        pass
    except psutil.Error:
        name = name if not psutil.pid_exists(pid) else tr("another user's process")
    missing = Missing(tr("the driver doesn't say how much this process holds"))
    reading = ProcessReading(pid=pid, name=name, used_bytes=missing, command=command)
    return reading if used is None else replace(reading, used_bytes=used)
