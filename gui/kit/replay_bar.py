"""The controls of a recording that plays: where it is, how fast, and what is marked in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSlider,
    QStyle,
    QStyleOptionSlider,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from engine.telemetry.player import SPEEDS
from engine.words import tr
from gui.kit.controls import Choice, ElidedLabel, Ground
from gui.kit.icons import icon

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QKeyEvent, QMouseEvent

    from gui.kit.theme import Theme

_TICKS = 100_000
"""Of the scrub bar: a second of a day, and finer than its pixels."""
_PICTURE = 16
_MOST_LISTED = 200
_MARK_PX = 6


def clock(seconds: float) -> str:
    """``0:03:07``."""
    whole = max(0, int(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


class ScrubBar(QSlider):
    """A slider over the length of a recording, with a tick at each marker."""

    sought = Signal(float)
    """Seconds from the start that the user wants to see."""
    stepped = Signal(int)
    """Samples on, or back."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setObjectName("scrub bar")
        self.setAccessibleName(tr("Place in the recording"))
        self.setRange(0, _TICKS)
        self._length_s = 1.0
        self._marks: tuple[tuple[float, bool], ...] = ()
        self._theme: Theme | None = None
        self.sliderMoved.connect(self._on_moved)

    def set_length(self, seconds: float, marks: tuple[tuple[float, bool], ...]) -> None:
        """Cover ``seconds``; each mark is a place in them, and whether it is trouble."""
        self._length_s = max(seconds, 1e-3)
        self._marks = marks
        # Page keys move by a minute, or by a hundredth of a long recording.
        share = min(max(60 / self._length_s, 0.01), 1.0)
        self.setPageStep(round(_TICKS * share))
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.update()

    def show_place(self, seconds: float) -> None:
        """Stand at ``seconds`` unless the user holds the handle."""
        if not self.isSliderDown():
            # Of one sample, and where a clock was set back, a place may lie outside the length.
            share = min(max(seconds / self._length_s, 0.0), 1.0)
            self.setValue(round(share * _TICKS))
        self.setAccessibleDescription(
            tr("{now} of {length}").format(now=clock(seconds), length=clock(self._length_s))
        )

    def _on_moved(self, value: int) -> None:
        self.sought.emit(value / _TICKS * self._length_s)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        jumps = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}
        if key in {Qt.Key.Key_Left, Qt.Key.Key_Right}:
            self.stepped.emit(1 if key is Qt.Key.Key_Right else -1)
        elif key in {Qt.Key.Key_Home, Qt.Key.Key_End}:
            self._on_moved(0 if key is Qt.Key.Key_Home else _TICKS)
        elif key in jumps:
            self._on_moved(self.value() + jumps[key] * self.pageStep())
        else:
            super().keyPressEvent(event)

    @override
    def mousePressEvent(self, ev: QMouseEvent) -> None:
        if ev.button() != Qt.MouseButton.LeftButton:
            return
        groove, handle = self._parts()
        if not handle.contains(ev.position().toPoint()):
            share = (ev.position().x() - groove.left() - handle.width() / 2) / max(
                1, groove.width() - handle.width()
            )
            self.setValue(round(min(max(share, 0.0), 1.0) * _TICKS))
            self._on_moved(self.value())
        super().mousePressEvent(ev)

    @override
    def paintEvent(self, ev: QPaintEvent) -> None:
        super().paintEvent(ev)
        if self._theme is None or not self._marks:
            return
        groove, handle = self._parts()
        painter = QPainter(self)
        room = groove.width() - handle.width()
        for place, is_trouble in self._marks:
            x = groove.left() + handle.width() / 2 + room * place / self._length_s
            color = self._theme.color("over" if is_trouble else "text.secondary")
            painter.setPen(QPen(color, 2))
            painter.drawLine(QLineF(x, 0, x, _MARK_PX))

    def _parts(self) -> tuple[QRect, QRect]:
        """Groove and handle."""
        option = QStyleOptionSlider()
        self.initStyleOption(option)
        kind, style = QStyle.ComplexControl.CC_Slider, self.style()
        groove, handle = QStyle.SubControl.SC_SliderGroove, QStyle.SubControl.SC_SliderHandle
        return (
            style.subControlRect(kind, option, groove, self),
            style.subControlRect(kind, option, handle, self),
        )


class ReplayBar(Ground):
    """Play, step, scrub, speed and markers; while the recording is read, how far that is."""

    play_wanted = Signal(bool)
    """To go on, or stand still."""
    step_wanted = Signal(int)
    """Samples on, or back."""
    seek_wanted = Signal(float)
    """Seconds from the start."""
    speed_picked = Signal(object)
    reading_wanted = Signal(bool)
    """To read the whole recording, or to leave it."""
    leave_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, window=True)
        self.setObjectName("replay bar")
        self.setAccessibleName(tr("Playing a recording"))
        self._theme: Theme | None = None
        self._length_s = 0.0
        self._pictures: list[tuple[QToolButton, str]] = []
        self.back = self._tool("step-back", tr("One sample back"))
        self.play = self._tool("pause", tr("Hold the recording"))
        self.on = self._tool("step-on", tr("One sample on"))
        self.scrub = ScrubBar()
        self.place = ElidedLabel("small", name="place in the recording", keeps_whole=True)
        self.reading = ElidedLabel("small", name="reading the recording")
        self.read = QPushButton()
        self.read.setObjectName("read the recording")
        self.speed = Choice("speed")
        self.speed.setAccessibleName(tr("Speed"))
        self.speed.offer([(f"{n}\N{MULTIPLICATION SIGN}", n) for n in SPEEDS], 1)
        self.markers = self._tool("flag", tr("Markers of the recording"))
        self.markers.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._menu = QMenu(self.markers)
        self.markers.setMenu(self._menu)
        self.leave = self._tool("x", tr("Back to this computer"))
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 4, 12, 4)
        row.setSpacing(8)
        for button in (self.back, self.play, self.on):
            row.addWidget(button)
        row.addWidget(self.scrub, 1)
        row.addWidget(self.reading, 1)
        row.addWidget(self.read)
        for widget in (self.place, self.speed, self.markers, self.leave):
            row.addWidget(widget)
        self._is_reading = self._is_playing = True
        self.back.clicked.connect(lambda: self.step_wanted.emit(-1))
        self.on.clicked.connect(lambda: self.step_wanted.emit(1))
        self.play.clicked.connect(lambda: self.play_wanted.emit(not self._is_playing))
        self.scrub.sought.connect(self.seek_wanted)
        self.scrub.stepped.connect(self.step_wanted)
        self.speed.picked.connect(self.speed_picked)
        self.read.clicked.connect(lambda: self.reading_wanted.emit(not self._is_reading))
        self.leave.clicked.connect(self.leave_wanted)
        self.hide()

    def _tool(self, picture: str, words: str) -> QToolButton:
        button = QToolButton()
        button.setAutoRaise(True)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._say(button, words)
        self._pictures.append((button, picture))
        return button

    @staticmethod
    def _say(button: QToolButton, words: str) -> None:
        button.setAccessibleName(words)
        button.setToolTip(words)

    def begin(self) -> None:
        """A recording plays from its start; nothing is known of its length yet."""
        self.speed.set_items([(f"{n}\N{MULTIPLICATION SIGN}", n) for n in SPEEDS], 1)
        self.show_playing(playing=True)
        self.show_reading(0.0)
        self.place.set_text("")
        self.show()

    def show_reading(self, share: float | None) -> None:
        """Say how far the recording was read; None where that was given up."""
        self._is_reading = share is not None
        self.scrub.hide()
        self.markers.hide()
        self.back.setEnabled(False)
        self.reading.show()
        self.read.show()
        if share is None:
            self.reading.set_text(tr("Plays forwards only: the recording was not read whole"))
            self.read.setText(tr("Read it"))
        else:
            self.reading.set_text(
                tr("Reading the recording, {percent} %").format(percent=int(share * 100))
            )
            self.read.setText(tr("Cancel"))

    def show_length(self, seconds: float, markers: Sequence[tuple[float, str, bool]]) -> None:
        """The recording was read: let it be scrubbed, and list its markers.

        Args:
            seconds: its length.
            markers: place in seconds from the start, words, and whether it is trouble.
        """
        self._length_s = seconds
        self.scrub.set_length(seconds, tuple((at, bad) for at, _, bad in markers))
        self.reading.hide()
        self.read.hide()
        self.scrub.show()
        self.back.setEnabled(True)
        self._menu.clear()
        for at, words, _ in markers[:_MOST_LISTED]:
            # An ampersand would be taken for a mnemonic.
            text = f"{clock(at)}  {words}".replace("&", "&&")
            self._menu.addAction(text).triggered.connect(
                lambda _=False, at=at: self.seek_wanted.emit(at)
            )
        self.markers.setVisible(bool(markers))

    def show_place(self, seconds: float) -> None:
        """Say where the recording is."""
        words = clock(seconds)
        if self._length_s and self.scrub.isVisibleTo(self):
            words = tr("{now} of {length}").format(now=words, length=clock(self._length_s))
            self.scrub.show_place(seconds)
        self.place.set_text(words)

    def show_playing(self, *, playing: bool) -> None:
        """Whether the recording goes on."""
        self._is_playing = playing
        self._pictures[1] = (self.play, "pause" if playing else "play")
        self._say(self.play, tr("Hold the recording") if playing else tr("Let the recording go on"))
        self._paint(*self._pictures[1])

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        for button, picture in self._pictures:
            self._paint(button, picture)
        self.scrub.set_theme(theme)

    def _paint(self, button: QToolButton, picture: str) -> None:
        if self._theme is not None:
            size = self._theme.grown(_PICTURE)
            button.setFixedSize(size + 12, size + 12)
            button.setIconSize(QSize(size, size))
            button.setIcon(icon(picture, self._theme.color("text.secondary"), size))
