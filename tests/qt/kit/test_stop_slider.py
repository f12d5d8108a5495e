"""A slider stands at the numbers it was given; the user alone moves it; it is heard as a number."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt

from gui.kit.stop_slider import StopSlider, octaves

CONTEXTS = octaves(512, 131072, 8)


def test_that_octaves_are_powers_of_two_and_the_end_is_exact():
    stops = octaves(512, 40960, 8)
    assert [stops[place] for place in (0, 8, 16, 24)] == [512, 1024, 2048, 4096]
    assert stops[-1] == 40960


def test_that_stops_between_two_octaves_are_eighths():
    assert CONTEXTS[16:25] == (2048, 2304, 2560, 2816, 3072, 3328, 3584, 3840, 4096)


def test_that_small_numbers_are_whole_and_there_once():
    assert octaves(1, 20, 4) == (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20)
    assert octaves(1, 1, 4) == (1,)
    assert octaves(448, 448, 8) == (448,)


def test_that_showing_a_number_tells_nobody_and_a_key_does(qtbot):
    slider = StopSlider(CONTEXTS)
    qtbot.addWidget(slider)
    slider.setPageStep(8)
    moved = []
    slider.moved_to.connect(moved.append)
    slider.set_number(8000)
    slider.set_stops(octaves(512, 65536, 8))
    assert moved == []
    slider.set_number(8192)
    qtbot.keyClick(slider, Qt.Key.Key_PageUp)
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    qtbot.keyClick(slider, Qt.Key.Key_Home)
    assert moved == [16384, 18432, 512]


def test_that_it_stands_at_the_nearer_stop_and_says_the_number_itself(qtbot):
    slider = StopSlider((0.5, 0.9, 1.0))
    qtbot.addWidget(slider)
    for number, place in ((0.0, 0), (0.69, 0), (0.71, 1), (0.9, 1), (7, 2)):
        slider.set_number(number)
        assert slider.value() == place
    slider.set_stops((1, 2, 4, 8))
    slider.set_number(3)
    assert slider.accessibleDescription() == "3"
    qtbot.keyClick(slider, Qt.Key.Key_End)
    assert slider.accessibleDescription() == "8"


def test_that_one_stop_leaves_nothing_to_move(qtbot):
    slider = StopSlider((1,))
    qtbot.addWidget(slider)
    assert not slider.isEnabled()
    slider.set_stops((1, 2))
    assert slider.isEnabled()


def test_that_it_tells_of_the_beginning_and_the_end_of_a_drag(qtbot):
    slider = StopSlider(CONTEXTS)
    qtbot.addWidget(slider)
    slider.resize(150, 28)
    slider.show()
    heard = []
    slider.held.connect(heard.append)
    qtbot.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(7, 14))
    qtbot.mouseMove(slider, QPoint(80, 14))
    qtbot.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(80, 14))
    assert heard == [True, False]
