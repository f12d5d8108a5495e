"""Every place of the window for a screen reader, the keyboard alone, and a weak eye."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from gui.kit.theme import SCHEMES
from tests.helpers import accessible as walk
from tests.helpers import fake_hub
from tests.qt.window.places import ON_THE_HUB, PLACES, a_repository

LEAST_CONTRAST = 4.5

places = pytest.mark.parametrize("place", [*PLACES, *ON_THE_HUB])


@pytest.fixture
def connected(start, qtbot, tmp_path):
    """The window with a Hub of its own."""
    with fake_hub.serving() as hub:
        hub.add(a_repository(tmp_path))
        made = start(offline=False, endpoint=hub.url)
        made.window.resize(1440, 900)
        qtbot.waitUntil(lambda: made.model.state.fit is not None, timeout=20_000)
        yield made


@pytest.fixture
def opened(request, qtbot):
    """Opens a place and gives the window it is in."""

    def begin(place: str) -> QWidget:
        app = request.getfixturevalue("connected" if place in ON_THE_HUB else "app")
        root = (PLACES | ON_THE_HUB)[place](app, qtbot)
        qtbot.waitUntil(lambda: app.model.is_settled, timeout=20_000)
        qtbot.waitUntil(root.isVisible)
        root.activateWindow()
        QApplication.processEvents()
        return root

    return begin


@places
def test_that_all_one_can_use_has_a_name_a_role_and_room(opened, place):
    used = walk.operable(opened(place))
    assert used
    assert not [walk.told(w) for w in used if not walk.is_named(w)], "without a name"
    wrong = {walk.told(w): walk.role(w) for w in used if not walk.has_fitting_role(w)}
    assert not wrong
    assert not [walk.told(w) for w in used if not walk.is_large_enough(w)], "too small"


@places
def test_that_tab_reaches_everything_in_reading_order_and_shows_where_it_is(opened, qtbot, place):
    root = opened(place)
    unseen = []

    def press():
        before = QApplication.focusWidget()
        qtbot.keyClick(before or root, Qt.Key.Key_Tab)
        QApplication.processEvents()
        here = QApplication.focusWidget()
        if here is not before and here is not None and not _is_ringed(here):
            unseen.append(walk.told(here))

    stops = walk.tab_stops(root, press)
    assert not unseen
    assert len(walk.backwards(stops)) <= 1
    wanted = {w for w in walk.operable(root) if w.isEnabled() and _by_tab(w)}
    assert not [walk.told(w) for w in wanted - set(stops)]


def test_that_tab_goes_from_the_search_to_the_plan_the_picture_and_the_tabs(opened, app, qtbot):
    root = opened("first start")
    app.browser.focus_search()

    def press():
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)

    heard = [walk.name(stop) for stop in walk.tab_stops(root, press)]
    at = heard.index("Find a model")
    heard = heard[at:] + heard[:at]
    wanted = [
        "Find a model",
        "Models",
        "Report",
        "Runtime",
        "Weights",
        "KV cache",
        "Context, tokens per request",
        "At once",
        "Tensor parallel size",
        "Pipeline parallel size",
        "Device",
        "Now",
        app.view.picture.accessibleName(),
        "Regions",
        "Regions of memory",
        "Full",
    ]
    assert [name for name in dict.fromkeys(heard) if name in wanted] == wanted


def test_that_the_browser_over_the_centre_goes_with_the_keyboard(opened, app, qtbot):
    opened("browser over the centre")
    app.browser.focus_search()
    for _ in range(12):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
    assert not app.browser.isAncestorOf(QApplication.focusWidget())
    assert not app.browser.isVisible()


def test_that_a_click_needs_no_ring_and_a_key_brings_it(opened, app, qtbot):
    opened("first start")
    picture = app.view.picture
    qtbot.mouseClick(picture, Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    assert picture.hasFocus()
    assert not _is_ringed(picture)
    qtbot.keyClick(picture, Qt.Key.Key_Tab)
    QApplication.processEvents()
    assert _is_ringed(QApplication.focusWidget())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_that_all_words_in_sight_have_a_contrast_of_four_and_a_half(opened, app, scheme):
    app.window.commands[f"scheme {scheme}"].trigger()
    poor = {}
    for place in (
        "first start",
        "expanded browser",
        "compare",
        "what holds it",
        "settings, Network",
    ):
        root = opened(place)
        picture = root.grab().toImage()
        for part in walk.worded(root):
            ratio = walk.contrast(walk.ink(part), walk.ground(part, picture))
            if ratio < LEAST_CONTRAST:
                poor[walk.told(part)] = round(ratio, 2)
        app.window.uncover()
    assert not poor


def _is_ringed(widget: QWidget) -> bool:
    """Whether its picture is another one without the ring."""
    ring = widget.findChild(QWidget, "focus ring")
    if ring is None or not ring.isVisible():
        return False
    ringed = widget.grab().toImage()
    ring.hide()
    plain = widget.grab().toImage()
    ring.show()
    return ringed != plain


def _by_tab(widget: QWidget) -> bool:
    """Whether Tab is to stop there: of exclusive choices at one, the arrows go to the others."""
    if isinstance(widget, QAbstractButton) and widget.group() and widget.group().exclusive():
        return widget.isChecked()
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)
