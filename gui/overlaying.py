"""Plan and samples meet here: the overlay of the two, handed to all that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from engine.overlay.overlay import Follower
from engine.seen.phase_state import phase_state

if TYPE_CHECKING:
    from engine.budget.model import Budget
    from engine.overlay.overlay import Overlay
    from engine.overlay.state import RuntimeState
    from engine.seen.model import RuntimeSeen
    from engine.telemetry.snapshot import TelemetrySnapshot
    from gui.app import App
    from gui.sizing.view_model import State


class Overlaying(QObject):
    """Follows this computer's devices for the plan in force."""

    changed = Signal(object)
    """An ``Overlay``, or None where the plan is not for this computer."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._follower = Follower()
        self._budget: Budget | None = None
        self._state: RuntimeState | None = None
        self.overlay: Overlay | None = None
        app.model.changed.connect(self._on_state)
        app.watch.sampled.connect(self._on_sampled)
        self.changed.connect(app.view.show_overlay)

    def take_state(self, state: RuntimeState | None) -> None:
        """What the plan's runtime says of itself from now on; None where it says nothing."""
        self._state = state

    def follow_runtimes(self) -> None:
        """Heed what the plan's own runtime says at each look."""
        self._app.seeing.plan_told.connect(self._on_plan_told)

    @Slot(object)
    def _on_plan_told(self, seen: RuntimeSeen | None) -> None:
        self.take_state(phase_state(seen) if seen is not None else None)

    @Slot(object)
    def _on_state(self, state: State) -> None:
        if state.is_stale:
            return
        is_here = state.machine is not None and state.machine.is_here
        self._budget = state.sizing.budget if state.sizing and is_here else None
        if self._budget is not None:
            self._follower.follow(self._budget)
        self._publish()

    @Slot(object)
    def _on_sampled(self, snapshot: TelemetrySnapshot) -> None:
        self._follower.add(snapshot, self._state)
        self._publish()

    def _publish(self) -> None:
        budget = self._budget
        self.overlay = self._follower.overlay(budget) if budget is not None else None
        self.changed.emit(self.overlay)
