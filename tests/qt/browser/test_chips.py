"""The chips of the narrow list, its order, and what the search field takes beside words."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QToolButton

from engine.cancel import CancelToken
from engine.source import catalogue
from gui.browser.filters import ALL, Group, Span
from gui.browser.rows import ROW_ROLE
from tests.helpers.browser import shown, words

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def choose(view, menu, words_of):
    actions = view.findChild(QMenu, f"{menu} menu").actions()
    next(a for a in actions if a.text() == words_of).trigger()


def test_that_one_size_takes_the_place_of_another_and_two_formats_add_up(open_browser):
    view = open_browser()
    choose(view, "sizes", "Up to 4 B")
    choose(view, "sizes", "Over 130 B")
    sizes = [catalogue.find(key).parameters for key in shown(view)]
    assert min(sizes) >= 130 * 10**9
    choose(view, "sizes", "Over 130 B")
    choose(view, "formats", "FP8")
    few = len(shown(view))
    choose(view, "formats", "4-bit")
    labels = {view.list.model().index(n).data(ROW_ROLE).weight_format for n in range(few)}
    assert len(shown(view)) > few
    assert "BF16" not in labels


def test_that_a_chip_is_lit_by_a_filter_set_elsewhere(open_browser):
    view = open_browser()
    assert not view.findChild(QToolButton, "more").isChecked()
    view.model.set_filters(ALL.with_(parameters=Span(10**9, 9 * 10**10), context=8192))
    assert view.findChild(QToolButton, "sizes").isChecked()
    assert view.findChild(QToolButton, "more").isChecked()
    assert not view.findChild(QToolButton, "fits here").isChecked()


def test_that_filters_which_leave_nothing_offer_the_one_to_loosen(open_browser, qtbot):
    view = open_browser()
    view.model.set_filters(ALL.with_(context=2**30, author="Qwen"))
    known = ALL.with_(context=2**30, author="Qwen").with_shown(
        Group.CONTEXT, "Unknown", shown=False
    )
    view.model.set_filters(known)
    assert words(view).startswith("None of 483 passes the filters | Nearest: ")
    assert view.message.button.text() == "Any context"
    qtbot.mouseClick(view.message.button, Qt.MouseButton.LeftButton)
    assert {key.split("/")[0] for key in shown(view)} == {"Qwen"}


def test_that_an_order_keeps_its_direction_while_another_is_looked_at(open_browser):
    view = open_browser()
    actions = {a.text(): a for a in view.findChild(QToolButton, "order").findChild(QMenu).actions()}
    for name in ("Parameters", "Parameters", "Name", "Parameters"):
        actions[name].trigger()
    assert not view.model.state.wanted.descending
    assert view.model.turned_orders == ("Parameters",)
    again = open_browser()
    again.model.restore_order("Parameters", view.model.turned_orders)
    assert shown(again) == shown(view)
    again.model.restore_order("nonsense", ("nonsense",))
    assert again.model.state.wanted.sort == "Parameters"


def test_that_a_tag_of_ollama_opens_the_model_of_its_name_with_a_sentence(open_browser, qtbot):
    view = open_browser(offline=True)
    picked = []
    view.chosen.connect(picked.append)
    qtbot.keyClicks(view.search, "llama3.1:8b-instruct-q4_K_M")
    assert words(view).startswith("Press Enter to open this")
    qtbot.keyClick(view.search, Qt.Key.Key_Return)
    raw = view.fetcher(picked[0])(CancelToken())
    assert raw.id == LLAMA
    assert "taken by its name. Ollama stores it as Q4_K_M" in raw.notes[-1]


def test_that_one_chip_leaves_alone_what_was_set_elsewhere(open_browser, qtbot):
    view = open_browser()
    span = Span(2 * 10**9, 9 * 10**9)
    view.model.set_filters(ALL.with_(parameters=span, context=8192))
    choose(view, "formats", "FP8")
    filters = view.model.state.wanted.filters
    assert (filters.parameters, filters.context) == (span, 8192)
    hidden = filters.hidden
    choose(view, "sizes", "4 to 15 B")
    assert view.model.state.wanted.filters.hidden == hidden
    # Opening a menu changes nothing: the chip stays lit.
    view.model.set_filters(ALL.with_(parameters=span))
    chip = view.findChild(QToolButton, "sizes")
    qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    view.findChild(QMenu, "sizes menu").close()
    assert chip.isChecked()
