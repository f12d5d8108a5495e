"""Works out the fit map and the curve of the plan in force, off the UI thread, while seen."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from engine.fit import fit_map as maps
from engine.fit.curve import curve
from engine.fit.inverse import smaller_cache
from engine.fit.plane import axes
from engine.words import tr
from gui.kit.latest import LatestOnly
from gui.kit.throttle import Debounce

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.fit.curve import Curve
    from engine.fit.fit_map import FitMap, MarginTable
    from engine.fit.plane import Axes
    from gui.kit.tasks import TaskRunner
    from gui.sizing.view_model import SizingViewModel, State

_log = logging.getLogger("plimsoll.gui")

_PAUSE_MS = 20
"""A burst of edits is answered once."""
_MOVE = "fit map"


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """What a map depends on: everything but where on it the plan stands."""

    model: Model
    deployment: Deployment
    machine: Machine
    key: Deployment
    """The deployment without its context and requests."""

    def is_like(self, other: _Question | None) -> bool:
        """Whether ``other`` has the same map."""
        return (
            other is not None
            and other.model is self.model
            and other.key == self.key
            and other.machine == self.machine
        )


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """The limit of the plan with the next smaller KV cache."""

    name: str
    """The cache's type, as the runtime calls it; empty where there is no smaller one."""
    line: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """All that has been worked out; parts that are not there yet are None."""

    question: _Question
    map: FitMap
    table: MarginTable
    alternative: Alternative | None = None
    curve: Curve | None = None
    curve_requests: int = 0
    """What ``curve`` was worked out for."""


class FitMapModel(QObject):
    """Asks the engine again when the plan changes; the old answer stays until the new comes."""

    changed = Signal()

    def __init__(
        self, room: SizingViewModel, runner: TaskRunner, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._room = room
        self._is_seen = False
        self._is_moving = False
        self.answer: Answer | None = None
        self.has_failed = False
        """Whether the last question found no answer; it is logged why."""
        self._asked: _Question | None = None
        self._maps, self._others, self._curves = (LatestOnly(runner, self) for _ in range(3))
        for jobs, found in (
            (self._maps, self._on_map),
            (self._others, self._on_alternative),
            (self._curves, self._on_curve),
        ):
            jobs.succeeded.connect(found)
            jobs.failed.connect(self._on_failed)
        self._soon = Debounce(_PAUSE_MS, self._ask, self)
        room.changed.connect(self._on_room_changed)

    @property
    def state(self) -> State:
        """The room's state."""
        return self._room.state

    @property
    def is_current(self) -> bool:
        """Whether the answer is the plan's, or the nearest there is to it."""
        question = self._question()
        return self.answer is not None and self._holds(question, self.answer)

    @property
    def curve_is_current(self) -> bool:
        """Whether the curve is the plan's too."""
        answer = self.answer
        return (
            answer is not None
            and answer.curve is not None
            and self.is_current
            and answer.curve_requests == self.state.plan.deployment.concurrency
        )

    @property
    def is_settled(self) -> bool:
        """Whether nothing is still being worked out."""
        jobs = (self._maps, self._others, self._curves)
        return not (self._soon.is_pending or any(job.is_busy for job in jobs))

    def set_seen(self, *, seen: bool) -> None:
        """Work only while somebody looks."""
        self._is_seen = seen
        if seen:
            self._ask()

    def move(self, context: int, requests: int, *, dragging: bool = False) -> None:
        """Put the plan elsewhere; all moves of one drag are one step of undo."""
        if dragging and not self._is_moving:
            self._is_moving = True
            self._room.undo_stack.beginMacro(tr("move on the fit map"))
        self._room.edit(_MOVE, max_model_len=context, concurrency=requests)

    def end_drag(self) -> None:
        """The point was let go."""
        if self._is_moving:
            self._is_moving = False
            self._room.undo_stack.endMacro()

    def margin_bytes(self, context: int, requests: int) -> int | None:
        """The likely margin of one plan, planned anew; None where there is none to promise."""
        question = self._question()
        if question is None:
            return None
        return maps.certain_margin_bytes(
            question.model, question.deployment, question.machine, context, requests
        )

    def _on_room_changed(self, _state: object) -> None:
        if self._is_seen:
            question = self._question()
            if question is None or not question.is_like(self._asked):
                self._maps.cancel()
                self._others.cancel()
            self._soon.request()
        self.changed.emit()

    def _question(self) -> _Question | None:
        state = self.state
        if state.model is None or state.machine is None or state.sizing is None or state.is_stale:
            return None
        plan = state.plan.deployment
        key = plan.with_(max_model_len=None, concurrency=1)
        # A context that is the runtime's own depends on the plan: the map needs a number.
        settled = plan.with_(max_model_len=state.context)
        return _Question(state.model, settled, state.machine, key)

    def _holds(self, question: _Question | None, answer: Answer) -> bool:
        if question is None or not question.is_like(answer.question):
            return False
        shown = answer.map.axes
        context = question.deployment.max_model_len or shown.least_context
        return (
            shown.least_context <= context <= shown.most_context
            and question.deployment.concurrency <= shown.most_requests
        )

    def _ask(self) -> None:
        question = self._question()
        if not self._is_seen or question is None:
            return
        self.has_failed = False
        if self.answer is None or not self._holds(question, self.answer):
            self._asked = question

            def work(token: CancelToken) -> Answer:
                stop = token.raise_if_cancelled
                plan = (question.model, question.deployment, question.machine)
                shown = axes(*plan)
                found = maps.fit_map(*plan, shown, stop)
                return Answer(question, found, maps.margin_table(*plan, shown, stop))

            self._maps.submit(work)
        elif not self.curve_is_current:
            self._ask_curve(question, self.answer.map.axes)

    def _ask_curve(self, question: _Question, shown: Axes) -> None:
        requests = question.deployment.concurrency

        def work(token: CancelToken) -> tuple[Curve, int]:
            plan = (question.model, question.deployment, question.machine)
            return curve(*plan, shown, token.raise_if_cancelled), requests

        self._curves.submit(work)

    @Slot(object)
    def _on_map(self, found: Answer) -> None:
        self.answer = found
        self.changed.emit()
        question = found.question

        def work(token: CancelToken) -> Alternative:
            smaller = smaller_cache(question.model, question.deployment, question.machine)
            if smaller is None:
                return Alternative("")
            name, plan = smaller
            line = maps.limit(
                question.model, plan, question.machine, found.map.axes, token.raise_if_cancelled
            )
            return Alternative(name, line)

        self._others.submit(work)
        self._ask()

    @Slot(object)
    def _on_alternative(self, found: Alternative) -> None:
        if self.answer is not None:
            self.answer = replace(self.answer, alternative=found)
            self.changed.emit()

    @Slot(object)
    def _on_curve(self, found: tuple[Curve, int]) -> None:
        if self.answer is not None:
            self.answer = replace(self.answer, curve=found[0], curve_requests=found[1])
            self.changed.emit()
            self._ask()

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        _log.error("the fit map could not be worked out", exc_info=error)
        self.has_failed = True
        self.changed.emit()
