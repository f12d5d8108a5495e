"""How the window looks is chosen once, shown by menu and settings alike, and holds at once."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from engine.budget.model import Region
from gui.kit.charts import inks
from gui.kit.theme import load_theme
from tests.helpers.controls import pick


@pytest.fixture
def dialog(app, qtbot):
    app.preferring.dialog.open_page("Appearance")
    qtbot.waitUntil(app.preferring.dialog.isVisible)
    return app.preferring.dialog


def control(dialog, name):
    return dialog.findChild(QWidget, name)


@pytest.mark.parametrize("scheme", ["contrast-light", "contrast-dark", "dark"])
def test_that_a_scheme_of_the_page_is_the_menus_too(app, dialog, scheme):
    words = {"contrast-light": "High contrast, light", "contrast-dark": "High contrast, dark"}
    pick(control(dialog, "scheme"), words.get(scheme, "Dark"))
    assert app.themes.current.scheme == scheme
    assert app.window.commands[f"scheme {scheme}"].isChecked()
    ground = app.view.picture.grab().toImage().pixelColor(2, 2)
    assert ground == load_theme(scheme).color("surface.base")


def test_that_a_scheme_of_the_menu_is_the_pages_too(app, dialog):
    app.window.commands["scheme contrast-dark"].trigger()
    assert control(dialog, "scheme").currentText() == "High contrast, dark"


def test_that_larger_text_is_larger_at_once_and_at_the_next_start(app, dialog, start):
    before = app.view.strip.context.font().pixelSize()
    pick(control(dialog, "text size"), "200 %")
    assert app.view.strip.context.font().pixelSize() == 2 * before
    app.window.close()
    assert start().themes.current.text_scale == 2.0


def test_that_patterns_hatch_each_region_its_own_way(app, dialog, qtbot):
    assert inks.ink(app.themes.current, Region.RUNTIME).hatch == "solid"
    qtbot.keyClick(control(dialog, "patterns"), Qt.Key.Key_Space)
    # The two largest stay plain, as in the contrast schemes: they are told apart by what hatches
    # the part of the pool that is spare.
    hatched = set(Region) - {Region.WEIGHTS, Region.KV_CACHE}
    hatches = [inks.ink(app.themes.current, region).hatch for region in hatched]
    assert "solid" not in hatches
    assert len(set(hatches)) == len(hatches)


def test_that_nothing_moves_where_things_should_keep_still(app, dialog, qtbot):
    qtbot.keyClick(control(dialog, "still"), Qt.Key.Key_Space)
    line = app.window.progress
    line.set_busy(True)
    qtbot.waitUntil(lambda: line.is_visible)
    pictures = {line.grab().toImage().pixelColor(x, 0).name() for x in range(0, line.width(), 50)}
    assert pictures == {app.themes.current.color("accent").name()}
    line.set_busy(False)
