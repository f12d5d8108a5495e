"""Off-line the whole window works and nothing leaves this computer: a guard sees all sockets."""

from __future__ import annotations

import json

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from engine.source.activity import ACTIVITY
from engine.source.local import hub_cache
from gui.browser.rows import Source
from gui.kit.access_dialog import AccessDialog
from tests.helpers.fake_hub import COMMIT, GOOD_TOKEN
from tests.helpers.hub_models import SIZEABLE
from tests.helpers.socket_guard import REACHED


def _store(name):
    """A model in the Hub cache of this computer."""
    folder = hub_cache() / f"models--{name.replace('/', '--')}" / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(SIZEABLE))
    (folder.parents[1] / "refs").mkdir()
    (folder.parents[1] / "refs" / "main").write_text(COMMIT)


def _search(app, qtbot, text):
    app.window.commands["search"].trigger()
    app.browser.model.set_source(Source.HUB)
    app.browser.model.set_query(text)
    app.browser.model.submit()
    qtbot.waitUntil(lambda: app.browser.model.is_settled, timeout=20_000)


def _said(app):
    return app.browser.findChild(QLabel, "title").text()


def test_that_off_line_nothing_reaches_beyond_this_computer(start, qtbot, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    _store("org/cached")
    reached, asked = len(REACHED), ACTIVITY.total
    app = start(offline=False)
    app.window.commands["offline"].trigger()
    qtbot.waitUntil(lambda: app.model.state.fit is not None, timeout=20_000)

    _search(app, qtbot, "llama")
    assert _said(app).startswith("Off-line, catalogue of ")
    app.browser.open("nobody/unknown")
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    assert "the Hub was not asked" in app.trouble.line.text()

    app.browser.open("org/cached")
    qtbot.waitUntil(lambda: app.model.state.model.id == "org/cached", timeout=20_000)
    assert any(n.startswith("Read from the Hub cache, as of") for n in app.model.state.notes)
    app.browser.open("https://huggingface.co/Qwen/Qwen3-0.6B")
    qtbot.waitUntil(lambda: app.model.state.model.id == "Qwen/Qwen3-0.6B", timeout=20_000)
    app.window.commands["double"].trigger()
    app.window.commands["all models"].trigger()
    qtbot.waitUntil(lambda: app.model.is_settled, timeout=20_000)
    app.filing.write_report(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 0
    app.window.commands["copy"].trigger()
    assert "Qwen3-0.6B" in QApplication.clipboard().text()

    _try_token(app, qtbot)
    _try_connection(app, qtbot)
    assert "Off-line" in app.window.status_line.hub.words.full_text
    assert "2026" in app.window.status_line.hub.words.toolTip()
    assert REACHED[reached:] == []
    assert ACTIVITY.total == asked


def _try_token(app, qtbot):
    app.window.commands["access"].trigger()
    dialog = app.window.findChild(AccessDialog)
    qtbot.waitUntil(lambda: bool(dialog.status.text()), timeout=20_000)
    dialog.field.setText(GOOD_TOKEN)
    qtbot.mouseClick(dialog.keep, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "Offline mode is on" in dialog.status.text(), timeout=20_000)
    dialog.reject()


def _try_connection(app, qtbot):
    app.window.commands["network"].trigger()
    page = app.networking.page
    button = page.findChild(QPushButton, "test connection")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: button.text() == "Test connection", timeout=20_000)
    assert "Offline mode is on" in page.findChild(QLabel, "step 1").text()
    app.preferring.dialog.close()


def test_that_the_guard_sees_a_search_that_is_let_out(start, qtbot):
    reached = len(REACHED)
    app = start(offline=False)
    _search(app, qtbot, "llama")
    assert set(REACHED[reached:]) == {"huggingface.co"}
