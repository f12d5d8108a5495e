"""What Linux tells of its memory beyond used and free: nodes, huge pages, swap, ZFS, pressure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.telemetry.adapters import cgroup, meminfo
from engine.telemetry.snapshot import Part, Pressure
from engine.units import MIB, format_gib
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_STALLED = re.compile(r"^(some|full) avg10=(\d+(?:\.\d+)?)", re.MULTILINE)
_SOME_PERCENT = 10.0
_FULL_PERCENT = 5.0
"""Share of the last 10 s in which all programs waited for memory at once."""
_NODE_LINE = re.compile(r"^Node \d+ ([\w()]+):\s+(\d+)", re.MULTILINE)
_SMALLEST_SAID_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True)
class Details:
    """Sizes in bytes; 0 where there is none."""

    nodes: tuple[Part, ...] = ()
    """Each NUMA node, where there are several."""
    huge_bytes: int = 0
    """Set aside for huge pages: nobody else can have it, used or not."""
    huge_free_bytes: int = 0
    swapped_bytes: int = 0
    giving_back_bytes: int = 0
    """What ZFS's cache gives back on demand, and which the system counts as used."""
    pressure: Pressure = Pressure.UNKNOWN

    @property
    def note(self) -> str:
        """What of it a reader should know now."""
        said = (
            (self.huge_bytes, tr("{size} are set aside for huge pages.")),
            (self.swapped_bytes, tr("{size} are swapped out.")),
            (
                self.giving_back_bytes,
                tr("{size} of ZFS's cache count as free: it gives them back."),
            ),
        )
        words = [w.format(size=format_gib(s)) for s, w in said if s >= _SMALLEST_SAID_BYTES]
        if self.pressure is Pressure.SOME:
            words.append(tr("Programs wait for memory."))
        if self.pressure is Pressure.CRITICAL:
            words.append(tr("Programs stand still for want of memory."))
        return " ".join(words)


def read(root: Path, text: Callable[[Path], str] = cgroup.text_of) -> Details:
    """The details now.

    Args:
        root: ``/``, or a made tree in tests.
        text: reads a file.
    """
    memory = meminfo.parsed(text(root / "proc/meminfo"))
    return Details(
        nodes=_nodes(root, text),
        huge_bytes=memory.huge_total_bytes if memory else 0,
        huge_free_bytes=memory.huge_free_bytes if memory else 0,
        swapped_bytes=memory.swap_total_bytes - memory.swap_free_bytes if memory else 0,
        giving_back_bytes=_zfs(text(root / "proc/spl/kstat/zfs/arcstats")),
        pressure=_pressure(text(root / "proc/pressure/memory")),
    )


def _nodes(root: Path, text: Callable[[Path], str]) -> tuple[Part, ...]:
    folders = sorted(
        (root / "sys/devices/system/node").glob("node[0-9]*"), key=lambda p: int(p.name[4:])
    )
    if len(folders) < 2:
        return ()
    found: list[Part] = []
    for folder in folders:
        sizes = {k: int(v) * 1024 for k, v in _NODE_LINE.findall(text(folder / "meminfo"))}
        total = sizes.get("MemTotal", 0)
        cached = sizes.get("FilePages", 0) - sizes.get("Shmem", 0) + sizes.get("SReclaimable", 0)
        used = total - sizes.get("MemFree", 0) - max(cached, 0)
        if total:  # a node may have processors alone
            found.append(Part(f"NUMA {folder.name[4:]}", total, max(used, 0)))
    return tuple(found)


def _zfs(stats: str) -> int:
    """Size of the cache above the least that it keeps."""
    rows = {row[0]: row[2] for row in map(str.split, stats.splitlines()) if len(row) == 3}
    size, least = rows.get("size", ""), rows.get("c_min", "")
    return max(int(size) - int(least), 0) if size.isdecimal() and least.isdigit() else 0


def _pressure(text: str) -> Pressure:
    """How much programs wait for memory (pressure stall information)."""
    waiting = {kind: float(percent) for kind, percent in _STALLED.findall(text)}
    if not waiting:
        return Pressure.UNKNOWN
    if waiting.get("full", 0.0) >= _FULL_PERCENT:
        return Pressure.CRITICAL
    return Pressure.SOME if waiting.get("some", 0.0) >= _SOME_PERCENT else Pressure.NONE
