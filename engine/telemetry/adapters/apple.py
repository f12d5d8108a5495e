"""Apple silicon: one memory, of which Metal lets the GPU use a part.

``sysctl`` tells the size and a limit that the user raised, ``vm_stat`` what the system holds,
``ioreg`` what the GPU holds on the whole machine. Nothing fails above the limit: it swaps.
"""

from __future__ import annotations

import ctypes
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from engine.telemetry import commands
from engine.telemetry.adapters import macos
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    Part,
    PoolKind,
    Pressure,
    ProcessReading,
    Quality,
)
from engine.text import printable
from engine.units import MIB, format_gib
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UUID = "apple-gpu"
_GPU_EVERY_S = 2.0
"""``ioreg`` prints 46 KB and is called very costly (scalene's source)."""
_IOREG: Final = ("/usr/sbin/ioreg", "-r", "-w", "0")
GPU: Final = (*_IOREG, "-d", "1", "-c", "IOAccelerator", "-k", "PerformanceStatistics")
CLIENTS: Final = (*_IOREG, "-c", "AGXDeviceUserClient")

_STATISTIC = re.compile(r'"(In use system memory|Alloc system memory)"=(\d{1,18})')
_CREATOR = re.compile(r'"IOUserClientCreator" = "pid (\d{1,9}), ([^"]*)"')
_LARGEST_BYTES: Final = 2**50
_SWAP = re.compile(r"used = (\d+(?:[.,]\d+)?)([KMG])")
_SCALES = {"K": 2**10, "M": 2**20, "G": 2**30}

_NO_METAL = tr_later("Metal does not answer, and no limit was set by hand")
_OVER_FULL = tr_later("more is counted as used than there is")
_NO_COUNTER = tr_later("ioreg states nothing of this GPU")
_NOT_OURS = tr_later("macOS tells a process's footprint to its own user alone")
_IN_USE = tr_later("GPU, in memory now")
_ALLOCATED = tr_later("GPU, allocated")
_RAISED = tr_later("The limit of {limit} was set by the user (iogpu.wired_limit_mb).")
_PRESSURE = {
    "2": tr_later("macOS reports memory pressure; {swap} are swapped out."),
    "4": tr_later("macOS reports critical memory pressure; {swap} are swapped out."),
}
_LEVELS = {"1": Pressure.NONE, "2": Pressure.SOME, "4": Pressure.CRITICAL}


@dataclass(frozen=True, slots=True)
class Sources:
    """What is asked for figures; replaced in tests by recorded answers."""

    run: Callable[[tuple[str, ...]], str]
    """Runs a command and gives what it printed, or nothing."""
    working_set: Callable[[], int | None]
    """Metal's ``recommendedMaxWorkingSetSize`` in bytes."""
    footprint: Callable[[int], int | None]
    """A process's physical footprint in bytes, if it may be read."""
    command_of: Callable[[int], tuple[str, ...]]
    """A process's command line."""


class AppleAdapter:
    """The GPU of an Apple chip, on the axis of the whole memory."""

    name = "Apple"
    every_s = 1.0
    """Each answer starts two commands."""

    def __init__(
        self, sources: Sources | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nothing is asked before the first sample.

        Args:
            sources: what is asked; the system where there is none.
            clock: tells seconds.
        """
        self._sources = sources or system()
        self._clock = clock
        self._gpu_at: float | None = None
        self._gpu: tuple[str, tuple[ProcessReading, ...]] = ("", ())
        self._metal_bytes: int | None = None

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading; none where ``sysctl`` states no memory."""
        stated = macos.pairs(self._sources.run(macos.SYSCTL))
        memory = macos.system_memory(stated.get("hw.memsize", ""), self._sources.run(macos.VM_STAT))
        chip = stated.get("machdep.cpu.brand_string", "")
        if memory is None or chip.startswith("Intel"):
            return ()  # a Mac of before has a card, or graphics without a limit of their own
        self._look_at_gpu()
        wired_mib = stated.get("iogpu.wired_limit_mb", "")
        raised = int(wired_mib) * MIB if wired_mib.isdecimal() else 0
        wanted = raised or self._metal_bytes
        ceiling = wanted and min(wanted, memory.total_bytes)
        note = tr(_RAISED).format(limit=format_gib(ceiling)) if raised and ceiling else ""
        level = stated.get("kern.memorystatus_vm_pressure_level", "")
        now = reading(
            printable(chip or "Apple GPU", 64),
            memory,
            ceiling,
            self._gpu,
            " ".join(filter(None, (note, pressure(stated)))),
            self._clock() - (self._gpu_at or 0.0),
        )
        return (replace(now, pressure=_LEVELS.get(level, Pressure.UNKNOWN)),)

    def close(self) -> None:
        """Nothing is held."""

    def _look_at_gpu(self) -> None:
        now = self._clock()
        if self._gpu_at is not None and now - self._gpu_at < _GPU_EVERY_S:
            return
        if self._gpu_at is None:
            self._metal_bytes = self._sources.working_set()
        clients = clients_of(self._sources.run(CLIENTS))
        held = tuple(_processes(clients, self._sources))
        self._gpu, self._gpu_at = (self._sources.run(GPU), held), now


def reading(
    name: str,
    memory: macos.SystemMemory,
    ceiling: int | None,
    gpu: tuple[str, tuple[ProcessReading, ...]],
    note: str,
    age_s: float,
) -> DeviceReading:
    """The GPU's share of the memory: what it holds, what it may still have, what macOS keeps."""
    statistics = statistics_of(gpu[0])
    in_use = statistics.get("In use system memory")
    allocated = statistics.get("Alloc system memory")
    used = Missing(_NO_COUNTER) if in_use is None else in_use
    limit = Missing(_NO_METAL) if ceiling is None else ceiling
    free, kept = _left(memory.total_bytes, in_use, ceiling)
    room = memory.available
    return DeviceReading(
        uuid=UUID,
        name=name,
        vendor="Apple",
        pool=PoolKind.WIRED,
        total_bytes=memory.total_bytes,
        used_bytes=used,
        free_bytes=free,
        reserved_bytes=kept,
        ceiling_bytes=limit,
        available_bytes=free if isinstance(free, Missing) else min(free, room),
        parts=(
            Part(_IN_USE, limit, used),
            Part(_ALLOCATED, limit, Missing(_NO_COUNTER) if allocated is None else allocated),
        ),
        processes=gpu[1],
        source="Metal and ioreg",
        note=note,
        age_s=age_s,
    )


def _left(
    total: int, in_use: int | None, ceiling: int | None
) -> tuple[int | Missing, int | Missing]:
    """What the GPU may still have, and what lies above its limit."""
    if in_use is None or ceiling is None:
        unknown = Missing(_NO_COUNTER if in_use is None else _NO_METAL)
        return unknown, unknown
    if in_use > total:
        return Missing(_OVER_FULL), Missing(_OVER_FULL)
    free = max(ceiling - in_use, 0)
    return free, total - in_use - free


def system() -> Sources:
    """This computer."""
    return Sources(macos.run, working_set, footprint, _command_of)


def statistics_of(listed: str) -> dict[str, int]:
    """What the GPU holds of the memory in bytes, by the driver's names."""
    found = {key: int(size) for key, size in _STATISTIC.findall(listed)}
    return {key: size for key, size in found.items() if size < _LARGEST_BYTES}


def clients_of(listed: str) -> dict[int, str]:
    """The processes that use the GPU, by number with their names."""
    return {int(pid): printable(name, 64) for pid, name in _CREATOR.findall(listed)}


def pressure(stated: dict[str, str]) -> str:
    """What hurts: macOS's own word on memory pressure, with what is swapped out; else nothing."""
    level = stated.get("kern.memorystatus_vm_pressure_level", "")
    words = _PRESSURE.get(level)
    swap = _SWAP.search(stated.get("vm.swapusage", ""))
    if words is None:
        return ""
    size = round(float(swap[1].replace(",", ".")) * _SCALES[swap[2]]) if swap else 0
    return tr(words).format(swap=format_gib(size))


def _processes(clients: dict[int, str], sources: Sources) -> Iterator[ProcessReading]:
    """GPU clients with their footprint; resident size would miss most of it (0.5 of 3.3 GB)."""
    for pid, name in clients.items():
        size = sources.footprint(pid)
        yield ProcessReading(
            pid=pid,
            name=name,
            used_bytes=Missing(_NOT_OURS) if size is None else size,
            command=commands.shown(sources.command_of(pid)),
            quality=Quality.NOT_REPORTED if size is None else Quality.RESIDENT,
        )


def working_set() -> int | None:
    """Metal's ``recommendedMaxWorkingSetSize`` in bytes; None off macOS.

    Through the Objective-C runtime alone: a bridge would cost megabytes for one number.
    """
    try:
        ctypes.CDLL("/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics")
        metal = ctypes.CDLL("/System/Library/Frameworks/Metal.framework/Metal")
        runtime = ctypes.CDLL("/usr/lib/libobjc.A.dylib")
        metal.MTLCreateSystemDefaultDevice.restype = ctypes.c_void_p
        runtime.sel_registerName.restype = ctypes.c_void_p
        runtime.sel_registerName.argtypes = [ctypes.c_char_p]
        send = runtime.objc_msgSend
        send.restype, send.argtypes = ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_void_p]
        device = metal.MTLCreateSystemDefaultDevice()
        if not device:
            return None
        return send(device, runtime.sel_registerName(b"recommendedMaxWorkingSetSize")) or None
    except (OSError, AttributeError):
        return None


_RUSAGE_INFO_V4: Final = 4
_FOOTPRINT_AT: Final = 9
"""``ri_phys_footprint`` in ``rusage_info_v4`` (sys/resource.h): after a 16-byte identifier, the
eighth of its 64-bit fields."""
_RUSAGE_WORDS: Final = 64
"""More than ``rusage_info_v4`` has (37)."""


def footprint(pid: int) -> int | None:
    """A process's physical footprint in bytes, as Activity Monitor shows; None if not ours."""
    try:
        call = ctypes.CDLL("/usr/lib/libproc.dylib").proc_pid_rusage
    except (OSError, AttributeError):
        return None
    words = (ctypes.c_uint64 * _RUSAGE_WORDS)()
    if call(ctypes.c_int(pid), ctypes.c_int(_RUSAGE_INFO_V4), ctypes.byref(words)):
        return None
    return int(words[_FOOTPRINT_AT])


def _command_of(pid: int) -> tuple[str, ...]:
    import psutil

    try:
        return tuple(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ()
