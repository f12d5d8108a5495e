"""Widgets stand in one row while their least widths have room, and in more when they have not."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

from gui.kit.wrap import WrapRow


class Block(QWidget):
    """Of one size."""

    def __init__(self, width, height=20):
        super().__init__()
        self._size = QSize(width, height)

    def sizeHint(self):
        return self._size

    def minimumSizeHint(self):
        return self._size


@pytest.fixture
def row(qtbot):
    """Three blocks of 100, 200 and 300, 10 apart."""
    host = QWidget()
    qtbot.addWidget(host)
    layout = WrapRow(host)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.set_gap(10)
    host.blocks = [Block(100), Block(200), Block(300)]
    for block in host.blocks:
        layout.add(block)
    host.show()
    return host


def tops(row, qtbot, width):
    row.resize(width, row.layout().heightForWidth(width))
    qtbot.waitUntil(lambda: row.width() == width)
    row.layout().activate()
    return [block.y() for block in row.blocks if block.isVisible()]


@pytest.mark.parametrize(
    ("width", "rows"),
    # 100 + 10 + 200 + 10 + 300 = 620; 100 + 10 + 200 = 310; 8 lie between rows of 20.
    [(620, [0, 0, 0]), (619, [0, 0, 28]), (310, [0, 0, 28]), (309, [0, 28, 56])],
)
def test_that_a_row_is_begun_where_the_last_one_is_full(row, qtbot, width, rows):
    assert row.layout().heightForWidth(width) == 20 + max(rows)
    assert tops(row, qtbot, width) == rows


def test_that_rows_become_one_again(row, qtbot):
    assert tops(row, qtbot, 309) == [0, 28, 56]
    assert tops(row, qtbot, 620) == [0, 0, 0]


def test_that_what_is_hidden_takes_no_room(row, qtbot):
    row.blocks[1].hide()
    assert tops(row, qtbot, 410) == [0, 0]


def test_that_no_more_is_asked_for_than_the_widest_wants(row):
    assert row.minimumSizeHint().width() == 300
