"""The files of a repository: sizes at once, headers after them, each to be picked."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QMenu, QPushButton

from engine.architecture.read import read
from engine.cancel import CancelToken
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.fit.verdict import Fit
from engine.sizing import size
from gui.browser.expanded import ExpandedBrowser
from gui.browser.filters import ALL
from gui.browser.rows import BADGE_ROLE, ROW_ROLE
from gui.kit.theme import load_theme
from tests.helpers.browser import settle, shown
from tests.helpers.fake_hub import Repo
from tests.helpers.synthetic_gguf import Dense, write
from tests.qt.browser.test_one_list import click, end_button, segment, type_words

PLAN = Deployment(runtime="llama.cpp", max_model_len=8192, concurrency=1)
TINY = Dense("llama", 2, 256, 512, 4, 2, 64, 1024, 8192)


@pytest.fixture
def repository(hub, tmp_path):
    """Two quants, and a projector."""
    files = {"mmproj-F16.gguf": b"GGUF" + bytes(100)}
    for mix in ("Q4_0", "Q8_0"):
        types = {n: "F32" if n.endswith("norm.weight") else mix for n, _ in TINY.tensors()}
        path = write(TINY, types, tmp_path / f"tiny-{mix}.gguf")
        files[path.name] = path.read_bytes()
    facts = {"downloads": 10**9, "gguf": {"total": 10**6}}
    return hub.add(Repo("someone/tiny-GGUF", files, facts=facts))


def listed(panel):
    return [panel.rows.index(n).data(ROW_ROLE) for n in range(panel.rows.rowCount())]


def find(qtbot, view):
    view.model.set_filters(ALL)
    type_words(qtbot, view, "tiny-gguf")
    click(qtbot, end_button(view) if end_button(view).isVisible() else segment(view, "Hub"))
    settle(qtbot, view)
    assert shown(view) == ["someone/tiny-GGUF"]


def ranges(hub):
    return [path for path in hub.paths() if "/cdn/" in path]


def check_files(panel, repository):
    """Bytes by the Hub, bits by hand, and the projector by what it is."""
    rows = {row.name: row for row in listed(panel)}
    assert {name: row.stored_bytes for name, row in rows.items()} == {
        name: len(data) for name, data in repository.files.items()
    }
    # 1,441,792 weights in blocks of 32 to 18 or 34 bytes, and 1,280 norms of 4 bytes.
    assert rows["tiny-Q4_0.gguf"].facts().endswith("4.52 bits a weight")
    assert rows["tiny-Q8_0.gguf"].facts().endswith("8.52 bits a weight")
    assert rows["mmproj-F16.gguf"].owner == "For images or sound, beside a model"
    assert list(rows) == ["tiny-Q4_0.gguf", "tiny-Q8_0.gguf", "mmproj-F16.gguf"]


def test_that_the_side_list_shows_the_files_of_a_row_and_opens_the_one_picked(
    open_browser, qtbot, hub, card, repository
):
    view = open_browser()
    view.set_plan(PLAN, card)
    find(qtbot, view)
    assert ranges(hub) == []
    qtbot.keyClick(view.search, Qt.Key.Key_Down)
    qtbot.keyClick(view.list, Qt.Key.Key_Right)
    settle(qtbot, view)
    assert view.files.isVisible()
    check_files(view.files, repository)
    picked = []
    view.chosen.connect(picked.append)
    place = next(n for n, row in enumerate(listed(view.files)) if row.name == "tiny-Q8_0.gguf")
    at = view.files.list.visualRect(view.files.rows.index(place, 0)).center()
    qtbot.mouseClick(view.files.list.viewport(), Qt.MouseButton.LeftButton, pos=at)
    model = read(view.fetcher(picked[0])(CancelToken()))
    assert model.id == "someone/tiny-GGUF:tiny-Q8_0.gguf"
    badge = view.files.rows.index(place, 0).data(BADGE_ROLE)
    verdict = size(model, PLAN, card).verdict
    assert (badge.fit, badge.margin_bytes) == (verdict.fit, verdict.margin_bytes)
    qtbot.keyClick(view.files.list, Qt.Key.Key_Left)
    assert shown(view) == ["someone/tiny-GGUF"]
    assert view.list.isVisible()


def test_that_the_menu_and_a_line_below_the_list_lead_to_the_files_too(
    open_browser, qtbot, hub, repository
):
    view = open_browser()
    find(qtbot, view)
    line = view.findChild(QPushButton, "other files button")
    assert not line.isVisible()
    view.set_chosen("someone/tiny-GGUF:tiny-Q4_0.gguf")
    assert line.isVisible()
    click(qtbot, line)
    settle(qtbot, view)
    assert view.files.isVisible()
    click(qtbot, view.findChild(QPushButton, "files back"))
    assert not view.files.isVisible()
    view.list.customContextMenuRequested.emit(view.list.visualRect(view.rows.index(0, 0)).center())
    actions = {a.text(): a for a in view.list.findChildren(QMenu, "row menu")[-1].actions()}
    actions["Show its files"].trigger()
    settle(qtbot, view)
    assert view.files.isVisible()


def test_that_the_pane_of_the_expanded_browser_lists_and_opens_files(
    open_browser, qtbot, hub, card, repository
):
    view = open_browser()
    view.set_plan(PLAN, card)
    find(qtbot, view)
    expanded = ExpandedBrowser(view.model, load_theme("light"))
    qtbot.addWidget(expanded)
    expanded.resize(1440, 840)
    expanded.show()
    expanded.table.look_at("someone/tiny-GGUF")
    click(qtbot, expanded.findChild(QPushButton, "list its files"))
    settle(qtbot, view)
    panel = expanded.detail.files.panel
    check_files(panel, repository)
    picked = []
    view.model.chosen.connect(picked.append)
    panel.list.setCurrentIndex(panel.rows.index(1, 0))
    qtbot.keyClick(panel.list, Qt.Key.Key_Return)
    assert [c.label for c in picked] == [f"someone/tiny-GGUF:{listed(panel)[1].name}"]
    view.model.set_filters(ALL)
    view.search.clear()
    settle(qtbot, view)
    assert not panel.isVisible()


def test_that_a_pane_made_later_shows_what_is_listed_already(
    open_browser, qtbot, hub, card, repository
):
    view = open_browser()
    view.set_plan(PLAN, card)
    find(qtbot, view)
    view.model.files.show(view.model.state.rows[0])
    settle(qtbot, view)
    expanded = ExpandedBrowser(view.model, load_theme("light"))
    qtbot.addWidget(expanded)
    expanded.resize(1440, 840)
    expanded.show()
    panel = expanded.detail.files.panel
    assert panel.isVisible()
    check_files(panel, repository)
    assert not expanded.findChild(QPushButton, "detail files act").isVisible()


def test_that_files_are_judged_by_the_plan_there_is(open_browser, qtbot, hub, card, repository):
    view = open_browser()
    view.set_plan(PLAN, card)
    find(qtbot, view)
    view.model.files.show(view.model.state.rows[0])
    settle(qtbot, view)
    before = dict(view.model.files.badges)
    view.set_plan(PLAN.with_(concurrency=8), devices.machine(devices.find("RTX 4090"), 1))
    settle(qtbot, view)
    after = view.model.files.badges
    assert before.keys() == after.keys()
    assert all(before[key].margin_bytes > after[key].margin_bytes for key in after)
    assert {badge.fit for badge in after.values()} <= {Fit.FITS, Fit.TIGHT}


def test_that_reading_headers_can_be_stopped_and_its_trouble_is_said(
    open_browser, qtbot, hub, card, repository
):
    view = open_browser(timeout_s=2)
    find(qtbot, view)
    files = view.model.files
    words = view.findChild(QLabel, "files words")
    act = view.findChild(QPushButton, "files act")
    hub.trouble = "limited"
    files.show(view.model.state.rows[0])
    settle(qtbot, view)
    assert "try again in 55 s" in words.text()
    assert act.text() == "Try again"
    hub.trouble = "stall"
    click(qtbot, act)
    assert act.text() == "Stop"
    click(qtbot, act)
    settle(qtbot, view)
    assert files.state.rows.answering == 0
    hub.trouble = ""
    hub.release.set()
    files.show(view.model.state.rows[0])
    qtbot.waitUntil(lambda: files.state.is_listed, timeout=5000)
    files.stop()
    settle(qtbot, view)
    assert "0 of 2 headers read" in words.text()
    assert {row.name for row in listed(view.files)} == set(repository.files)


def test_that_a_repository_without_gguf_says_so(open_browser, qtbot, hub):
    hub.add(Repo("someone/odd", {"README.md": b"x"}, facts={"downloads": 10**9}))
    view = open_browser()
    type_words(qtbot, view, "someone/odd")
    click(qtbot, segment(view, "Hub"))
    settle(qtbot, view)
    view.model.files.show(view.model.state.rows[0])
    settle(qtbot, view)
    assert view.findChild(QLabel, "files words").text().startswith("No GGUF files")
