"""Jetson modules whose system has no NVML: the memory is the system's, the driver's is NvMap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.telemetry.adapters import meminfo
from engine.telemetry.adapters.cgroup import text_of
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, ProcessReading
from engine.text import printable
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from pathlib import Path

_CLIENTS = "sys/kernel/debug/nvmap/iovmm/clients"
_NOT_ROOT = tr_later("only root may read what each process holds on this system")
_NOTE = tr_later("This GPU shares the computer's memory.")
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


def reading(root: Path) -> DeviceReading | None:
    """The module's memory now; None on any other computer.

    Args:
        root: ``/``, or a made tree in tests.
    """
    model = text_of(root / "proc/device-tree/model").strip("\0\n ")
    memory = meminfo.read(root)
    if "Jetson" not in model or memory is None:
        return None
    return DeviceReading(
        uuid="jetson",
        name=printable(model, 120),
        pool=PoolKind.UNIFIED,
        total_bytes=memory.total_bytes,
        used_bytes=memory.total_bytes - memory.available_bytes,
        free_bytes=memory.available_bytes,
        reserved_bytes=0,
        available_bytes=memory.available_bytes,
        processes=_clients(text_of(root / _CLIENTS)),
        source="/proc/meminfo, NvMap",
        note=tr(_NOTE),
        vendor="NVIDIA",
    )


def _clients(text: str) -> tuple[ProcessReading, ...] | Missing:
    """Rows ``user python3 1234 123456K``; these bytes are in no process's resident size."""
    if not text:
        return Missing(tr(_NOT_ROOT))
    held: dict[int, ProcessReading] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 4 or not words[2].isdecimal() or not words[3][:-1].isdigit():
            continue
        size = int(words[3][:-1]) * _UNITS.get(words[3][-1], 0)
        pid = int(words[2])
        before = held[pid].used_bytes if pid in held else 0
        if isinstance(before, int) and size:
            held[pid] = ProcessReading(pid, printable(words[1], 64), before + size)
    return tuple(held.values())
