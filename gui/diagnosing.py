"""The commands that read a log, and the run's words in the place of the plan's verdict."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from engine.contract.run_plan import room_of
from engine.launch.read import is_one
from engine.source import catalogue
from engine.words import tr, tr_later
from gui.log.present import markdown
from gui.log.run_verdict import RunVerdict
from gui.log.view import LogView
from gui.log.view_model import LogViewModel
from gui.sizing.plan import Plan

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment
    from engine.logs.remedies import Remedy
    from gui.app import App
    from gui.kit.theme import Theme
    from gui.log.view_model import LogState
    from gui.sizing.view_model import State

SUFFIXES = frozenset({".log", ".txt", ".out", ".err", ".prom"})
"""Files that are taken for logs where they are dropped."""
_LIST = re.compile(r"\[\s*(?:[\[{\"]|$)")
_LOGS = tr_later("Logs (*.log *.txt *.out *.err *.prom);;All files (*)")


def is_log(what: Path | str) -> bool:
    """Whether what was dropped or pasted is a log: a file of that kind, or lines of text."""
    if isinstance(what, Path):
        return what.suffix.lower() in SUFFIXES
    first, _, more = what.strip().partition("\n")
    # SGLang's lines begin with [, and TGI's may each be an object of their own.
    is_config = bool(_LIST.match(first)) or (first[:1] == "{" and not first.rstrip().endswith("}"))
    return bool(more) and not is_config and not is_one(what)


class Diagnosing(QObject):
    """Connects the log's room with the window."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.model = LogViewModel(app.runner, self)
        self.view = LogView(self.model)
        self.verdict = RunVerdict()
        app.view.tabs.add_page(tr("Log"), self.view, alone=True)
        app.view.add_run_verdict(self.verdict)
        self._connect()
        self._offer_commands(None)
        self.set_theme(app.themes.current)

    def _connect(self) -> None:
        app, commands = self._app, self._app.window.commands
        commands["open log"].triggered.connect(self._on_open)
        commands["paste log"].triggered.connect(self._on_paste)
        commands["tab log"].triggered.connect(self._on_tab)
        commands["close log"].triggered.connect(self.close)
        commands["plan log"].triggered.connect(self._on_plan)
        self.view.open_wanted.connect(self._on_open)
        self.view.paste_wanted.connect(self._on_paste)
        self.view.plan_wanted.connect(self._on_plan)
        self.view.predict_wanted.connect(self._on_predict)
        self.view.copy_wanted.connect(self._on_copy)
        self.verdict.close_wanted.connect(self.close)
        self.verdict.chosen.connect(self._on_remedy)
        self.model.changed.connect(self._on_changed)
        self.model.opened.connect(self._on_opened)
        self.model.object_found.connect(app.browser.open)
        self.model.failed.connect(app.trouble.report)
        self.model.busy_changed.connect(app.window.progress.set_busy)
        app.model.changed.connect(self._on_state_changed)
        app.view.tabs.current_changed.connect(self._show_verdict)
        app.view.tabs.folded_changed.connect(self._show_verdict)
        app.themes.changed.connect(self.set_theme)

    def read(self, what: Path | str) -> None:
        """Read the log in a file, or the text of one."""
        self._app.trouble.dismiss()
        if isinstance(what, Path):
            self.model.read_file(what)
        else:
            self.model.read_text(what)

    @Slot()
    def close(self) -> bool:
        """Close the log and return to the plan. Returns whether there was one."""
        was_open = self.model.close()
        if was_open and self._is_shown:
            self._app.view.tabs.open_page(self._app.view.regions)
        return was_open

    @Slot(object)
    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self.view.set_theme(theme)
        self.verdict.set_theme(theme)

    @property
    def _is_shown(self) -> bool:
        return self._app.view.tabs.stack.currentWidget() is self.view

    def _window(self) -> dict[str, object]:
        """What the plan in the window is of, for a log that says too little."""
        state = self._app.model.state
        found: dict[str, object] = {}
        if state.model is not None and catalogue.find(state.model.id) is not None:
            found["model"] = state.model.id
        open_log = self.model.state
        says_room = open_log is not None and room_of(open_log.run.reading) is not None
        if state.plan.device is not None and not says_room:
            found["gpu"] = state.plan.device
        return found

    def _on_tab(self) -> None:
        self._app.view.tabs.open_page(self.view)

    def _on_open(self) -> None:
        self._app.filing.ask_file(tr("Read a log"), tr(_LOGS), self._on_file_selected)

    def _on_file_selected(self, name: str) -> None:
        self.read(Path(name))

    def _on_paste(self) -> None:
        text = QGuiApplication.clipboard().text()
        if text.strip():
            self.read(text)
        else:
            self._app.trouble.report_sentence(
                tr("The clipboard holds no text: copy the lines of a log first.")
            )

    def _on_opened(self) -> None:
        self._app.simplifying.show_simple(simple=False)
        self._app.view.tabs.open_page(self.view)
        self.view.text.setFocus()

    def _on_changed(self, state: LogState | None) -> None:
        if state is not None:
            self.verdict.show_state(state)
        self._app.view.tabs.set_count(self.view, "" if state is None else "1")
        self._offer_commands(state)
        self._show_verdict()

    def _offer_commands(self, state: LogState | None) -> None:
        commands = self._app.window.commands
        commands["close log"].setEnabled(state is not None)
        commands["plan log"].setEnabled(state is not None and state.run.plan is not None)

    def _show_verdict(self) -> None:
        """Of the run while its log is in sight, else of the plan."""
        is_open = self._is_shown and not self._app.view.tabs.is_folded
        self._app.view.show_run(shown=self.model.state is not None and is_open)

    @Slot(object)
    def _on_state_changed(self, state: State) -> None:
        self.model.set_unit(state.unit)
        self.view.offer_model(str(self._window().get("model", "")))

    def _on_predict(self) -> None:
        self.model.predict(self._window())

    def _on_plan(self) -> None:
        state = self.model.state
        if state is not None and state.run.plan is not None:
            self._plan(state.run.plan.deployment)

    def _on_remedy(self, remedy: Remedy) -> None:
        if remedy.deployment is not None:
            self._plan(remedy.deployment)

    def _plan(self, deployment: Deployment) -> None:
        """Put the run's model with ``deployment`` into the window, on its device."""
        state = self.model.state
        planned = state.run.plan if state is not None else None
        if planned is None:
            return
        app = self._app
        device = planned.machine.slots[0].device
        known = planned.notes.capacity_known
        place = f"{device.total_bytes / 2**30:.2f} GiB" if known else app.model.state.plan.device
        app.model.open(planned.model, Plan(deployment, device=place))
        app.view.tabs.open_page(app.view.regions)
        app.filing.tell(tr("The plan is that of the run"), tr("The log stays under Log."))

    def _on_copy(self) -> None:
        if self.model.state is not None:
            QGuiApplication.clipboard().setText(markdown(self.model.state))
            self._app.filing.tell(tr("Copied as Markdown"))
