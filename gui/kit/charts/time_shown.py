"""A widget that shows a part of time: how long, up to when, and whether it follows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from gui.kit.charts.axis import TimeWindow
from gui.kit.charts.kept import Kept
from gui.kit.charts.time_view import SPANS_S, TimeView

if TYPE_CHECKING:
    from collections.abc import Callable


class TimeShown(QWidget):
    """Zooms, moves and holds; what it shows of that time is its subclass's matter."""

    held = Signal(bool)
    """Whether the picture stands still while samples go on being kept."""
    view_changed = Signal()
    """Another part of time is shown, at the user's wish."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kept = Kept()
        """What was sampled; of a recording, all of it."""
        self._view = TimeView()

    @property
    def uuids(self) -> tuple[str, ...]:
        """Keys of the devices that are shown."""
        raise NotImplementedError

    def set_window_seconds(self, seconds: float) -> None:
        """Show the last ``seconds``, from a minute to a day."""
        self._change_view(lambda now: self._view.set_span(seconds, now))

    def zoom(self, steps: int) -> None:
        """Show the next longer or, where negative, the next shorter of the usual spans."""
        self._change_view(lambda now: self._view.step(steps, now))

    def zoom_by(self, factor: float, at_s: float) -> None:
        """Show ``factor`` times as much time; ``at_s`` stays in its place in a held picture."""
        self._change_view(lambda now: self._view.zoom(factor, now, at_s))

    def pan(self, share: float) -> None:
        """Look later, or earlier where negative, by a share of the window."""
        oldest = self.kept.oldest_s(self.uuids)
        if oldest is not None:
            self._change_view(lambda now: self._view.pan(share * self._view.span_s, now, oldest))

    def _change_view(self, change: Callable[[float], None]) -> None:
        was_held = self._view.held_s is not None
        change(self.now_s())
        if was_held is not (self._view.held_s is not None):
            self.held.emit(not was_held)
        self.view_changed.emit()
        self.update()

    @property
    def span_s(self) -> float:
        """How many seconds are shown."""
        return self._view.span_s

    @property
    def is_held(self) -> bool:
        """Whether the picture stands still."""
        return self._view.held_s is not None

    def follow_newest(self) -> None:
        """Let the picture end at the newest sample again."""
        self.pan(SPANS_S[-1])

    def kept_anew(self) -> None:
        """Count least, average and most from now on."""
        self.kept.reset_extents()

    def clock_words(self, time_s: float) -> str:
        """The time of day at a moment of the axis."""
        return time.strftime("%H:%M:%S", time.localtime(time_s + (self.kept.wall_offset_s or 0)))

    def toggle_hold(self) -> None:
        """Let the picture stand still, or follow the newest sample again."""
        self.held.emit(self._view.hold(self.now_s()))
        self.view_changed.emit()
        self.update()

    def _release(self) -> None:
        if self._view.held_s is not None:
            self.toggle_hold()

    def now_s(self) -> float:
        """The newest moment, or the one that a recording is at."""
        return time.monotonic() if self.kept.now_s is None else self.kept.now_s

    def window_now(self) -> TimeWindow:
        """The part of time that is looked at, whether or not anything was measured in it."""
        end = self._view.end_s(self.now_s())
        is_held = self._view.held_s is not None
        offset = self.kept.wall_offset_s if is_held else None
        return TimeWindow(end - self._view.span_s, end, clock_offset_s=offset)
