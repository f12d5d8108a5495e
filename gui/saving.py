"""Workspaces written to their files: one after another, and never over somebody else's work."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.contract.workspace import SUFFIX, written
from engine.words import tr
from gui.kit.notices import Notice
from gui.kit.writer import Writer
from gui.known_files import ChangedElsewhereError
from gui.sizing import present

if TYPE_CHECKING:
    from engine.contract.workspace import Workspace
    from gui.app import App
    from gui.kit.writer import Written
    from gui.workspaces import Workspaces


@dataclass(frozen=True, slots=True, eq=False)
class _Save:
    """What is written, and for which desk."""

    workspace: Workspace
    desk: object


class Saving(QObject):
    """The commands that save, and the question where a file was changed elsewhere."""

    def __init__(self, app: App, workspaces: Workspaces) -> None:
        super().__init__(workspaces)
        self._app = app
        self._workspaces = workspaces
        self._asked_about = Path()
        self._writer = Writer(app.runner, self)
        self._writer.settled.connect(self._on_settled)
        self.notice = Notice("changed elsewhere", "triangle-alert", "tight")
        for words, action in (
            (tr("Overwrite it"), self._on_overwrite),
            (tr("Save as another…"), self._on_save_as),
            (tr("Open the changed file"), self._on_open),
        ):
            self.notice.add_button(words).clicked.connect(action)
        app.view.add_notice(self.notice)
        app.themes.changed.connect(self.notice.set_theme)
        self.notice.set_theme(app.themes.current)
        workspaces.replaced.connect(self.notice.dismiss)
        commands = app.window.commands
        commands["save"].triggered.connect(self._on_save)
        commands["save as"].triggered.connect(self._on_save_as)

    def ask(self, path: Path) -> None:
        """Ask what is to become of ``path``, which was changed elsewhere."""
        self._asked_about = path
        self._app.note.dismiss()
        self.notice.tell(
            tr("{name} was changed by another program or window").format(name=path.name),
            tr("Nothing is written to it before you choose."),
        )

    def close(self) -> None:
        """Write what still waits."""
        self._writer.close()

    @Slot()
    def _on_save(self) -> None:
        if self._workspaces.file is None:
            self._on_save_as()
        else:
            self._save(self._workspaces.file)

    @Slot()
    def _on_save_as(self) -> None:
        model, file = self._app.model.state.model, self._workspaces.file
        name = present.title(model) if model else tr("Workspace")
        suggested = file.name if file else f"{name}{SUFFIX}"
        filters = tr("Workspaces (*{suffix})").format(suffix=SUFFIX)
        self._app.filing.ask_where(tr("Save the workspace"), filters, suggested, self._on_save_to)

    def _on_save_to(self, chosen: str) -> None:
        # The dialog asked already whether a file that is there may go.
        self._save(Path(chosen), over=True)

    @Slot()
    def _on_overwrite(self) -> None:
        self._save(self._asked_about, over=True)

    @Slot()
    def _on_open(self) -> None:
        self._workspaces.open(self._asked_about)

    def _save(self, path: Path, *, over: bool = False) -> None:
        workspace = self._workspaces.now()
        write = partial(self._workspaces.files.write, path, written(workspace), over=over)
        self._writer.submit(path, write, _Save(workspace, self._workspaces.desk))

    @Slot(object)
    def _on_settled(self, outcome: Written) -> None:
        path, save, error = outcome.path, outcome.token, outcome.error
        if not isinstance(save, _Save):
            return
        if error is None:
            self._workspaces.on_saved(path, save.workspace, save.desk)
            self.notice.dismiss()
            self._app.filing.tell(tr("Saved as {name}").format(name=path.name))
        elif isinstance(error, ChangedElsewhereError) and save.desk is self._workspaces.desk:
            self._workspaces.on_changed_elsewhere(path)
            self.ask(path)
        else:
            self._app.trouble.report(error)
