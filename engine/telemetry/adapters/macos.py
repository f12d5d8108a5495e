"""macOS's own figures for the computer's memory, from what its commands print."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import Final

_LIMIT_S = 2.0
SYSCTL: Final = (
    "/usr/sbin/sysctl",
    "hw.memsize",
    "machdep.cpu.brand_string",
    "iogpu.wired_limit_mb",
    "kern.memorystatus_vm_pressure_level",
    "vm.swapusage",
)
VM_STAT: Final = ("/usr/bin/vm_stat",)
_PAGES = re.compile(r'^"?([A-Za-z][A-Za-z -]*?)"?:\s+(\d{1,15})\.?$', re.MULTILINE)
_LARGEST_BYTES: Final = 2**50
_PAGE_SIZE = re.compile(r"page size of (\d{4,6}) bytes")


@dataclass(frozen=True, slots=True)
class SystemMemory:
    """The computer's memory as Activity Monitor counts it."""

    total_bytes: int
    used_bytes: int
    """Apps, wired and compressed."""
    cached_bytes: int
    """Files kept until somebody needs the room; not in ``used``."""

    @property
    def total(self) -> int:
        """All of it, under psutil's name."""
        return self.total_bytes

    @property
    def available(self) -> int:
        """What can be had without swapping, under psutil's name."""
        return max(self.total_bytes - self.used_bytes, 0)


def host_memory() -> SystemMemory | None:
    """The computer's memory as the system counts it now."""
    stated = pairs(run(SYSCTL))
    return system_memory(stated.get("hw.memsize", ""), run(VM_STAT))


def system_memory(memsize: str, vm_stat: str) -> SystemMemory | None:
    """What the system holds: app memory (anonymous − purgeable), wired, compressor.

    psutil's ``used`` and ``available`` are other sums, which is why tools disagree with Activity
    Monitor (btop issues 834 and 845, asitop 77).

    Args:
        memsize: ``sysctl hw.memsize``, in bytes.
        vm_stat: what ``vm_stat`` prints; its first line has the page size.
    """
    page = _PAGE_SIZE.search(vm_stat)
    pages = {name.lower(): int(count) for name, count in _PAGES.findall(vm_stat)}
    total = int(memsize) if memsize.isdecimal() else 0
    if not 0 < total < _LARGEST_BYTES or page is None or "anonymous pages" not in pages:
        return None
    size = int(page[1])
    used = (
        pages["anonymous pages"]
        - pages.get("pages purgeable", 0)
        + pages.get("pages wired down", 0)
        + pages.get("pages occupied by compressor", 0)
    )
    cached = pages.get("file-backed pages", 0) + pages.get("pages purgeable", 0)
    return SystemMemory(total, max(used, 0) * size, cached * size)


def pairs(listed: str) -> dict[str, str]:
    """The lines ``key: value`` of ``sysctl``."""
    split = (line.partition(":") for line in listed.splitlines())
    return {key.strip(): value.strip() for key, _, value in split}


def run(command: tuple[str, ...]) -> str:
    """What a command prints; empty where it fails or takes longer than 2 s."""
    try:
        done = subprocess.run(  # noqa: S603 - our own words, no shell
            command, capture_output=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", errors="replace")
