"""The checklist's steps, and the load that measures two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal, Slot

from engine.logs.regions import sizes_by_rank
from engine.overlay.checklist import Action, Checklist, checklist
from engine.overlay.steps import WATCHED_S, Evidence
from engine.seen.load_driver import LIMITS, Load, LoadDriver
from engine.telemetry.snapshot import Missing
from engine.words import tr
from gui.kit.dialogs import Companion
from gui.live.checklist_view import ChecklistView
from gui.live.load_dialog import LoadDialog, longest_prompt

if TYPE_CHECKING:
    from engine.budget.model import Budget
    from engine.cancel import CancelToken
    from engine.contract.run import Run
    from engine.overlay.checklist import Step
    from engine.seen.load_driver import Driven
    from engine.telemetry.address import Address
    from gui.app import App
    from gui.kit.tasks import Task

_PORTS: Final = {
    "vllm": 8000, "sglang": 30000, "ollama": 11434, "llama.cpp": 8080, "ik_llama.cpp": 8080,
    "mlx": 8080, "lmstudio": 1234, "tgi": 3000, "transformers": 8000, "koboldcpp": 5001,
}  # fmt: skip
"""Where each runtime listens unless it is told otherwise."""
_ANSWER = 128


class Checking(QObject):
    """Fills the checklist from plan, run and log, and does what a step asks for."""

    _ended = Signal(object)
    """A ``Request`` has ended; comes from a thread of the driver."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.view = ChecklistView()
        self.checklist: Checklist | None = None
        self.evidence = Evidence()
        """What fills the steps beside the plan."""
        self._longest: dict[str, int] = {}
        """Tokens of the longest prompt that was sent, by the plan's model and runtime."""
        self._task: Task | None = None
        self.load: Load | None = None
        """What was sent last, or a workspace says; None for what follows from the plan."""
        self._preset = Load()
        self._companion = Companion(self._made_dialog, self)
        app.view.tabs.add_page(tr("Checklist"), self.view)
        app.overlaying.changed.connect(self._fill)
        self.view.wanted.connect(self._on_wanted)
        app.themes.changed.connect(self.view.set_theme)
        self.view.set_theme(app.themes.current)

    def follow(self) -> None:
        """Count what the open log and the plan's runtime state from now on."""
        self._app.diagnosing.model.changed.connect(self._fill)
        self._app.seeing.plan_told.connect(self._fill)
        self._app.seeing.show_on(self.view)

    @property
    def dialog(self) -> LoadDialog | None:
        """The load's dialog; None while it is closed."""
        return self._companion.dialog

    @Slot()
    def _fill(self) -> None:
        app, state = self._app, self._app.model.state
        budget = state.sizing.budget if state.sizing and not state.is_stale else None
        if budget is None:
            self.checklist, self.evidence = None, Evidence()
        else:
            overlay = app.overlaying.overlay
            worst = overlay.worst if overlay and overlay.is_running else None
            chosen = (
                worst.rank if worst else state.sizing.verdict.binding_rank if state.sizing else 0
            )
            log = self.log_of(budget)
            self.evidence = Evidence(
                overlay=overlay,
                stated=sizes_by_rank(log.reading) if log and not log.has_failed else {},
                longest_prompt=self._longest.get(_key(budget)),
                release=self.release(budget),
                kernel=log.reading.kernel if log else "",
            )
            self.checklist = checklist(budget, chosen, self.evidence, state.unit)
        watched = app.overlaying.overlay
        can_learn = watched is not None and any(rank.errors for rank in watched.ranks)
        self.view.show_checklist(self.checklist, state.unit, can_learn=can_learn)
        app.view.tabs.set_count(self.view, self.checklist.count if self.checklist else "")

    def log_of(self, budget: Budget) -> Run | None:
        """What is said of the open log, where it is of the plan's runtime and model."""
        log = self._app.diagnosing.model.state
        run = log.run if log else None
        if run is None or run.sizing is None or _key(run.sizing.budget) != _key(budget):
            return None
        return run

    def release(self, budget: Budget) -> str:
        """The runtime's release as it or its log states it; empty where neither does."""
        seen = self._app.seeing.of_plan
        if seen is not None and isinstance(seen.version, str):
            return seen.version
        log = self._app.diagnosing.model.state
        is_same = log is not None and log.run.reading.runtime == budget.deployment.runtime
        return log.run.reading.version if log is not None and is_same else ""

    @Slot(object)
    def _on_wanted(self, step: Step) -> None:
        commands = self._app.window.commands
        triggers = {
            Action.START: commands["launch"],
            Action.PLAN: commands["context"],
            Action.LOG: commands["open log"],
        }
        if step.action is None:
            return
        if step.action in triggers:
            triggers[step.action].trigger()
        else:
            is_prefill = step.action is Action.PREFILL
            self._preset = (None if is_prefill else self.load) or self._load_for(step.action)
            self._companion.open()

    def _load_for(self, action: Action) -> Load:
        """One prompt of the plan's length, or steady requests of half of it for ten minutes."""
        plan = self._app.model.state.plan.deployment
        context = self._app.model.state.context or Load.prompt_tokens
        most = LIMITS["prompt_tokens"][1]
        if action is Action.PREFILL:
            answer = min(16, max(context // 2, 1))
            prompt = min(max((plan.prompt_len or context) - answer, 1), most)
            return Load(prompt_tokens=prompt, output_tokens=answer, requests=1)
        at_once = min(max(plan.concurrency, 1), LIMITS["concurrency"][1])
        answer = min(_ANSWER, max(context // 4, 1))
        return Load(
            prompt_tokens=min(max(context // 2, 1), most),
            output_tokens=answer,
            requests=LIMITS["requests"][1],
            concurrency=at_once,
            limit_s=WATCHED_S + 60,
        )

    def _made_dialog(self) -> LoadDialog:
        state = self._app.model.state
        runtime = state.plan.deployment.runtime
        address = f"localhost:{_PORTS.get(runtime, 8000)}"
        model = state.model.id if state.model is not None else ""
        seen = self._app.seeing.of_plan
        if seen is not None:
            address = str(seen.address) if seen.address else address
            model = model if isinstance(seen.model, Missing) else seen.model.name
        made = LoadDialog(address, model, self._preset, self._app.window)
        made.start_wanted.connect(self._on_start)
        made.stop_wanted.connect(self._on_stop)
        self._ended.connect(made.show_request)
        return made

    @Slot(object, str, object, str)
    def _on_start(self, address: Address, model: str, load: Load, key: str) -> None:
        dialog, state = self.dialog, self._app.model.state
        if dialog is None or self._task is not None:
            return
        driver = LoadDriver(address, model, load, key)
        which = _key(state.sizing.budget) if state.sizing else ""

        def job(token: CancelToken) -> tuple[str, Driven]:
            return which, driver.run(token, self._ended.emit)

        if load.requests > 1:
            self.load = load
        task = self._app.runner.submit(job)
        self._task = task
        task.succeeded.connect(self._on_driven)
        task.failed.connect(self._on_failed)
        task.ended.connect(self._on_over)
        dialog.show_running(running=True)

    @Slot()
    def _on_stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    @Slot(object)
    def _on_driven(self, result: tuple[str, Driven]) -> None:
        which, driven = result
        longest = longest_prompt(driven)
        if which and longest:
            self._longest[which] = max(longest, self._longest.get(which, 0))
        if self.dialog is not None:
            self.dialog.show_driven(driven)
        self._fill()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if self.dialog is not None:
            self.dialog.show_error(error)

    @Slot()
    def _on_over(self) -> None:
        """Also where it was stopped: then nothing else is told."""
        self._task = None
        if self.dialog is not None and self.dialog.stop.isEnabled():
            self.dialog.show_stopped()


def _key(budget: Budget) -> str:
    return f"{budget.deployment.runtime} {budget.model.id}"
