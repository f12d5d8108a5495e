"""A recording in place of this computer: read whole beside its playing, then sent anywhere."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from engine.telemetry import player
from gui.kit.replay_bar import ReplayBar
from gui.recorded import read

if TYPE_CHECKING:
    from pathlib import Path

    from engine.cancel import CancelToken
    from engine.overlay.group import Planned
    from engine.telemetry.player import Index
    from engine.telemetry.snapshot import TelemetrySnapshot
    from gui.app import App
    from gui.kit.charts.kept import Kept
    from gui.kit.tasks import Task

_log = logging.getLogger("plimsoll.gui")
_LONGEST_STEP_S = 15.0
"""Between two samples played at 60 times their pace, with some to spare."""


class Playing(QObject):
    """Connects the player, the bar under the picture, and the picture."""

    _progressed = Signal(float)

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.bar = ReplayBar()
        self._task: Task | None = None
        self._index: Index | None = None
        self._is_read = False
        self._planned: Planned | None = None
        self._last_s = 0.0
        """The recorded clock of the sample shown last."""
        self._is_playing = True
        app.view.add_below_picture(self.bar)
        app.themes.changed.connect(self.bar.set_theme)
        self.bar.set_theme(app.themes.current)
        self._progressed.connect(self._on_progress)
        app.watch.source_changed.connect(self._on_source_changed)
        app.watch.sampled.connect(self._on_sampled)
        app.watch.ended.connect(self._on_ended)
        app.model.changed.connect(self._on_plan_changed)
        self.bar.play_wanted.connect(self._on_play_wanted)
        self.bar.step_wanted.connect(self._on_step_wanted)
        self.bar.seek_wanted.connect(self.seek)
        self.bar.speed_picked.connect(self._on_speed_picked)
        self.bar.reading_wanted.connect(self._on_reading_wanted)
        self.bar.leave_wanted.connect(app.window.commands["measure"].trigger)

    def begin(self) -> None:
        """Show the bar where a recording is played from the start of the program."""
        self._on_source_changed()

    @property
    def is_read(self) -> bool:
        """Whether all of the recording is in the picture."""
        return self._is_read

    @Slot()
    def _on_source_changed(self) -> None:
        self._cancel()
        self._index, self._is_read, self._is_playing = None, False, True
        self._app.view.picture.forget_samples()
        path = self._app.watch.replay
        self.bar.setVisible(path is not None)
        if path is not None:
            self.bar.begin()
            self._find_places(path)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _find_places(self, path: Path) -> None:
        """Read no more than the clocks: then it can be sent anywhere."""

        def job(token: CancelToken) -> Index:
            return player.index(path, token, self._progressed.emit)

        self._task = self._app.runner.submit(job)
        self._task.succeeded.connect(self._on_indexed)
        self._task.failed.connect(self._on_not_read)

    @Slot(float)
    def _on_progress(self, share: float) -> None:
        if self._task is not None and self._index is None:
            self.bar.show_reading(share)

    @Slot(object)
    def _on_indexed(self, index: Index) -> None:
        self._task = None
        playing, path = self._app.watch.player, self._app.watch.replay
        if playing is None or path is None:
            return
        self._index = index
        playing.set_index(index)
        unit = self._app.model.state.unit
        marked = [(s - index.start_s, m.words(unit), m.is_trouble) for s, m in index.markers]
        self.bar.show_length(index.end_s - index.start_s, marked)
        self._show_place()
        self._tell_damage(index)
        self._read(path)

    def _read(self, path: Path) -> None:
        """Read all of it, for the picture."""
        planned = self._planned = self._app.view.picture.planned

        def job(token: CancelToken) -> tuple[Index, Kept]:
            return read(path, planned, token)

        self._task = self._app.runner.submit(job)
        self._task.succeeded.connect(self._on_read)
        self._task.failed.connect(self._on_not_read)

    @Slot(object)
    def _on_read(self, found: tuple[Index, Kept]) -> None:
        self._task = None
        index, kept = found
        playing = self._app.watch.player
        if playing is None:
            return
        at = playing.shown_s
        self._app.view.picture.show_recording(kept, index.start_s if at is None else at)
        if self._index is not None and not self._index.damage:
            self._tell_damage(index)
        self._is_read = True
        self._show_place()
        self._on_plan_changed()

    def _tell_damage(self, index: Index) -> None:
        if index.damage:
            self._app.trouble.report_sentence(index.damage)

    @Slot(object)
    def _on_not_read(self, error: BaseException) -> None:
        # Where it can be played it goes on playing; what is wrong is said when it gets there.
        _log.info("the recording could not be read whole: %s", error)
        self._task = None
        if self._index is None:
            self.bar.show_reading(None)

    @Slot(bool)
    def _on_reading_wanted(self, wanted: bool) -> None:  # noqa: FBT001 - a signal's argument
        path = self._app.watch.replay
        if wanted and path is not None:
            self.bar.show_reading(0.0)
            self._find_places(path)
        else:
            self._cancel()
            self.bar.show_reading(None)

    @Slot()
    def _on_plan_changed(self) -> None:
        """Another plan has another share of what was recorded."""
        path, planned = self._app.watch.replay, self._app.view.picture.planned
        if path is not None and self.is_read and self._task is None and planned != self._planned:
            self._read(path)

    @Slot(object)
    def _on_sampled(self, snapshot: TelemetrySnapshot) -> None:
        if self._app.watch.player is None:
            return
        if not self._is_read:
            # What doesn't follow on what the picture has begins it anew.
            passed = snapshot.monotonic_s - self._last_s
            if not 0 <= passed <= _LONGEST_STEP_S:
                self._app.view.picture.forget_samples()
            if passed:
                self._app.view.picture.append(snapshot)
            self._last_s = snapshot.monotonic_s
        self._show_place()

    def _show_place(self) -> None:
        playing, index, picture = self._app.watch.player, self._index, self._app.view.picture
        at = playing.shown_s if playing else None
        if at is None:
            return
        if self._is_read:
            picture.follow(at)
        start = index.start_s if index else picture.kept.oldest_s(picture.series)
        self.bar.show_place(0.0 if start is None else at - start)

    def seek(self, seconds: float) -> None:
        """Show the recording ``seconds`` after its start."""
        playing, index = self._app.watch.player, self._index
        if playing is not None and index is not None:
            playing.seek(index.start_s + seconds)

    @Slot(bool)
    def _on_play_wanted(self, wanted: bool) -> None:  # noqa: FBT001 - a signal's argument
        self._let_play(playing=wanted)
        playing, index = self._app.watch.player, self._index
        if wanted and playing and index and (playing.shown_s or 0.0) >= index.end_s:
            self.seek(0)

    def _let_play(self, *, playing: bool) -> None:
        self._is_playing = playing
        if self._app.watch.player is not None:
            self._app.watch.player.set_paused(paused=not playing)
        self.bar.show_playing(playing=playing)

    @Slot(int)
    def _on_step_wanted(self, step: int) -> None:
        self._let_play(playing=False)
        if self._app.watch.player is not None:
            self._app.watch.player.step(step)

    @Slot(object)
    def _on_speed_picked(self, speed: int) -> None:
        if self._app.watch.player is not None:
            self._app.watch.player.set_speed(speed)

    @Slot()
    def _on_ended(self) -> None:
        self._let_play(playing=False)
