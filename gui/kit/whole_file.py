"""Files that are replaced as a whole or not at all, and files that make way unharmed."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from PySide6.QtCore import QIODevice, QSaveFile

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Put ``content`` in the place of what ``path`` held; whatever goes wrong, that is still there.

    Raises:
        OSError: it can't be written.
    """
    file = QSaveFile(str(path))
    data = content if isinstance(content, bytes) else content.encode()
    is_open = file.open(QIODevice.OpenModeFlag.WriteOnly)
    if not (is_open and file.write(data) == len(data) and file.commit()):
        raise _trouble(path, file.errorString())


def _trouble(path: Path, words: str) -> OSError:
    """What Qt says in ``words``, as the system says it, so that it can be told in ours."""
    if not path.parent.is_dir():
        return NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    number = next((n for n in errno.errorcode if os.strerror(n) == words), 0)
    if not number and path.exists():
        try:
            path.open("r+b").close()
        except OSError as error:
            return error
    return OSError(number, words, str(path))


def set_aside(path: Path) -> Path | None:
    """Rename a file that can't be understood, over no other. Returns its new name, if that went."""
    for number in count(1):
        further = f"-{number}" if number > 1 else ""
        target = path.with_suffix(f".unread{further}{path.suffix}")
        if not target.exists():
            with suppress(OSError):
                path.rename(target)
                return target
            return None
    return None
