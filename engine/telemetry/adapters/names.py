"""What the processes that a driver names are called."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.telemetry import commands
from engine.telemetry.adapters.cgroup import text_of
from engine.text import printable
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_NAMED_FOR_S = 10.0
"""A name is read anew after this long: vLLM's workers give themselves a title once they run."""


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    command: str
    at_s: float


class Names:
    """Name and command line by process, kept a while: reading them costs more than the lists."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[int, _Named] = {}
        self._elsewhere = _elsewhere(root)

    def of(self, pid: int) -> tuple[str, str]:
        """What ``pid`` is called here; a driver may name processes that aren't ours to see."""
        now = self._clock()
        known = self._known.get(pid)
        if known is None or now - known.at_s >= _NAMED_FOR_S:
            self._known = {p: n for p, n in self._known.items() if now - n.at_s < _NAMED_FOR_S}
            known = self._known[pid] = _Named(*self._looked_up(pid), now)
        return known.name, known.command

    def _looked_up(self, pid: int) -> tuple[str, str]:
        import psutil

        name, command = tr(self._elsewhere), ""
        try:
            process = psutil.Process(pid)
            name = printable(process.name(), 64)
            command = commands.shown(process.cmdline())
        except psutil.NoSuchProcess:
            pass
        except psutil.Error:
            name = name if not psutil.pid_exists(pid) else tr("another user's process")
        return name, command


def is_wsl(root: Path) -> bool:
    """Whether this is Linux inside Windows, whose driver serves both."""
    return "microsoft" in text_of(root / "proc/version").lower()


def _elsewhere(root: Path) -> str:
    """What to call a process that the driver sees and we don't."""
    if sys.platform == "win32":
        return tr_later("a process that has ended")
    return tr_later("a Windows program") if is_wsl(root) else tr_later("outside this container")
