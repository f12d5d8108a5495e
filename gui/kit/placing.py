"""Where a window may stand: whole on one of the screens there are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect

if TYPE_CHECKING:
    from collections.abc import Sequence


def on_screen(window: QRect, screens: Sequence[QRect]) -> QRect:
    """``window`` as near as can be to where it was, on the screen that shows most of it.

    Args:
        window: where it was, with its frame.
        screens: what is free for windows on each screen, the main one first; at least one.
    """
    home = max(screens, key=lambda free: _area(free.intersected(window)))
    size = window.size().boundedTo(home.size())
    left = min(max(window.left(), home.left()), home.left() + home.width() - size.width())
    top = min(max(window.top(), home.top()), home.top() + home.height() - size.height())
    return QRect(left, top, size.width(), size.height())


def _area(place: QRect) -> int:
    return max(0, place.width()) * max(0, place.height())
