"""One search, one list: what is known at once, the Hub's hits below it as they arrive."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QMenu, QPushButton, QToolButton

from engine.cancel import CancelToken
from engine.deployment.spec import Deployment
from engine.source import catalogue
from gui.browser.expanded import ExpandedBrowser
from gui.browser.filters import ALL
from gui.browser.rows import ROW_ROLE, Place, Source, where
from gui.browser.shelf import Shelf
from gui.kit.theme import load_theme
from tests.helpers.browser import settle, shown, words
from tests.helpers.fake_hub import Repo
from tests.qt.browser.test_view import CONFIG

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
PLAN = Deployment(runtime="vllm", max_model_len=8192, concurrency=4)


def segment(view, words_of):
    return next(b for b in view.sources.buttons if b.text().startswith(words_of))


def click(qtbot, widget):
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)


def end(view):
    line = view.findChild(QLabel, f"{view.end.objectName()} words")
    return line.text() if view.end.isVisible() else ""


def end_button(view):
    return view.findChild(QPushButton, f"{view.end.objectName()} button")


def type_words(qtbot, view, text):
    view.search.clear()
    qtbot.keyClicks(view.search, text)


def searches(hub):
    return [path for path in hub.paths() if path.startswith("GET /api/models?")]


def row_of(view, key):
    return next(row for row in view.model.state.rows if row.key == key)


def add_many(hub, number, prefix="many/model"):
    for n in range(number):
        hub.add(Repo(f"{prefix}-{n:03}", facts={"downloads": 10**9 - n, "likes": n % 7}))


def test_that_typing_asks_nobody_until_enter_says_so_and_then_typing_does(open_browser, qtbot, hub):
    add_many(hub, 3)
    view = open_browser()
    view.model.set_filters(ALL)
    type_words(qtbot, view, "model")
    settle(qtbot, view)
    here = shown(view)
    assert here
    assert hub.requests == []
    assert end(view) == f"Known here. Enter sends these words to 127.0.0.1:{hub.url[-5:]}"
    assert "stays here until you press Enter" in view.search.toolTip()
    qtbot.keyClick(view.search, Qt.Key.Key_Return)
    settle(qtbot, view)
    assert len(searches(hub)) == 1
    assert shown(view)[: len(here)] == here
    assert {f"many/model-{n:03}" for n in range(3)} < set(shown(view))
    assert "sent to the Hub" in view.search.placeholderText()
    type_words(qtbot, view, "model-002")
    settle(qtbot, view)
    assert len(searches(hub)) == 2
    assert "search=model-002" in searches(hub)[1]


@pytest.mark.parametrize("way", ["source", "button"])
def test_that_picking_the_hub_or_its_button_is_asking_too(open_browser, qtbot, hub, way):
    add_many(hub, 3)
    view = open_browser()
    type_words(qtbot, view, "qwen")
    settle(qtbot, view)
    assert hub.requests == []
    click(qtbot, segment(view, "Hub") if way == "source" else end_button(view))
    settle(qtbot, view)
    assert len(searches(hub)) == 1
    assert "search=qwen" in searches(hub)[0]


def test_that_each_model_is_one_row_that_says_where_it_is(open_browser, qtbot, hub, home):
    folder = home / "hub" / "models--meta-llama--Llama-3.1-8B-Instruct" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    header = json.dumps({"a": {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]}}).encode()
    weights = len(header).to_bytes(8, "little") + header + bytes(16)
    (folder / "model.safetensors").write_bytes(weights)
    hub.add(Repo("META-LLAMA/Llama-3.1-8B-instruct", facts={"downloads": 9 * 10**9, "likes": 77}))
    hub.add(Repo("nobody/Llama-3.1-8B-Instruct-copy", facts={"downloads": 10**9}))
    view = open_browser()
    view.model.set_filters(ALL)
    type_words(qtbot, view, "llama-3.1-8b-instruct")
    click(qtbot, end_button(view))
    settle(qtbot, view)
    same = [key for key in shown(view) if key.casefold() == LLAMA.casefold()]
    assert same == [LLAMA]
    row = row_of(view, LLAMA)
    assert row.places == {Place.CATALOGUE, Place.HERE, Place.HUB}
    assert row.size_bytes == len(weights)
    assert row.likes == 77
    assert where(row) == f"In the catalogue, on this computer with {len(weights)} B, on the Hub"
    assert where(row_of(view, "nobody/Llama-3.1-8B-Instruct-copy")) == "On the Hub"


def test_that_what_lies_here_is_read_here_unless_the_hub_alone_is_looked_at(
    open_browser, qtbot, hub, home
):
    name = "Qwen/Qwen3-0.6B"
    folder = home / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    other = json.dumps(CONFIG | {"num_hidden_layers": 3}).encode()
    hub.add(Repo(name, {"config.json": other}, facts={"downloads": 10**9}))
    view = open_browser()
    picked = []
    view.chosen.connect(picked.append)
    type_words(qtbot, view, "qwen3-0.6")
    click(qtbot, end_button(view))
    settle(qtbot, view)
    view.model.choose(name)
    click(qtbot, segment(view, "Hub"))
    view.model.choose(name)
    layers = [view.fetcher(c)(CancelToken()).config["num_hidden_layers"] for c in picked]
    assert layers == [2, 3]


def test_that_favourites_are_among_the_hits_at_once(open_browser, qtbot, hub):
    view = open_browser()
    view.model.set_shelf(Shelf(favourites=("nobody/kept-model",)))
    type_words(qtbot, view, "kept-mod")
    settle(qtbot, view)
    assert shown(view) == ["nobody/kept-model"]
    assert hub.requests == []


def test_that_nothing_moves_while_the_hubs_hits_join_and_pages_follow(
    open_browser, qtbot, hub, card
):
    add_many(hub, 130, "qwen/new")
    view = open_browser()
    view.model.set_filters(ALL)
    view.set_plan(PLAN, card)
    type_words(qtbot, view, "qwen")
    settle(qtbot, view)
    before = shown(view)
    view.list.setCurrentIndex(view.rows.index(4))
    view.list.verticalScrollBar().setValue(3 * view.list.rowHeight(0))
    top = view.list.indexAt(QPoint(1, 1)).data(ROW_ROLE).key
    resets = []
    view.rows.modelReset.connect(lambda: resets.append(1))
    click(qtbot, end_button(view))
    settle(qtbot, view)
    for _ in range(3):
        view.list.scrollToBottom()
        settle(qtbot, view)
    assert resets == []
    assert shown(view)[: len(before)] == before
    assert len(set(shown(view))) == len(shown(view)) >= len(before) + 130
    assert view.list.currentIndex().row() == 4
    view.list.verticalScrollBar().setValue(3 * view.list.rowHeight(0))
    assert view.list.indexAt(QPoint(1, 1)).data(ROW_ROLE).key == top


def test_that_the_next_page_is_asked_for_before_the_end_comes_into_sight(open_browser, qtbot, hub):
    add_many(hub, 130, "zz/model")
    view = open_browser()
    view.model.set_filters(ALL)
    click(qtbot, segment(view, "Hub"))
    type_words(qtbot, view, "zz/model")
    settle(qtbot, view)
    assert len(shown(view)) == 50
    bar = view.list.verticalScrollBar()
    bar.setValue(bar.maximum() - view.list.viewport().height())
    settle(qtbot, view)
    assert len(shown(view)) == 100
    assert view.rows.rowCount() == 100
    assert view.list.indexAt(QPoint(1, 1)).row() < 50


def test_that_hits_which_came_later_take_the_arrow_until_the_order_is_chosen_again(
    open_browser, qtbot, hub
):
    hub.add(Repo("zz/qwen-famous", facts={"downloads": 10**12}))
    view = open_browser()
    view.model.set_filters(ALL)
    order = view.findChild(QToolButton, "order")
    type_words(qtbot, view, "qwen")
    assert order.text() == "Popular \N{DOWNWARDS ARROW}"
    click(qtbot, end_button(view))
    settle(qtbot, view)
    assert "zz/qwen-famous" in shown(view)[20:]
    assert order.text() == "Popular"
    menu = order.findChild(QMenu)
    next(a for a in menu.actions() if a.text() == "Popular").trigger()
    assert shown(view)[0] == "zz/qwen-famous"
    assert order.text() == "Popular \N{DOWNWARDS ARROW}"
    downloads = [row.downloads or 0 for row in view.model.state.rows]
    assert all(a >= b for a, b in pairwise(downloads))


def test_that_likes_sort_what_the_hub_has_counted_and_the_rest_comes_last(open_browser, qtbot, hub):
    add_many(hub, 20)
    view = open_browser()
    view.model.set_filters(ALL)
    click(qtbot, segment(view, "Hub"))
    type_words(qtbot, view, "many/model")
    settle(qtbot, view)
    menu = view.findChild(QToolButton, "order").findChild(QMenu)
    next(a for a in menu.actions() if a.text() == "Likes").trigger()
    likes = [row.likes for row in view.model.state.rows]
    assert likes == sorted((n % 7 for n in range(20)), reverse=True)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("limited", "try again in 55 s"),
        ("503", "trouble of its own"),
        ("stall", "did not answer in time"),
        ("drop", "broke off"),
    ],
)
def test_that_trouble_is_a_line_below_the_hits_and_never_in_their_place(
    open_browser, qtbot, hub, trouble, said
):
    add_many(hub, 3, "zz/qwen")
    view = open_browser(timeout_s=0.5)
    view.model.set_filters(ALL)
    type_words(qtbot, view, "qwen")
    settle(qtbot, view)
    before = shown(view)
    hub.trouble = trouble
    click(qtbot, end_button(view))
    settle(qtbot, view)
    assert said in end(view)
    assert shown(view) == before
    assert not view.message.isVisible()
    assert end_button(view).text() == "Try again"
    hub.trouble = ""
    click(qtbot, end_button(view))
    settle(qtbot, view)
    assert "zz/qwen-002" in shown(view)
    assert end(view) == ""


def test_that_trouble_with_a_later_page_keeps_the_earlier_ones_and_goes_on_from_there(
    open_browser, qtbot, hub
):
    add_many(hub, 130, "zz/model")
    view = open_browser()
    view.model.set_filters(ALL)
    click(qtbot, segment(view, "Hub"))
    type_words(qtbot, view, "zz/model")
    settle(qtbot, view)
    hub.trouble = "limited"
    view.list.scrollToBottom()
    settle(qtbot, view)
    assert "try again in 55 s" in end(view)
    assert len(shown(view)) == 50
    asked = len(hub.requests)
    view.list.scrollToTop()
    view.list.scrollToBottom()
    settle(qtbot, view)
    assert len(hub.requests) == asked
    hub.trouble = ""
    click(qtbot, end_button(view))
    settle(qtbot, view)
    assert len(shown(view)) == 100


def test_that_off_line_is_said_below_the_hits_and_nothing_is_sent(open_browser, qtbot, hub):
    view = open_browser(offline=True)
    type_words(qtbot, view, "qwen")
    settle(qtbot, view)
    qtbot.keyClick(view.search, Qt.Key.Key_Return)
    settle(qtbot, view)
    assert shown(view)
    assert end(view) == "Off-line: the Hub was not asked"
    assert not end_button(view).isVisible()
    assert hub.requests == []


def test_that_hits_that_came_before_are_not_said_to_be_unasked(open_browser, qtbot, hub):
    view = open_browser()
    type_words(qtbot, view, "model")
    settle(qtbot, view)
    qtbot.keyClick(view.search, Qt.Key.Key_Return)
    settle(qtbot, view)
    assert hub.requests
    view.model._hub.offline = True
    view.model.note_access()
    assert end(view) == "Off-line: the Hub is asked no further"


def test_that_going_off_line_takes_back_that_words_are_sent(open_browser, qtbot, hub):
    view = open_browser()
    click(qtbot, segment(view, "Hub"))
    assert "sent to the Hub" in view.search.placeholderText()
    view.model._hub.offline = True
    view.model.note_access()
    assert "sent to the Hub" not in view.search.placeholderText()
    type_words(qtbot, view, "qwen")
    settle(qtbot, view)
    assert hub.requests == []


def test_that_loading_is_said_below_the_hits(open_browser, qtbot, hub):
    view = open_browser()
    type_words(qtbot, view, "qwen")
    settle(qtbot, view)
    hub.trouble = "stall"
    click(qtbot, end_button(view))
    assert end(view) == "Asking the Hub\N{HORIZONTAL ELLIPSIS}"
    assert shown(view)
    hub.trouble = ""
    type_words(qtbot, view, "bge")
    hub.release.set()
    settle(qtbot, view)
    assert all("bge" in key.casefold() for key in shown(view))


def test_that_pages_which_the_filters_keep_out_are_not_followed_for_ever(open_browser, qtbot, hub):
    add_many(hub, 260, "zz/model")
    view = open_browser()
    view.model.set_filters(ALL.with_(author="Qwen"))
    type_words(qtbot, view, "")
    click(qtbot, segment(view, "Hub"))
    type_words(qtbot, view, "e")
    settle(qtbot, view)
    asked = len(searches(hub))
    assert asked <= 3
    assert end(view).startswith("Nothing new in the Hub") or words(view)


def test_that_a_whole_name_or_id_is_opened_by_enter_and_not_searched_for(open_browser, qtbot, hub):
    view = open_browser()
    picked = []
    view.chosen.connect(picked.append)
    for text in (LLAMA, "Qwen2.5-7B", "someone/unheard-of"):
        type_words(qtbot, view, text)
        qtbot.keyClick(view.search, Qt.Key.Key_Return)
    assert [c.label for c in picked] == [LLAMA, "Qwen/Qwen2.5-7B", "someone/unheard-of"]
    assert searches(hub) == []


def test_that_enter_opens_the_first_hit_once_the_hub_has_answered(open_browser, qtbot, hub):
    view = open_browser()
    picked = []
    view.chosen.connect(picked.append)
    type_words(qtbot, view, "qwen")
    qtbot.keyClick(view.search, Qt.Key.Key_Return)
    settle(qtbot, view)
    assert picked == []
    qtbot.keyClick(view.search, Qt.Key.Key_Return)
    assert [c.label for c in picked] == [shown(view)[0]]


def test_that_the_sources_narrow_the_same_list(open_browser, qtbot, hub, home):
    folder = home / "hub" / "models--org--tiny-qwen" / "snapshots" / "abc"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    add_many(hub, 2, "zz/qwen")
    view = open_browser()
    view.model.set_filters(ALL)
    assert segment(view, "All").text() == f"All {len(catalogue.entries()) + 1}"
    assert segment(view, "This computer").text() == "This computer 1"
    type_words(qtbot, view, "qwen")
    click(qtbot, end_button(view))
    settle(qtbot, view)
    everything = shown(view)
    assert {"org/tiny-qwen", "zz/qwen-000"} < set(everything)
    click(qtbot, segment(view, "This computer"))
    assert shown(view) == ["org/tiny-qwen"]
    click(qtbot, segment(view, "Hub"))
    settle(qtbot, view)
    assert "org/tiny-qwen" not in shown(view)
    assert set(shown(view)) < set(everything)
    click(qtbot, segment(view, "All"))
    settle(qtbot, view)
    assert set(shown(view)) == set(everything)
    assert len(searches(hub)) == 1
    view.search.clear()
    settle(qtbot, view)
    # What only the Hub told of is an answer, not a part of what is here.
    assert "zz/qwen-000" not in shown(view)
    assert segment(view, "All").text() == f"All {len(catalogue.entries()) + 1}"


def test_that_the_expanded_browser_shows_the_same_list_and_its_end(open_browser, qtbot, hub):
    add_many(hub, 130, "zz/qwen")
    view = open_browser()
    expanded = ExpandedBrowser(view.model, load_theme("light"))
    qtbot.addWidget(expanded)
    expanded.resize(1440, 840)
    expanded.show()
    view.model.set_filters(ALL)
    type_words(qtbot, expanded, "qwen")
    settle(qtbot, view)
    before = expanded.table.rows.rowCount()
    assert end(expanded).startswith("Known here. Enter sends")
    head = expanded.table.model().headerData
    assert head(0, Qt.Orientation.Horizontal) == "Name"
    click(qtbot, end_button(expanded))
    settle(qtbot, view)
    expanded.table.scrollToBottom()
    settle(qtbot, view)
    assert expanded.table.rows.rowCount() >= before + 100
    assert shown(view) == [
        expanded.table.rows.index(n, 0).data(ROW_ROLE).key
        for n in range(expanded.table.rows.rowCount())
    ]
    hub.trouble = "limited"
    type_words(qtbot, expanded, "llama")
    settle(qtbot, view)
    assert "try again in 55 s" in end(expanded)
    assert expanded.table.rows.rowCount()


def test_that_a_source_narrowed_to_this_computer_sends_nothing(open_browser, qtbot, hub):
    view = open_browser()
    click(qtbot, segment(view, "Hub"))
    click(qtbot, segment(view, "This computer"))
    type_words(qtbot, view, "qwen")
    settle(qtbot, view)
    assert hub.requests == []
    assert view.model.state.source is Source.LOCAL
