"""Workspaces and the session: opened, saved, brought back, and nothing lost or fetched."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import replace

import pytest
from PySide6.QtWidgets import QPushButton

from engine.contract.workspace import Asked, Workspace, read_file, written
from engine.source.by_hand import Measures
from engine.source.origin import Located, Named, Pasted
from engine.units import UnitSystem
from gui import session_file
from gui.browser.shelf import Shelf
from gui.session_file import FILE_NAME, Kept
from tests.qt.window.desks import (
    FAR,
    PLAN,
    QWEN,
    TINY,
    choose,
    drop,
    keep,
    settle,
    wait_for_model,
)


@pytest.fixture
def no_sockets(monkeypatch):
    """Opening must not even make one."""

    def refuse(*_args, **_kwargs):
        pytest.fail("a socket was made")

    def refuse_program(*_args, **_kwargs):
        pytest.fail("a program was started")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse_program)


def test_that_a_dropped_workspace_is_sized_as_it_was_saved(app, qtbot, tmp_path, no_sockets):
    workspace = keep(tmp_path / "a.plimsoll", QWEN, QWEN, unit=UnitSystem.DECIMAL, tab="compare")
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    state = app.model.state
    assert state.model.id == "Qwen/Qwen3-8B"
    assert state.plan.deployment == PLAN
    assert state.machine.name == "2 × RTX 4090"
    assert state.sizing is not None
    assert state.unit is UnitSystem.DECIMAL
    assert len(app.compare.entries) == 1
    assert app.view.tabs.stack.currentWidget() is app.compare_view
    assert app.workspaces.now() == workspace
    assert not app.window.isWindowModified()
    assert "on 2 × RTX 4090" in app.window.windowTitle()


def test_that_opening_is_undone_in_one_step_and_nothing_is_lost(app, qtbot, tmp_path):
    app.model.edit("concurrency", concurrency=3)
    app.window.commands["compare"].trigger()
    before = app.workspaces.now()
    keep(tmp_path / "a.plimsoll", QWEN)
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    assert app.compare.entries == ()
    undo = app.window.edit_actions[0]
    assert "a.plimsoll" in undo.text()
    undo.trigger()
    assert app.workspaces.now() == before
    assert "plimsoll" not in app.window.windowTitle()
    app.window.edit_actions[1].trigger()
    assert app.model.state.model.id == "Qwen/Qwen3-8B"
    assert app.workspaces.file == tmp_path / "a.plimsoll"


def test_that_an_edit_marks_the_title_and_saving_or_undoing_it_takes_the_mark_away(
    app, qtbot, tmp_path
):
    app.window.commands["save"].trigger()
    choose(app, tmp_path / "mine.plimsoll")
    settle(qtbot, app, "mine.plimsoll")
    assert not app.window.isWindowModified()
    app.model.edit("concurrency", concurrency=9)
    qtbot.waitUntil(app.window.isWindowModified)
    app.window.edit_actions[0].trigger()
    qtbot.waitUntil(lambda: not app.window.isWindowModified())
    # Units and tabs are looks, and no work that could be lost.
    app.model.set_unit(UnitSystem.DECIMAL)
    app.view.tabs.open(2)
    app.model.edit("concurrency", concurrency=10)
    qtbot.waitUntil(app.window.isWindowModified)
    app.window.commands["save"].trigger()
    qtbot.waitUntil(lambda: not app.window.isWindowModified())
    kept = read_file(tmp_path / "mine.plimsoll")
    assert kept.plan.deployment.concurrency == 10
    assert kept.unit is UnitSystem.DECIMAL


def test_that_save_as_takes_another_file_and_leaves_the_first(app, qtbot, tmp_path):
    for name in ("one", "two"):
        app.window.commands["save as"].trigger()
        choose(app, tmp_path / f"{name}.plimsoll")
        settle(qtbot, app, f"{name}.plimsoll")
        app.model.edit("concurrency", concurrency=11)
    assert read_file(tmp_path / "one.plimsoll").plan.deployment.concurrency != 11
    assert read_file(tmp_path / "two.plimsoll").plan.deployment.concurrency == 11


def test_that_a_file_that_cannot_be_written_is_a_sentence_and_the_mark_stays(app, qtbot, tmp_path):
    app.window.commands["save"].trigger()
    choose(app, tmp_path / "no" / "such" / "a.plimsoll")
    qtbot.waitUntil(app.trouble.isVisible)
    assert "a.plimsoll" in app.trouble.line.text()
    assert "inside Plimsoll" not in app.trouble.line.text()
    assert app.workspaces.file is None


def test_that_a_model_of_the_hub_waits_for_a_click_and_keeps_its_plan(
    app, qtbot, tmp_path, no_sockets
):
    workspace = keep(tmp_path / "a.plimsoll", FAR, FAR, QWEN, tab="regions")
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    assert app.model.state.model is None
    assert app.model.state.plan.deployment == PLAN
    assert app.workspaces.notice.isVisible()
    assert app.workspaces.notice.line.text() == "someone/nowhere-7B@0e9e39f needs the Hub"
    assert "nowhere-7B@0e9e39f on 2 × RTX 4090" in app.window.windowTitle()
    assert [entry.pinned.model.id for entry in app.compare.entries] == [QWEN.name]
    # Nothing of the model before passes for this one's.
    assert not app.view.regions.detail._title.isVisible()
    assert app.view.regions.table.model().rowCount() == 0
    # What waits is still saved, in its place.
    assert app.workspaces.now() == workspace
    assert not app.window.isWindowModified()
    # Other plans can be made meanwhile, and stay.
    app.model.edit("concurrency", concurrency=2)
    assert app.workspaces.now().plan.deployment.concurrency == 2
    app.window.edit_actions[0].trigger()
    app.window.edit_actions[0].trigger()
    assert not app.workspaces.notice.isVisible()
    assert app.model.state.model is not None


def test_that_one_click_gets_all_that_was_missing(app, qtbot, tmp_path, monkeypatch):
    path, other = tmp_path / "tiny" / "config.json", tmp_path / "other" / "config.json"
    keep(tmp_path / "a.plimsoll", Located(str(path)), QWEN, Located(str(other)))
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    assert "There is no file" in app.workspaces.notice.line.text()
    for missing in (path, other):
        missing.parent.mkdir()
        missing.write_text(json.dumps(TINY))
    app.workspaces.notice.findChild(QPushButton).click()
    qtbot.waitUntil(lambda: len(app.compare.entries) == 2, timeout=20_000)
    assert app.model.state.model.spec.hidden_size == 256
    assert app.model.state.plan.deployment == PLAN
    assert [e.pinned.model.spec.hidden_size for e in app.compare.entries] == [4096, 256]
    assert not app.workspaces.notice.isVisible()
    assert not app.window.isWindowModified()


def test_that_what_runs_beside_the_plan_comes_back_and_is_waited_for(app, qtbot, tmp_path):
    other = tmp_path / "other" / "config.json"
    plan = Asked(QWEN, PLAN, "2 x RTX 4090")
    beside = (Asked(Named("Qwen/Qwen3-0.6B"), PLAN), Asked(Located(str(other)), PLAN))
    workspace = Workspace(replace(plan, beside=beside), tab="regions")
    (tmp_path / "a.plimsoll").write_text(written(workspace))
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    assert app.model.state.model is None
    assert app.workspaces.now() == workspace
    other.parent.mkdir()
    other.write_text(json.dumps(TINY))
    app.workspaces.notice.findChild(QPushButton).click()
    wait_for_model(qtbot, app, QWEN.name)
    assert [one.model.spec.hidden_size for one in app.model.state.plan.beside] == [1024, 256]
    assert app.model.state.beside
    assert not app.workspaces.notice.isVisible()
    assert app.workspaces.now() == workspace


def test_that_picking_another_model_ends_the_waiting(app, qtbot, tmp_path):
    keep(tmp_path / "a.plimsoll", FAR)
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    app.browser.open("Qwen/Qwen3-8B")
    wait_for_model(qtbot, app, "Qwen/Qwen3-8B")
    assert not app.workspaces.notice.isVisible()
    assert app.model.state.plan.deployment.concurrency == 7
    assert app.workspaces.now().plan.model == QWEN


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not valid JSON"),
        ('{"schema": "plimsoll.workspace/9"}', "update Plimsoll"),
        ('{"model_type": "llama"}', "no workspace"),
        ('{"schema": "plimsoll.workspace/1", "plan": {"concurrency": -1}, "unit": "GiB"}',
         "concurrency"),
    ],
)  # fmt: skip
def test_that_a_wrong_file_is_a_sentence_and_leaves_what_is_open(
    app, qtbot, tmp_path, content, words
):
    before = app.workspaces.now()
    (tmp_path / "a.plimsoll").write_text(content)
    drop(app, tmp_path / "a.plimsoll")
    qtbot.waitUntil(app.trouble.isVisible)
    assert words in app.trouble.line.text()
    assert app.workspaces.now() == before
    assert not app.window.edit_actions[0].isEnabled()


@pytest.mark.parametrize("name", ["a.docx", "a.jsonl", "a.jsonl.gz", "a.png"])
def test_that_any_other_file_is_a_sentence(app, qtbot, tmp_path, name):
    (tmp_path / name).write_bytes(b"\x89nothing of ours")
    drop(app, tmp_path / name)
    qtbot.waitUntil(app.trouble.isVisible)
    assert name in app.trouble.line.text()
    assert "inside Plimsoll" not in app.trouble.line.text()


def origins(tmp_path):
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(TINY))
    return {
        "catalogue": ("Qwen/Qwen3-8B", QWEN),
        "path": (path, Located(str(path), "tiny")),
        "folder": (path.parent, Located(str(path.parent), "tiny")),
        "pasted": (json.dumps(TINY, indent=3), Pasted(json.dumps(TINY, indent=3))),
        "ollama": ("llama3.2:3b", Named("llama3.2:3b")),
    }


@pytest.mark.parametrize("kind", ["catalogue", "path", "folder", "pasted", "ollama"])
def test_that_the_last_session_comes_back_whatever_the_model_was(start, qtbot, tmp_path, kind):
    said, origin = origins(tmp_path)[kind]
    first = start()
    qtbot.waitUntil(lambda: first.model.state.fit is not None, timeout=20_000)
    first.browser.open(said)
    qtbot.waitUntil(lambda: first.model.state.model.origin == origin, timeout=20_000)
    first.model.edit("context", max_model_len=3000)
    first.model.choose_device("2 x RTX 4090")
    first.window.commands["compare"].trigger()
    first.model.edit("concurrency", concurrency=6)
    first.view.tabs.open_page(first.compare_view)
    kept, name = first.workspaces.now(), first.model.state.model.id
    figures = first.model.state.sizing.budget.ranks[0].planned
    first.window.close()
    second = start()
    wait_for_model(qtbot, second, name)
    assert second.workspaces.now() == kept
    assert second.model.state.sizing.budget.ranks[0].planned == figures
    assert second.view.tabs.stack.currentWidget() is second.compare_view
    assert second.model.state.model is second.compare.entries[0].pinned.model
    assert not second.trouble.isVisible()
    assert not second.window.edit_actions[0].isEnabled()


def test_that_a_model_entered_by_hand_comes_back_as_entered(start, qtbot):
    measures = Measures(8_030_261_248, 32, 8, 128, name="mine")
    first = start()
    qtbot.waitUntil(lambda: first.model.state.fit is not None, timeout=20_000)
    first.filing._on_entered(measures)
    wait_for_model(qtbot, first, "mine")
    kept = first.workspaces.now()
    assert kept.plan.model == measures
    first.window.close()
    second = start()
    wait_for_model(qtbot, second, "mine")
    assert second.workspaces.now() == kept


def test_that_an_edit_is_kept_before_the_window_closes(app, qtbot, tmp_path):
    app.model.edit("concurrency", concurrency=13)
    path = tmp_path / "settings" / FILE_NAME

    def is_kept():
        kept = session_file.read(path).workspace if path.exists() else None
        return kept is not None and kept.plan.deployment.concurrency == 13

    qtbot.waitUntil(is_kept, timeout=10_000)
    assert [p.name for p in path.parent.iterdir() if p.suffix == ".json"] == [FILE_NAME]


def test_that_the_name_of_the_file_and_its_mark_come_back(start, qtbot, tmp_path):
    first = start()
    qtbot.waitUntil(lambda: first.model.state.fit is not None, timeout=20_000)
    first.window.commands["save"].trigger()
    choose(first, tmp_path / "mine.plimsoll")
    settle(qtbot, first, "mine.plimsoll")
    first.model.edit("concurrency", concurrency=9)
    first.window.close()
    second = start()
    settle(qtbot, second, "mine.plimsoll")
    assert second.window.isWindowModified()
    assert second.model.state.plan.deployment.concurrency == 9
    second.window.commands["save"].trigger()
    qtbot.waitUntil(lambda: not second.window.isWindowModified())
    assert read_file(tmp_path / "mine.plimsoll").plan.deployment.concurrency == 9


@pytest.mark.parametrize("content", ["{", '{"schema": "plimsoll.session/2"}', "\0" * 100])
def test_that_a_broken_session_is_set_aside_and_the_window_starts(start, qtbot, tmp_path, content):
    folder = tmp_path / "settings"
    folder.mkdir()
    (folder / FILE_NAME).write_text(content)
    app = start()
    qtbot.waitUntil(lambda: app.model.state.fit is not None, timeout=20_000)
    assert "The last session could not be read" in app.trouble.line.text()
    aside = folder / "session.unread.json"
    assert aside.name in app.trouble.line.text()
    assert aside.read_text() == content


def test_that_a_reset_begins_with_the_example(start, qtbot):
    first = start()
    qtbot.waitUntil(lambda: first.model.state.fit is not None, timeout=20_000)
    example = first.model.state.model.id
    first.browser.open("Qwen/Qwen3-0.6B" if "0.6B" not in example else "Qwen/Qwen3-1.7B")
    qtbot.waitUntil(lambda: first.model.state.model.id != example, timeout=20_000)
    first.window.close()
    second = start(reset=True)
    wait_for_model(qtbot, second, example)


def test_that_a_session_with_a_model_of_the_hub_waits_and_fetches_nothing(
    start, qtbot, tmp_path, no_sockets
):
    (tmp_path / "settings").mkdir()
    workspace = keep(tmp_path / "far.plimsoll", FAR, tab="regions")
    (tmp_path / "settings" / FILE_NAME).write_text(session_file.written(Kept(workspace)))
    app = start(offline=False)
    qtbot.waitUntil(app.workspaces.notice.isVisible, timeout=20_000)
    assert app.model.state.model is None
    assert app.workspaces.now() == workspace


def test_that_a_file_named_at_the_start_is_opened_over_the_session(start, qtbot, tmp_path):
    first = start()
    qtbot.waitUntil(lambda: first.model.state.fit is not None, timeout=20_000)
    first.model.edit("concurrency", concurrency=21)
    kept = first.workspaces.now()
    first.window.close()
    keep(tmp_path / "a.plimsoll", QWEN)
    second = start(file=tmp_path / "a.plimsoll")
    settle(qtbot, second, "a.plimsoll")
    assert second.model.state.plan.deployment == PLAN
    second.window.edit_actions[0].trigger()
    assert second.workspaces.now().plan == kept.plan


def test_that_the_desk_is_cleared_undoably_and_the_model_stays(app, qtbot, tmp_path):
    app.window.commands["save"].trigger()
    choose(app, tmp_path / "mine.plimsoll")
    settle(qtbot, app, "mine.plimsoll")
    fresh, model = app.model.state.plan, app.model.state.model
    app.model.edit("concurrency", concurrency=9)
    app.window.commands["compare"].trigger()
    before = app.workspaces.now()
    app.window.commands["new"].trigger()
    assert app.model.state.plan == fresh
    assert app.model.state.model is model
    assert app.compare.entries == ()
    assert app.workspaces.file is None
    app.window.edit_actions[0].trigger()
    assert app.workspaces.now() == before
    assert app.workspaces.file == tmp_path / "mine.plimsoll"


def test_that_a_removed_compared_plan_comes_back_with_undo(app):
    app.window.commands["compare"].trigger()
    app.model.edit("concurrency", concurrency=9)
    app.window.commands["compare"].trigger()
    plans = app.compare.pinned
    app.compare_view.list.setCurrentIndex(app.compare_view.list.model().index(0, 0))
    app.compare_view.findChild(QPushButton, "remove plan").click()
    assert app.compare.pinned == plans[1:]
    undo = app.window.edit_actions[0]
    assert undo.text() == "Undo removal of a compared plan"
    undo.trigger()
    assert app.compare.pinned == plans
    app.compare.move(0, 1)
    undo.trigger()
    assert app.compare.pinned == plans


def test_that_a_removed_favourite_and_folder_come_back_with_undo(app, tmp_path):
    shelf = app.browser.model
    app.window.commands["favourite"].trigger()
    shelf.set_folder(str(tmp_path), searched=True)
    kept = shelf.state.shelf
    app.window.commands["favourite"].trigger()
    shelf.set_folder(str(tmp_path), searched=False)
    assert shelf.state.shelf.favourites == shelf.state.shelf.folders == ()
    for _ in range(2):
        app.window.edit_actions[0].trigger()
    assert shelf.state.shelf == kept


def test_that_favourites_are_carried_to_another_computer_and_added_undoably(start, qtbot, tmp_path):
    first = start()
    qtbot.waitUntil(lambda: first.model.state.fit is not None, timeout=20_000)
    first.browser.model.set_shelf(Shelf(("a/b",), ("c/d",), (str(tmp_path),)))
    first.window.commands["export shelf"].trigger()
    choose(first, tmp_path / "mine.json")
    qtbot.waitUntil((tmp_path / "mine.json").exists)
    second = start(settings_folder=tmp_path / "elsewhere")
    second.browser.model.set_shelf(Shelf(("x/y",)))
    second.window.commands["import shelf"].trigger()
    choose(second, tmp_path / "mine.json")
    shelf = second.browser.model
    qtbot.waitUntil(lambda: shelf.state.shelf.favourites == ("x/y", "a/b"))
    assert "c/d" in shelf.state.shelf.recents
    assert shelf.state.shelf.folders == (str(tmp_path),)
    second.window.edit_actions[0].trigger()
    assert shelf.state.shelf.favourites == ("x/y",)


def test_that_a_kept_plan_of_another_model_can_be_undone(app, qtbot):
    app.window.commands["compare"].trigger()
    first = app.model.state
    app.browser.open("Qwen/Qwen3-8B")
    wait_for_model(qtbot, app, "Qwen/Qwen3-8B")
    app.comparing._on_open(app.compare.pinned[0])
    assert app.model.state.model is first.model
    app.window.edit_actions[0].trigger()
    assert app.model.state.model.id == "Qwen/Qwen3-8B"


def test_that_the_terminal_opens_the_window_with_a_workspace(tmp_path):
    keep(tmp_path / "a.plimsoll", QWEN)
    code = (
        "import sys\nimport gui.app\nfrom gui.__main__ import main\n"
        "gui.app.run = lambda options: print('window', options.file) or 0\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    for arguments in ([], ["--offline"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments, str(tmp_path / "a.plimsoll")],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.stdout == f"window {tmp_path / 'a.plimsoll'}\n", done.stderr
