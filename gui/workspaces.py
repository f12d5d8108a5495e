"""The workspace: opened from a file, saved to one, and what it still waits for.

Opening never asks whether to save first: it is one step of undo, which brings back model, plan,
compared plans and file as they were, and the session keeps all of it over a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QUndoCommand
from typing_extensions import override

from engine.architecture.read import read
from engine.contract.workspace import SUFFIX, Workspace, read_file, written
from engine.source.origin import label
from engine.source.recall import fetch, recall
from engine.units import UnitSystem
from engine.words import tr
from gui import asking
from gui.absence import AbsenceNotice
from gui.kit.latest import LatestOnly
from gui.kit.throttle import Debounce
from gui.kit.whole_file import write_whole
from gui.sizing import present
from gui.sizing.comparison import Pinned
from gui.sizing.plan_edit import Laid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.contract.workspace import Asked
    from engine.source.origin import Origin
    from engine.source.raw import RawModel
    from gui.app import App
    from gui.asking import Found
    from gui.sizing.plan import Plan
    from gui.sizing.view_model import State

_MARK_PAUSE_MS = 150
"""The title is marked once an edit has come to rest."""


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What lies on the desk, and the file it belongs to."""

    model: Model | None
    plan: Plan
    pinned: tuple[Pinned, ...] = ()
    awaited: Asked | None = None
    """The plan in force as it was kept, where its model isn't here."""
    absent: tuple[tuple[int, Asked], ...] = ()
    """Compared plans whose models aren't here, each with its place."""
    reasons: Mapping[Origin, str] | None = None
    """Why they aren't."""
    file: Path | None = None
    on_disk: Workspace | None = None
    """What the file holds."""


class _Replace(QUndoCommand):
    """The desk with other contents."""

    def __init__(self, owner: Workspaces, words: str, after: Contents) -> None:
        super().__init__(words)
        self._owner, self._before, self._after = owner, owner.contents, after

    @override
    def undo(self) -> None:
        self._owner.put(self._before)

    @override
    def redo(self) -> None:
        self._owner.put(self._after)


class Workspaces(QObject):
    """Connects what lies on the desk with the commands that open and save it."""

    rested = Signal()
    """What lies on the desk changed, and has come to rest."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._kept = Contents(app.model.state.model, app.model.state.plan)
        self._fetching: tuple[Workspace, dict[Origin, Model]] | None = None
        self.notice = AbsenceNotice()
        self.notice.wanted.connect(self._on_fetch)
        app.view.add_notice(self.notice)
        app.themes.changed.connect(self.notice.set_theme)
        self.notice.set_theme(app.themes.current)
        self._reading = LatestOnly(app.runner, self)
        self._reading.succeeded.connect(self._on_read)
        self._reading.failed.connect(app.trouble.report)
        self._writing = LatestOnly(app.runner, self)
        self._writing.succeeded.connect(self._on_written)
        self._writing.failed.connect(app.trouble.report)
        self._rest = Debounce(_MARK_PAUSE_MS, self._on_rest, self)
        app.model.changed.connect(self._on_state_changed)
        app.compare.changed.connect(self._rest.request)
        app.view.tabs.current_changed.connect(self._rest.request)
        commands = app.window.commands
        commands["save"].triggered.connect(self._on_save)
        commands["save as"].triggered.connect(self._on_save_as)
        commands["new"].triggered.connect(self._on_new)

    @property
    def file(self) -> Path | None:
        """The open workspace's file."""
        return self._kept.file

    @property
    def contents(self) -> Contents:
        """What lies on the desk now."""
        state = self._app.model.state
        pinned = self._app.compare.pinned
        return replace(self._kept, model=state.model, plan=state.plan, pinned=pinned)

    def now(self) -> Workspace:
        """The same as a file keeps it."""
        held = self.contents
        plan = asking.asked(held.model, held.plan)
        if held.awaited is not None:
            plan = _with_models_of(held.awaited, plan)
        compared = [asking.asked(one.model, one.plan) for one in held.pinned]
        for place, kept in held.absent:
            compared.insert(place, kept)
        return Workspace(plan, tuple(compared), self._app.model.state.unit, self._tab())

    @property
    def is_modified(self) -> bool:
        """Whether the plans differ from what the file holds; looks alone don't count."""
        on_disk = self._kept.on_disk
        return on_disk is not None and _plans(self.now()) != _plans(on_disk)

    def open(self, path: Path) -> None:
        """Read the workspace in ``path`` and put it on the desk, undoably."""

        def job(token: CancelToken) -> tuple[Path, Workspace, Found]:
            workspace = read_file(path)
            return path, workspace, asking.look_here(workspace, token)

        self._reading.submit(job)

    def restore(
        self, workspace: Workspace, found: Found, file: Path | None, on_disk: Workspace | None
    ) -> None:
        """Put back what lay on the desk when the window was closed."""
        self._show_looks(workspace)
        self.put(_contents(workspace, found, file, on_disk))

    def put(self, contents: Contents) -> None:
        """Put ``contents`` on the desk; not a step of undo by itself."""
        app = self._app
        self._kept = contents
        self.notice.tell_absent(contents.reasons or {})
        awaited = contents.awaited.model if contents.awaited is not None else None
        app.compare.set_plans(contents.pinned)
        name = label(awaited) if awaited else ""
        app.model.take(Laid(contents.model, contents.plan, name))
        self._entitle()

    @Slot(object)
    def on_loaded(self, model: Model) -> None:
        """Take what else was fetched with ``model``, if it was asked for here."""
        fetching, self._fetching = self._fetching, None
        if fetching is None or fetching[0].plan.model != model.origin:
            return
        asked_for, found = fetching
        now = self.now()
        plan = replace(_with_models_of(asked_for.plan, now.plan), model=model.origin)
        models = {one.origin: one for one in self._models() if one.origin} | found
        kept = self._kept
        self.put(
            _contents(replace(now, plan=plan), asking.Found(models, {}), kept.file, kept.on_disk)
        )

    def _models(self) -> tuple[Model, ...]:
        held = self.contents
        first = (held.model,) if held.model is not None else ()
        plans = (held.plan, *(one.plan for one in held.pinned))
        beside = (other.model for plan in plans for other in plan.beside)
        return (*first, *(one.model for one in held.pinned), *beside)

    @Slot(object)
    def _on_state_changed(self, state: State) -> None:
        if self._kept.awaited is not None and not state.awaited:
            # Another model was picked, and the plan is now that one's.
            wanted = asking.needed(kept for _, kept in self._kept.absent)
            left = {k: v for k, v in (self._kept.reasons or {}).items() if k in wanted}
            self._kept = replace(self._kept, awaited=None, reasons=left)
            self.notice.tell_absent(left)
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
        page = self._app.desk.pages().get(f"tab {workspace.tab}")
        if page is not None:
            self._app.view.tabs.show_page(page)

    @Slot(object)
    def _on_read(self, read_: tuple[Path, Workspace, Found]) -> None:
        path, workspace, found = read_
        self._app.trouble.dismiss()
        contents = _contents(workspace, found, path, workspace)
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
    def _on_save(self) -> None:
        if self._kept.file is None:
            self._on_save_as()
        else:
            self._save(self._kept.file)

    @Slot()
    def _on_save_as(self) -> None:
        state = self._app.model.state
        name = present.title(state.model) if state.model else tr("Workspace")
        suggested = self._kept.file.name if self._kept.file else f"{name}{SUFFIX}"
        filters = tr("Workspaces (*{suffix})").format(suffix=SUFFIX)
        self._app.filing.ask_where(
            tr("Save the workspace"), filters, suggested, lambda chosen: self._save(Path(chosen))
        )

    def _save(self, path: Path) -> None:
        workspace = self.now()

        def job(_token: CancelToken) -> tuple[Path, Workspace]:
            write_whole(path, written(workspace))
            return path, workspace

        self._writing.submit(job)

    @Slot(object)
    def _on_written(self, saved: tuple[Path, Workspace]) -> None:
        path, workspace = saved
        self._kept = replace(self._kept, file=path, on_disk=workspace)
        self._entitle()
        self._app.filing.tell(tr("Saved as {name}").format(name=path.name))

    @Slot()
    def _on_fetch(self) -> None:
        """Ask for all that is missing: the click that opening waited for."""
        app, kept = self._app, self.now()
        missing = tuple(self._kept.reasons or {})
        if not missing:
            return
        first = kept.plan.model or missing[0]
        found: dict[Origin, Model] = {}
        self._fetching = (replace(kept, plan=replace(kept.plan, model=first)), found)
        others = tuple(origin for origin in missing if origin != first)
        app.loader.load(partial(self._fetch_all, first, first in missing, others, found), first)

    def _fetch_all(
        self,
        first: Origin,
        is_missing: bool,  # noqa: FBT001 - bound by partial
        others: tuple[Origin, ...],
        found: dict[Origin, Model],
        token: CancelToken,
    ) -> RawModel:
        """The first model, and the others into ``found``; for a worker."""
        hub = self._app.hub
        for origin in others:
            found[origin] = replace(read(fetch(origin, token, hub)), origin=origin)
        return fetch(first, token, hub) if is_missing else recall(first, token)


def _contents(
    workspace: Workspace, found: Found, file: Path | None, on_disk: Workspace | None
) -> Contents:
    """``workspace`` with the models there are."""
    models, plan = found.models, workspace.plan
    is_here = asking.is_whole(plan, models)
    pinned: list[Pinned] = []
    absent: list[tuple[int, Asked]] = []
    for place, kept in enumerate(workspace.compared):
        if kept.model is not None and asking.is_whole(kept, models):
            pinned.append(Pinned(models[kept.model], asking.plan_of(kept, models)))
        else:
            absent.append((place, kept))
    return Contents(
        model=models[plan.model] if is_here and plan.model is not None else None,
        plan=asking.plan_of(plan, models),
        pinned=tuple(pinned),
        awaited=None if is_here else plan,
        absent=tuple(absent),
        reasons=found.absent,
        file=file,
        on_disk=on_disk,
    )


def _with_models_of(kept: Asked, plan: Asked) -> Asked:
    """``plan`` as edited, for the models of ``kept``, which weren't all here."""
    return replace(plan, model=kept.model, draft=kept.draft, beside=kept.beside)


def _plans(workspace: Workspace) -> Workspace:
    return replace(workspace, unit=UnitSystem.BINARY, tab="")
