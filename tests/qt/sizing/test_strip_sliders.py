"""Where the strip is wide, requests and parallel sizes have sliders, held to model and machine."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from engine.devices import catalogue as devices
from gui.kit.theme import load_theme
from gui.sizing.view import SizingView


@pytest.fixture
def view(qtbot, loaded):
    made = SizingView(loaded, load_theme("light"))
    made.strip.set_devices("RTX 4090", devices.devices())
    made.strip.show_state(loaded.state)
    made.set_low(low=False)
    qtbot.addWidget(made)
    made.resize(1144, 820)
    made.show()
    return made


def test_that_a_wide_strip_has_sliders_for_requests_and_parallel_sizes(view, loaded, qtbot):
    requests, tensor, pipeline = view.strip.sliders.values()
    assert not requests.isVisible()
    view.resize(1700, 820)
    qtbot.waitUntil(requests.isVisible)
    # One card here: nothing to divide over.
    assert not tensor.isVisible()
    assert not pipeline.isVisible()
    qtbot.keyClick(requests, Qt.Key.Key_End)
    assert loaded.state.plan.deployment.concurrency == 256
    assert view.strip.at_once.value == 256
    loaded.choose_device("4 x RTX 4090")
    qtbot.waitUntil(tensor.isVisible)
    qtbot.keyClick(tensor, Qt.Key.Key_Right)
    assert loaded.state.plan.deployment.tensor_parallel_size == 2
    # Two of the four are left for stages.
    assert pipeline.stops == (1, 2)
    loaded.undo_stack.undo()
    assert loaded.state.plan.deployment.tensor_parallel_size == 1
