"""The tab "Checklist": five steps of sizing, how each is known, and what would measure it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAccessible, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.overlay.steps import Status
from engine.words import tr
from gui.kit import format as fmt
from gui.kit.badge import look_width, paint_look
from gui.kit.controls import ElidedLabel, Ground, Hairline, label
from gui.kit.spoken import speak_as

if TYPE_CHECKING:
    from engine.overlay.checklist import Checklist, Step
    from engine.overlay.steps import Answer
    from engine.units import UnitSystem
    from gui.kit.theme import Theme

_LOOKS = {
    Status.KNOWN: ("check", "fits"),
    Status.MODELLED: ("sigma", "unknown"),
    Status.OPEN: ("circle", "unknown"),
}
_ROW = 36
_TITLE, _WORDS, _ACTION = 3, 4, 3
"""How the columns share the width."""


class StatusBadge(QWidget):
    """Known, Modelled or Open, as icon and word in a tint."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme | None = None
        self._status = Status.OPEN
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        speak_as(self, QAccessible.Role.StaticText)

    def show_status(self, status: Status) -> None:
        """Show ``status``."""
        self._status = status
        self.setAccessibleName(status.label)
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.updateGeometry()
        self.update()

    @override
    def sizeHint(self) -> QSize:
        if self._theme is None:
            return QSize(80, 20)
        widest = max(look_width(self._theme, status.label) for status in Status)
        return QSize(widest, self._theme.size("badge"))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is not None:
            text = self._status.label
            corner = QPoint(look_width(self._theme, text), 0)
            paint_look(QPainter(self), self._theme, corner, _LOOKS[self._status], text)


class _Row:
    """The widgets of one step."""

    def __init__(self) -> None:
        self.number = label("", "small")
        self.title = ElidedLabel("body")
        self.words = ElidedLabel("secondary")
        for words in (self.title, self.words):
            words.set_wraps(wraps=True)
            words.setContentsMargins(0, 5, 0, 5)
        self.badge = StatusBadge()
        self.action = QPushButton()
        self.action.setProperty("role", "link")
        self.action.setAutoDefault(False)
        self.action.setCursor(Qt.CursorShape.PointingHandCursor)
        self.step: Step | None = None

    def show_step(self, step: Step, unit: UnitSystem) -> None:
        """Show ``step``."""
        self.step = step
        self.number.setText(str(step.number))
        self.title.set_text(step.title)
        self.words.set_text(step.answer.words, details(step, unit))
        self.badge.show_status(step.answer.status)
        self.action.setVisible(step.action is not None)
        if step.action is not None:
            self.action.setText(step.action.label)
            self.action.setAccessibleName(f"{step.title}: {step.action.label}")


class ChecklistView(Ground):
    """Five rows, and below them what the figures hold for."""

    wanted = Signal(object)
    """The ``Step`` whose action was asked for."""
    learn_wanted = Signal()
    """Plans for this computer shall follow what this run measured."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("checklist")
        self.setAccessibleName(tr("Checklist"))
        self._rows: list[_Row] = []
        self._theme: Theme | None = None
        self._empty = label(tr("Pick a model, and its five steps stand here."), "secondary")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._recorded = ElidedLabel("small", name="recorded")
        self._recorded.setContentsMargins(16, 8, 16, 8)
        self._learn = QPushButton(tr("Learn from this run"))
        self._steps = Ground()
        self._grid = QGridLayout()
        self._grid.setContentsMargins(16, 0, 16, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(0)
        for column, share in ((1, _TITLE), (2, _WORDS), (4, _ACTION)):
            self._grid.setColumnStretch(column, share)
        inside = QVBoxLayout(self._steps)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(0)
        inside.addLayout(self._grid)
        inside.addWidget(self._recorded)
        inside.addLayout(self._learning())
        inside.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(self._steps)
        self._scroll = scroll
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._empty, 1)
        column.addWidget(scroll, 1)
        scroll.hide()

    def _learning(self) -> QHBoxLayout:
        """The button that keeps what the run measured."""
        self._learn.setObjectName("learn from the watched run")
        self._learn.setToolTip(tr("Let plans for this computer follow what this run measured"))
        self._learn.clicked.connect(self.learn_wanted)
        row = QHBoxLayout()
        row.setContentsMargins(16, 0, 16, 12)
        row.addWidget(self._learn)
        row.addStretch(1)
        return row

    @property
    def buttons(self) -> tuple[QPushButton, ...]:
        """The buttons, one a step."""
        return tuple(row.action for row in self._rows)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        for row in self._rows:
            self._dress(row, theme)

    def show_checklist(
        self, found: Checklist | None, unit: UnitSystem, *, can_learn: bool = False
    ) -> None:
        """Show the steps, in place; None while there is no plan.

        Args:
            found: the steps.
            unit: of their figures.
            can_learn: whether a run was watched that something can be learned from.
        """
        self._learn.setVisible(can_learn)
        self._empty.setVisible(found is None)
        self._scroll.setVisible(found is not None)
        if found is None:
            return
        while len(self._rows) < len(found.steps):
            self._add()
        for row, step in zip(self._rows, found.steps, strict=True):
            row.show_step(step, unit)
        pairs = (tr("{name}: {value}").format(name=n, value=v) for n, v in found.recorded)
        self._recorded.set_text("    ".join(pairs))

    def _add(self) -> None:
        row = _Row()
        at = 2 * len(self._rows)
        self._grid.addWidget(row.number, at, 0)
        self._grid.addWidget(row.title, at, 1)
        self._grid.addWidget(row.words, at, 2)
        self._grid.addWidget(row.badge, at, 3)
        self._grid.addWidget(row.action, at, 4, Qt.AlignmentFlag.AlignLeft)
        self._grid.addWidget(Hairline(), at + 1, 0, 1, 5)
        row.action.clicked.connect(partial(self._on_action, row))
        self._rows.append(row)
        if self._theme is not None:
            self._dress(row, self._theme)

    def _dress(self, row: _Row, theme: Theme) -> None:
        row.badge.set_theme(theme)
        self._grid.setRowMinimumHeight(2 * self._rows.index(row), theme.grown(_ROW))

    def _on_action(self, row: _Row) -> None:
        if row.step is not None:
            self.wanted.emit(row.step)


def details(step: Step, unit: UnitSystem) -> str:
    """Range, basis and source of the answer, and the other ranks' answers."""
    lines = [_figure(step.answer, unit)]
    if len(step.per_rank) > 1:
        lines += [
            tr("Rank {rank}: {words}").format(rank=rank, words=answer.words)
            for rank, answer in step.per_rank.items()
        ]
    return "\n".join(filter(None, lines))


def _figure(answer: Answer, unit: UnitSystem) -> str:
    found = answer.estimate
    if found is None:
        return ""
    words = fmt.size_range(found.low_bytes, found.high_bytes, unit) or tr("exact")
    return "\n".join(filter(None, (f"{words}, {found.basis.word}", found.source)))
