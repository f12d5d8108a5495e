"""A container's memory limit and use, from the cgroup files of either version.

The limit of the innermost finite group holds, not the machine's RAM: ``MemTotal`` inside a
container is the host's. File cache is charged to a group but is given up under pressure, so
``limit - usage`` understates what can be had (ollama issues 15474 and 15704).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NO_LIMIT = 2**62
"""Version 1 writes 2^63 rounded down to a page for "none"."""


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """The tightest limit on the way up, and what its group uses without file cache."""

    limit_bytes: int
    used_bytes: int
    left_bytes: int | None = None
    """What groups further out leave, where that is less than this limit does."""


def text_of(path: Path) -> str:
    """What a file says; empty where it can't be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def read(root: Path, text: Callable[[Path], str] = text_of) -> GroupMemory | None:
    """Limit and use of the group this process is in; None where nothing limits it.

    Args:
        root: ``/``, or a made tree in tests.
        text: reads a file.
    """
    tightest: GroupMemory | None = None
    left: list[int] = []
    for folder, is_v2 in _folders(root, text):
        limit = _number(text(folder / ("memory.max" if is_v2 else "memory.limit_in_bytes")))
        if limit is None or limit >= _NO_LIMIT:
            continue
        used = _used(folder, text, is_v2=is_v2)
        if used is None:
            continue
        left.append(max(limit - used, 0))
        if tightest is None or limit < tightest.limit_bytes:
            tightest = GroupMemory(limit, used)
    if tightest is None or min(left) >= tightest.limit_bytes - tightest.used_bytes:
        return tightest
    return replace(tightest, left_bytes=min(left))


def _folders(root: Path, text: Callable[[Path], str]) -> Iterator[tuple[Path, bool]]:
    """Memory group folders of this process, innermost first, each with whether it is version 2."""
    for line in text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        is_v2 = number == "0" and not controllers
        if not is_v2 and "memory" not in controllers.split(","):
            continue
        top = root / ("sys/fs/cgroup" if is_v2 else "sys/fs/cgroup/memory")
        parts = [p for p in group.split("/") if p not in {"", ".."}]
        for depth in range(len(parts), -1, -1):
            yield top.joinpath(*parts[:depth]), is_v2


def _used(folder: Path, text: Callable[[Path], str], *, is_v2: bool) -> int | None:
    current = _number(text(folder / ("memory.current" if is_v2 else "memory.usage_in_bytes")))
    if current is None:
        return None
    prefix = "" if is_v2 else "total_"
    wanted = {f"{prefix}inactive_file", f"{prefix}active_file"}
    cached = 0
    for line in text(folder / "memory.stat").splitlines():
        key, _, value = line.partition(" ")
        if key in wanted and value.isdecimal():
            cached += int(value)
    return max(current - cached, 0)


def _number(text: str) -> int | None:
    digits = text.strip()
    return int(digits) if digits.isdecimal() else None
