"""What a person keeps stays in the list, by whatever spelling, with what the Hub told of it."""

from __future__ import annotations

import json

import pytest

from engine.architecture.read import read
from engine.cancel import CancelToken
from engine.deployment.spec import Deployment
from gui.browser.filters import ALL
from gui.browser.known import Known
from gui.browser.rows import CHOSEN_ROLE, FAVOURITE_ROLE, Place, Row, Source
from gui.browser.shelf import Shelf
from gui.browser.shelf_file import merged
from gui.browser.table_model import TableModel
from tests.helpers.browser import settle, shown
from tests.helpers.fake_hub import Repo
from tests.qt.browser.test_view import CONFIG

NAME = "Nobody/New-Model"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
PLAN = Deployment(runtime="vllm", max_model_len=8192, concurrency=4)


@pytest.fixture
def view(open_browser, qtbot, hub, card):
    files = {"config.json": json.dumps(CONFIG).encode()}
    hub.add(Repo(NAME, files, facts={"downloads": 10**9, "likes": 77}))
    made = open_browser()
    made.set_plan(PLAN, card)
    made.model.set_filters(ALL)
    settle(qtbot, made)
    return made


def search(view, qtbot):
    view.model.set_query("new-model")
    view.model.search_hub()
    settle(qtbot, view)
    assert NAME.casefold() in map(str.casefold, shown(view))


def opened(view, qtbot, name):
    """Open the row ``name`` as the window does once it is read; the model."""
    picked = []
    view.chosen.connect(picked.append)
    view.model.choose(name)
    model = read(view.fetcher(picked[-1])(CancelToken()))
    view.set_chosen(model.id)
    view.model.note_opened()
    settle(qtbot, view)
    return model


def row_of(view, name):
    return next(row for row in view.model.state.rows if row.key == name)


@pytest.mark.parametrize("source", [Source.ALL, Source.OWN])
def test_that_a_favourite_from_the_hub_stays_when_the_search_is_cleared(view, qtbot, source):
    search(view, qtbot)
    view.model.set_favourite(row_of(view, NAME), True)
    view.model.set_query("")
    view.model.set_source(source)
    settle(qtbot, view)
    assert row_of(view, NAME).likes == 77


def test_that_what_was_kept_before_the_hub_told_of_it_stays_too(view, qtbot):
    view.model.set_shelf(Shelf(favourites=(NAME,)))
    search(view, qtbot)
    view.model.set_query("")
    settle(qtbot, view)
    assert row_of(view, NAME).likes == 77


def test_that_what_is_not_kept_goes_with_the_search(view, qtbot):
    search(view, qtbot)
    view.model.set_query("")
    settle(qtbot, view)
    assert NAME not in shown(view)


@pytest.mark.parametrize("is_searched", [True, False])
def test_that_what_was_read_of_a_model_outlasts_a_renewed_list(view, qtbot, is_searched):
    if is_searched:
        search(view, qtbot)
    else:
        view.model.set_shelf(Shelf(favourites=(NAME,)))
    model = opened(view, qtbot, NAME)
    margin = view.model.badges[NAME].margin_bytes
    view.model.set_shelf(Shelf(favourites=(NAME,), recents=(LLAMA,)))
    view.model.refresh_local()
    settle(qtbot, view)
    view.model.set_query("")
    row = row_of(view, NAME)
    assert (row.parameters, row.context) == (model.parameters, CONFIG["max_position_embeddings"])
    assert margin is not None
    view.model.set_plan(PLAN.with_(concurrency=5), view.model._plan[1])
    settle(qtbot, view)
    assert view.model.badges[NAME].margin_bytes < margin


def test_that_a_spelling_in_other_capitals_is_the_same_row_and_favourite(view, qtbot):
    other = LLAMA.upper()
    view.model.set_shelf(Shelf(favourites=(other, "nobody/NEW-model")))
    search(view, qtbot)
    view.model.set_query("")
    view.set_chosen(other)
    keys = [key.casefold() for key in shown(view)]
    assert keys.count(LLAMA.casefold()) == keys.count(NAME.casefold()) == 1
    model = view.list.model()
    indices = [model.index(n) for n in range(model.rowCount())]
    table = TableModel()
    table.set_rows(view.model.state.rows)
    table.set_look(table.unit, view.model.state.wanted, view.model.state.shelf.favourites)
    for found in (indices, [table.index(index.row(), 0) for index in indices]):
        kept = {shown(view)[i.row()].casefold() for i in found if i.data(FAVOURITE_ROLE)}
        assert kept == {LLAMA.casefold(), NAME.casefold()}
        assert [shown(view)[i.row()] for i in found if i.data(CHOSEN_ROLE)] == [LLAMA]
    view.model.set_source(Source.OWN)
    assert [key.casefold() for key in shown(view)] == [LLAMA.casefold(), NAME.casefold()]
    view.model.set_favourite(view.model.columns.get(LLAMA), False)
    assert view.model.state.shelf.favourites == ("nobody/NEW-model",)


def test_that_a_shelf_holds_one_spelling_of_an_id_and_every_path():
    shelf = Shelf(favourites=("Org/A", "/models/A")).with_recent("Org/a").with_recent("org/A")
    assert shelf.recents == ("org/A",)
    assert shelf.references == ("Org/A", "/models/A")
    assert shelf.with_favourite("/models/a", kept=True).favourites[1:] == shelf.favourites
    assert merged(shelf, Shelf(favourites=("ORG/A", "org/B"))).favourites == (
        "Org/A",
        "/models/A",
        "org/B",
    )
    assert Shelf(recents=("org/a:Q4.gguf",)).with_recent("Org/A:q4.gguf").recents == (
        "Org/A:q4.gguf",
        "org/a:Q4.gguf",
    )


@pytest.mark.parametrize("names", [("Tiny", "tiny"), ("tiny", "Tiny")])
def test_that_two_files_whose_names_differ_by_capitals_are_both_listed(names):
    known = Known(lambda _reference: pytest.fail("nothing is kept"))
    known.set_here(
        Row(key=name, name=name, owner="", fetch=lambda _: pytest.fail("read"), path=f"/m/{name}",
            places=frozenset({Place.HERE}))
        for name in names
    )  # fmt: skip
    assert {row.path for row in known.columns.rows} >= {"/m/Tiny", "/m/tiny"}
