"""This computer's RAM and who holds it: psutil for the machine, ``/proc`` for its processes.

A process holds what must stay (anonymous and shared memory) and beside it the mapped files that
are resident (a GGUF opened with mmap), which the system may give up. No single figure tells the
two apart: resident, unique and proportional size all count the map (telemetry of 512 MiB mapped:
532, 525 and 526 MiB), so both are read from ``/proc/<pid>/status``.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from engine.telemetry import commands, mapped
from engine.telemetry.adapters import cgroup, host_details, macos, plausible
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, ProcessReading, Quality
from engine.text import printable
from engine.units import MIB, format_gib
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UUID = "host"
_ROWS = 48
_HELD_EVERY_S = 2.0
_COMMANDS_FOR_S = 10.0
"""A process may change its command line, and its number may be given to another."""
_SHARE_OF_A_CORE = 0.005
_SMALLEST_ROW_BYTES = 4 * MIB
_FIELDS = re.compile(r"(?m)^(Name|RssAnon|RssFile|RssShmem|VmLck|HugetlbPages):[ \t]*(.*)$")
_NO_FILE_SPLIT = Missing(tr_later("this system does not tell mapped files from other memory"))


class Memory(Protocol):
    """What ``psutil.virtual_memory`` answers, as far as it is used here."""

    total: int
    available: int


if TYPE_CHECKING:
    Figures = tuple[
        Memory, cgroup.GroupMemory | None, tuple[ProcessReading, ...], host_details.Details
    ]
    """What ``reading`` takes."""


class HostAdapter:
    """Reads host RAM; on Linux with the container's limit and a list of processes."""

    name = "host"
    every_s = 1.0 if sys.platform == "darwin" else 0.0
    """macOS is asked through two commands, Linux through files."""

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is read yet.

        Args:
            root: ``/``, or a made tree in tests.
            clock: tells seconds.
        """
        self._root = root
        self._clock = clock
        self._held: tuple[ProcessReading, ...] = ()
        self._next_at = 0.0
        self._commands: dict[tuple[int, str], str] = {}
        self._commands_at = 0.0

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading of the host."""
        return (reading(*self.figures_and_files()[0]),)

    def figures_and_files(
        self,
    ) -> tuple[Figures, dict[str, str]]:
        """What ``reading`` takes, and the texts of the files that say so, by path."""
        files: dict[str, str] = {}

        def text(path: Path) -> str:
            found = cgroup.text_of(path)
            if found:
                files[path.relative_to(self._root).as_posix()] = found
            return found

        memory = _virtual_memory()
        if sys.platform != "linux":
            return (memory, None, self._processes(), host_details.Details()), files
        group = cgroup.read(self._root, text)
        details = host_details.read(self._root, text)
        return (memory, group, self._processes(), details), files

    def close(self) -> None:
        """Nothing is held."""

    def _processes(self) -> tuple[ProcessReading, ...]:
        """All processes, gone through every other second, or as seldom as their number asks for."""
        now = self._clock()
        if now >= self._next_at:
            if now - self._commands_at >= _COMMANDS_FOR_S:
                self._commands, self._commands_at = {}, now
            began_s = time.thread_time()
            is_linux = sys.platform == "linux"
            self._held = tuple(
                processes(self._root / "proc", self._commands)
                if is_linux
                else _portable_processes()
            )
            took_s = time.thread_time() - began_s
            self._next_at = now + max(_HELD_EVERY_S, took_s / _SHARE_OF_A_CORE)
        return self._held


def reading(
    memory: Memory,
    group: cgroup.GroupMemory | None,
    held: tuple[ProcessReading, ...],
    details: host_details.Details | None = None,
) -> DeviceReading:
    """The host's memory from the machine's figures and the container's limit, if any.

    What no process holds (the kernel, its tables) is reserved, as a driver's own part is on a
    card: no program can have it. Mapped model files count as used (``telemetry.mapped``),
    whatever the system calls them.
    """
    details = details or host_details.Details()
    total = memory.total
    available = free = min(memory.available + details.giving_back_bytes, total)
    used, note = total - free, ""
    rows = plausible.marked(folded(held), used)
    reserved = max(used - sum(_size(p.used_bytes) for p in rows), 0) if rows else 0
    used -= reserved
    if group is not None and group.limit_bytes < total:
        note = tr("This container may use {limit_bytes} of the machine's {total}.").format(
            limit_bytes=format_gib(group.limit_bytes), total=format_gib(total)
        )
        total, used = group.limit_bytes, min(group.used_bytes, group.limit_bytes)
        left = total - used if group.left_bytes is None else group.left_bytes
        free = min(total - used, left, available)
        reserved = total - used - free
    models = min(mapped.model_bytes(rows), free)
    used, free = used + models, free - models
    return DeviceReading(
        uuid=UUID,
        name="Computer" if not note else "Container",
        pool=PoolKind.HOST,
        total_bytes=total,
        used_bytes=used,
        free_bytes=free,
        reserved_bytes=reserved,
        processes=rows,
        source=f"psutil {_psutil_version()}",
        note=" ".join(filter(None, (note, details.note))),
        parts=() if note else details.nodes,
        pressure=details.pressure,
    )


def processes(
    proc: Path, known: dict[tuple[int, str], str] | None = None
) -> Iterator[ProcessReading]:
    """Every process below ``proc`` that has memory of its own.

    Args:
        proc: ``/proc``, or a made tree in tests.
        known: command lines by number and name, to be read no second time; added to.
    """
    known = {} if known is None else known
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            status = (folder / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it ended between the listing and the reading
        fields = dict(_FIELDS.findall(status))
        if "RssAnon" not in fields:
            continue  # a kernel thread
        used, files = _kib(fields, "RssAnon") + _kib(fields, "RssShmem"), _kib(fields, "RssFile")
        # What is locked beyond memory that must stay anyway is mapped files (--mlock).
        locked = min(max(_kib(fields, "VmLck") - used, 0), files)
        # Huge pages are in no resident size.
        used, files = used + locked + _kib(fields, "HugetlbPages"), files - locked
        pid, name = int(folder.name), printable(fields.get("Name", ""), 64)
        command = ""
        if max(used, files) >= _SMALLEST_ROW_BYTES:
            if (pid, name) not in known:
                known[pid, name] = command_of(folder)
            command = known[pid, name]
        # Others may have the same shared memory mapped, and count it as theirs.
        is_shared = 2 * _kib(fields, "RssShmem") > max(used, _SMALLEST_ROW_BYTES)
        quality = Quality.RESIDENT if is_shared else Quality.EXACT
        yield ProcessReading(pid, name, used, command, files, quality)


def folded(held: tuple[ProcessReading, ...]) -> tuple[ProcessReading, ...]:
    """The largest processes; the rest as one row without a PID (0)."""
    ordered = sorted(held, key=lambda p: _size(p.used_bytes) + _size(p.file_bytes), reverse=True)
    rows = [
        p
        for p in ordered[:_ROWS]
        if _size(p.used_bytes) + _size(p.file_bytes) >= _SMALLEST_ROW_BYTES
    ]
    rest = ordered[len(rows) :]
    if rest:
        rows.append(
            ProcessReading(
                pid=0,
                name=tr("{rest} smaller processes").format(rest=len(rest))
                if len(rest) > 1
                else rest[0].name,
                used_bytes=sum(_size(p.used_bytes) for p in rest),
                file_bytes=sum(_size(p.file_bytes) for p in rest),
            )
        )
    return tuple(rows)


def _size(value: int | Missing) -> int:
    return 0 if isinstance(value, Missing) else value


def _kib(fields: dict[str, str], key: str) -> int:
    number = fields.get(key, "0").partition(" ")[0]
    return int(number) * 1024 if number.isdecimal() else 0


def command_of(folder: Path) -> str:
    """The command line of the process at ``/proc/<pid>``, fit to show; empty where hidden."""
    try:
        raw = (folder / "cmdline").read_bytes()[:8192]
    except OSError:
        return ""
    return commands.shown(raw.decode("utf-8", errors="replace").rstrip("\0").split("\0"))


def _virtual_memory() -> Memory:
    import psutil

    return (macos.host_memory() if sys.platform == "darwin" else None) or psutil.virtual_memory()


def _psutil_version() -> str:
    import psutil

    return psutil.__version__


def _portable_processes() -> Iterator[ProcessReading]:
    """Windows and macOS: private bytes where psutil has them, else resident size."""
    import psutil

    for process in psutil.process_iter(["pid", "name", "memory_info", "cmdline"]):
        info = process.info
        memory = info["memory_info"]
        if memory is None:
            continue
        yield ProcessReading(
            pid=info["pid"],
            name=printable(info["name"] or "", 64),
            used_bytes=getattr(memory, "private", memory.rss),
            command=commands.shown(info["cmdline"] or []),
            file_bytes=_NO_FILE_SPLIT,
        )
