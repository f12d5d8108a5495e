"""What a workspace waits for stays waited for, whatever is fetched, undone and saved meanwhile."""

from __future__ import annotations

import json
import threading

import pytest
from PySide6.QtWidgets import QPushButton

from engine.contract.workspace import Asked, Workspace, read, read_file, written
from engine.deployment.spec import Deployment
from engine.source.by_hand import Measures, by_hand
from engine.source.origin import Located, Named
from tests.qt.window.desks import FAR, PLAN, QWEN, TINY, drop, keep, save_as, settle

LATE = Measures(8_030_261_248, 32, 8, 128, name="late")
SMALL = Named("Qwen/Qwen3-0.6B")


class _Slow:
    """A model that comes when it is let go, as from a slow server."""

    def __init__(self):
        self._gate, self.has_come = threading.Event(), threading.Event()
        self.has_begun = threading.Event()

    def fetch(self, _token):
        self.has_begun.set()
        self._gate.wait(20)
        self.has_come.set()
        return by_hand(LATE)

    def let_go(self, qtbot, app):
        """Let it come, and wait until the window has heard of it."""
        self._gate.set()
        qtbot.waitUntil(self.has_come.is_set, timeout=20_000)
        qtbot.waitUntil(lambda: not app.runner._live, timeout=20_000)


def fetch_button(app):
    return app.workspaces.notice.findChild(QPushButton)


def put_there(path):
    path.parent.mkdir()
    path.write_text(json.dumps(TINY))


@pytest.mark.parametrize("loader", ["loader", "adjoining.loader"])
def test_that_a_model_on_its_way_never_lands_on_a_workspace_opened_meanwhile(
    app, qtbot, tmp_path, loader
):
    slow = _Slow()
    (app.loader if loader == "loader" else app.adjoining.loader).load(slow.fetch, LATE)
    workspace = keep(tmp_path / "a.plimsoll", QWEN, tab="regions")
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    slow.let_go(qtbot, app)
    assert app.workspaces.now() == workspace
    assert not app.window.isWindowModified()


def test_that_a_model_on_its_way_stays_welcome_where_the_workspace_was_none(app, qtbot, tmp_path):
    slow = _Slow()
    app.loader.load(slow.fetch, LATE)
    (tmp_path / "a.plimsoll").write_text("{")
    drop(app, tmp_path / "a.plimsoll")
    qtbot.waitUntil(app.trouble.isVisible)
    slow.let_go(qtbot, app)
    assert app.model.state.model.origin == LATE


def test_that_undoing_an_opening_gives_up_what_was_on_its_way_for_it(app, qtbot, tmp_path):
    before = app.workspaces.now()
    keep(tmp_path / "a.plimsoll", FAR)
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    slow = _Slow()
    app.loader.load(slow.fetch, LATE)
    # One that is given up before its turn never comes at all.
    qtbot.waitUntil(slow.has_begun.is_set, timeout=20_000)
    app.window.edit_actions[0].trigger()
    slow.let_go(qtbot, app)
    assert app.workspaces.now() == before


def test_that_fetching_is_undone_to_what_was_waited_for_and_done_again(app, qtbot, tmp_path):
    path, other = tmp_path / "tiny" / "config.json", tmp_path / "other" / "config.json"
    workspace = keep(tmp_path / "a.plimsoll", Located(str(path)), QWEN, Located(str(other)))
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    put_there(path)
    put_there(other)
    fetch_button(app).click()
    # On its way, everything is still kept.
    assert app.workspaces.now().compared == workspace.compared
    assert app.workspaces.now().plan == workspace.plan
    qtbot.waitUntil(lambda: len(app.compare.entries) == 2, timeout=20_000)
    undo, redo = app.window.edit_actions
    undo.trigger()
    assert app.model.state.model is None
    assert app.workspaces.notice.isVisible()
    assert app.workspaces.now().compared == workspace.compared
    assert app.workspaces.now().plan == workspace.plan
    redo.trigger()
    assert app.model.state.model.origin == Located(str(path))
    assert len(app.compare.entries) == 2
    assert not app.workspaces.notice.isVisible()
    assert app.workspaces.now().compared == workspace.compared
    assert app.workspaces.now().plan == workspace.plan


def test_that_an_edit_of_the_comparison_undone_after_fetching_loses_no_fetched_plan(
    app, qtbot, tmp_path
):
    other = tmp_path / "other" / "config.json"
    workspace = keep(tmp_path / "a.plimsoll", QWEN, QWEN, Located(str(other)), tab="compare")
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    app.compare.remove(0)
    put_there(other)
    fetch_button(app).click()
    qtbot.waitUntil(lambda: not app.workspaces.notice.isVisible(), timeout=20_000)
    undo = app.window.edit_actions[0]
    undo.trigger()
    undo.trigger()
    assert app.workspaces.now() == workspace
    save_as(qtbot, app, tmp_path / "b.plimsoll")
    assert read_file(tmp_path / "b.plimsoll") == workspace


def test_that_a_kept_plan_looked_at_and_undone_leaves_what_is_waited_for(app, qtbot, tmp_path):
    workspace = keep(tmp_path / "a.plimsoll", FAR, QWEN, tab="compare")
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    app.comparing._on_open(app.compare.pinned[0])
    assert app.model.state.model.origin == QWEN
    assert not app.workspaces.notice.isVisible()
    app.window.edit_actions[0].trigger()
    assert app.workspaces.notice.isVisible()
    assert app.workspaces.now() == workspace
    save_as(qtbot, app, tmp_path / "b.plimsoll")
    assert read_file(tmp_path / "b.plimsoll") == workspace


def test_that_a_draft_model_that_is_here_is_still_there_when_its_model_comes(app, qtbot, tmp_path):
    path = tmp_path / "tiny" / "config.json"
    plan = Asked(Located(str(path)), Deployment(runtime="vllm"), "RTX 4090", draft=SMALL)
    (tmp_path / "a.plimsoll").write_text(written(Workspace(plan)))
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    put_there(path)
    fetch_button(app).click()
    qtbot.waitUntil(lambda: app.model.state.model is not None, timeout=20_000)
    assert app.model.state.plan.deployment.draft_model.origin == SMALL
    assert app.workspaces.now().plan == plan


def test_that_plans_that_wait_keep_their_places_in_a_full_comparison(app, qtbot, tmp_path):
    keep(tmp_path / "a.plimsoll", QWEN, FAR, FAR, FAR, FAR, FAR)
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    qtbot.waitUntil(lambda: app.model.is_settled)
    add = app.window.commands["compare"]
    add.trigger()
    assert len(app.compare.entries) == 1
    assert not add.isEnabled()
    app.model.edit("concurrency", concurrency=3)
    assert not app.compare.add(app.model.state)
    # A seventh would be a file that nobody can open.
    assert len(read(written(app.workspaces.now()).encode(), "a").compared) == 6


def test_that_a_model_that_breaks_its_reader_waits_and_takes_no_plan_along(
    app, qtbot, tmp_path, monkeypatch
):
    workspace = keep(tmp_path / "a.plimsoll", QWEN, SMALL, tab="regions")

    def broken(raw):
        raise ZeroDivisionError(raw.id)

    monkeypatch.setattr("gui.asking.read", broken)
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    assert app.workspaces.now() == workspace
    assert app.workspaces.notice.isVisible()
    assert app.model.state.plan.deployment == PLAN
