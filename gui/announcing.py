"""What changes in the picture, told to a screen reader in a sentence, and not too often."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QObject, Slot

from engine.telemetry.snapshot import Missing
from engine.words import tr
from gui.kit import format as fmt
from gui.kit.spoken import announce
from gui.kit.throttle import Debounce
from gui.sizing import present

if TYPE_CHECKING:
    from engine.devices.device import Machine
    from engine.telemetry.snapshot import TelemetrySnapshot
    from engine.units import UnitSystem
    from gui.app import App
    from gui.sizing.view_model import State

_REST_MS = 700
"""A plan is said once its edits have paused this long."""
_EVERY_MS = 10_000
"""What is measured is said no more often, and only where it changed enough to be heard of."""
_SHARE = 100
"""Enough is this part of the device."""


class Announcing(QObject):
    """Hears what the picture is shown, and speaks in its name."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._said = ""
        self._held_bytes: int | None = None
        """What was measured when that was last said."""
        self._since = QElapsedTimer()
        self._plan = Debounce(_REST_MS, self._say_plan, self)
        app.model.changed.connect(self._on_state)
        app.watch.sampled.connect(self._on_sampled)

    @Slot(object)
    def _on_state(self, _state: State) -> None:
        self._plan.request()

    def _say_plan(self) -> None:
        words = present.verdict(self._app.model.state).headline
        if words != self._said:
            self._said = words
            announce(self._app.view.picture, words)

    @Slot(object)
    def _on_sampled(self, snapshot: TelemetrySnapshot) -> None:
        state, picture = self._app.model.state, self._app.view.picture
        is_shown = picture.isVisible() and state.machine is not None and state.machine.is_here
        is_early = self._since.isValid() and self._since.elapsed() < _EVERY_MS
        if state.machine is None or not is_shown or is_early:
            return
        found = _nearest_its_line(snapshot, state.machine)
        if found is None:
            return
        held_bytes, line_bytes = found
        before = self._held_bytes
        if before is None or abs(held_bytes - before) * _SHARE >= line_bytes:
            self._held_bytes = held_bytes
            self._since.start()
            announce(picture, _in_words(held_bytes, line_bytes, state.unit))


def _nearest_its_line(snapshot: TelemetrySnapshot, machine: Machine) -> tuple[int, int] | None:
    """Of the machine's devices the fullest: what is held, and its load line."""
    lines = {slot.uuid: slot.device.allocatable.likely_bytes for slot in machine.slots}
    held = [
        (reading.used_bytes, lines[reading.uuid])
        for reading in snapshot.devices
        if reading.uuid in lines and not isinstance(reading.used_bytes, Missing)
    ]
    return min(held, key=lambda one: one[1] - one[0], default=None)


def _in_words(held_bytes: int, line_bytes: int, unit: UnitSystem) -> str:
    held = fmt.size(held_bytes, unit, 1)
    room = fmt.size(abs(line_bytes - held_bytes), unit, 1)
    if held_bytes <= line_bytes:
        words = tr("Measured: {held}, {room} below the load line")
    else:
        words = tr("Measured: {held}, {room} above the load line")
    return words.format(held=held, room=room)
