"""Files that are replaced as a whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QIODevice, QSaveFile

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Put ``text`` in the place of what ``path`` held; whatever goes wrong, that is still there.

    Raises:
        OSError: it can't be written.
    """
    file = QSaveFile(str(path))
    data = text.encode()
    is_open = file.open(QIODevice.OpenModeFlag.WriteOnly)
    if not (is_open and file.write(data) == len(data) and file.commit()):
        raise OSError(0, file.errorString(), str(path))
