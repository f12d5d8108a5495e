"""RAM of a machine that isn't here: typed beside the device, undone, kept, compared."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QLabel, QLineEdit, QPushButton

from engine.evidence import Basis
from engine.units import GIB, UnitSystem
from gui import asking
from gui.kit.theme import load_theme
from gui.sizing import comparison
from gui.sizing.compare_view_model import CompareViewModel
from gui.sizing.view import SizingView


@pytest.fixture
def view(qtbot, loaded):
    made = SizingView(loaded, load_theme("light"))
    qtbot.addWidget(made)
    made.resize(1144, 700)
    made.show()
    loaded.choose_runtime("llama.cpp", None)
    loaded.choose_device("RTX 4090")
    return made


def _open(qtbot, view):
    qtbot.mouseClick(view.strip.ram, Qt.MouseButton.LeftButton)
    dialogs = view.window().findChildren(QDialog, "ram dialog")
    return dialogs[-1]


def _button(dialog, text):
    return next(b for b in dialog.findChildren(QPushButton) if b.text() == text)


def _type(qtbot, dialog, text):
    field = dialog.findChild(QLineEdit, "ram text")
    field.clear()
    qtbot.keyClicks(field, text)


def test_that_ram_is_asked_for_only_where_nobody_can_measure_it(view, loaded):
    chip = view.strip.ram
    assert chip.isVisible()
    assert chip.text() == "RAM?"
    assert chip.accessibleName() == "RAM of that machine: not stated, 64.0 GiB assumed"
    loaded.choose_device("M4 Max 64 GB")
    assert not chip.isVisible()
    loaded.choose_device(None)
    assert not chip.isVisible()


def test_that_typed_ram_is_the_machines_and_one_step_of_undo(view, loaded, qtbot):
    dialog = _open(qtbot, view)
    assert not _button(dialog, "Not stated").isEnabled()
    _type(qtbot, dialog, "128")
    qtbot.keyClick(dialog.findChild(QLineEdit, "ram text"), Qt.Key.Key_Return)
    host = loaded.state.machine.host.device.allocatable
    assert (host.likely_bytes, host.basis) == (128 * GIB, Basis.SETTING)
    assert view.strip.ram.text() == "RAM 128 GiB"
    assert loaded.undo_stack.undoText() == "RAM"
    loaded.set_unit(UnitSystem.DECIMAL)
    assert view.strip.ram.accessibleName() == "RAM of that machine: 137.4 GB, as you say"
    loaded.undo_stack.undo()
    assert loaded.state.machine.host.device.allocatable.basis is Basis.ASSUMED


def test_that_wrong_ram_is_one_sentence_and_loses_nothing(view, loaded, qtbot):
    dialog = _open(qtbot, view)
    for text, words in (("much", "such as 64 GiB or 128 GB"), ("3 MiB", "RAM of 0.003 GiB cannot")):
        _type(qtbot, dialog, text)
        assert words in dialog.findChild(QLabel, "ram trouble").text()
        assert not _button(dialog, "Use this").isEnabled()
    assert dialog.findChild(QLineEdit, "ram text").text() == "3 MiB"
    _button(dialog, "Cancel").click()
    assert loaded.state.plan.host_total_bytes is None


def test_that_stated_ram_follows_other_cards_and_goes_where_it_cannot_be_meant(view, loaded, qtbot):
    loaded.state_ram(96 * GIB)
    loaded.choose_device("2 x RTX 4090")
    assert loaded.state.machine.host.device.total_bytes == 96 * GIB
    dialog = _open(qtbot, view)
    assert dialog.findChild(QLineEdit, "ram text").text() == "96 GiB"
    _button(dialog, "Not stated").click()
    assert loaded.state.plan.host_total_bytes is None
    loaded.state_ram(96 * GIB)
    loaded.choose_device("M4 Max 64 GB")
    assert not loaded.state.problem
    assert loaded.state.plan.host_total_bytes is None


def test_that_ram_is_kept_with_the_plan_and_tells_compared_ones_apart(loaded, runner, here):
    loaded.choose_device("RTX 4090")
    compare = CompareViewModel(runner, here)
    compare.add(loaded.state)
    loaded.state_ram(96 * GIB)
    compare.add(loaded.state)
    _first, second = comparison.names(compare.entries)
    assert second[2][1].text == "RTX 4090, 96 GiB RAM"
    assert second[2][1].differs
    kept = asking.asked(loaded.state.model, loaded.state.plan)
    assert kept.host_total_bytes == 96 * GIB
    assert asking.plan_of(kept, {}).host_total_bytes == 96 * GIB


@pytest.mark.parametrize("width", [844, 984])
def test_that_the_strip_has_room_for_it(view, loaded, qtbot, width):
    loaded.state_ram(128 * GIB)
    view.resize(width, 700)
    chip, device = view.strip.ram, view.strip.device

    def right(widget):
        return widget.mapTo(view, widget.rect().topRight()).x()

    qtbot.waitUntil(lambda: right(device) < chip.mapTo(view, chip.rect().topLeft()).x())
    qtbot.waitUntil(lambda: right(chip) <= width - 16)
    assert chip.width() >= chip.fontMetrics().horizontalAdvance(chip.text())
