"""How the lists stay where a person looks, and fetch more before they come to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from PySide6.QtCore import QModelIndex, QPoint
from PySide6.QtGui import QCursor

from gui.browser.rows import ROW_ROLE, Row

if TYPE_CHECKING:
    from PySide6.QtWidgets import QAbstractItemView

_AHEAD = 2
"""Pages of the view before the end at which more is fetched."""


class Held(NamedTuple):
    """A row and where in the view it stood."""

    key: str
    top: int


def hold(view: QAbstractItemView) -> Held | None:
    """The row under the pointer, else the first in sight; None where the list is at its top.

    At the top nothing needs to be held: what comes before the first row is meant to be seen.
    """
    port = view.viewport()
    pointer = port.mapFromGlobal(QCursor.pos())
    is_over = view.underMouse() and port.rect().contains(pointer)
    if not is_over and not view.verticalScrollBar().value():
        return None
    index = view.indexAt(pointer if is_over else QPoint(1, 1))
    row = cast("Row | None", index.data(ROW_ROLE))
    return None if row is None else Held(row.key, view.visualRect(index).top())


def put_back(view: QAbstractItemView, index: QModelIndex, top: int) -> None:
    """Scroll so that ``index`` stands at ``top`` again."""
    bar = view.verticalScrollBar()
    bar.setValue(bar.value() + view.visualRect(index).top() - top)


def fetch_ahead(view: QAbstractItemView) -> None:
    """Let ``view`` ask its model for more rows some pages before its end."""
    bar = view.verticalScrollBar()

    def on_scrolled(value: int) -> None:
        model = view.model()
        is_near = value >= bar.maximum() - _AHEAD * bar.pageStep()
        if is_near and bar.maximum() and model.canFetchMore(QModelIndex()):
            model.fetchMore(QModelIndex())

    bar.valueChanged.connect(on_scrolled)
