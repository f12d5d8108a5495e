"""Where readings come from: this computer or a recording; and whether they are being recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from engine.errors import PlimsollError, TelemetryError
from engine.telemetry.probe import open_sampler
from engine.telemetry.record import Recorder, RecordingEndedError, Replay
from gui.kit.poller import TelemetryPoller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from engine.telemetry.snapshot import Sampler, TelemetrySnapshot

LIVE_INTERVAL_MS = 1000


@dataclass(frozen=True, slots=True)
class Source:
    """What is being shown."""

    name: str
    """``this computer``, or the recording's file name."""
    is_replay: bool
    has_ended: bool = False
    machine: Mapping[str, Any] | None = None
    """The machine of a recording, as ``devices.plain.to_dict`` wrote it."""


class LiveController(QObject):
    """Owns poller, recorder and replay. Every signal arrives on the GUI thread."""

    sampled = Signal(object)
    """A ``TelemetrySnapshot``."""
    source_changed = Signal(object)
    """A ``Source``; earlier samples belong to another one."""
    recording_changed = Signal(bool)
    failed = Signal(object)
    """A ``TelemetryError`` to show; sampling goes on where it can."""

    def __init__(
        self,
        open_live: Callable[[], Sampler] = open_sampler,
        interval_ms: int = LIVE_INTERVAL_MS,
        parent: QObject | None = None,
    ) -> None:
        """Prepare; ``start`` begins.

        Args:
            open_live: opens this computer's sources, on the poller's thread.
            interval_ms: time between live samples.
            parent: Qt's owner of this object.
        """
        super().__init__(parent)
        self._open_live = open_live
        self._interval_ms = interval_ms
        self._poller: TelemetryPoller | None = None
        self._recorder: Recorder | None = None
        self._machine: Mapping[str, Any] = {}
        self._told = ""
        self.source = Source("this computer", is_replay=False)
        self.latest: TelemetrySnapshot | None = None
        """The last snapshot of this source, if any."""

    @property
    def is_recording(self) -> bool:
        """Whether samples are being written to a file."""
        return self._recorder is not None

    def set_machine(self, machine: Mapping[str, Any]) -> None:
        """What a recording says of the machine: ``devices.plain.to_dict`` of it."""
        self._machine = machine

    def start(self) -> None:
        """Sample this computer."""
        self._switch(Source("this computer", is_replay=False), self._open_live, self._interval_ms)

    def stop(self, timeout_ms: int = 2000) -> bool:
        """Stop sampling and recording. Returns whether the sampling thread ended in time."""
        self.stop_recording()
        poller, self._poller = self._poller, None
        if poller is None:
            return True
        ended = poller.stop(timeout_ms)
        poller.deleteLater()
        return ended

    def record_to(self, path: Path) -> None:
        """Write every further sample to ``path``, beginning with the last one.

        Raises:
            TelemetryError: the file cannot be written.
        """
        self.stop_recording()
        recorder = Recorder(path, self._machine)
        if self.latest is not None:
            recorder.write(self.latest)
        self._recorder = recorder
        self.recording_changed.emit(self.is_recording)

    def stop_recording(self) -> None:
        """Finish the file; does nothing while not recording."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        try:
            recorder.close()
        except TelemetryError as error:
            self.failed.emit(error)
        self.recording_changed.emit(self.is_recording)

    def open_recording(self, path: Path, speed: float = 1.0) -> None:
        """Show a recording instead of this computer.

        Args:
            path: the file.
            speed: how many seconds of the recording pass in one second.

        Raises:
            TelemetryError: not a recording that can be read; the source stays as it is.
        """
        replay = Replay(path)
        source = Source(path.name, is_replay=True, machine=replay.machine)
        self._switch(source, lambda: replay, max(round(1000 / speed), 20))

    def _switch(self, source: Source, opener: Callable[[], Sampler], interval_ms: int) -> None:
        self.stop()
        self.latest = None
        self._told = ""
        self.source = source
        self.source_changed.emit(source)
        poller = TelemetryPoller(opener, interval_ms, self)
        poller.sampled.connect(self._on_sampled)
        poller.failed.connect(self._on_failed)
        self._poller = poller
        poller.start()

    @Slot(object)
    def _on_sampled(self, snapshot: TelemetrySnapshot) -> None:
        self.latest = snapshot
        self._told = ""
        if self._recorder is not None:
            try:
                self._recorder.write(snapshot)
            except TelemetryError as error:
                self.stop_recording()
                self.failed.emit(error)
        self.sampled.emit(snapshot)

    @Slot(object)
    def _on_failed(self, error: PlimsollError) -> None:
        """Tell a failure once, not every second."""
        if isinstance(error, RecordingEndedError):
            self.source = replace(self.source, has_ended=True)
            self.source_changed.emit(self.source)
        elif error.message != self._told:
            self._told = error.message
            self.failed.emit(error)
