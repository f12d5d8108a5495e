"""The workspace: opened from a file, and the steps of undo that lay another one on the desk.

Opening never asks whether to save first: it is one step of undo, which brings back model, plan,
compared plans and file as they were, and the session keeps all of it over a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QUndoCommand
from typing_extensions import override

from engine.architecture.read import read
from engine.source.origin import label
from engine.source.recall import fetch, recall
from engine.words import tr
from gui import asking
from gui.absence import AbsenceNotice
from gui.asking import Found
from gui.contents import Contents, contents_of, plans_of
from gui.kit.latest import LatestOnly
from gui.kit.throttle import Debounce
from gui.known_files import KnownFiles
from gui.sizing.plan_edit import Laid

if TYPE_CHECKING:
    from pathlib import Path

    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.contract.workspace import Workspace
    from engine.source.origin import Origin
    from engine.source.raw import RawModel
    from gui.app import App

_MARK_PAUSE_MS = 150
"""The title is marked once an edit has come to rest."""


class _Replace(QUndoCommand):
    """The desk with other contents; each side comes back as it was left."""

    def __init__(self, owner: Workspaces, words: str, after: Contents) -> None:
        super().__init__(words)
        self._owner, self._before, self._after = owner, after, after

    @override
    def undo(self) -> None:
        self._after = self._owner.contents
        self._owner.put(self._before)

    @override
    def redo(self) -> None:
        self._before = self._owner.contents
        self._owner.put(self._after)


@dataclass(slots=True)
class _Fetching:
    """Models that were asked for; a worker finds them."""

    first: Origin
    """The one that the loader hands over."""
    found: dict[Origin, Model] = field(default_factory=dict["Origin", "Model"])
    is_done: bool = False
    """Whether all of them were found."""


class Workspaces(QObject):
    """Connects what lies on the desk with the commands that open and clear it."""

    rested = Signal()
    """What lies on the desk changed, and has come to rest."""
    replaced = Signal()
    """Other contents lie on the desk, perhaps another file's."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.files = KnownFiles()
        self._kept = Contents(app.model.state.model, app.model.state.plan)
        self._fetching: _Fetching | None = None
        self._told: dict[Origin, str] = {}
        self.notice = AbsenceNotice()
        self.notice.wanted.connect(self._on_fetch)
        app.view.add_notice(self.notice)
        app.themes.changed.connect(self.notice.set_theme)
        self.notice.set_theme(app.themes.current)
        self._reading = LatestOnly(app.runner, self)
        self._reading.succeeded.connect(self._on_read)
        self._reading.failed.connect(app.trouble.report)
        self._rest = Debounce(_MARK_PAUSE_MS, self._on_rest, self)
        app.model.changed.connect(self._on_state_changed)
        app.compare.changed.connect(self._rest.request)
        app.view.tabs.current_changed.connect(self._rest.request)
        app.window.commands["new"].triggered.connect(self._on_new)

    @property
    def file(self) -> Path | None:
        """The open workspace's file."""
        return self._kept.file

    @property
    def is_opening(self) -> bool:
        """Whether a workspace is still to come."""
        return self._reading.is_busy

    @property
    def contents(self) -> Contents:
        """What lies on the desk now."""
        state = self._app.model.state
        pinned = self._app.compare.pinned
        return replace(self._kept, model=state.model, plan=state.plan, pinned=pinned)

    def now(self) -> Workspace:
        """The same as a file keeps it."""
        kept = self.contents.kept(self._app.model.state.unit, self._tab())
        return replace(kept, load=self._app.checking.load)

    @property
    def is_modified(self) -> bool:
        """Whether the plans differ from what the file is known to hold; looks don't count."""
        if self._kept.file is None:
            return False
        on_disk = self.files.workspace(self._kept.file)
        return on_disk is None or plans_of(self.now()) != plans_of(on_disk)

    def open(self, path: Path) -> None:
        """Read the workspace in ``path`` and put it on the desk, undoably."""

        def job(token: CancelToken) -> tuple[Path, Workspace, Found]:
            workspace = self.files.read(path)
            return path, workspace, asking.look_here(workspace, token)

        self._reading.submit(job)

    def restore(self, workspace: Workspace, found: Found, file: Path | None) -> None:
        """Put back what lay on the desk when the window was closed."""
        self._show_looks(workspace)
        self.put(contents_of(workspace, found, file))

    def put(self, contents: Contents) -> None:
        """Put ``contents`` on the desk; not a step of undo by itself.

        A model that is on its way was meant for what lay there before.
        """
        app = self._app
        app.loader.cancel()
        app.adjoining.give_up()
        self._fetching = None
        self._kept = contents
        app.compare.lay(contents.pinned, reserved=len(contents.absent))
        awaited = contents.awaited.model if contents.awaited and not contents.model else None
        app.model.take(Laid(contents.model, contents.plan, label(awaited) if awaited else ""))
        self._entitle()
        self.replaced.emit()

    @property
    def desk(self) -> object:
        """Another one once a workspace was opened or the desk was cleared."""
        return self._kept.desk

    def on_saved(self, path: Path, workspace: Workspace, desk: object) -> None:
        """``path`` holds ``workspace``; it is the file of the desk if that is still ``desk``."""
        self.files.note(path, workspace)
        if desk is self.desk:
            self._kept = replace(self._kept, file=path)
        self._entitle()
        self._rest.request()

    def on_changed_elsewhere(self, path: Path) -> None:
        """``path`` holds what isn't known here."""
        self.files.note(path, None)
        self._entitle()

    def receive(self, model: Model) -> bool:
        """Take ``model`` with what else was fetched, undoably, if it was asked for here."""
        fetching, self._fetching = self._fetching, None
        if fetching is None or not fetching.is_done or fetching.first != model.origin:
            return False
        held = self.contents
        models = held.models() | fetching.found | {fetching.first: model}
        after = replace(contents_of(self.now(), Found(models, {}), held.file), desk=held.desk)
        words = tr("fetching of what was missing")
        self._app.model.undo_stack.push(_Replace(self, words, after))
        return True

    @Slot()
    def _on_state_changed(self) -> None:
        missing = self.contents.missing
        if missing != self._told:
            self._told = missing
            self.notice.tell_absent(missing)
        self._rest.request()

    def _on_rest(self) -> None:
        self._entitle()
        self.rested.emit()

    def _entitle(self) -> None:
        modified = self.is_modified
        self._app.window.set_document(self._kept.file, modified=modified)

    def _tab(self) -> str:
        pages = self._app.desk.pages()
        shown = self._app.view.tabs.stack.currentWidget()
        return next((key.removeprefix("tab ") for key, page in pages.items() if page is shown), "")

    def _show_looks(self, workspace: Workspace) -> None:
        self._app.model.set_unit(workspace.unit)
        self._app.checking.load = workspace.load
        page = self._app.desk.pages().get(f"tab {workspace.tab}")
        if page is not None:
            self._app.view.tabs.show_page(page)

    @Slot(object)
    def _on_read(self, read_: tuple[Path, Workspace, Found]) -> None:
        path, workspace, found = read_
        self._app.trouble.dismiss()
        self.files.note(path, workspace)
        contents = contents_of(workspace, found, path)
        words = tr("opening of {name}").format(name=path.name)
        self._app.model.undo_stack.push(_Replace(self, words, contents))
        self._show_looks(workspace)
        if not found.absent:
            opened = tr("Opened {name}").format(name=path.name)
            self._app.filing.tell(opened, tr("Undo brings back what was here."))

    @Slot()
    def _on_new(self) -> None:
        app = self._app
        after = Contents(app.model.state.model, app.model.fresh_plan())
        if after.model is not None:
            app.model.undo_stack.push(_Replace(self, tr("clearing of the desk"), after))

    @Slot()
    def _on_fetch(self) -> None:
        """Ask for all that is missing: the click that opening waited for."""
        missing = tuple(self.contents.missing)
        if not missing:
            return
        first = self.now().plan.model or missing[0]
        fetching = self._fetching = _Fetching(first)
        self._app.loader.load(partial(self._fetch_all, fetching, missing), first)

    def _fetch_all(
        self, fetching: _Fetching, missing: tuple[Origin, ...], token: CancelToken
    ) -> RawModel:
        """The first model, and the others into what was found; for a worker."""
        hub, first = self._app.hub, fetching.first
        for origin in missing:
            if origin != first:
                fetching.found[origin] = replace(read(fetch(origin, token, hub)), origin=origin)
        raw = fetch(first, token, hub) if first in missing else recall(first, token)
        fetching.is_done = True
        return raw
