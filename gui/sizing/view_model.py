"""Holds model, plan and machine; every edit is answered at once with one frozen ``State``."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QElapsedTimer, QObject, Signal, Slot
from PySide6.QtGui import QUndoStack

from engine.errors import PlimsollError
from engine.fit.changes import changes
from engine.fit.solve import limits
from engine.runtimes.registry import RUNTIMES
from engine.units import UnitSystem
from engine.words import tr, tr_later
from gui.kit.latest import LatestOnly
from gui.kit.messages import sentence
from gui.kit.throttle import Debounce
from gui.sizing import beside
from gui.sizing.plan import (
    Neighbour,
    Plan,
    adapted,
    assuming_context,
    first_plan,
    machine_for,
    on_device,
    with_runtime,
)
from gui.sizing.plan_edit import ADDED, REMOVED, EditPlan, Laid, LayOut, Planned

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.devices.device import Machine
    from engine.fit.changes import Change
    from engine.fit.solve import Limits
    from engine.fit.verdict import Fit
    from engine.sizing import Sizing
    from engine.together import Placed
    from gui.kit.tasks import TaskRunner

_log = logging.getLogger("plimsoll.gui")

_INVERSE_PAUSE_MS = 40
"""The limits are searched once a drag has paused this long."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """All that the room shows. ``sizing`` is the last good answer, stale beside a ``problem``."""

    plan: Plan
    here: Machine
    unit: UnitSystem = UnitSystem.BINARY
    model: Model | None = None
    machine: Machine | None = None
    sizing: Sizing | None = None
    awaited: str = ""
    """What the plan's model is called, where it isn't here and the user has to ask for it."""
    problem: str = ""
    problem_field: str = ""
    limits: Limits | None = None
    changes: tuple[Change, ...] = ()
    beside: tuple[Placed, ...] = ()
    """The other models of the machine, where they came to lie; none of them beside a problem."""
    notes: tuple[str, ...] = ()
    """What loading a model changed in the plan, and what is to be known of it, a sentence each."""

    @property
    def is_stale(self) -> bool:
        """Whether the picture belongs to an earlier plan."""
        return bool(self.problem)

    @property
    def context(self) -> int | None:
        """The context in force: the user's, or the runtime's own default."""
        chosen = self.plan.deployment.max_model_len
        if chosen is None and self.sizing:
            return self.sizing.budget.deployment.max_model_len
        return chosen

    @property
    def fit(self) -> Fit | None:
        """The verdict in force on all models of the machine, if there is one."""
        if self.sizing is None or self.is_stale:
            return None
        return beside.outcome(self.sizing, self.beside)

    @property
    def own_fit(self) -> Fit | None:
        """The verdict in force on the plan alone, whatever those beside it come to."""
        return self.sizing.verdict.outcome if self.sizing and not self.is_stale else None


@dataclass(frozen=True, slots=True, eq=False)
class _Inverse:
    """The answers that take a search, for one sizing."""

    sizing: Sizing
    limits: Limits
    changes: tuple[Change, ...]


class SizingViewModel(QObject):
    """The room's state and its only way to change."""

    changed = Signal(object)
    """The new ``State``."""

    def __init__(
        self,
        runner: TaskRunner,
        here: Machine,
        default_runtime: Callable[[Model, Machine], str],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._default_runtime = default_runtime
        self.runner = runner
        """Where what takes a search is worked out."""
        self._begins_emptied = False
        self.state = State(plan=first_plan(next(iter(RUNTIMES))), here=here)
        self.undo_stack = QUndoStack(self)
        self.undo_stack.setUndoLimit(200)
        self._is_own_plan = True
        self._held_at: int | None = None
        self._clock = QElapsedTimer()
        self._clock.start()
        self._inverse = LatestOnly(runner, self)
        self._inverse.succeeded.connect(self._on_inverse_found)
        self._inverse.failed.connect(self._on_inverse_failed)
        self._search = Debounce(_INVERSE_PAUSE_MS, self._start_search, self)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is still being worked out."""
        return not (self._search.is_pending or self._inverse.is_busy)

    def load(self, model: Model) -> None:
        """Size ``model``; not a step of undo. Until the user has edited it, the plan is our own."""
        plan = self.state.plan
        if self._is_own_plan:
            plan = self._first_plan(model)
        plan, changed = adapted(plan, model)
        notes = (*changed, *model.notes)
        state = replace(self.state, model=model, plan=plan, awaited="", notes=notes)
        self._answer(replace(state, sizing=None))

    def open(self, model: Model, plan: Plan) -> None:
        """Put a plan that was kept in force, undoably."""
        if model is self.state.model:
            self._push(plan, "kept plan")
        else:
            state = self.state
            before = Laid(state.model, state.plan, state.awaited)
            self.undo_stack.push(LayOut(self.take, before, Laid(model, plan)))

    def fresh_plan(self) -> Plan:
        """The plan that the model in force begins with."""
        model = self.state.model
        return self.state.plan if model is None else self._plan_of_our_own(model)

    def take(self, laid: Laid) -> None:
        """Put a model and the plan it was kept with in force; not a step of undo by itself."""
        model, plan = laid.model, laid.plan
        self._is_own_plan = model is not None and plan == self._plan_of_our_own(model)
        notes = model.notes if model else ()
        state = replace(self.state, model=model, plan=plan, awaited=laid.awaited, notes=notes)
        self._answer(replace(state, sizing=None, machine=None))

    def _plan_of_our_own(self, model: Model) -> Plan:
        return adapted(self._first_plan(model), model)[0]

    def _first_plan(self, model: Model) -> Plan:
        runtime = self._default_runtime(model, self.state.here)
        return first_plan(runtime).with_(emptied=self._begins_emptied)

    def set_here(self, here: Machine) -> None:
        """Take a new measurement of this computer."""
        self._answer(replace(self.state, here=here))

    def set_unit(self, unit: UnitSystem) -> None:
        """Write sizes in ``unit`` everywhere."""
        if unit is not self.state.unit:
            self._publish(replace(self.state, unit=unit))

    def begin_emptied(self, *, emptied: bool) -> None:
        """Count the device in every plan to come, and in this one, with or without the others."""
        self._begins_emptied = emptied
        if self.state.model is not None:
            self.set_emptied(emptied=emptied)

    def edit(self, field: str, **settings: Any) -> None:
        """Change settings of the deployment; ``field`` names the control for undo."""
        plan = self.state.plan
        self._push(plan.deploying(plan.deployment.with_(**settings)), field)

    def hold(self, *, held: bool) -> None:
        """While a slider is held, its edits are one step of undo, however long that takes."""
        self._held_at = self._clock.elapsed() if held else None

    def assume_context(self) -> None:
        """Go back to the context that the plan would begin with."""
        self._push(assuming_context(self.state.plan, self.state.model), "context")

    def choose_runtime(self, name: str, version: str | None) -> None:
        """Plan for another runtime or version."""
        self._push(with_runtime(self.state.plan, name, version, self.state.model), "runtime")

    def choose_device(self, device: str | None) -> None:
        """Plan for a device of the catalogue, or for this computer with None."""
        self._push(on_device(self.state.plan, device), "device")

    def state_ram(self, total_bytes: int | None) -> None:
        """Say how much RAM the machine has that is planned for, or no longer."""
        self._push(self.state.plan.with_(host_total_bytes=total_bytes), "ram")

    def set_emptied(self, *, emptied: bool) -> None:
        """Count the device with or without what others hold on it."""
        self._push(self.state.plan.with_(emptied=emptied), "emptied")

    def apply(self, change: Change) -> None:
        """Take one of the changes that would make the plan fit."""
        plan = self.state.plan.deploying(change.deployment)
        self._push(plan, f"change {change.label}")

    def add_beside(self, model: Model) -> None:
        """Let ``model`` run on the same machine, as a first plan of it with this runtime."""
        state = self.state
        mine = state.plan.deployment
        first = with_runtime(first_plan(mine.runtime), mine.runtime, mine.runtime_version, model)
        first, _ = adapted(first, model)
        other = Neighbour(model, first.deployment, first.assumes_context)
        self._push(beside.added(state.plan, other), f"{ADDED} {id(other)}")

    def remove_beside(self, index: int) -> None:
        """Take one of the other models off the machine."""
        field = f"{REMOVED} {id(self.state.plan.beside[index])}"
        self._push(beside.removed(self.state.plan, index), field)

    def swap_beside(self, index: int) -> None:
        """Plan one of the other models, with the one planned so far beside it."""
        if self.state.model is not None:
            self._is_own_plan = False
            model, plan = beside.swapped(self.state.model, self.state.plan, index)
            before = Planned(self.state.plan, self.state.model)
            after = Planned(plan, model)
            self.undo_stack.push(
                EditPlan(self.restore, before, after, "swap", self._clock.elapsed())
            )

    def scale_context(self, steps: int) -> None:
        """Double the context ``steps`` times, or halve it."""
        context = self.state.context
        if context:
            scaled = context << steps if steps > 0 else max(1, context >> -steps)
            self.edit("context", max_model_len=scaled)

    def _push(self, plan: Plan, field: str) -> None:
        if plan != self.state.plan:
            self._is_own_plan = False
            before, after = Planned(self.state.plan), Planned(plan)
            now = self._clock.elapsed() if self._held_at is None else self._held_at
            self.undo_stack.push(EditPlan(self.restore, before, after, field, now))

    def restore(self, planned: Planned) -> None:
        """Put a plan in force, for its model if it names one; for undo and redo."""
        state = self.state
        model = planned.model or state.model
        # What loading changed in the plan is in the past now; what is to be known of it is not.
        notes = model.notes if model else ()
        # Another model's picture is none of this one's, not even a pale one.
        sizing = state.sizing if model is state.model else None
        self._answer(replace(state, plan=planned.plan, model=model, notes=notes, sizing=sizing))

    def _answer(self, state: State) -> None:
        state = replace(state, problem="", problem_field="", limits=None, changes=(), beside=())
        if state.model is None:
            self._publish(replace(state, machine=self._planned_machine(state)))
            return
        try:
            found = beside.answer(state.model, state.plan, state.here)
        except PlimsollError as error:
            words = _as_labelled(sentence(error), error.field)
            state = replace(state, problem=words, problem_field=error.field)
        except Exception as error:  # noqa: BLE001 - an old answer must not pass for the new plan's
            _log.exception("sizing failed")
            state = replace(state, problem=sentence(error))
        else:
            state = replace(state, machine=found.machine, sizing=found.sizing, beside=found.beside)
        self._inverse.cancel()
        if state.is_stale:
            self._search.cancel()
        else:
            self._search.request()
        self._publish(state)

    def close(self) -> None:
        """Forget the edits, last of all.

        Qt's stack owns its commands, but the garbage collector may free their Python halves
        before the stack, and the halves take the commands along: the stack then dies of them.
        """
        self.undo_stack.clear()

    def _planned_machine(self, state: State) -> Machine | None:
        """Where the plan runs that waits for its model; None where it names no such machine."""
        if not state.awaited:
            return state.machine
        with suppress(PlimsollError):
            return machine_for(state.plan, state.here)
        return None

    def _start_search(self) -> None:
        state = self.state
        model, machine, sizing = state.model, state.machine, state.sizing
        if model is None or machine is None or sizing is None:
            return
        deployment = state.plan.deployment

        def search(token: CancelToken) -> _Inverse:
            found = limits(model, deployment, machine)
            token.raise_if_cancelled()
            return _Inverse(sizing, found, changes(model, deployment, machine))

        self._inverse.submit(search)

    @Slot(object)
    def _on_inverse_found(self, found: _Inverse) -> None:
        if found.sizing is self.state.sizing and not self.state.is_stale:
            self._publish(replace(self.state, limits=found.limits, changes=found.changes))

    @Slot(object)
    def _on_inverse_failed(self, error: BaseException) -> None:
        _log.error("the limits could not be worked out", exc_info=error)

    def _publish(self, state: State) -> None:
        self.state = state
        self.changed.emit(state)


def _as_labelled(words: str, field: str) -> str:
    """``words`` about a setting with the label of its control in place of its own name."""
    label = tr(_LABELS.get(field, ""))
    begins = next((name for name in (f"{field} = ", f"{field} ") if words.startswith(name)), "")
    return f"{label}: {words.removeprefix(begins)}" if label and begins else words


_LABELS = {
    "max_model_len": tr_later("Context"),
    "concurrency": tr_later("At once"),
    "tensor_parallel_size": tr_later("Tensor parallel"),
    "pipeline_parallel_size": tr_later("Pipeline parallel"),
}
