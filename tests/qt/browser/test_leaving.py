"""Rows leave the list while the verdicts on others are still being worked out."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtTest import QTest

from engine.deployment.spec import Deployment
from engine.fit.verdict import Fit
from gui.browser import badges
from gui.browser.expanded import ExpandedBrowser
from gui.browser.rows import ROW_ROLE
from gui.kit.theme import load_theme
from tests.helpers.browser import settle, shown

PLAN = Deployment(runtime="vllm", max_model_len=8192, concurrency=4)
SHORTER = Deployment(runtime="vllm", max_model_len=2048, concurrency=1)


@pytest.fixture
def view(open_browser, qtbot, monkeypatch):
    # After every slice of work, so that there are some however fast the machine.
    monkeypatch.setattr(badges, "REST_MS", 0)
    made = open_browser()
    point_at(qtbot, made.search)
    return made


def point_at(qtbot, widget):
    # A pointer that is where it was tells nobody.
    QTest.mouseMove(widget, QPoint(5, 5))
    QTest.mouseMove(widget, QPoint(20, 10))
    qtbot.waitUntil(widget.underMouse)


def out(view):
    """Keys of what by now doesn't fit."""
    made = view.model.badges.items()
    return {key for key, badge in made if badge.fit is Fit.DOES_NOT_FIT}


def watch(view, keys):
    """What is shown at each rest, what has a verdict, and what doesn't fit."""
    seen = []
    view.model.rested.connect(lambda: seen.append((keys(), set(view.model.badges), out(view))))
    return seen


def test_that_what_does_not_fit_leaves_while_others_wait_and_those_stay(view, qtbot, card):
    before = shown(view)
    seen = watch(view, lambda: shown(view))
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    assert len(seen) > 1
    for rows, known, too_large in seen:
        assert len(known) < len(before)
        assert rows == [key for key in before if key not in too_large]
    assert seen[-1][2]
    assert shown(view) == [key for key in before if key not in out(view)]


def test_that_nothing_leaves_from_under_the_pointer_before_the_last_verdict(view, qtbot, card):
    before = shown(view)
    seen = watch(view, lambda: shown(view))
    point_at(qtbot, view.list.viewport())
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    assert seen[-1][2]
    assert all(rows == before for rows, _, _ in seen)
    assert shown(view) == [key for key in before if key not in out(view)]


def test_that_the_row_of_the_keyboard_and_what_is_in_sight_keep_their_places(view, qtbot, card):
    current = 60
    view.list.setCurrentIndex(view.rows.index(current))
    view.list.scrollTo(view.rows.index(current + 5), view.list.ScrollHint.PositionAtTop)
    before, kept = shown(view), []
    first = view.list.indexAt(QPoint(1, 1)).row()

    def look():
        """The row in the top place, by the list before, and the keyboard's."""
        top = view.list.indexAt(QPoint(1, 1)).data(ROW_ROLE).key
        kept.append((top, view.list.currentIndex().data(ROW_ROLE).key, out(view)))

    view.model.rested.connect(look)
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    look()
    for top, key, too_large in kept:
        # Where the row itself has left, it is the next one that is still there.
        assert top == next(k for k in before[first:] if k not in too_large)
        assert key == next(k for k in before[current:] if k not in too_large)


def test_that_what_fits_by_another_plan_comes_in_at_its_place_with_the_last_verdict(
    view, qtbot, card
):
    everything = shown(view)
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    before = shown(view)
    seen = watch(view, lambda: shown(view))
    view.set_plan(SHORTER, card)
    settle(qtbot, view)
    assert seen
    assert all(set(rows) <= set(before) for rows, _, _ in seen)
    now = [key for key in everything if key not in out(view)]
    assert shown(view) == now
    assert set(now) - set(before)


def test_that_the_table_lets_go_as_the_list_does(view, qtbot, card):
    expanded = ExpandedBrowser(view.model, load_theme("light"))
    qtbot.addWidget(expanded)
    expanded.resize(1000, 600)
    view.hide()
    expanded.show()
    rows = expanded.table.rows

    def keys():
        return [rows.index(n, 0).data(ROW_ROLE).key for n in range(rows.rowCount())]

    point_at(qtbot, expanded.search)
    before = keys()
    seen = watch(view, keys)
    expanded.table.look_at(before[100])
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    assert len(seen) > 1
    for found, _, too_large in seen:
        assert found == [key for key in before if key not in too_large]
    assert seen[-1][2]
    left = [key for key in before[100:] if key not in out(view)]
    assert expanded.table.current_key() == left[0]


def test_that_a_list_at_its_top_stays_there_wherever_the_keyboard_is(view, qtbot, card):
    view.list.setCurrentIndex(view.rows.index(60))
    view.list.scrollToTop()
    tops = []
    bar = view.list.verticalScrollBar()
    view.model.rested.connect(lambda: tops.append(bar.value()))
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    assert len(tops) > 1
    assert {*tops, bar.value()} == {0}


def test_that_nothing_fits_is_said_only_when_all_is_worked_out(view, qtbot, card):
    qtbot.keyClicks(view.search, "llama 70b instruct")
    before = set(shown(view))
    seen = []
    view.model.rested.connect(lambda: seen.append((out(view), shown(view), view.list.isVisible())))
    view.set_plan(PLAN, card)
    settle(qtbot, view)
    # Some rests came after the last of these rows, while others were worked out.
    assert before <= seen[-1][0]
    assert all(rows and is_visible for _, rows, is_visible in seen)
    assert view.message.isVisible()
