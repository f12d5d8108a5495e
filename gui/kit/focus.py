"""Where the keyboard is, and where Tab goes: a ring round what has the focus, and reading order."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QEvent, QObject, QRectF, Qt, QTimer, Slot
from PySide6.QtGui import QPainter, QPalette, QPen
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QScrollArea, QTabBar, QWidget
from shiboken6 import isValid
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtGui import QPaintEvent
    from PySide6.QtWidgets import QButtonGroup

_RING = 2
_RADIUS = 4


class FocusRings(QObject):
    """Draws the ring round what the keyboard has reached or works in; a click needs none."""

    def __init__(self, application: QApplication, parent: QObject) -> None:
        super().__init__(parent)
        self._ring: FocusRing | None = None
        # Qt notes only after it has told of the focus that the keyboard led there.
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self._look)
        application.focusChanged.connect(self._on_focus_changed)

    @Slot(QWidget, QWidget)
    def _on_focus_changed(self, before: QWidget | None, now: QWidget | None) -> None:
        if before is not None and isValid(before):
            before.removeEventFilter(self)
        if self._ring is not None:
            self._ring.leave()
            self._ring = None
        if now is not None:
            now.installEventFilter(self)
        self._soon.start()

    @Slot()
    def _look(self) -> None:
        now = QApplication.focusWidget()
        if now is not None and _by_keyboard(now):
            self._draw(now)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # Who goes on by keys after a click is shown where; in a text the cursor does that.
        if event.type() == QEvent.Type.KeyPress and isinstance(watched, QWidget):
            takes_text = watched.testAttribute(Qt.WidgetAttribute.WA_InputMethodEnabled)
            if watched.hasFocus() and not takes_text:
                self._draw(watched)
        return super().eventFilter(watched, event)

    def _draw(self, around: QWidget) -> None:
        if self._ring is None:
            self._ring = FocusRing(around)
            self._ring.destroyed.connect(self._on_destroyed)

    @Slot()
    def _on_destroyed(self) -> None:
        # With the widget that it was round.
        self._ring = None


def _by_keyboard(widget: QWidget) -> bool:
    """Whether the keyboard led to it, or to the dialog that it is in."""
    window: QWidget | None = widget.window()
    while window is not None:
        if window.testAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange):
            return True
        above = window.parentWidget()
        window = above.window() if above is not None else None
    return False


class FocusRing(QWidget):
    """Two pixels in the accent inside the widget's edge, and one of the ground to set them off."""

    def __init__(self, around: QWidget) -> None:
        super().__init__(around)
        self.setObjectName("focus ring")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._around = around
        around.installEventFilter(self)
        if isinstance(around, QTabBar):
            around.currentChanged.connect(self._on_tab_changed)
        self._place()
        self.show()

    def leave(self) -> None:
        """Go with the focus."""
        self.hide()
        self.setParent(None)
        self.deleteLater()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self._place()
        return super().eventFilter(watched, event)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        place, inside = QRectF(self.rect()), _RING + 0.5
        colors = self.palette()
        painter.setPen(QPen(colors.color(QPalette.ColorRole.Base), 1))
        painter.drawRoundedRect(
            place.adjusted(inside, inside, -inside, -inside), _RADIUS - _RING, _RADIUS - _RING
        )
        painter.setPen(QPen(colors.color(QPalette.ColorRole.Accent), _RING))
        painter.drawRoundedRect(place.adjusted(1, 1, -1, -1), _RADIUS - 1, _RADIUS - 1)

    def _place(self) -> None:
        around = self._around
        if isinstance(around, QTabBar) and around.count():
            self.setGeometry(around.tabRect(around.currentIndex()))
        else:
            self.setGeometry(around.rect())
        self.raise_()

    @Slot()
    def _on_tab_changed(self) -> None:
        self._place()


class Dialog(QDialog):
    """A dialog through which Tab goes as one reads."""

    @override
    def focusNextPrevChild(self, next: bool) -> bool:
        return go_on(self, forwards=next)


def go_on(window: QWidget, *, forwards: bool) -> bool:
    """Give the focus to what is read next in ``window``, or before; scrolls it into sight.

    Returns:
        Whether there is anything to give it to.
    """
    now = window.focusWidget()
    stops = reading_order(window, now)
    if not stops:
        return False
    step = 1 if forwards else -1
    at = stops.index(now) if now in stops else -step
    target = stops[(at + step) % len(stops)]
    reason = Qt.FocusReason.TabFocusReason if forwards else Qt.FocusReason.BacktabFocusReason
    target.setFocus(reason)
    around = target.parentWidget()
    while around is not None:
        if isinstance(around, QScrollArea):
            around.ensureWidgetVisible(target)
        around = around.parentWidget()
    return True


def reading_order(root: QWidget, also: QWidget | None = None) -> list[QWidget]:
    """What Tab stops at in ``root``: line by line, each area as a whole.

    Qt goes by the order in which widgets were made, which is not where they stand.

    Args:
        root: a window.
        also: what is named in its place even where Tab doesn't stop there.
    """
    return [w for w in _read(root) if w is also or _takes_tab(w)]


def _read(root: QWidget) -> Iterator[QWidget]:
    parts = [
        part
        for part in root.children()
        if isinstance(part, QWidget) and part.isVisible() and not part.isWindow()
    ]
    for part in sorted(parts, key=cmp_to_key(_compared)):
        yield part
        yield from _read(part)


def _compared(one: QWidget, other: QWidget) -> int:
    """Less than 0 where ``one`` is read before ``other``."""
    a, b = one.geometry(), other.geometry()
    across = _overlap(a.left(), a.right(), b.left(), b.right())
    down = _overlap(a.top(), a.bottom(), b.top(), b.bottom())
    if down > min(a.height(), b.height()) / 2 and across <= 0:
        return _begin(one) - _begin(other)
    begun = (a.top() - b.top()) or _begin(one) - _begin(other)
    # What lies over another thing is the smaller of the two.
    return begun or a.width() * a.height() - b.width() * b.height()


def _overlap(low: int, high: int, other_low: int, other_high: int) -> int:
    return min(high, other_high) - max(low, other_low) + 1


def _begin(part: QWidget) -> int:
    above = part.parentWidget()
    is_mirrored = above is not None and above.isRightToLeft()
    return -part.geometry().right() if is_mirrored else part.geometry().left()


def _takes_tab(widget: QWidget) -> bool:
    if isinstance(widget, QAbstractButton):
        group = cast("QButtonGroup | None", widget.group())
        # Of several choices Tab goes to the one in force; the arrows go on from there.
        if group is not None and group.exclusive() and group.checkedButton() not in (None, widget):
            return False
    takes = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
    return takes and widget.isEnabled() and widget.focusProxy() is None
