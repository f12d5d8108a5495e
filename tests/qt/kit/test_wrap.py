"""Widgets stand in one row while their least widths have room, and in more when they have not."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QWidget

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


class Tiles(QWidget):
    """Three squares of 100 that lie in as few rows as its width allows."""

    def __init__(self):
        super().__init__()
        policy = self.sizePolicy()
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def sizeHint(self):
        return QSize(100, 300)

    def minimumSizeHint(self):
        return QSize(100, 100)

    def hasHeightForWidth(self):
        return True

    def heightForWidth(self, width):
        return {1: 300, 2: 200}.get(width // 100, 100)


@pytest.fixture
def beside(qtbot):
    """Tiles that stretch beside a block of 150 by 20, 10 apart."""
    host = QWidget()
    qtbot.addWidget(host)
    layout = WrapRow(host)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.set_gap(10)
    host.tiles = Tiles()
    layout.add(host.tiles, 1)
    layout.add(Block(150))
    return host


@pytest.mark.parametrize(
    ("width", "height"),
    # Of 260 the tiles get 260 - 150 - 10 = 100; of 360 they get 200, and of 460 300.
    [(260, 300), (359, 300), (360, 200), (459, 200), (460, 100), (900, 100)],
)
def test_that_what_stretches_is_as_high_as_all_the_room_left_makes_it(beside, width, height):
    assert beside.layout().heightForWidth(width) == height


def test_that_the_height_is_that_of_the_width_it_is_given(beside, qtbot):
    beside.show()
    for width in (260, 359, 360, 900):
        beside.resize(width, beside.layout().heightForWidth(width))
        beside.layout().activate()
        qtbot.waitUntil(lambda width=width: beside.tiles.width() == width - 160)
        assert beside.tiles.height() == beside.tiles.heightForWidth(beside.tiles.width())


def test_that_words_beside_a_button_take_no_line_more_than_they_need(qtbot):
    host = QWidget()
    qtbot.addWidget(host)
    layout = WrapRow(host)
    layout.setContentsMargins(0, 0, 0, 0)
    words = QLabel("Whether memory that others hold now counts as taken, " * 4)
    words.setWordWrap(True)
    layout.add(words, 1)
    layout.add(Block(150))
    assert layout.heightForWidth(900) == max(20, words.heightForWidth(900 - 150 - 8))


@pytest.mark.parametrize(
    ("keeps_widths", "width", "rows"),
    # The words need 100 at least, the block 50 and would like 200; 10 lie between them.
    [(False, 200, [0, 0]), (True, 309, [0, 28]), (True, 310, [0, 0]), (False, 159, [0, 28])],
)
def test_that_a_block_keeps_its_width_where_it_is_to(qtbot, keeps_widths, width, rows):
    host = QWidget()
    qtbot.addWidget(host)
    layout = WrapRow(host, keeps_widths=keeps_widths)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.set_gap(10)
    words, block = Block(100), Block(200)
    block.minimumSizeHint = lambda: QSize(50, 20)
    layout.add(words, 1)
    layout.add(block)
    host.blocks = [words, block]
    host.show()
    assert tops(host, qtbot, width) == rows
