"""Text of two and three times its size is not cut where it matters; all can be reached."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton, QScrollArea, QWidget

SIZES = [(1440, 900), (1280, 800), (960, 600)]


@pytest.fixture
def sized(app, qtbot):
    """The window at a size, with text of some percent."""

    def begin(width, height, percent):
        app.welcome.dismiss()
        app.window.resize(width, height)
        app.dressing._change(text_percent=percent)
        qtbot.waitUntil(lambda: app.window.size().width() == width)
        qtbot.waitUntil(lambda: inside(app))
        return app

    return begin


def roll(app):
    return app.window.findChild(QScrollArea, "centre")


def inside(app):
    """Whether nothing is to scroll sideways, and the picture has the room it needs."""
    least = app.view.picture.minimumSizeHint().height()
    return app.view.width() <= roll(app).viewport().width() and app.view.picture.height() >= least


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_that_plain_text_needs_no_scrolling(sized, qtbot, width, height):
    app = sized(width, height, 100)
    bars = roll(app).verticalScrollBar(), roll(app).horizontalScrollBar()
    qtbot.waitUntil(lambda: not any(bar.isVisible() for bar in bars))


@pytest.mark.parametrize("percent", [150, 200, 300])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_that_larger_text_scrolls_downwards_only(sized, width, height, percent):
    app = sized(width, height, percent)
    assert app.window.size().toTuple() == (width, height)
    assert not roll(app).horizontalScrollBar().isVisible()


@pytest.mark.parametrize("percent", [200, 300])
def test_that_no_control_of_the_plan_is_cut(sized, qtbot, percent):
    app = sized(960, 600, percent)
    qtbot.waitUntil(lambda: no_control_is_cut(app))


def no_control_is_cut(app):
    strip, header = app.view.strip, app.view.header
    parts = [p for area in (strip, header) for p in area.findChildren(QWidget) if p.isVisible()]
    for part in parts:
        place = part.rect().translated(part.mapTo(app.view, part.rect().topLeft()))
        assert app.view.rect().contains(place), part.objectName()
    for button in header.findChildren(QPushButton):
        if button.isVisible():
            assert button.width() >= button.sizeHint().width(), button.text()
    return True


@pytest.mark.parametrize("percent", [200, 300])
def test_that_the_verdict_is_said_whole(sized, qtbot, percent):
    labels = sized(960, 600, percent).view.verdict.labels
    assert all(words.text() == words.full_text for words in labels)
    qtbot.waitUntil(lambda: all(w.height() >= w.heightForWidth(w.width()) for w in labels))


def test_that_the_rail_stands_for_the_browser_where_text_is_large(sized):
    assert not sized(1440, 900, 100).window.is_narrow
    assert sized(1440, 900, 200).window.is_narrow
    assert not sized(1440, 900, 100).window.is_narrow


def test_that_every_page_of_the_settings_fits_across_at_three_times(sized, qtbot):
    app = sized(960, 600, 300)
    dialog = app.preferring.dialog
    for page in ("General", "Appearance", "Shortcuts"):
        dialog.open_page(page)
        area = dialog.stack.currentWidget()
        qtbot.waitUntil(area.isVisible)
        assert area.widget().minimumSizeHint().width() <= area.viewport().width(), page
