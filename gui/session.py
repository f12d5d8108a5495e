"""What lay on the desk, over a restart: written once an edit rests, and put back at the start.

A ``.plimsoll`` file in the platform's folder for state. It names what was open and never what came
out, so that coming back fetches and runs nothing either.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from engine.contract.workspace import read_file, written
from engine.errors import PlimsollError
from engine.words import tr
from gui import asking
from gui.kit.latest import LatestOnly
from gui.kit.messages import sentence
from gui.kit.throttle import Debounce
from gui.kit.whole_file import write_whole

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.contract.workspace import Workspace
    from gui.app import App
    from gui.asking import Found

_log = logging.getLogger("plimsoll.gui")

FILE_NAME = "session.plimsoll"
_PAUSE_MS = 1000


def default_folder() -> Path:
    """The platform's folder for what this app keeps by itself."""
    import platformdirs  # noqa: PLC0415 - only where a session is really kept

    return Path(platformdirs.user_state_dir("plimsoll", appauthor=False))


@dataclass(frozen=True, slots=True)
class _Last:
    """The last session as it could be read; ``trouble`` where it couldn't."""

    workspace: Workspace | None = None
    found: Found | None = None
    file: Path | None = None
    on_disk: Workspace | None = None
    trouble: str = ""


class Session(QObject):
    """Keeps the desk. Until ``begin`` it writes nothing."""

    ready = Signal(bool)
    """The start is over; whether a model, or what waits for one, is on the desk again."""

    def __init__(self, app: App, folder: Path | None) -> None:
        """``folder``: where the session lies; None for the platform's."""
        super().__init__(app)
        self._app = app
        self._file = (folder or default_folder()) / FILE_NAME
        self._is_begun = False
        self._on_disk = ""
        self._lock = threading.Lock()
        self._reading = LatestOnly(app.runner, self)
        self._reading.succeeded.connect(self._on_read)
        self._reading.failed.connect(self._on_failed)
        self._writing = LatestOnly(app.runner, self)
        self._writing.failed.connect(self._on_unwritten)
        self._rest = Debounce(_PAUSE_MS, self._write, self)
        app.workspaces.rested.connect(self._rest.request)

    def restore(self) -> None:
        """Read the last session in the background, and put it on the desk."""
        file, named = self._file, self._app.settings.workspace
        self._reading.submit(lambda token: _read(file, named, token))

    def begin(self, *, restored: bool = False) -> None:
        """From now on keep what lies on the desk."""
        self._is_begun = True
        self.ready.emit(restored)

    def close(self) -> None:
        """Write what lies on the desk, last of all."""
        self._rest.cancel()
        if self._is_begun:
            text = written(self._app.workspaces.now())
            try:
                self._put(text)
            except OSError as error:
                _log.warning("the session could not be written: %s", error)

    def _write(self) -> None:
        text = written(self._app.workspaces.now())
        if self._is_begun and text != self._on_disk:

            def job(token: CancelToken) -> None:
                self._put(text, token)

            self._writing.submit(job)

    def _put(self, text: str, token: CancelToken | None = None) -> None:
        # A newer text cancels the older before it waits here, so that it is written last.
        with self._lock:
            if token is not None:
                token.raise_if_cancelled()
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, text)
            self._on_disk = text

    @Slot(object)
    def _on_read(self, last: _Last) -> None:
        app = self._app
        if last.trouble:
            app.trouble.report_sentence(last.trouble)
        # Whatever was opened meanwhile counts more than what was open once.
        is_idle = app.model.state.model is None and not app.loader.is_busy
        if last.workspace is not None and last.found is not None and is_idle:
            app.workspaces.restore(last.workspace, last.found, last.file, last.on_disk)
        self.begin(restored=last.workspace is not None and last.workspace.plan.model is not None)

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        self._app.trouble.report(error)
        self.begin()

    @Slot(object)
    def _on_unwritten(self, error: BaseException) -> None:
        _log.warning("the session could not be written: %s", error)


def _read(file: Path, named: str, token: CancelToken) -> _Last:
    """The session in ``file``; one that makes no sense is set aside. For a worker."""
    if not file.exists():
        return _Last()
    try:
        workspace = read_file(file)
    except PlimsollError as error:
        aside = file.with_suffix(f".unread{file.suffix}")
        with suppress(OSError):
            file.replace(aside)
        words = tr("The last session could not be read and is kept as {name}: {why}")
        return _Last(trouble=words.format(name=aside.name, why=sentence(error)))
    on_disk = None
    if named:
        # Gone or broken, the file is still the one to save to.
        with suppress(PlimsollError):
            on_disk = read_file(Path(named))
    found = asking.look_here(workspace, token)
    return _Last(workspace, found, Path(named) if named else None, on_disk)
