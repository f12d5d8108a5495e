"""The row of the models that share the machine with the plan: name, size, verdict each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QToolButton, QWidget
from typing_extensions import override

from engine.fit.verdict import Fit
from engine.words import tr
from gui.kit import format as fmt
from gui.kit.controls import Ground, label
from gui.kit.icons import icon
from gui.sizing import beside, present

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from engine.architecture.model import Model
    from engine.together import Placed
    from engine.units import UnitSystem
    from gui.kit.theme import Theme
    from gui.sizing.view_model import SizingViewModel, State

_ICON = 14
_FRAME = 46
"""Icon and padding of a chip's button."""
_LEAST_NAME = 60
_ROUNDING = 2
"""Pixels by which a whole line differs from its two halves."""


class _Name(QToolButton):
    """Verdict, name and size; the name gives way where there is little room."""

    def __init__(self) -> None:
        super().__init__()
        self._name = self._figures = ""
        self.setProperty("role", "chip")
        self.setObjectName("plan it")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setIconSize(QSize(_ICON, _ICON))
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def show_words(self, name: str, figures: str) -> None:
        """Show ``name`` and, whole at any width, ``figures``."""
        self._name, self._figures = name, figures
        self._elide()
        self.updateGeometry()

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._width(self._name), super().sizeHint().height())

    @override
    def minimumSizeHint(self) -> QSize:
        least = min(_LEAST_NAME, self.fontMetrics().horizontalAdvance(self._name))
        return QSize(self._width("") + least, super().minimumSizeHint().height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        room = self.width() - self._width("") + _ROUNDING
        name = self.fontMetrics().elidedText(self._name, Qt.TextElideMode.ElideMiddle, room)
        self.setText(f"{name}{self._figures}")

    def _width(self, name: str) -> int:
        return self.fontMetrics().horizontalAdvance(f"{name}{self._figures}") + _FRAME


@dataclass(frozen=True, slots=True)
class _Words:
    """What a chip says; equal ones look alike."""

    title: str
    figures: str
    name: str
    tooltip: str
    outcome: Fit


def _words(placed: Placed, unit: UnitSystem) -> _Words:
    model, held = placed.tenant.model, fmt.size(placed.held_bytes, unit)
    title, headline = present.title(model), beside.headline(placed, unit)
    return _Words(
        title=title,
        figures=f"  {held}  {beside.margin(placed, unit)}",
        name=tr("{model}, {size}, {verdict}: plan this one").format(
            model=title, size=held, verdict=headline
        ),
        tooltip=tr("{model}: {verdict}.\n{bytes} held. A click plans this one.").format(
            model=model.id, verdict=headline, bytes=fmt.exact_bytes(placed.held_bytes)
        ),
        outcome=placed.sizing.verdict.outcome,
    )


def _unsized(model: Model) -> _Words:
    """One of a plan that can't be worked out: it is there, and can be planned or taken off."""
    title = present.title(model)
    return _Words(
        title=title,
        figures="",
        name=tr("{model}: plan this one").format(model=title),
        tooltip=tr("{model}. A click plans this one.").format(model=model.id),
        outcome=Fit.UNKNOWN,
    )


class _Chip(QFrame):
    """One other model: a click plans it, the cross takes it off the machine."""

    swap_wanted = Signal()
    remove_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._name = _Name()
        self._name.clicked.connect(self.swap_wanted)
        self._cross = QToolButton()
        self._cross.setAutoRaise(True)
        self._cross.setObjectName("take off")
        self._cross.setFixedSize(24, 24)
        self._cross.clicked.connect(self.remove_wanted)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._name)
        row.addWidget(self._cross)

    def show_words(self, words: _Words, theme: Theme) -> None:
        """Say ``words``."""
        self._name.show_words(words.title, words.figures)
        self._name.setAccessibleName(words.name)
        self._name.setToolTip(words.tooltip)
        color = theme.color(present.COLORS[words.outcome])
        self._name.setIcon(icon(present.ICONS[words.outcome], color, _ICON))
        self._cross.setIcon(icon("x", theme.color("text.secondary"), _ICON))
        away = tr("Take {model} off this machine").format(model=words.title)
        self._cross.setAccessibleName(away)
        self._cross.setToolTip(away)


class BesideRow(Ground):
    """Hidden while one model has the machine to itself."""

    add_wanted = Signal()

    def __init__(self, model: SizingViewModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._theme: Theme | None = None
        self._shown: tuple[_Words, ...] = ()
        self._chips: list[_Chip] = []
        self.setObjectName("beside row")
        self._add = QToolButton()
        self._add.setAutoRaise(True)
        self._add.setObjectName("add beside")
        self._add.setFixedSize(24, 24)
        self._add.setAccessibleName(tr("Add a model beside it"))
        self._add.setToolTip(tr("Add a model beside it"))
        self._add.clicked.connect(self.add_wanted)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(16, 0, 16, 10)
        self._row.setSpacing(8)
        self._row.addWidget(label(tr("On the same machine"), "caption"))
        self._row.addWidget(self._add)
        self._row.addStretch(1)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self._add.setIcon(icon("plus", theme.color("text.secondary"), _ICON))
        self._show(self._shown)

    def show_state(self, state: State) -> None:
        """Show the models beside the plan of ``state``."""
        self.setVisible(bool(state.plan.beside))
        self._add.setEnabled(len(state.plan.beside) < beside.MOST)
        words = tuple(_words(placed, state.unit) for placed in state.beside)
        if not state.beside:
            words = tuple(_unsized(other.model) for other in state.plan.beside)
        if words != self._shown:
            self._show(words)

    def _show(self, words: tuple[_Words, ...]) -> None:
        self._shown = words
        if self._theme is None:
            return
        while len(self._chips) > len(words):
            chip = self._chips.pop()
            self._row.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
        for index, one in enumerate(words):
            if index == len(self._chips):
                self._add_chip(index)
            self._chips[index].show_words(one, self._theme)

    def _add_chip(self, index: int) -> None:
        chip = _Chip()
        chip.swap_wanted.connect(partial(self._model.swap_beside, index))
        chip.remove_wanted.connect(partial(self._model.remove_beside, index))
        self._chips.append(chip)
        self._row.insertWidget(1 + index, chip)
