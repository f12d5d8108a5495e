"""What dialogs share: their size, the row of buttons at their end, and one that stays open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from PySide6.QtCore import QEvent, QObject, QSize, Qt, QTimer, Slot
from PySide6.QtWidgets import (
    QDialog,
    QLayout,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from gui.kit.controls import Ground
from gui.kit.focus import Dialog
from gui.kit.theme import text_scale
from gui.kit.wrap import WrapRow

if TYPE_CHECKING:
    from collections.abc import Callable

D = TypeVar("D", bound=QDialog)
_TITLE_BAR = 40


class GrowingDialog(Dialog):
    """Grows with its words and their size as far as the window it belongs to; then it scrolls."""

    def __init__(self, parent: QWidget, width: int, height: int = 0) -> None:
        """``width`` and ``height`` are the least it wants at plain text size."""
        super().__init__(parent)
        self._belongs_to = parent
        self._least = QSize(width, height)
        self._body = Ground(window=True)
        self._content: QLayout | None = None
        self._end: WrapRow | None = None
        # Once everything in it has its new font.
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self.take_room)

    def lay_out(self, content: QVBoxLayout, end: WrapRow) -> None:
        """Put ``content`` into what scrolls, and ``end`` below it, so that it stays in sight."""
        self._content = content
        content.setContentsMargins(24, 20, 24, 4)
        content.setSpacing(12)
        self._body.setLayout(content)
        roll = QScrollArea()
        roll.setFrameShape(QScrollArea.Shape.NoFrame)
        roll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        roll.setWidgetResizable(True)
        roll.setWidget(self._body)
        self._end = end
        end.setContentsMargins(24, 8, 24, 16)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(roll, 1)
        column.addLayout(end)

    @Slot()
    def take_room(self) -> None:
        """Have the size that the words want now; what is open never shrinks."""
        room = self._belongs_to.window().size() - QSize(_TITLE_BAR, _TITLE_BAR)
        wanted = self._least * text_scale()
        if self._content is not None and self._end is not None:
            # What lies deeper forgets its old size only so.
            self._content.activate()
            least = max(self._body.minimumSizeHint().width(), self._end.minimumSize().width())
            width = min(max(wanted.width(), least), room.width())
            height = _height_of(self._content, width) + self._end.heightForWidth(width)
            wanted = QSize(width, height).expandedTo(wanted)
        if self.isVisible():
            wanted = wanted.expandedTo(self.size())
        self.resize(wanted.boundedTo(room))

    @override
    def setVisible(self, visible: bool) -> None:
        if visible and not self.isVisible():
            for part in self.findChildren(QWidget):
                part.ensurePolished()
            self.take_room()
        super().setVisible(visible)

    @override
    def event(self, arg__1: QEvent) -> bool:
        if arg__1.type() == QEvent.Type.ApplicationFontChange and self.isVisible():
            self._soon.start()
        return super().event(arg__1)


def _height_of(layout: QLayout, width: int) -> int:
    if layout.hasHeightForWidth():
        return layout.totalHeightForWidth(width)
    return layout.totalSizeHint().height()


def primary_button(text: str) -> QPushButton:
    """The button that a dialog is for; Enter presses it."""
    made = QPushButton(text)
    made.setProperty("role", "primary")
    made.setDefault(True)
    return made


def leave_button(dialog: QDialog, text: str) -> QPushButton:
    """The button that leaves ``dialog`` as it is; Enter never presses it by itself."""
    made = QPushButton(text)
    made.setAutoDefault(False)
    made.clicked.connect(dialog.reject)
    return made


def closing_row(*last: QPushButton, first: tuple[QPushButton, ...] = ()) -> WrapRow:
    """A row of buttons, as at a dialog's end: ``first`` at its left, ``last`` at its right."""
    row = WrapRow()
    for button in first:
        row.add(button)
    between = QWidget()
    between.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    row.add(between, 1)
    for button in last:
        row.add(button)
    return row


class Companion(QObject, Generic[D]):
    """A dialog that stays open beside the window: opened once, and brought forward after that."""

    def __init__(self, make: Callable[[], D], parent: QObject) -> None:
        super().__init__(parent)
        self._make = make
        self.dialog: D | None = None
        """None while it is closed."""

    @Slot()
    def open(self) -> None:
        """Show it in front of the window."""
        if self.dialog is None:
            self.dialog = self._make()
            self.dialog.finished.connect(self._on_finished)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()

    @Slot()
    def _on_finished(self) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None
