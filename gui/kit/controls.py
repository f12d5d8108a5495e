"""Small widgets that every room may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QSizePolicy,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QToolButton,
    QWidget,
)
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence


_FIELD_FRAME = 24
"""Margins of a closed list, beside the arrow."""
_LEAST_LINES = 8
"""The least width of such a list, in heights of a line."""
_HIT = 24
_POPUP_FRAME = 56
"""Margins of a popup and its scroll bar."""


class Ground(QWidget):
    """A plain surface: the content's ground, or the window's with ``window``."""

    def __init__(self, parent: QWidget | None = None, *, window: bool = False) -> None:
        super().__init__(parent)
        self.setAutoFillBackground(True)
        role = QPalette.ColorRole.Window if window else QPalette.ColorRole.Base
        self.setBackgroundRole(role)


class Hairline(QWidget):
    """One pixel between two strips."""

    def __init__(self, parent: QWidget | None = None, *, upright: bool = False) -> None:
        super().__init__(parent)
        if upright:
            self.setFixedWidth(1)
        else:
            self.setFixedHeight(1)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), self.palette().midlight())


def label(text: str, role: str, name: str = "") -> QLabel:
    """A label in one of the theme's roles; plain text only."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setProperty("role", role)
    if name:
        made.setObjectName(name)
    return made


def running_text(role: str) -> QLabel:
    """A label for running text that can be marked and copied."""
    made = label("", role)
    made.setWordWrap(True)
    made.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse
        | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    return made


def set_role(widget: QWidget, role: str) -> None:
    """Give ``widget`` another of the theme's roles."""
    if widget.property("role") != role:
        widget.setProperty("role", role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


class LineField(QLineEdit):
    """A line of text whose buttons at its ends are large enough to hit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.textChanged.connect(self.place_buttons)

    @Slot()
    def place_buttons(self) -> None:
        """Qt makes them as large as their icons."""
        for button in self.findChildren(QToolButton):
            place = QRect(0, 0, _HIT, _HIT)
            place.moveCenter(button.geometry().center())
            if button.size() != place.size():
                button.setGeometry(place)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.place_buttons()


class ElidedLabel(QLabel):
    """One line that ends in an ellipsis where it must, with the whole text in the tooltip."""

    def __init__(
        self,
        role: str,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        name: str = "",
        *,
        keeps_whole: bool = False,
    ) -> None:
        """``keeps_whole`` is for numbers, which are never cut."""
        super().__init__()
        self._full = ""
        self._mode = mode
        self._keeps_whole = keeps_whole
        self._tooltip = ""
        self._wraps = False
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("role", role)
        self.setObjectName(name)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def set_text(self, text: str, tooltip: str = "") -> None:
        """Show ``text``; ``tooltip`` explains it further."""
        self._full = text
        self._tooltip = tooltip
        self.setAccessibleName(text)
        self._elide()
        self.updateGeometry()

    def set_wraps(self, *, wraps: bool) -> None:
        """Take as many lines as the text wants in place of a cut, or one."""
        if wraps == self._wraps:
            return
        self._wraps = wraps
        self.setWordWrap(wraps)
        down = QSizePolicy.Policy.Preferred if wraps else QSizePolicy.Policy.Fixed
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, down)
        policy.setHeightForWidth(wraps)
        self.setSizePolicy(policy)
        self._elide()
        self.updateGeometry()

    @property
    def full_text(self) -> str:
        """The text before any cut."""
        return self._full

    @override
    def sizeHint(self) -> QSize:
        margins = self.contentsMargins()
        width = self.fontMetrics().horizontalAdvance(self._full) + margins.left() + margins.right()
        height = self.fontMetrics().height() if self._wraps else super().sizeHint().height()
        return QSize(width + 2, height)

    @override
    def minimumSizeHint(self) -> QSize:
        whole = self.sizeHint()
        least = whole.width() if self._keeps_whole else min(24, whole.width())
        return QSize(least, whole.height() if self._wraps else super().minimumSizeHint().height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        width = self.contentsRect().width()
        metrics = self.fontMetrics()
        shown = self._full if self._wraps else metrics.elidedText(self._full, self._mode, width)
        self.setText(shown)
        cut = self._full if shown != self._full else ""
        self.setToolTip("\n".join(filter(None, (cut, self._tooltip))))


class SizedCombo(QComboBox):
    """A combo box whose widths are told it, since its own depend on its longest entry."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._widths = (60, 120)
        # A view of its own lets the style sheet give its rows their height.
        self.setView(QListView())
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def set_widths(self, least: int, wanted: int) -> None:
        """The width it can live with, and the one it would like."""
        if (least, wanted) != self._widths:
            self._widths = (least, wanted)
            self.updateGeometry()

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._widths[1], super().sizeHint().height())

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(self._widths[0], super().minimumSizeHint().height())

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class Choice(SizedCombo):
    """A closed list of values with labels; an unfocused wheel never changes it."""

    picked = Signal(object)
    """The value the user picked."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setMaxVisibleItems(20)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.activated.connect(self._on_activated)
        self._items: tuple[tuple[str, object], ...] = ()

    def set_items(self, items: Sequence[tuple[str, object]], current: object) -> None:
        """Offer ``items`` (label, value) and show ``current``; tells nobody."""
        kept = tuple(items)
        if kept != self._items:
            self._items = kept
            self.clear()
            for text, _value in kept:
                self.addItem(text)
            self.view().setMinimumWidth(self._widest() + _POPUP_FRAME)
        values = [value for _text, value in kept]
        self.setCurrentIndex(values.index(current) if current in values else -1)
        self.setToolTip(self.currentText())

    def offer(self, items: Sequence[tuple[str, object]], current: object) -> None:
        """As ``set_items``, and as wide as the longest of them wants."""
        self.set_items(items, current)
        wanted = self._widest() + _FIELD_FRAME + 2 * self.fontMetrics().height()
        self.set_widths(min(wanted, _LEAST_LINES * self.fontMetrics().height()), wanted)

    def _widest(self) -> int:
        metrics = self.fontMetrics()
        return max((metrics.horizontalAdvance(text) for text, _ in self._items), default=0)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        """Where the whole label has no room, show as many of its first words as have."""
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, self
        )
        option.currentText = self._shortened(option.currentText, field.width() - 2)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def _shortened(self, text: str, room: int) -> str:
        metrics = self.fontMetrics()
        head = text.partition(",")[0]
        for words in (text, head, head.rpartition(" ")[0]):
            if words and metrics.horizontalAdvance(words) <= room:
                return words
        return metrics.elidedText(head, Qt.TextElideMode.ElideRight, room)

    def _on_activated(self, index: int) -> None:
        self.setToolTip(self.currentText())
        self.picked.emit(self._items[index][1])


class Segments(QFrame):
    """A few exclusive choices side by side."""

    picked = Signal(object)

    def __init__(
        self, name: str, choices: Sequence[tuple[str, object]], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setProperty("role", "segments")
        self._values = tuple(value for _text, value in choices)
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for index, (text, _value) in enumerate(choices):
            button = QToolButton()
            button.setText(text)
            button.setCheckable(True)
            button.setProperty("role", "segment")
            button.setProperty("last", index == len(choices) - 1)
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            self._group.addButton(button, index)
            row.addWidget(button)
        self._group.idClicked.connect(self._on_clicked)

    @property
    def buttons(self) -> tuple[QToolButton, ...]:
        """The segments, left to right."""
        return tuple(self.findChildren(QToolButton))

    def set_current(self, value: object) -> None:
        """Mark ``value`` as chosen; tells nobody."""
        self._group.button(self._values.index(value)).setChecked(True)

    def _on_clicked(self, index: int) -> None:
        self.picked.emit(self._values[index])
