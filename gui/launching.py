"""From the plan to its start command, and from a pasted command to the plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.errors import PlimsollError
from engine.launch.dialect import NODE_DEVICES
from engine.launch.read import MOST_CHARACTERS, read
from engine.launch.weights import of_model
from engine.words import tr
from gui.browser.sources import resolved
from gui.kit.dialogs import Companion
from gui.kit.latest import LatestOnly
from gui.sizing.command_dialog import CommandDialog, left_of
from gui.sizing.launch_dialog import LaunchDialog
from gui.sizing.plan import adapted

if TYPE_CHECKING:
    from pathlib import Path

    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.launch.read import Understood
    from engine.source.raw import RawModel
    from gui.app import App
    from gui.kit.theme import Theme
    from gui.sizing.view_model import State


SUFFIXES = (".yaml", ".yml", ".sh")
"""Files that may hold what starts a model."""


class _Awaited:
    """A command whose model is on its way, and what the worker brought for it."""

    def __init__(self, found: Understood) -> None:
        self.found = found
        self.name = ""

    def fetch(self, app: App, token: CancelToken) -> RawModel:
        """The model of the command; for a worker."""
        raw = resolved(self.found.model, app.hub, token)
        self.name = raw.id
        return raw


class Launching(QObject):
    """Opens both dialogs, and the plan of a command."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._awaited: _Awaited | None = None
        self._node_devices = NODE_DEVICES
        self._file = LatestOnly(app.runner, self)
        self._file.succeeded.connect(self.open)
        self._file.failed.connect(app.trouble.report)
        self._panel = Companion(self._made_dialog, self)
        self._action = app.window.commands["launch"]
        self._action.triggered.connect(self._panel.open)
        app.window.commands["from command"].triggered.connect(self._on_paste)
        app.view.header.add_action_button(self._action, "terminal", tr("Launch"), flat=True)
        app.browser.model.commanded.connect(self.take)
        app.model.changed.connect(self._on_state_changed)
        app.themes.changed.connect(self._on_theme_changed)
        self._on_state_changed(app.model.state)

    # --- a plan's command

    @property
    def dialog(self) -> LaunchDialog | None:
        """The panel with the command; None while it is closed."""
        return self._panel.dialog

    def _made_dialog(self) -> LaunchDialog:
        made = LaunchDialog(self._app.themes.current, self._app.window)
        made.node_devices.set_value(self._node_devices)
        made.copied.connect(self._on_copied)
        made.resized_nodes.connect(self._on_nodes_resized)
        made.show_state(self._app.model.state, self._path())
        return made

    @Slot()
    def _on_nodes_resized(self) -> None:
        if self.dialog is not None:
            self._node_devices = self.dialog.node_devices.value
            self.dialog.show_state(self._app.model.state, self._path())

    @Slot(str)
    def _on_copied(self, title: str) -> None:
        self._app.filing.tell(tr("Copied: {form}").format(form=title))

    @Slot(object)
    def _on_state_changed(self, state: State) -> None:
        self._action.setEnabled(state.sizing is not None and not state.is_stale)
        if self.dialog is not None:
            self.dialog.show_state(state, self._path())

    @Slot(object)
    def _on_theme_changed(self, theme: Theme) -> None:
        if self.dialog is not None:
            self.dialog.set_theme(theme)

    def _path(self) -> str:
        """Where the model in the window lies on this computer, if it does."""
        row, model = self._app.browser.model.chosen_row, self._app.model.state.model
        return row.path if row is not None and model is not None and row.key == model.id else ""

    # --- a command's plan

    @Slot()
    def _on_paste(self) -> None:
        model = self._app.model.state.model
        name = model.id if model is not None else ""
        dialog = CommandDialog(self._app.themes.current, name, self._app.window)
        dialog.understood.connect(self.open)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot(str)
    def take(self, text: str) -> None:
        """Open the plan of the command ``text``, or say why that can't be."""
        try:
            found = read(text)
        except PlimsollError as error:
            self._app.trouble.report(error)
            return
        self.open(found)

    def take_file(self, path: Path) -> None:
        """Open the plan of a script, a Compose file or a manifest, or say why that can't be."""
        self._file.submit(lambda _: _read(path))

    @Slot(object)
    def open(self, found: Understood) -> None:
        """Put the plan of a command in force; its model is fetched if it is another one."""
        app, model = self._app, self._app.model.state.model
        app.trouble.dismiss()
        self._awaited = None
        if model is not None and found.model in ("", model.id):
            self._put(model, found)
        elif not found.model:
            app.trouble.report_sentence(tr("The command names no model: pick one first."))
        else:
            self._awaited = _Awaited(found)
            app.loader.load(partial(self._awaited.fetch, app))

    @Slot(object)
    def on_loaded(self, model: Model) -> None:
        """Put the plan of a command in force whose model has come, once it is the window's."""
        awaited, self._awaited = self._awaited, None
        # Another model may have been opened in the meantime: it keeps its own plan.
        if awaited is not None and awaited.name == model.id:
            self._put(model, awaited.found)

    def _put(self, model: Model, found: Understood) -> None:
        app = self._app
        deployment = of_model(found.deployment, model)
        # A command without a context leaves it to the runtime, which is a choice as well.
        plan = app.model.state.plan.with_(deployment=deployment, assumes_context=False)
        plan, changed = adapted(plan, model)
        app.model.open(model, plan)
        told = " ".join(part for part in (left_of(found), *changed) if part)
        app.filing.tell(tr("The command’s plan is open"), told)


def _read(path: Path) -> Understood:
    # One character more tells that there is too much.
    with path.open(encoding="utf-8", errors="replace") as file:
        return read(file.read(MOST_CHARACTERS + 1))
