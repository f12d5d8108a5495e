"""Processes that belong together: a runtime with its workers, runners and helpers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final

from engine.telemetry.commands import recognise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BYSTANDERS: Final = frozenset({
    "bash", "sh", "zsh", "fish", "dash", "sudo", "su", "env", "tmux", "screen", "systemd", "grep",
    "rg", "tail", "less", "more", "cat", "vim", "vi", "nano", "emacs", "code", "man", "watch",
    "ssh", "git", "journalctl", "docker", "podman", "nerdctl", "docker-proxy", "containerd-shim",
    "curl", "wget", "xargs", "find", "make", "htop", "nvtop", "strace", "gdb", "perf", "cmd",
    "powershell", "conhost", "timeout", "nohup", "numactl", "taskset", "uv", "uvx", "pytest",
})  # fmt: skip
"""They name a runtime on their command line without being one: what starts it, or reads of it."""
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Process:
    """One process, as much as is needed to say whose it is."""

    pid: int
    parent: int
    name: str
    words: tuple[str, ...] = ()
    """Its command line."""
    cpu_s: float | None = None
    """Processor time so far, seconds; None where the system doesn't tell."""

    @property
    def program(self) -> str:
        """The program's file name, in small letters."""
        first = self.words[0] if self.words else self.name
        path = PureWindowsPath(first) if "\\" in first else PurePosixPath(first)
        return path.name.lower().removesuffix(".exe")

    @property
    def command(self) -> str:
        """The command line as one text."""
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class Group:
    """A runtime's processes."""

    runtime: str
    label: str
    head: Process
    """The one that started the others."""
    members: tuple[Process, ...]
    """The head and what descends from it, by PID after the head."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The head's PID, then the others'."""
        return tuple(process.pid for process in self.members)

    @property
    def model(self) -> str:
        """What the command lines give away of the model; empty where nothing does, or several."""
        found = (recognise(p.name, p.command).model for p in self.members)
        names = dict.fromkeys(name for name in found if name)
        return next(iter(names)) if len(names) == 1 else ""


def grouped(processes: Iterable[Process]) -> tuple[Group, ...]:
    """The runtimes among ``processes``, by PID of their heads.

    A head is a process that is recognised and has no recognised one above it. All that descends
    from it belongs to it, whatever it is called: a worker of ``multiprocessing`` gives nothing
    away, and Ollama has run ``llama-server`` since mid-2026 (ollama PR 16031).
    """
    by_pid = {process.pid: process for process in processes}
    children: dict[int, list[Process]] = defaultdict(list)
    for process in by_pid.values():
        if process.parent != process.pid:
            children[process.parent].append(process)
    runtimes = {pid: runtime for pid, p in by_pid.items() if (runtime := _runtime(p))}
    found: list[Group] = []
    for pid in sorted(runtimes):
        if any(above in runtimes for above in _above(pid, by_pid)):
            continue
        head = by_pid[pid]
        below = sorted(_below(pid, children), key=lambda p: p.pid)
        label = recognise(head.name, head.command).label
        found.append(Group(runtimes[pid], label, head, (head, *below)))
    return tuple(found)


def running() -> tuple[Process, ...]:
    """Every process of this computer that may be read."""
    import psutil

    found: list[Process] = []
    for process in psutil.process_iter(["pid", "ppid", "name", "cmdline", "cpu_times"]):
        info = process.info
        words = tuple(info["cmdline"] or ())
        times = info["cpu_times"]
        cpu_s = times.user + times.system if times else None
        found.append(Process(info["pid"], info["ppid"] or 0, info["name"] or "", words, cpu_s))
    return tuple(found)


def _runtime(process: Process) -> str:
    """The runtime whose program this process runs; empty for none."""
    if process.program in _BYSTANDERS:
        return ""
    return recognise(process.name, process.command).runtime


def _above(pid: int, by_pid: dict[int, Process]) -> Iterator[int]:
    """Parents, nearest first; a circle, which reused PIDs can make, ends it."""
    seen = {pid}
    while len(seen) < _DEEPEST and pid in by_pid:
        pid = by_pid[pid].parent
        if pid in seen:
            return
        seen.add(pid)
        yield pid


def _below(pid: int, children: dict[int, list[Process]]) -> Iterator[Process]:
    waiting, seen = [pid], {pid}
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child.pid not in seen:
                seen.add(child.pid)
                waiting.append(child.pid)
                yield child
