"""What a screen reader is told of widgets that Qt has no kind of its own for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QAccessibleWidget, QWidget

if TYPE_CHECKING:
    from PySide6.QtCore import QObject
    from PySide6.QtGui import QAccessibleInterface

_PROPERTY = "spokenAs"


def speak_as(widget: QWidget, role: QAccessible.Role) -> None:
    """Let ``widget`` be announced as ``role``, with its accessible name and description."""
    _begin()
    widget.setProperty(_PROPERTY, role.value)


def announce(widget: QWidget, words: str) -> None:
    """Say ``words`` at once; nothing where there are none."""
    if words:
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, words))


@cache
def _begin() -> None:
    QAccessible.installFactory(_made)


def _made(_kind: str, thing: QObject | None) -> QAccessibleInterface | None:
    role = thing.property(_PROPERTY) if isinstance(thing, QWidget) else None
    if role is None or not isinstance(thing, QWidget):
        return None
    return QAccessibleWidget(thing, QAccessible.Role(role))
