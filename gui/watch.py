"""What this computer's devices hold, second by second: to the rooms, the status line, a file."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QApplication

from engine.devices import plain
from engine.devices.corrected import corrected
from engine.devices.here import this_machine
from engine.errors import DeviceError, TelemetryError
from engine.telemetry.markers import LONGEST_TEXT, Marker, MarkerKind, MarkerRules
from engine.telemetry.outline import Outlines
from engine.telemetry.player import Player
from engine.telemetry.probe import host_sampler, open_sampler
from engine.telemetry.record import Recorder, RecordingEndedError, Replay, free_path
from engine.telemetry.snapshot import Missing, PoolKind
from engine.telemetry.spill import SpillWatch
from engine.words import figures, grouped, tr
from gui.kit.poller import TelemetryPoller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.devices.corrected import Correction
    from engine.devices.device import Machine
    from engine.lessons import Lesson
    from engine.telemetry.snapshot import TelemetrySnapshot
    from gui.kit.poller import Source

_LOOK_INTO_RECORDING_MS = 100
"""How often a recording is asked for what is due: often enough for one of ten samples a second."""
_OLD_S = 4
"""Without a sample for this long, what is shown is called old."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A machine that is watched in place of this computer."""

    place: str
    """``gpu-box:9400``."""
    sampler: Source
    """Open, and closed with the watch."""
    first: TelemetrySnapshot
    host: str = ""
    """Where it was asked; what its runtimes say comes from there too."""
    is_simulated: bool = False


class Watch(QObject):
    """Owns the thread that samples, what it samples from, and the recording."""

    sampled = Signal(object)
    """A ``TelemetrySnapshot``."""
    failed = Signal(object)
    """The exception that a sample or the recording ended in."""
    regained = Signal(object)
    """What ``failed`` said holds no more: that exception."""
    ended = Signal()
    """The recording that was played is over."""
    recording_changed = Signal()
    source_changed = Signal()
    """A recording or another machine is watched from now on, or this computer again."""
    marked = Signal(object)
    """A ``Marker`` that a person set, or that the samples gave rise to."""
    aged = Signal(str)
    """``12 s ago`` while no sample comes; empty once one has come again."""

    def __init__(self, replay: Path | None, parent: QObject, *, asks_drivers: bool = True) -> None:
        """Take one sample, so that the machine is known before the window is.

        Args:
            replay: a recording to play instead of watching this computer.
            parent: Qt's owner of this object.
            asks_drivers: whether anything but the computer's own memory is read.

        Raises:
            TelemetryError: not even this computer's memory can be read, or ``replay`` is no
                recording.
        """
        super().__init__(parent)
        self.replay = replay
        self.elsewhere: Elsewhere | None = None
        self.corrections: tuple[Correction, ...] = ()
        """What its user says of this computer's devices."""
        self.lessons: tuple[Lesson, ...] = ()
        """What runs on this computer taught."""
        self._samples_live = asks_drivers
        self._open_sampler = open_sampler if asks_drivers else host_sampler
        self._recorder: Recorder | None = None
        self._recording_path: Path | None = None
        self._kept = Outlines()
        self._poller: TelemetryPoller | None = None
        self.player: Player | None = None
        """What plays the recording, from ``start`` on."""
        self._rules = MarkerRules()
        self._trouble = ""
        self._lost: dict[str, object] = {}
        """What was said of the devices that can't be read, by uuid; of all of them under ""."""
        self._suspected: dict[str, str] = {}
        """What is to be said of a device, should the next sample find it no better."""
        self._urgent: dict[str, TelemetryError] = {}
        """What was said of sources that only the user can mend."""
        self._spills = SpillWatch()
        self._spilled: list[TelemetryError] = []
        """What was said of spills on the machine that is watched."""
        self._is_old = False
        self._since = QElapsedTimer()
        self._look_at_age = QTimer(self)
        self._look_at_age.setInterval(1000)
        self._look_at_age.timeout.connect(self._on_look_at_age)
        self.last = self._look()

    def start(self) -> None:
        """Sample once a second from now on, or play the recording at its own pace.

        Raises:
            TelemetryError: the recording is gone.
        """
        player = self.player = Player(self.replay) if self.replay else None
        if player is not None:
            poller = TelemetryPoller(lambda: player, _LOOK_INTO_RECORDING_MS, self)
        else:
            far = self.elsewhere
            poller = TelemetryPoller(
                (lambda: far.sampler) if far else self._open_sampler, parent=self
            )
            self._look_at_age.start()
        poller.sampled.connect(self._on_sampled)
        poller.failed.connect(self._on_failed)
        self._poller = poller
        self._since.start()
        poller.start()

    def stop(self) -> None:
        """Stop sampling and finish the recording; waits for the thread."""
        self._look_at_age.stop()
        if self._poller is not None:
            self._poller.stop()
            self._poller.deleteLater()
            self._poller = self.player = None
        self.stop_recording()

    def watch(self, replay: Path | None) -> None:
        """Play ``replay``, or watch this computer with None.

        Raises:
            TelemetryError: it is no recording.
        """
        before, self.replay = self.replay, replay
        try:
            first = self._look()
        except TelemetryError:
            self.replay = before
            raise
        self._turn(None, first)
        if replay is not None or self._samples_live:
            self.start()

    def watch_elsewhere(self, far: Elsewhere) -> None:
        """Watch another machine, or one that isn't there.

        Raises:
            TelemetryError: there is nothing to plan on.
        """
        this_machine(far.first, place=far.place)
        self.replay = None
        self._turn(far, far.first)
        self.start()

    def _turn(self, far: Elsewhere | None, first: TelemetrySnapshot) -> None:
        self.stop()
        self.elsewhere = far
        self._spills = SpillWatch()
        # What was said of that machine's devices is no trouble of this one.
        for error in (*self._lost.values(), *self._spilled):
            self.regained.emit(error)
        for kept in (self._kept, self._lost, self._suspected, self._spilled):
            kept.clear()
        self._rules = MarkerRules()
        self.last = first
        self.source_changed.emit()

    def look_again(self) -> None:
        """Take a sample now, where none come by themselves.

        Raises:
            TelemetryError: not even this computer's memory can be read.
        """
        if not self.is_sampling:
            self.last = self._look()

    def machine(self, instead_of: frozenset[int] = frozenset()) -> Machine:
        """The watched computer as the last sample found it, and as its user corrected it.

        Args:
            instead_of: processes whose memory counts as free.

        Raises:
            DeviceError: such a process holds nothing any more.
        """
        found = self.detected(instead_of)
        if not self.is_here:
            return found
        # It was right when it was made: another computer's settings, or other cards.
        with suppress(DeviceError):
            found = corrected(found, self.corrections)
        return replace(found, lessons=self.lessons)

    def detected(self, instead_of: frozenset[int] = frozenset()) -> Machine:
        """The watched computer as its drivers describe it.

        Args:
            instead_of: processes whose memory counts as free.

        Raises:
            DeviceError: such a process holds nothing any more.
        """
        far = self.elsewhere
        return this_machine(self.last, instead_of=instead_of, place=far.place if far else "")

    @property
    def is_here(self) -> bool:
        """Whether this computer is watched."""
        return self.replay is None and self.elsewhere is None

    @property
    def is_sampling(self) -> bool:
        """Whether samples come."""
        return self._poller is not None

    @property
    def interval_s(self) -> float:
        """Seconds from one sample to the next at the pace that is kept now."""
        return 1.0 if self._poller is None else self._poller.interval_s

    @property
    def is_recording(self) -> bool:
        """Whether samples go to a file."""
        return self._recorder is not None

    @property
    def recorded(self) -> tuple[TelemetrySnapshot, ...]:
        """What was in use in the samples of the last hour, for the report."""
        return tuple(self._kept)

    def record(self, path: Path) -> Path:
        """Write each sample from now on to ``path``, numbered where that exists.

        Returns:
            The file that is written.

        Raises:
            TelemetryError: the file can't be written.
        """
        self.stop_recording()
        path = free_path(path)
        self._recorder = Recorder(path, plain.to_dict(self.detected()))
        self._recording_path = path
        self.recording_changed.emit()
        return path

    def mark(self, text: str, snapshot: TelemetrySnapshot | None = None) -> None:
        """Set a marker with a person's words at ``snapshot``, or at the last one."""
        at = snapshot or self.last
        words = text.strip()[:LONGEST_TEXT]
        self._mark(Marker(MarkerKind.NOTE, at.monotonic_s, at.wall_time_s, words))

    def tell_unload(self, name: str) -> None:
        """A runtime says that it unloaded a model: marked with what its memory does."""
        self._rules.tell_unload(name, self.last)

    def _mark(self, marker: Marker) -> None:
        self._write(marker)
        self.marked.emit(marker)

    def _write(self, what: TelemetrySnapshot | Marker) -> None:
        if self._recorder is None:
            return
        try:
            if isinstance(what, Marker):
                self._recorder.mark(what)
            else:
                self._recorder.write(what)
        except TelemetryError as error:
            recorder, self._recorder = self._recorder, None
            with suppress(TelemetryError):
                recorder.close()
            self.recording_changed.emit()
            self.failed.emit(error)

    def stop_recording(self) -> Path | None:
        """Finish the file. Returns it, if there was one."""
        if self._recorder is None:
            return None
        recorder, self._recorder = self._recorder, None
        try:
            recorder.close()
        except TelemetryError as error:
            self.failed.emit(error)
        self.recording_changed.emit()
        return self._recording_path

    def _look(self) -> TelemetrySnapshot:
        sampler = Replay(self.replay) if self.replay else self._open_sampler()
        try:
            snapshot = sampler.sample()
            this_machine(snapshot)
        finally:
            sampler.close()
        return snapshot

    @Slot(object)
    def _on_sampled(self, snapshot: TelemetrySnapshot) -> None:
        before, self.last = self.last, snapshot
        self._kept.append(snapshot)
        self._trouble = ""
        self._tell_lost(before, snapshot)
        self._tell_urgent(snapshot)
        for spill in self._spills.take(snapshot):
            error = TelemetryError(spill.words)
            self._spilled.append(error)
            self.failed.emit(error)
        if self._poller is not None:
            self._poller.see(is_seen=self.is_recording or not is_out_of_sight())
        self._since.restart()
        if self._is_old:
            self._on_look_at_age()
        self._write(snapshot)
        self.sampled.emit(snapshot)
        if self.replay is None:
            for marker in self._rules.look(snapshot):
                self._mark(marker)

    def _tell_lost(self, before: TelemetrySnapshot, now: TelemetrySnapshot) -> None:
        """Say which devices are lost, and take it back of those that are there again.

        Only what two samples miss is lost: on a busy computer one answer may come too late.
        """
        there = {d.uuid for d in now.devices if not isinstance(d.used_bytes, Missing)}
        for uuid, words in self._suspected.items():
            if uuid not in there:
                error = TelemetryError(words)
                self._lost[uuid] = error
                self.failed.emit(error)
        self._suspected = dict(lost(before, now))
        for uuid in self._lost.keys() & {"", *there}:
            self.regained.emit(self._lost.pop(uuid))

    def _tell_urgent(self, now: TelemetrySnapshot) -> None:
        """Say once what asks the user to do something, and take it back once it is done."""
        for words in now.urgent:
            if words not in self._urgent:
                self._urgent[words] = TelemetryError(words)
                self.failed.emit(self._urgent[words])
        for words in self._urgent.keys() - set(now.urgent):
            self.regained.emit(self._urgent.pop(words))

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if isinstance(error, RecordingEndedError):
            self.ended.emit()
            return
        # A device that is gone fails every second; once is enough to say so.
        words = str(error)
        if words != self._trouble:
            self._trouble = words
            self._lost[""] = error
            self.failed.emit(error)

    def _on_look_at_age(self) -> None:
        seconds = self._since.elapsed() // 1000
        is_old = seconds >= _OLD_S + self.interval_s - 1
        if is_old or self._is_old:
            self._is_old = is_old
            words = tr("{seconds} s ago").format(seconds=grouped(seconds))
            self.aged.emit(words if is_old else "")


def is_out_of_sight() -> bool:
    """Whether every window that is there was put away."""
    windows = [w for w in QApplication.topLevelWidgets() if w.isWindow() and w.isVisible()]
    return bool(windows) and all(window.isMinimized() for window in windows)


def lost(before: TelemetrySnapshot, now: TelemetrySnapshot) -> Iterator[tuple[str, str]]:
    """Uuid and one sentence for each device that could be read a moment ago and now can't."""
    found = {device.uuid: device for device in now.devices}
    for device in before.devices:
        if isinstance(device.used_bytes, Missing):
            continue
        after = found.get(device.uuid)
        if after is None:
            gone = tr("{device} is gone: the driver no longer names it. The plan stays.")
            yield device.uuid, gone.format(device=tr(device.name))
        elif isinstance(after.used_bytes, Missing):
            silent = tr("{device} can’t be read: {reason}. The plan stays.")
            reason = tr(after.used_bytes.reason).rstrip(".")
            yield device.uuid, silent.format(device=tr(device.name), reason=reason)


def sampling_words(
    snapshot: TelemetrySnapshot, interval_s: float = 1.0, far: Elsewhere | None = None
) -> str:
    """``Sampling every 1 s, NVML``."""
    if far is not None and far.is_simulated:
        return tr("Simulated: nothing here is measured")
    gpus = [d for d in snapshot.devices if d.pool is not PoolKind.HOST]
    source = (gpus or list(snapshot.devices))[0].source
    if source.startswith("recording "):
        name = source.split(",")[0].removeprefix("recording ")
        return tr("Playing recording {name}").format(name=name)
    interval = figures(format(interval_s, "g"))
    if far is not None:
        words = tr("Watching {place} every {interval} s")
        return words.format(place=far.place, interval=interval)
    words = tr("Sampling every {interval} s, {source}")
    return words.format(interval=interval, source=source.split()[0])
