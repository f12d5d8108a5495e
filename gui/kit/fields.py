"""Fields for whole numbers that never change a value behind the user's back.

A plain spin box corrects what is typed (or reads "0.90" as 90 under a comma locale). Here
the text stays as typed until it is finished; then it is either taken as it reads, with
either separator, or refused with one sentence while the last good value stays in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QShowEvent, QValidator, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QWidget
from typing_extensions import override

from engine.units import parse_tokens
from engine.words import tr, tr_later
from gui.kit.format import count
from gui.kit.shortcuts import leave_to_window

if TYPE_CHECKING:
    from collections.abc import Callable

_GROUPING = str.maketrans("", "", ",.' \u00a0\u202f\u2009")

_BUTTONS_WIDTH = 20
_READABLE = 10**12


def parse_count(text: str) -> int:
    """The whole number in ``text``, grouped by either separator or none.

    Raises:
        ValueError: not a whole number.
    """
    digits = text.strip()
    if "," in digits or "." in digits:
        head, *groups = digits.replace(".", ",").split(",")
        if not 1 <= len(head) <= 3 or any(len(g) != 3 for g in groups):
            message = tr("{text} is not a whole number.").format(text=repr(text))
            raise ValueError(message)
    plain = digits.translate(_GROUPING)
    if not (plain.isascii() and plain.isdigit()):
        message = tr("{text} is not a whole number.").format(text=repr(text))
        raise ValueError(message)
    return int(plain)


def double_or_halve(value: int, steps: int) -> int:
    """``value`` doubled ``steps`` times, or halved for negative ``steps``."""
    return value << steps if steps > 0 else max(1, value >> -steps)


@dataclass(frozen=True, slots=True)
class NumberKind:
    """How a field reads and steps, and what it takes."""

    name: str
    """Begins the sentence of a refusal: ``Context``. Translated there, as is ``example``."""
    minimum: int
    maximum: int
    parse: Callable[[str], int] = parse_count
    step: Callable[[int, int], int] = int.__add__
    example: str = ""
    """``8192 or 32k``: ends the sentence of a refusal."""

    def read(self, text: str) -> int:
        """The number in ``text``.

        Raises:
            ValueError: with the sentence to show.
        """
        try:
            value = self.parse(text)
        except ValueError:
            raise ValueError(self._refusal(text.strip()[:40])) from None
        if not self.minimum <= value <= self.maximum:
            # The text itself where it is absurd: as a number it would be rounded.
            shown = count(value) if value < _READABLE else f"\u201c{text.strip()[:40]}\u201d"
            message = tr("{name}: {number} is outside {low} to {high}.").format(
                name=tr(self.name),
                number=shown,
                low=count(self.minimum),
                high=count(self.maximum),
            )
            raise ValueError(message)
        return value

    def _refusal(self, shown: str) -> str:
        """What to type in place of ``shown``, which is no whole number."""
        if self.example and shown:
            words = tr("{name}: “{shown}” is not a whole number such as {example}.")
        elif self.example:
            words = tr("{name}: type a whole number such as {example}.")
        elif shown:
            words = tr("{name}: “{shown}” is not a whole number.")
        else:
            words = tr("{name}: type a whole number.")
        return words.format(name=tr(self.name), shown=shown, example=tr(self.example))


TOKENS = NumberKind(
    tr_later("Context"),
    1,
    100_000_000,
    parse_tokens,
    double_or_halve,
    example=tr_later("8192 or 32k"),
)


class NumberField(QAbstractSpinBox):
    """One whole number, typed or stepped."""

    committed = Signal(object)
    """A new value (``int``), once typing has finished or with each step."""
    refused = Signal(str)
    """The sentence for a text that cannot be taken; empty when the trouble is over."""

    def __init__(self, kind: NumberKind, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._kind = kind
        self._value = kind.minimum
        self._is_wrong = False
        self.setKeyboardTracking(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.editingFinished.connect(self._on_editing_finished)
        self._show()

    @property
    def value(self) -> int:
        """The last good value."""
        return self._value

    @property
    def is_wrong(self) -> bool:
        """Whether the text shown was refused."""
        return self._is_wrong

    def set_value(self, value: int) -> None:
        """Show ``value``; tells nobody. A text being corrected stays as it is."""
        if self._is_wrong and value == self._value:
            return
        self._value = value
        self._show()
        self._mark(sentence="")

    def set_kind(self, kind: NumberKind) -> None:
        """Take other limits from now on."""
        self._kind = kind

    def text_width(self, sample: str) -> int:
        """The width that shows ``sample`` whole, frame and buttons included."""
        buttons = 0 if self.buttonSymbols() is self.ButtonSymbols.NoButtons else _BUTTONS_WIDTH - 8
        return self.fontMetrics().horizontalAdvance(sample) + 18 + buttons

    @override
    def event(self, event: QEvent) -> bool:
        return leave_to_window(event, self.lineEdit()) or super().event(event)

    @override
    def stepBy(self, steps: int) -> None:
        stepped = self._kind.step(self._value, steps)
        self._take(min(max(stepped, self._kind.minimum), self._kind.maximum))

    @override
    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        enabled = self.StepEnabledFlag.StepNone
        if self._value < self._kind.maximum:
            enabled |= self.StepEnabledFlag.StepUpEnabled
        if self._value > self._kind.minimum:
            enabled |= self.StepEnabledFlag.StepDownEnabled
        return enabled

    @override
    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        return QValidator.State.Acceptable, text, position

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_editor()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._place_editor()

    @override
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            # Under a style sheet its editor may keep the font that it was made with.
            self.lineEdit().setFont(self.font())
        self._place_editor()

    def _place_editor(self) -> None:
        # Under a style sheet Qt gives the editor of a field without buttons no width at all.
        right = 8 if self.buttonSymbols() is self.ButtonSymbols.NoButtons else _BUTTONS_WIDTH
        self.lineEdit().setGeometry(self.rect().adjusted(8, 1, -right, -1))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        changed = self._is_wrong or self.text() != count(self._value)
        if event.key() == Qt.Key.Key_Escape and changed:
            self._show()
            self._mark(sentence="")
            event.accept()
            return
        super().keyPressEvent(event)

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def _on_editing_finished(self) -> None:
        text = self.text()
        if text == count(self._value):
            self._mark(sentence="")
            return
        try:
            value = self._kind.read(text)
        except ValueError as error:
            self._mark(sentence=str(error))
            return
        self._take(value)

    def _take(self, value: int) -> None:
        changed = value != self._value
        self._value = value
        self._show()
        self._mark(sentence="")
        if changed:
            self.committed.emit(value)

    def _show(self) -> None:
        self.lineEdit().setText(count(self._value))

    def _mark(self, *, sentence: str) -> None:
        wrong = bool(sentence)
        if wrong != self._is_wrong:
            self._is_wrong = wrong
            self.setProperty("wrong", wrong)
            self.style().unpolish(self)
            self.style().polish(self)
        if wrong or self.toolTip():
            self.setToolTip(sentence)
        self.refused.emit(sentence)
