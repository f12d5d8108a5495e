"""Readings of this computer (or of a recording), off the GUI thread.

Once a second, oftener while something is loaded, more seldom on a battery. One thread, one worker
with a timer in that thread, one sampler. A tick that comes while the last one still runs is skipped
by the timer itself, never queued.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QMetaObject, QObject, Qt, QThread, QTimer, Signal, Slot

from engine.errors import PlimsollError
from engine.telemetry.probe import LiveSampler

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.telemetry.snapshot import TelemetrySnapshot

_log = logging.getLogger("plimsoll.telemetry")
_stuck: list[tuple[QThread, QObject]] = []
"""Threads that did not stop in time. A ``QThread`` collected while it runs aborts the process."""


class Source(Protocol):
    """What can be polled: a ``Sampler``, or a recording that has not always something new."""

    def sample(self) -> TelemetrySnapshot | None:
        """The state of all devices now; None where it is the one of before."""
        ...

    def close(self) -> None:
        """Release drivers and files."""
        ...


class _Worker(QObject):
    sampled = Signal(object)
    failed = Signal(object)

    def __init__(self, open_sampler: Callable[[], Source], interval_ms: int) -> None:
        super().__init__()
        self._open_sampler = open_sampler
        self._interval_ms = interval_ms
        self._home = self.thread()
        self._sampler: Source | None = None
        self._timer: QTimer | None = None
        self._told = ""
        self.is_seen = True
        self.pause_ms = interval_ms

    @Slot()
    def begin(self) -> None:
        """Open the sampler and sample at once, then at every tick."""
        try:
            self._sampler = self._open_sampler()
        except PlimsollError as error:
            self.failed.emit(error)
            return
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_tick)
        self._timer.start(self._interval_ms)
        self._on_tick()

    @Slot()
    def _on_tick(self) -> None:
        if self._sampler is None:
            return
        try:
            snapshot = self._sampler.sample()
        except PlimsollError as error:
            if error.message != self._told:
                self._told = error.message
                self.failed.emit(error)
        else:
            self._told = ""
            self._keep_pace()
            if snapshot is not None:
                self.sampled.emit(snapshot)

    def _keep_pace(self) -> None:
        """Wait as long for the next sample as what happens asks for."""
        if isinstance(self._sampler, LiveSampler) and self._timer is not None:
            self._sampler.pace.is_seen = self.is_seen
            self.pause_ms = round(self._sampler.interval_s * self._interval_ms)
            if self.pause_ms != self._timer.interval():
                self._timer.setInterval(self.pause_ms)

    @Slot()
    def finish(self) -> None:
        """Let go of the sampler and leave the thread; the worker goes home with the poller."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._sampler is not None:
            self._sampler.close()
            self._sampler = None
        thread = self.thread()
        self.moveToThread(self._home)
        thread.quit()


class TelemetryPoller(QObject):
    """Owns the thread. Signals arrive on the GUI thread."""

    sampled = Signal(object)
    """A ``TelemetrySnapshot``."""
    failed = Signal(object)
    """A ``TelemetryError``, told once while it lasts."""

    def __init__(
        self,
        open_sampler: Callable[[], Source],
        interval_ms: int = 1000,
        parent: QObject | None = None,
    ) -> None:
        """Prepare; nothing is opened before ``start``.

        Args:
            open_sampler: called on the poller's thread.
            interval_ms: time between samples at the usual pace.
            parent: Qt's owner of this object.
        """
        super().__init__(parent)
        self._open_sampler = open_sampler
        self._interval_ms = interval_ms
        self._thread: QThread | None = None
        self._worker: _Worker | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped."""
        return self._thread is not None

    @property
    def interval_s(self) -> float:
        """Seconds from one sample to the next at the pace that is kept now."""
        return (self._worker.pause_ms if self._worker else self._interval_ms) / 1000

    def see(self, *, is_seen: bool) -> None:
        """Say whether anybody looks at the samples; seldom are they taken while nobody does."""
        if self._worker is not None:
            self._worker.is_seen = is_seen

    def start(self) -> None:
        """Begin sampling; does nothing while running."""
        if self._thread is not None:
            return
        self._thread = QThread()
        self._thread.setObjectName("telemetry poller")
        self._worker = _Worker(self._open_sampler, self._interval_ms)
        self._worker.moveToThread(self._thread)
        self._worker.sampled.connect(self._on_sampled)
        self._worker.failed.connect(self._on_failed)
        self._thread.started.connect(self._worker.begin)
        self._thread.start(QThread.Priority.LowPriority)

    def stop(self, timeout_ms: int = 2000) -> bool:
        """Stop sampling and wait. Returns whether the thread ended within the limit."""
        thread, worker = self._thread, self._worker
        self._thread = self._worker = None
        if thread is None or worker is None:
            return True
        with suppress(RuntimeError):  # nothing was connected any more
            worker.sampled.disconnect(self._on_sampled)
            worker.failed.disconnect(self._on_failed)
        QMetaObject.invokeMethod(worker, "finish", Qt.ConnectionType.QueuedConnection)
        if thread.wait(timeout_ms):
            return True
        _stuck.append((thread, worker))
        _log.warning("a driver did not answer while sampling was stopped; its thread is left")
        return False

    @Slot(object)
    def _on_sampled(self, snapshot: object) -> None:
        # What was on its way when it was stopped arrives none the less, and is of another machine.
        if self.is_running:
            self.sampled.emit(snapshot)

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if self.is_running:
            self.failed.emit(error)
