"""Text of two and three times its size is not cut where it matters; all can be reached."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QListWidget,
    QPushButton,
    QScrollArea,
    QTableWidget,
    QWidget,
)

from gui.browser.table_model import Column
from gui.kit.controls import ElidedLabel
from tests.helpers import accessible as walk
from tests.helpers import logs
from tests.helpers.browser import settle
from tests.qt.window.places import PLACES, close

_ROW_PADDING = 24
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


def test_that_what_is_typed_in_is_as_large_as_the_rest(sized):
    strip = sized(1440, 900, 200).view.strip
    sizes = {f.lineEdit().font().pixelSize() for f in strip.findChildren(QAbstractSpinBox)}
    # Plain text is 13 px.
    assert sizes == {26}


DIALOGS = (
    "all settings", "launch command", "command", "by hand", "hardware", "verify", "access",
    "about", "keys", "terms", "commands", "settings, General", "settings, Appearance",
    "settings, Shortcuts", "settings, Network", "settings, Network activity",
    "settings, Learned runs",
)  # fmt: skip


@pytest.mark.parametrize("size", [(1920, 1080), (1280, 800), (960, 600)])
def test_that_no_dialog_cuts_its_words_or_leaves_its_window_at_twice_the_size(sized, qtbot, size):
    app = sized(*size, 200)
    for place in DIALOGS:
        dialog = PLACES[place](app, qtbot)
        assert dialog.width() <= size[0], place
        assert dialog.height() <= size[1], place
        qtbot.waitUntil(partial(_check_whole, place, dialog))
        close(app)


@pytest.mark.parametrize("size", [(1920, 1080), (1280, 800), (960, 600)])
def test_that_the_welcome_and_all_models_are_whole_at_twice_the_size(sized, qtbot, size):
    app = sized(*size, 200)
    app.correcting.tell_found()
    notice = app.welcome
    assert notice.isVisible()
    qtbot.waitUntil(partial(_check_whole, "welcome", notice))
    app.welcome.dismiss()
    app.window.commands["all models"].trigger()
    room = app.expanding.view
    qtbot.waitUntil(room.isVisible)
    settle(qtbot, app.browser)
    table, detail = room.table, room.detail
    for part in (room.sources, detail):
        qtbot.waitUntil(partial(_check_whole, part.objectName(), part))
    # A name of 12 letters is whole.
    letters = table.fontMetrics().horizontalAdvance("Qwen3-0.6B-X")
    assert table.columnWidth(Column.NAME) >= letters
    shown = [c for c in Column if not table.isColumnHidden(c)]
    assert sum(table.columnWidth(c) for c in shown) <= table.viewport().width()
    assert {Column.NAME, Column.WEIGHTS, Column.SPARE} <= set(shown)
    # Beside the table, or below it: never over it or out of the room's width.
    assert detail.mapTo(room, detail.rect().topRight()).x() <= room.width()
    assert detail.height() >= 13 * 2 * 8


def test_that_a_log_and_what_is_said_of_it_are_as_large_as_the_rest(sized, qtbot):
    app = sized(1440, 900, 100)
    app.diagnosing.read(logs.TAKEN)
    qtbot.waitUntil(lambda: app.diagnosing.model.state is not None, timeout=20_000)
    app.dressing._change(text_percent=200)
    # The plain size of the text of a log is 12 px.
    assert app.diagnosing.view.text.document().defaultFont().pixelSize() == 24
    said = app.diagnosing.verdict
    # The figures fold where text is large.
    app.window.commands["tab log"].trigger()
    qtbot.waitUntil(said.isVisible)
    for words in (said.headline, said.detail):
        assert words.text() == words.full_text
        qtbot.waitUntil(lambda words=words: words.height() >= words.heightForWidth(words.width()))


def _check_whole(place: str, root: QWidget) -> None:
    cut = [walk.told(part) for part in walk.shown(root) if not _has_room(part)]
    assert not cut, place


def _has_room(part: QWidget) -> bool:
    """Whether what it says is whole."""
    measure = part.fontMetrics().horizontalAdvance
    has_room = True
    if isinstance(part, ElidedLabel):
        has_room = part.text() == part.full_text
    elif isinstance(part, QLabel) and part.text():
        wraps = part.wordWrap()
        wanted = part.heightForWidth(part.width()) if wraps else part.sizeHint().width()
        has_room = wanted <= (part.height() if wraps else part.width())
    elif isinstance(part, QComboBox):
        has_room = part.width() >= measure(part.currentText()) + part.fontMetrics().height()
    elif isinstance(part, QLineEdit):
        has_room = part.contentsRect().width() >= measure(part.text() or part.placeholderText())
    elif isinstance(part, QAbstractButton) and part.text():
        has_room = part.width() >= part.minimumSizeHint().width()
    elif isinstance(part, QListWidget):
        widest = max(measure(part.item(row).text()) for row in range(part.count()))
        has_room = part.viewport().width() >= widest + part.iconSize().width() + _ROW_PADDING
    elif isinstance(part, QTableWidget):
        has_room = part.columnWidth(0) >= part.sizeHintForColumn(0)
    elif isinstance(part, QScrollArea):
        is_caught = part.horizontalScrollBarPolicy() == Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        has_room = not is_caught or part.widget().width() <= part.viewport().width()
    return has_room
