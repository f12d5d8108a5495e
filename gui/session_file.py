"""The file of a session: what lay on the desk and which file that was of, in one. No Qt windows.

Contents and file are written together, so that what comes back never claims to be another file's.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from PySide6.QtCore import QLockFile

from engine.contract import workspace as format_
from engine.errors import WorkspaceError
from engine.source import files
from engine.source.bounded_json import parse_object
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.contract.workspace import Workspace

SCHEMA: Final = "plimsoll.session/1"
FILE_NAME: Final = "session.json"
_NAMES = re.compile(r"session(-\d+)?\.json")


@dataclass(frozen=True, slots=True)
class Kept:
    """One session."""

    workspace: Workspace
    file: Path | None = None
    """The workspace file that was open."""
    file_print: str = ""
    """What that file was known to hold."""


def written(kept: Kept) -> str:
    """The text of its file."""
    values = {
        "schema": SCHEMA,
        "file": str(kept.file) if kept.file else None,
        "file_print": kept.file_print,
        "workspace": format_.plain(kept.workspace),
    }
    return json.dumps(values, indent=1) + "\n"


def read(path: Path) -> Kept:
    """The session in ``path``.

    Raises:
        PlimsollError: it cannot be read, or isn't one.
    """
    with files.opened(path) as (stream, size_bytes):
        format_.refuse_huge(path.name, size_bytes)
        values = parse_object(
            stream.read(format_.MAX_FILE_BYTES), path.name, WorkspaceError, unique_keys=True
        )
    file, file_print = values.get("file"), values.get("file_print")
    if values.get("schema") != SCHEMA or not isinstance(file_print, str):
        words = tr("{name} was written by another version of Plimsoll.")
        raise WorkspaceError(words.format(name=path.name), field="schema")
    named = Path(file) if isinstance(file, str) and file and "\0" not in file else None
    inner = cast("object", values.get("workspace"))
    return Kept(format_.from_plain(inner, path.name), named, file_print)


class Place:
    """The session file of one window, which no other takes while that is open."""

    def __init__(self, path: Path, lock: QLockFile | None) -> None:
        self.path = path
        self._lock = lock

    def leave(self) -> None:
        """Let another window have it."""
        if self._lock is not None:
            self._lock.unlock()


def take(folder: Path, *, fresh: bool = False) -> Place:
    """The place of the session that was written last and that no window has; else a new one.

    Args:
        folder: where sessions lie; it is made.
        fresh: whether a new one is wanted.
    """
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    for path in _candidates(folder, fresh=fresh):
        lock = QLockFile(str(path.with_suffix(".lock")))
        lock.setStaleLockTime(0)  # a window may stay open for weeks
        if lock.tryLock(0):
            _sweep(path)
            return Place(path, lock)
        if lock.error() is not QLockFile.LockError.LockFailedError:
            break
    # Nothing can be locked there: then nothing can be written either, which is said once it fails.
    return Place(folder / FILE_NAME, None)


def _candidates(folder: Path, *, fresh: bool) -> Iterator[Path]:
    found: list[Path] = []
    with suppress(OSError):
        kept = [path for path in folder.iterdir() if _NAMES.fullmatch(path.name)]
        found = sorted(kept, key=lambda path: path.stat().st_mtime, reverse=True)
    if not fresh:
        yield from found
    names = (f"session-{number}.json" if number > 1 else FILE_NAME for number in count(1))
    yield from (folder / name for name in names if folder / name not in found)


def _sweep(path: Path) -> None:
    """Take away what a writing left that was killed."""
    with suppress(OSError):
        for left in path.parent.glob(f"{path.name}.??????"):
            left.unlink()
