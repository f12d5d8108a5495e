"""``/proc/meminfo``: one short read, and the only truth where a GPU shares the system's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.telemetry.adapters.cgroup import text_of

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Meminfo:
    """The system's memory in bytes; what a kernel doesn't tell is 0."""

    total_bytes: int
    available_bytes: int
    free_bytes: int
    """Without file cache: what CUDA calls free on parts that share the memory."""
    huge_total_bytes: int = 0
    """Set aside for huge pages: in nobody's resident size, and not available."""
    huge_free_bytes: int = 0
    swap_total_bytes: int = 0
    swap_free_bytes: int = 0


def read(root: Path) -> Meminfo | None:
    """The figures now; None where there is no such file.

    Args:
        root: ``/``, or a made tree in tests.
    """
    return parsed(text_of(root / "proc/meminfo"))


def parsed(text: str) -> Meminfo | None:
    """The figures of the file's text; None without a total and what is available of it."""
    numbers: dict[str, int] = {}
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdecimal():
            numbers[key] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    if not numbers.get("MemTotal") or "MemAvailable" not in numbers:
        return None
    page = numbers.get("Hugepagesize", 0)
    return Meminfo(
        total_bytes=numbers["MemTotal"],
        available_bytes=min(numbers["MemAvailable"], numbers["MemTotal"]),
        free_bytes=numbers.get("MemFree", 0),
        huge_total_bytes=numbers.get("HugePages_Total", 0) * page,
        huge_free_bytes=numbers.get("HugePages_Free", 0) * page,
        swap_total_bytes=numbers.get("SwapTotal", 0),
        swap_free_bytes=numbers.get("SwapFree", 0),
    )
