"""Saving: one after another, to the right file, and never over what somebody else wrote."""

from __future__ import annotations

import shutil
import threading

import pytest
from PySide6.QtWidgets import QPushButton

from engine.contract.workspace import read_file
from gui import session_file
from gui.session_file import FILE_NAME
from tests.qt.window.desks import PLAN, QWEN, choose, drop, keep, save_as, settle, wait_for_model


def button(app, text):
    return next(b for b in app.saving.notice.findChildren(QPushButton) if b.text() == text)


def concurrency(path):
    return read_file(path).plan.deployment.concurrency


class _BusyPool:
    """All workers at work until told otherwise, so that what is submitted waits."""

    def __init__(self, app):
        self._gate = threading.Event()
        for _ in range(4):
            app.runner.submit(self._work)

    def _work(self, token):
        while not token.cancelled and not self._gate.wait(0.01):
            pass

    def let_go(self):
        self._gate.set()


@pytest.fixture
def saved(app, qtbot, tmp_path):
    """The app with its desk saved as mine.plimsoll, and that file."""
    save_as(qtbot, app, tmp_path / "mine.plimsoll")
    return app, tmp_path / "mine.plimsoll"


def test_that_of_two_quick_saves_the_second_stays_and_neither_is_taken_for_a_strangers(
    saved, qtbot
):
    app, path = saved
    for number in (11, 12, 13):
        app.model.edit("concurrency", concurrency=number)
        app.window.commands["save"].trigger()
    qtbot.waitUntil(lambda: not app.runner._live, timeout=20_000)
    assert concurrency(path) == 13
    assert not app.saving.notice.isVisible()
    assert not app.window.isWindowModified()


def test_that_both_files_are_written_of_two_saved_at_once(app, qtbot, tmp_path):
    pool = _BusyPool(app)
    for name in ("one", "two"):
        app.window.commands["save as"].trigger()
        choose(app, tmp_path / f"{name}.plimsoll")
    pool.let_go()
    settle(qtbot, app, "two.plimsoll")
    assert (tmp_path / "one.plimsoll").exists()


@pytest.mark.parametrize("what", ["opened", "cleared"])
def test_that_a_save_that_ends_late_does_not_give_its_file_to_another_desk(
    app, qtbot, tmp_path, what
):
    keep(tmp_path / "a.plimsoll", QWEN)
    with app.saving._writer._writing:
        app.window.commands["save as"].trigger()
        choose(app, tmp_path / "mine.plimsoll")
        if what == "opened":
            drop(app, tmp_path / "a.plimsoll")
            settle(qtbot, app, "a.plimsoll")
        else:
            app.window.commands["new"].trigger()
    qtbot.waitUntil((tmp_path / "mine.plimsoll").exists, timeout=20_000)
    qtbot.waitUntil(lambda: not app.runner._live, timeout=20_000)
    assert app.workspaces.file == (tmp_path / "a.plimsoll" if what == "opened" else None)
    assert not app.window.isWindowModified()


def test_that_what_a_file_holds_is_known_after_undo_too(app, qtbot, tmp_path):
    keep(tmp_path / "a.plimsoll", QWEN)
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    app.model.edit("concurrency", concurrency=9)
    app.window.commands["save"].trigger()
    qtbot.waitUntil(lambda: not app.runner._live, timeout=20_000)
    assert concurrency(tmp_path / "a.plimsoll") == 9
    undo, redo = app.window.edit_actions
    undo.trigger()
    undo.trigger()
    redo.trigger()
    # The plan is again as it was opened, and the file holds the edit.
    assert app.model.state.plan.deployment.concurrency == PLAN.concurrency
    assert app.workspaces.file == tmp_path / "a.plimsoll"
    assert app.window.isWindowModified()
    redo.trigger()
    qtbot.waitUntil(lambda: not app.window.isWindowModified())


def test_that_a_desk_saved_between_undo_and_redo_keeps_its_file(app, qtbot, tmp_path):
    keep(tmp_path / "a.plimsoll", QWEN)
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")
    undo, redo = app.window.edit_actions
    undo.trigger()
    save_as(qtbot, app, tmp_path / "mine.plimsoll")
    redo.trigger()
    assert app.workspaces.file == tmp_path / "a.plimsoll"
    undo.trigger()
    assert app.workspaces.file == tmp_path / "mine.plimsoll"
    assert not app.window.isWindowModified()


def test_that_a_save_that_still_waits_is_written_as_the_window_closes(start, qtbot, tmp_path):
    first = start()
    qtbot.waitUntil(lambda: first.model.state.fit is not None, timeout=20_000)
    qtbot.waitUntil(lambda: first.model.is_settled, timeout=20_000)
    first.model.edit("concurrency", concurrency=17)
    _BusyPool(first)
    first.window.commands["save as"].trigger()
    choose(first, tmp_path / "mine.plimsoll")
    first.window.close()
    assert concurrency(tmp_path / "mine.plimsoll") == 17
    second = start()
    settle(qtbot, second, "mine.plimsoll")
    assert not second.window.isWindowModified()
    assert not second.saving.notice.isVisible()


def test_that_a_change_from_outside_is_asked_about_and_nothing_is_written_before(
    saved, qtbot, tmp_path
):
    app, path = saved
    theirs = keep(path, QWEN)
    app.model.edit("concurrency", concurrency=9)
    app.window.commands["save"].trigger()
    qtbot.waitUntil(app.saving.notice.isVisible, timeout=20_000)
    assert app.saving.notice.line.text() == (
        "mine.plimsoll was changed by another program or window"
    )
    # It was saved before, and that isn't the news any more.
    assert not app.note.isVisible()
    assert read_file(path) == theirs
    assert app.window.isWindowModified()
    button(app, "Overwrite it").click()
    qtbot.waitUntil(lambda: not app.window.isWindowModified(), timeout=20_000)
    assert concurrency(path) == 9
    assert not app.saving.notice.isVisible()


def test_that_the_changed_file_can_be_opened_undoably_instead(saved, qtbot):
    app, path = saved
    keep(path, QWEN)
    app.model.edit("concurrency", concurrency=9)
    app.window.commands["save"].trigger()
    qtbot.waitUntil(app.saving.notice.isVisible, timeout=20_000)
    button(app, "Open the changed file").click()
    wait_for_model(qtbot, app, QWEN.name)
    assert not app.saving.notice.isVisible()
    assert not app.window.isWindowModified()
    app.window.edit_actions[0].trigger()
    assert app.model.state.plan.deployment.concurrency == 9
    assert app.window.isWindowModified()


def test_that_the_changed_file_can_be_left_and_another_saved(saved, qtbot, tmp_path):
    app, path = saved
    theirs = keep(path, QWEN)
    app.model.edit("concurrency", concurrency=9)
    app.window.commands["save"].trigger()
    qtbot.waitUntil(app.saving.notice.isVisible, timeout=20_000)
    button(app, "Save as another…").click()
    choose(app, tmp_path / "other.plimsoll")
    settle(qtbot, app, "other.plimsoll")
    assert read_file(path) == theirs
    assert concurrency(tmp_path / "other.plimsoll") == 9


def test_that_a_file_that_is_gone_is_written_anew(saved, qtbot):
    app, path = saved
    path.unlink()
    app.window.commands["save"].trigger()
    qtbot.waitUntil(path.exists, timeout=20_000)
    assert not app.saving.notice.isVisible()


@pytest.mark.parametrize("theirs", ["workspace", "nonsense"])
def test_that_a_change_while_the_window_was_closed_is_asked_about_at_the_start(
    start, qtbot, tmp_path, theirs
):
    path = tmp_path / "mine.plimsoll"
    first = start()
    qtbot.waitUntil(lambda: first.model.state.fit is not None, timeout=20_000)
    save_as(qtbot, first, path)
    kept = first.workspaces.now()
    first.window.close()
    if theirs == "workspace":
        keep(path, QWEN)
    else:
        path.write_text("{")
    text = path.read_text()
    second = start()
    settle(qtbot, second, "mine.plimsoll")
    assert second.workspaces.now() == kept
    assert second.window.isWindowModified()
    assert second.saving.notice.isVisible()
    second.window.commands["save"].trigger()
    qtbot.waitUntil(lambda: not second.runner._live, timeout=20_000)
    assert path.read_text() == text


def test_that_a_killed_window_never_gives_one_files_name_to_anothers_contents(
    app, start, qtbot, tmp_path
):
    session = tmp_path / "settings" / FILE_NAME
    save_as(qtbot, app, tmp_path / "mine.plimsoll")
    keep(tmp_path / "a.plimsoll", QWEN, tab="regions")
    drop(app, tmp_path / "a.plimsoll")
    settle(qtbot, app, "a.plimsoll")

    def is_kept():
        return session.exists() and session_file.read(session).file == tmp_path / "a.plimsoll"

    # Nothing but the session is written while the window is open.
    qtbot.waitUntil(is_kept, timeout=20_000)
    assert session_file.read(session).workspace == read_file(tmp_path / "a.plimsoll")
    (tmp_path / "after the kill").mkdir()
    shutil.copy(session, tmp_path / "after the kill")
    second = start(settings_folder=tmp_path / "after the kill")
    settle(qtbot, second, "a.plimsoll")
    assert second.model.state.model.origin == QWEN
    assert not second.window.isWindowModified()


def test_that_two_windows_keep_a_session_each_and_both_come_back(start, qtbot):
    made = []
    for number in (31, 32):
        app = start()
        qtbot.waitUntil(lambda app=app: app.model.state.fit is not None, timeout=20_000)
        assert app.model.state.plan.deployment.concurrency != 31
        app.model.edit("concurrency", concurrency=number)
        made.append(app)
    for app in made:
        app.window.close()
    back = []
    for _ in made:
        app = start()
        qtbot.waitUntil(lambda app=app: app.model.state.fit is not None, timeout=20_000)
        back.append(app.model.state.plan.deployment.concurrency)
    # The one that was closed last comes first.
    assert back == [32, 31]


def test_that_a_session_that_cannot_be_kept_is_one_sentence_said_once(start, qtbot, tmp_path):
    (tmp_path / "settings").write_text("a file where a folder was to be")
    app = start()
    qtbot.waitUntil(lambda: app.model.state.fit is not None, timeout=20_000)
    app.model.edit("concurrency", concurrency=9)
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    assert app.trouble.line.text().startswith("What lies on the desk isn’t kept over a restart: ")
    assert "inside Plimsoll" not in app.trouble.line.text()
    app.trouble.dismiss()
    app.model.edit("concurrency", concurrency=10)
    app.session._write()
    qtbot.waitUntil(lambda: not app.runner._live, timeout=20_000)
    assert not app.trouble.isVisible()


def test_that_a_plan_beyond_all_measure_takes_nothing_else_of_the_session_along(start, qtbot):
    first = start()
    qtbot.waitUntil(lambda: first.model.state.fit is not None, timeout=20_000)
    first.model.edit("concurrency", concurrency=9)
    for _ in range(40):
        first.window.commands["double"].trigger()
    assert first.model.state.problem
    first.window.close()
    second = start()
    qtbot.waitUntil(lambda: second.model.state.fit is not None, timeout=20_000)
    assert second.model.state.plan.deployment.concurrency == 9
    assert not second.trouble.isVisible()


def test_that_a_workspace_too_large_to_be_opened_again_is_not_saved(
    app, qtbot, tmp_path, monkeypatch
):
    monkeypatch.setattr("engine.contract.workspace.MAX_FILE_BYTES", 100)
    app.window.commands["save as"].trigger()
    choose(app, tmp_path / "mine.plimsoll")
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    assert "far more than any workspace" in app.trouble.line.text()
    assert not (tmp_path / "mine.plimsoll").exists()
