"""What each workspace file was last found or left to hold. No Qt; workers write and read here too.

That is no step of undo: whatever is undone on the desk, a file holds what was saved last.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from engine.contract.workspace import MAX_FILE_BYTES, read_file, refuse_huge
from engine.errors import SourceError, WorkspaceError
from engine.source import files
from engine.words import tr
from gui.kit.whole_file import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from engine.contract.workspace import Workspace

_UNREADABLE = "unreadable"


class ChangedElsewhereError(WorkspaceError):
    """The file holds what neither was read nor written here."""


class KnownFiles:
    """Contents by file, and the print by which a change from outside is told."""

    def __init__(self) -> None:
        self._prints: dict[Path, str] = {}
        self._workspaces: dict[Path, Workspace | None] = {}

    def workspace(self, path: Path) -> Workspace | None:
        """What ``path`` holds; None where that isn't known."""
        return self._workspaces.get(path)

    def print_of(self, path: Path) -> str:
        """The print of what ``path`` holds, as far as is known; else empty."""
        return self._prints.get(path, "")

    def note(self, path: Path, workspace: Workspace | None) -> None:
        """``path`` holds ``workspace``; None where that could not be read."""
        self._workspaces[path] = workspace

    def read(self, path: Path) -> Workspace:
        """The workspace in ``path``; for a worker.

        Raises:
            PlimsollError: it cannot be read, or isn't one.
        """
        # Taken first: a change in between is then found when the file is saved.
        found = fingerprint(path)
        workspace = read_file(path)
        self._prints[path] = found
        return workspace

    def read_unchanged(self, path: Path, known_print: str) -> Workspace | None:
        """The workspace in ``path`` if it is still that of ``known_print``; for a worker.

        Raises:
            PlimsollError: it cannot be read.
        """
        self._prints[path] = known_print
        return read_file(path) if fingerprint(path) == known_print else None

    def is_changed(self, path: Path) -> bool:
        """Whether ``path`` holds what isn't known here; for a worker."""
        return fingerprint(path) not in ("", self._prints.get(path))

    def write(self, path: Path, text: str, *, over: bool) -> None:
        """Put ``text`` into ``path``; for a worker.

        Args:
            path: the file.
            text: a workspace's.
            over: whether to write over what isn't known here.

        Raises:
            ChangedElsewhereError: that is what the file holds.
            WorkspaceError: nobody could open so large a file again.
            OSError: it can't be written.
        """
        refuse_huge(path.name, len(text))
        mine = _print(text.encode())
        if not over and fingerprint(path) != mine and self.is_changed(path):
            words = tr("{name} was changed by another program or window: nothing was written.")
            raise ChangedElsewhereError(words.format(name=path.name))
        write_whole(path, text)
        self._prints[path] = mine


def fingerprint(path: Path) -> str:
    """What tells the contents of ``path`` from others; empty where it holds nothing."""
    try:
        if not path.stat().st_size:
            return ""
        with files.opened(path) as (file, _):
            return _print(file.read(MAX_FILE_BYTES + 1))
    except FileNotFoundError:
        return ""
    except (OSError, SourceError):
        return _UNREADABLE


def _print(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
