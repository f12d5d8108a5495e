"""What is left of a start that ended badly: kept on this computer, told once, never sent.

Each start has a session file, in which the interpreter itself writes where every thread was when
the program dies. A start that is left in order takes its file away; one that is killed leaves a
file without such a trace, which says nothing. The next start makes reports of the others.
"""

from __future__ import annotations

import faulthandler
import json
import os
import platform
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import QLockFile, qVersion

from engine.redaction import redacted
from engine.text import printable
from gui.kit.about import own_version
from gui.kit.messages import details

if TYPE_CHECKING:
    from typing import TextIO

_MOST_REPORTS: Final = 5
_LONGEST_REPORT: Final = 256 * 1024
_MOST_NOTES: Final = 10
_LONGEST_NOTE: Final = 8_000
_FAILED_STARTS: Final = 2
"""So many in a row, and the next start is a safe one."""
_STATE = "state.json"
_RESTED = "The window came to rest."
_CLOSED = "Closed by an error that nobody caught:"
_FATAL = re.compile(
    rf"^(?:Fatal Python error: |Windows fatal exception: |{re.escape(_CLOSED)})", re.MULTILINE
)
_STAMP = "crash-%Y%m%d-%H%M%S"


def default_folder() -> Path:
    """The platform's folder for logs of this app."""
    import platformdirs  # noqa: PLC0415 - only where reports are really kept

    return Path(platformdirs.user_log_dir("plimsoll", appauthor=False))


@dataclass(frozen=True, slots=True)
class CrashReport:
    """One report, without names, paths and secrets."""

    path: Path

    @property
    def at(self) -> datetime:
        """When it happened, in local time."""
        return datetime.strptime(self.path.stem[:21], _STAMP).astimezone()

    def text(self) -> str:
        """What it says; empty where it can't be read any more."""
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


class CrashLog:
    """This start's session file and the reports of earlier ones, all in one folder."""

    def __init__(self, folder: Path | None) -> None:
        """``folder`` is made by ``begin``; with None nothing is kept."""
        self._folder = folder
        self._session: TextIO | None = None
        self._path = Path()
        self._lock: QLockFile | None = None
        self._notes = 0

    @property
    def wants_safe_start(self) -> bool:
        """Whether the last starts ended badly before their windows came to rest."""
        return self._state()[0] >= _FAILED_STARTS

    def untold(self) -> tuple[CrashReport, ...]:
        """The reports of which nobody was told yet, the newest first."""
        told = self._state()[1]
        return tuple(r for r in self._reports() if r.path.name > told)

    def begin(self) -> None:
        """Make reports of what earlier starts left, and stand by for this one's end."""
        if self._folder is None:
            return
        self.collect()
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(".log", "session-", self._folder)
            self._path = Path(name)
            self._lock = _lock_of(self._path)
            self._lock.tryLock(0)
            self._session = os.fdopen(handle, "w", encoding="utf-8", errors="replace")
            self._write(
                f"Plimsoll {own_version()}, Python {platform.python_version()}, Qt {qVersion()}, "
                f"{platform.system()} {platform.release()} {platform.machine()}\n"
                f"Started {datetime.now(tz=UTC).astimezone().isoformat(timespec='seconds')}"
            )
            faulthandler.enable(self._session, all_threads=True)

    def note(self, error: BaseException) -> None:
        """Keep a fault that the window survived: it may explain what follows."""
        if self._notes < _MOST_NOTES:
            self._notes += 1
            self._write("\nBefore that:\n" + _account(error))

    def came_to_rest(self) -> None:
        """The window stands and answers: this start did not fail, and reports were told."""
        self._write(_RESTED)
        newest = next((r.path.name for r in self._reports()), "")
        self._keep_state(0, max(newest, self._state()[1]))

    def end(self, error: BaseException | None = None) -> Path | None:
        """Leave in order, or because of ``error``. Returns the file that tells of it."""
        session, self._session = self._session, None
        if session is None:
            return None
        faulthandler.disable()
        with suppress(OSError):
            if error is not None:
                session.write(f"\n{_CLOSED}\n{_account(error)}\n")
            session.close()
            if error is None:
                self._path.unlink()
        if self._lock is not None:
            self._lock.unlock()
        return self._path if error is not None else None

    def collect(self) -> None:
        """Turn session files of starts that are over into reports, oldest first."""
        if self._folder is None:
            return
        failed, told = self._state()
        with suppress(OSError):
            for path in sorted(self._folder.glob("session-*.log"), key=_changed_at):
                failed = self._settle(path, failed)
        for old in self._reports()[_MOST_REPORTS:]:
            self.delete(old)
        if failed != self._state()[0]:
            self._keep_state(failed, told)

    def delete(self, report: CrashReport) -> None:
        """Take a report away."""
        with suppress(OSError):
            report.path.unlink()

    def _settle(self, path: Path, failed: int) -> int:
        """Deal with one session file; returns the failed starts in a row after it."""
        lock = _lock_of(path)
        if not lock.tryLock(0):
            return failed  # of a window that is open now
        try:
            with path.open(encoding="utf-8", errors="replace") as stream:
                text = stream.read(_LONGEST_REPORT)
            at = _changed_at(path)
            has_rested = f"\n{_RESTED}\n" in text
            if _FATAL.search(text):
                self._report(text, at)
                failed = 0 if has_rested else failed + 1
            path.unlink()
        except OSError:
            pass  # another start was faster
        finally:
            lock.unlock()
        return failed

    def _report(self, text: str, at: float) -> None:
        folder = cast("Path", self._folder)
        stamp = datetime.fromtimestamp(at).astimezone().strftime(_STAMP)
        target = folder / f"{stamp}.txt"
        further = 1
        while target.exists():
            further += 1
            target = folder / f"{stamp}-{further}.txt"
        lines = (printable(line) for line in redacted(text).splitlines())
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _reports(self) -> list[CrashReport]:
        if self._folder is None:
            return []
        return [
            CrashReport(path)
            for path in sorted(self._folder.glob("crash-*.txt"), reverse=True)
            if re.fullmatch(r"crash-\d{8}-\d{6}(-\d+)?", path.stem)
        ]

    def _write(self, text: str) -> None:
        if self._session is not None:
            with suppress(OSError):
                self._session.write(text + "\n")
                self._session.flush()

    def _state(self) -> tuple[int, str]:
        """Failed starts in a row, and the newest report that was told."""
        if self._folder is None:
            return 0, ""
        try:
            kept: object = json.loads((self._folder / _STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return 0, ""
        values = cast("dict[str, object]", kept) if isinstance(kept, dict) else {}
        failed, told = values.get("failed_starts"), values.get("told")
        return (
            failed if isinstance(failed, int) else 0,
            told if isinstance(told, str) else "",
        )

    def _keep_state(self, failed: int, told: str) -> None:
        if self._folder is None or not self._folder.is_dir():
            return
        with suppress(OSError):
            text = json.dumps({"failed_starts": failed, "told": told})
            (self._folder / _STATE).write_text(text, encoding="utf-8")


def _account(error: BaseException) -> str:
    return details(error)[:_LONGEST_NOTE]


def _lock_of(path: Path) -> QLockFile:
    lock = QLockFile(str(path.with_suffix(".lock")))
    lock.setStaleLockTime(0)  # a window may stay open for weeks
    return lock


def _changed_at(path: Path) -> float:
    return path.stat().st_mtime
