"""Favourites, recents and folders, through the widgets that keep and forget them."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QPushButton, QToolButton

from engine.cancel import CancelToken
from engine.source.hub import HubClient
from gui.browser.expanded import ExpandedBrowser
from gui.browser.filters import ALL
from gui.browser.rows import FAVOURITE_ROLE, ROW_ROLE, Source
from gui.browser.shelf import MOST_RECENT, Shelf
from gui.browser.view import BrowserView
from gui.kit.tasks import TaskRunner
from gui.kit.theme import load_theme

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
GEMMA = "google/gemma-3-12b-it"
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 16384,
    "torch_dtype": "bfloat16", "head_dim": 16,
}  # fmt: skip


@pytest.fixture
def view(qtbot, qapp, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    runner = TaskRunner()
    made = BrowserView(runner, HubClient(offline=True), load_theme("light"))
    qtbot.addWidget(made)
    made.resize(296, 700)
    made.show()
    made.model.set_filters(ALL)
    settle(qtbot, made)
    yield made
    assert runner.shutdown(5000)


def settle(qtbot, view):
    qtbot.waitUntil(lambda: view.model.is_settled, timeout=20_000)


def shown(view):
    model = view.list.model()
    return [model.index(n).data(ROW_ROLE).key for n in range(model.rowCount())]


def menu_of(view, key):
    """The context menu of a row, asked for with the keyboard's place on it."""
    view.list.setCurrentIndex(view.list.model().index(shown(view).index(key)))
    view.list.scrollTo(view.list.currentIndex())
    place = view.list.visualRect(view.list.currentIndex()).center()
    view.list.customContextMenuRequested.emit(place)
    menu = view.list.findChildren(QMenu, "row menu")[-1]
    return {action.text(): action for action in menu.actions()}


def star(view):
    return view.sources.buttons[-1]


def to_own(qtbot, view):
    qtbot.mouseClick(star(view), Qt.MouseButton.LeftButton)
    settle(qtbot, view)


def test_that_a_shelf_keeps_the_newest_first_and_twenty_at_most():
    shelf = Shelf()
    for n in range(25):
        shelf = shelf.with_recent(f"org/{n}")
    shelf = shelf.with_recent("org/20")
    assert len(shelf.recents) == MOST_RECENT == 20
    assert shelf.recents[:3] == ("org/20", "org/24", "org/23")
    assert shelf.with_favourite("org/20", kept=True).references.count("org/20") == 1


def test_that_the_star_lists_favourites_and_then_what_was_opened(view, qtbot):
    to_own(qtbot, view)
    assert view.message.title.text() == "No favourites yet"
    view.model.set_source(Source.ALL)
    for key in (LLAMA, GEMMA):
        view.model.choose(key)
        view.model.note_opened()
    menu_of(view, LLAMA)["Add to favourites"].trigger()
    to_own(qtbot, view)
    assert shown(view) == [LLAMA, GEMMA]
    marks = [view.list.model().index(n).data(FAVOURITE_ROLE) for n in range(2)]
    assert marks == [True, False]


def test_that_what_was_opened_only_once_it_is_in_the_window_is_remembered(view):
    view.model.choose(LLAMA)
    assert view.model.state.shelf.recents == ()
    view.model.note_opened()
    assert view.model.state.shelf.recents == (LLAMA,)


def test_that_a_pasted_config_is_not_remembered_and_a_path_is(view, qtbot, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    for what in (json.dumps(CONFIG), path):
        view.open(what)
        view.model.note_opened()
    assert view.model.state.shelf.recents == (str(path),)
    picked = []
    view.chosen.connect(picked.append)
    to_own(qtbot, view)
    view.model.choose(shown(view)[0])
    assert view.fetcher(picked[-1])(CancelToken()).config == CONFIG


def test_that_a_favourite_is_removed_and_an_opened_one_forgotten(view, qtbot):
    edits = []
    view.model.edited.connect(lambda words, before, after: edits.append((words, before, after)))
    view.model.set_shelf(Shelf(favourites=(LLAMA,), recents=(GEMMA,)))
    to_own(qtbot, view)
    assert "Forget that it was opened" not in menu_of(view, LLAMA)
    menu_of(view, GEMMA)["Forget that it was opened"].trigger()
    menu_of(view, LLAMA)["Remove from favourites"].trigger()
    assert view.model.state.shelf == Shelf()
    words, before, _after = edits[-1]
    assert words == "Remove favourite Llama-3.1-8B-Instruct"
    assert before.favourites == (LLAMA,)


def test_that_a_folder_is_searched_until_its_rows_menu_stops_it(view, qtbot, tmp_path):
    folder = tmp_path / "my models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "adapter_config.json").write_text("{}")
    view.model.set_folder(str(tmp_path / "my models"), searched=True)
    view.model.set_source(Source.LOCAL)
    settle(qtbot, view)
    assert shown(view) == []
    (folder / "adapter_model.safetensors").write_bytes(b"\2\0\0\0\0\0\0\0{}")
    qtbot.mouseClick(view.message.button, Qt.MouseButton.LeftButton)
    settle(qtbot, view)
    assert shown(view) == ["tiny"]
    menu_of(view, "tiny")["Stop searching my models"].trigger()
    settle(qtbot, view)
    assert shown(view) == []
    assert view.model.state.shelf.folders == ()


def test_that_the_star_of_the_pane_keeps_and_forgets(view, qtbot):
    expanded = ExpandedBrowser(view.model, load_theme("light"))
    qtbot.addWidget(expanded)
    expanded.resize(1440, 840)
    expanded.show()
    expanded.table.look_at(GEMMA)
    button = expanded.findChild(QPushButton, "favourite")
    assert button.accessibleName() == "Add to favourites"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert view.model.state.shelf.favourites == (GEMMA,)
    assert button.accessibleName() == "Remove from favourites"
    place = expanded.table.rows.place(GEMMA)
    spoken = expanded.table.rows.index(place, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.endswith("favourite")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert view.model.state.shelf.favourites == ()


def test_that_the_star_has_a_name_and_this_computer_its_number(view):
    assert isinstance(star(view), QToolButton)
    assert star(view).accessibleName() == "Favourites, and what was opened last"
    assert [b.text() for b in view.sources.buttons] == ["All 483", "Hub", "This computer 0", ""]
