"""The context slider: powers of two at every octave, round numbers between, no silent change."""

from __future__ import annotations

from PySide6.QtCore import Qt

from gui.kit.log_slider import LogSlider


def test_that_octaves_are_powers_of_two_and_the_end_is_exact(qtbot):
    slider = LogSlider(512, 40960)
    qtbot.addWidget(slider)
    assert [slider.number_at(stop) for stop in (0, 8, 16, 24)] == [512, 1024, 2048, 4096]
    assert slider.number_at(slider.maximum()) == 40960


def test_that_stops_between_large_octaves_are_multiples_of_128(qtbot):
    slider = LogSlider(512, 131072)
    qtbot.addWidget(slider)
    assert all(slider.number_at(stop) % 128 == 0 for stop in range(16, slider.maximum()))


def test_that_stops_rise(qtbot):
    slider = LogSlider(512, 131072)
    qtbot.addWidget(slider)
    numbers = [slider.number_at(stop) for stop in range(slider.maximum() + 1)]
    assert numbers == sorted(set(numbers))


def test_that_showing_a_number_tells_nobody_and_a_key_does(qtbot):
    slider = LogSlider(512, 131072)
    qtbot.addWidget(slider)
    moved = []
    slider.moved_to.connect(moved.append)
    slider.set_number(8000)
    slider.set_limits(512, 65536)
    assert moved == []
    slider.set_number(8192)
    qtbot.keyClick(slider, Qt.Key.Key_PageUp)
    assert moved == [16384]
