"""Graphics cards and their users from the kernel's DRM files: no library, no special right.

Cards are ``/sys/class/drm/card*``; what a process holds stands in ``/proc/<pid>/fdinfo`` of every
file that it opened on a card (kernel documentation, gpu/drm-usage-stats). Another user's processes
can't be read there without ``CAP_SYS_PTRACE``.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.telemetry.adapters import host, meminfo
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind
from engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.telemetry.snapshot import ProcessReading

_CARD = re.compile(r"card\d+")
_REGION = re.compile(r"drm-(resident|memory|shared)-([a-z_-]+)\d*")
_UNITS = {"": 1, "kB": 2**10, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_BEFORE_THE_STANDARD = {
    "pdev": "drm-pdev",
    "pasid": "drm-client-id",
    "vram mem": "drm-memory-vram",
    "gtt mem": "drm-memory-gtt",
    "cpu mem": "drm-memory-cpu",
}
"""What amdgpu wrote before the keys were agreed on (kernels 5.14 to 5.18)."""
_LONGEST_FILE = 64 * 1024
_LARGEST_BYTES = 2**50
"""Above it is a number that stands for "unknown", as 2^64 − 1."""


@dataclass(frozen=True, slots=True)
class Card:
    """One card as sysfs lists it."""

    address: str
    """Its place on the bus, ``0000:03:00.0``: the same in every tool, unlike an index."""
    device_id: str
    """``0x744c``"""
    driver: str
    """``amdgpu``, ``xe``, ``i915``; empty where no driver is bound."""
    folder: Path
    """``/sys/class/drm/card0/device``"""
    drives_display: bool
    is_asleep: bool
    """In runtime suspend: anything but sysfs would wake it."""
    may_sleep: bool = False
    """Whether the system puts it to sleep when nobody uses it."""
    name: str = ""
    """As its maker's library calls it, where that alone knows it."""


@dataclass(slots=True)
class Holding:
    """What one process holds on one card."""

    pid: int
    name: str
    command: str
    regions: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Resident bytes by kind of memory: ``vram``, ``gtt``, ``local``, ``system``."""
    is_shared: bool = False
    """Some of it is shared with other processes, and counted for each."""


def cards(root: Path, vendor: str) -> Iterator[Card]:
    """The cards of a maker, by their place on the bus.

    Args:
        root: ``/``, or a made tree in tests.
        vendor: as sysfs writes it, ``0x1002``.
    """
    found: dict[str, Card] = {}
    for card in sorted((root / "sys/class/drm").glob("card*")):
        folder = card / "device"
        if not _CARD.fullmatch(card.name) or text(folder / "vendor") != vendor:
            continue
        stated = dict(
            line.split("=", 1) for line in text(folder / "uevent").splitlines() if "=" in line
        )
        address = stated.get("PCI_SLOT_NAME") or folder.resolve().name
        displays = (card.parent).glob(f"{card.name}-*/status")
        found[address] = Card(
            address=printable(address, 32),
            device_id=text(folder / "device"),
            driver=stated.get("DRIVER", ""),
            folder=folder,
            drives_display=any(text(status) == "connected" for status in displays),
            is_asleep=text(folder / "power/runtime_status") in {"suspended", "suspending"},
            may_sleep=text(folder / "power/control") == "auto",
        )
    for address in sorted(found):
        yield found[address]


def holdings(root: Path) -> dict[str, dict[int, Holding]]:
    """Who holds what, by card and process.

    One client may be open under several numbers and be inherited by child processes: it counts
    once, for the process that comes first. A driver that numbers no clients is taken at its word.
    """
    held: dict[str, dict[int, Holding]] = {}
    seen: set[tuple[str, str]] = set()
    for folder in sorted((root / "proc").glob("[0-9]*"), key=lambda f: int(f.name)):
        for number, stated in open_files(folder):
            address = stated.get("drm-pdev", "")
            client = stated.get("drm-client-id") or f"{folder.name}/{number}"
            if not address or (address, client) in seen:
                continue
            seen.add((address, client))
            rows = held.setdefault(address, {})
            pid = int(folder.name)
            if pid not in rows:
                rows[pid] = holder(root, pid)
            _add(rows[pid], stated)
    return held


def open_files(process: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Number of each file that a process has open on a card, and what the kernel says of it."""
    try:
        names = [file.name for file in (process / "fd").iterdir()]
    except OSError:
        return  # it ended, or it is another user's
    for name in sorted(names, key=lambda n: (len(n), n)):
        try:
            target = os.readlink(process / "fd" / name)  # noqa: PTH115 - a Path costs more
        except OSError:
            continue
        if target.startswith("/dev/dri/"):
            lines = text(process / "fdinfo" / name).splitlines()
            pairs = (line.partition(":") for line in lines)
            stated = {key.strip(): value.strip() for key, _, value in pairs}
            if "drm-pdev" not in stated:
                stated = {_BEFORE_THE_STANDARD.get(k, k): v for k, v in stated.items()}
            yield name, stated


def holder(root: Path, pid: int) -> Holding:
    """The process ``pid`` with nothing held yet."""
    folder = root / "proc" / str(pid)
    return Holding(pid, printable(text(folder / "comm"), 64), host.command_of(folder))


def silent(
    card: Card, name: str, vendor: str, source: str, reason: str, pool: PoolKind = PoolKind.VRAM
) -> DeviceReading:
    """The reading of a card that says nothing, because of ``reason``."""
    gone = Missing(reason)
    return DeviceReading(
        uuid=f"pci-{card.address}",
        name=name,
        vendor=vendor,
        pool=pool,
        total_bytes=gone,
        used_bytes=gone,
        free_bytes=gone,
        reserved_bytes=gone,
        processes=gone,
        source=source,
        note=reason,
        pci_address=card.address,
    )


def largest(row: ProcessReading) -> tuple[int, int]:
    """Orders processes by what they hold, the most first."""
    used = row.used_bytes
    return (0 if isinstance(used, Missing) else -used, row.pid)


def system_memory(root: Path) -> tuple[int, int] | None:
    """Total and available bytes of the computer's memory; None where they can't be read."""
    memory = meminfo.read(root)
    return None if memory is None else (memory.total_bytes, memory.available_bytes)


def text(path: Path) -> str:
    """What a small file says; empty where it can't be read."""
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(_LONGEST_FILE).strip()
    except OSError:
        return ""


def number(path: Path) -> int | None:
    """The whole number in a file; None where there is none, or one that means "unknown"."""
    digits = text(path)
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 20
    return int(digits) if is_number and int(digits) < _LARGEST_BYTES else None


def _add(holding: Holding, stated: dict[str, str]) -> None:
    """Add one client's memory: what is resident, else what the older key says."""
    sizes: dict[str, dict[str, int]] = {"resident": {}, "memory": {}, "shared": {}}
    for key, value in stated.items():
        found = _REGION.fullmatch(key)
        size = _bytes(value) if found else None
        if found is None or size is None or "visible" in found[2]:
            continue  # visible memory is a part of the rest
        kind = sizes[found[1]]
        kind[found[2]] = kind.get(found[2], 0) + size
    for region, size in {**sizes["memory"], **sizes["resident"]}.items():
        holding.regions[region] += size
    holding.is_shared = holding.is_shared or any(sizes["shared"].values())


def _bytes(value: str) -> int | None:
    digits, _, unit = value.partition(" ")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return None
    size = int(digits) * _UNITS.get(unit.strip(), _LARGEST_BYTES)
    return size if size < _LARGEST_BYTES else None
