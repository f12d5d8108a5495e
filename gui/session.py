"""What lay on the desk, over a restart: written once an edit rests, and put back at the start.

It names what was open and never what came out, so that coming back fetches and runs nothing either.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from engine.contract.workspace import refuse_huge
from engine.errors import PlimsollError
from engine.words import tr
from gui import asking, session_file
from gui.kit.latest import LatestOnly
from gui.kit.messages import sentence
from gui.kit.throttle import Debounce
from gui.kit.whole_file import set_aside, write_whole
from gui.kit.writer import Writer
from gui.session_file import Kept

if TYPE_CHECKING:
    from engine.cancel import CancelToken
    from engine.contract.workspace import Workspace
    from gui.app import App
    from gui.asking import Found
    from gui.kit.writer import Written
    from gui.known_files import KnownFiles
    from gui.session_file import Place

_log = logging.getLogger("plimsoll.gui")

_PAUSE_MS = 1000


def default_folder() -> Path:
    """The platform's folder for what this app keeps by itself."""
    import platformdirs  # noqa: PLC0415 - only where a session is really kept

    return Path(platformdirs.user_state_dir("plimsoll", appauthor=False))


@dataclass(frozen=True, slots=True)
class _Last:
    """The last session as it could be read; ``trouble`` where it couldn't."""

    kept: Kept | None = None
    found: Found | None = None
    on_disk: Workspace | None = None
    """What its file holds, where that is still the same."""
    is_changed: bool = False
    """Whether it holds something else."""
    trouble: str = ""


class Session(QObject):
    """Keeps the desk. Until ``begin`` it writes nothing."""

    ready = Signal(bool)
    """The start is over; whether a model, or what waits for one, is on the desk again."""

    def __init__(self, app: App, folder: Path | None) -> None:
        """``folder``: where sessions lie; None for the platform's."""
        super().__init__(app)
        self._app = app
        self._folder = folder or default_folder()
        self._place: Place | None = None
        self._is_begun = False
        self._submitted = ""
        self._has_told = False
        self._reading = LatestOnly(app.runner, self)
        self._reading.succeeded.connect(self._on_read)
        self._reading.failed.connect(self._on_failed)
        self._writer = Writer(app.runner, self)
        self._writer.settled.connect(self._on_written)
        self._rest = Debounce(_PAUSE_MS, self._write, self)
        app.workspaces.rested.connect(self._rest.request)

    def restore(self) -> None:
        """Read the last session in the background, and put it on the desk."""
        self._place = session_file.take(self._folder)
        path, files = self._place.path, self._app.workspaces.files
        self._reading.submit(lambda token: _read(path, files, token))

    def begin_anew(self) -> None:
        """Keep what lies on the desk beside the last session, which stays."""
        self._leave()
        self._place = session_file.take(self._folder, fresh=True)
        self._begin(restored=False)

    def set_aside(self) -> Path | None:
        """Let no start take the last session up. Returns where it is kept, if there was one."""
        place = session_file.take(self._folder)
        try:
            return set_aside(place.path) if place.path.exists() else None
        finally:
            place.leave()

    def _begin(self, *, restored: bool) -> None:
        self._is_begun = True
        self.ready.emit(restored)

    def close(self) -> None:
        """Write what lies on the desk, last of all."""
        self._rest.cancel()
        self._write()
        self._writer.close()
        self._leave()

    def _leave(self) -> None:
        if self._place is not None:
            self._place.leave()

    def _write(self) -> None:
        if not self._is_begun or self._place is None:
            return
        workspaces, path = self._app.workspaces, self._place.path
        file = workspaces.file
        file_print = workspaces.files.print_of(file) if file else ""
        text = session_file.written(Kept(workspaces.now(), file, file_print))
        if text != self._submitted:
            self._submitted = text
            self._writer.submit(path, partial(_put, path, text))

    @Slot(object)
    def _on_read(self, last: _Last) -> None:
        app, kept = self._app, last.kept
        if last.trouble:
            app.trouble.report_sentence(last.trouble)
        if kept is None or last.found is None:
            self._begin(restored=False)
        elif app.model.state.model is not None or app.loader.is_busy:
            # Whatever was opened meanwhile counts more than what was open once.
            self.begin_anew()
        else:
            if kept.file is not None:
                app.workspaces.files.note(kept.file, last.on_disk)
            app.workspaces.restore(kept.workspace, last.found, kept.file)
            if kept.file is not None and last.is_changed:
                app.saving.ask(kept.file)
            self._begin(restored=kept.workspace.plan.model is not None)

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        self._app.trouble.report(error)
        self.begin_anew()

    @Slot(object)
    def _on_written(self, outcome: Written) -> None:
        if outcome.error is None:
            return
        _log.warning("the session could not be written: %s", outcome.error)
        self._submitted = ""
        if not self._has_told:
            self._has_told = True
            words = tr("What lies on the desk isn’t kept over a restart: {why}")
            self._app.trouble.report_sentence(words.format(why=sentence(outcome.error)))


def _put(path: Path, text: str) -> None:
    refuse_huge(path.name, len(text))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)


def _read(path: Path, known: KnownFiles, token: CancelToken) -> _Last:
    """The session in ``path``; one that makes no sense is set aside. For a worker."""
    if not path.exists():
        return _Last()
    try:
        kept = session_file.read(path)
    except PlimsollError as error:
        aside = set_aside(path)
        words = tr("The last session could not be read and is kept as {name}: {why}")
        name = aside.name if aside else path.name
        return _Last(trouble=words.format(name=name, why=sentence(error)))
    on_disk, is_changed = None, False
    if kept.file is not None:
        # Gone or broken, the file is still the one to save to.
        with suppress(PlimsollError):
            on_disk = known.read_unchanged(kept.file, kept.file_print)
        is_changed = known.is_changed(kept.file)
    return _Last(kept, asking.look_here(kept.workspace, token), on_disk, is_changed)
