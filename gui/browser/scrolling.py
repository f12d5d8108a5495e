"""How the lists stay where a person looks while rows come and go, and fetch more ahead."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QModelIndex, QPoint
from PySide6.QtGui import QCursor

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractItemView

    from gui.browser.rows import ShownRows

_AHEAD = 2
"""Pages of the view before the end at which more is fetched."""


class Held(NamedTuple):
    """The number of a row, and where in the view it stood."""

    place: int
    top: int


def is_pointed_at(view: QAbstractItemView) -> bool:
    """Whether the pointer is over ``view``: what lies under it may be clicked any moment."""
    # Qt may miss that a pointer has left; where the pointer is it knows.
    return view.underMouse() and view.rect().contains(view.mapFromGlobal(QCursor.pos()))


def hold(view: QAbstractItemView) -> Held | None:
    """The row under the pointer, else the first in sight; None where the list is at its top.

    At the top nothing needs to be held: what comes before the first row is meant to be seen.
    """
    port = view.viewport()
    pointer = port.mapFromGlobal(QCursor.pos())
    is_over = is_pointed_at(view) and port.rect().contains(pointer)
    if not is_over and not view.verticalScrollBar().value():
        return None
    index = view.indexAt(pointer if is_over else QPoint(1, 1))
    return Held(index.row(), view.visualRect(index).top()) if index.isValid() else None


def put_back(
    view: QAbstractItemView, held: Held | None, before: ShownRows | None, now: ShownRows
) -> None:
    """Scroll so that what was ``held`` of ``before`` stands where it stood."""
    place = None if held is None else still_there(before, held.place, now)
    if held is None or place is None:
        view.scrollToTop()
        return
    bar = view.verticalScrollBar()
    bar.setValue(bar.value() + view.visualRect(view.model().index(place, 0)).top() - held.top)


def still_there(before: ShownRows | None, place: int, now: ShownRows) -> int | None:
    """Where the row stands ``now`` that stood at ``place`` of ``before``.

    Where it is gone, the next that isn't, else the one before it.
    """
    if before is None or place < 0:
        return None
    nearest = chain(range(place, len(before)), range(place - 1, -1, -1))
    found = (now.place(before[n].key) for n in nearest)
    return next((n for n in found if n is not None), None)


def fetch_ahead(view: QAbstractItemView) -> None:
    """Let ``view`` ask its model for more rows some pages before its end."""
    bar = view.verticalScrollBar()

    def on_scrolled(value: int) -> None:
        model = view.model()
        is_near = value >= bar.maximum() - _AHEAD * bar.pageStep()
        if is_near and bar.maximum() and model.canFetchMore(QModelIndex()):
            model.fetchMore(QModelIndex())

    bar.valueChanged.connect(on_scrolled)
