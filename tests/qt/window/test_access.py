"""A gated model: said plainly, a token taken, and the model sized without asking again."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from gui.kit.access_dialog import AccessDialog
from tests.helpers import fake_hub
from tests.helpers.fake_hub import GOOD_TOKEN, UNGRANTED_TOKEN, Repo
from tests.helpers.hub_models import SIZEABLE


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        running.add(
            Repo("org/model", {"config.json": json.dumps(SIZEABLE).encode()}, gated="manual")
        )
        yield running


@pytest.fixture
def app(start, hub, qtbot):
    made = start(offline=False, endpoint=hub.url)
    qtbot.waitUntil(lambda: made.model.state.fit is not None, timeout=20_000)
    made.browser.open("org/model")
    qtbot.waitUntil(made.trouble.isVisible, timeout=20_000)
    return made


@pytest.fixture
def dialog(app, qtbot):
    button = next(b for b in app.trouble.findChildren(QPushButton) if "token" in b.text())
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    found = app.window.findChild(AccessDialog)
    qtbot.waitUntil(lambda: bool(found.status.text()), timeout=20_000)
    return found


def _give(qtbot, dialog, token):
    before = dialog.status.text()
    dialog.field.setText(token)
    qtbot.mouseClick(dialog.keep, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: dialog.status.text() != before, timeout=20_000)


def test_that_it_is_said_plainly_with_the_way_to_the_terms(app, dialog, hub):
    assert "org/model is gated" in app.trouble.line.text()
    assert dialog.status.text() == "No token is kept."
    terms = next(b for b in dialog.findChildren(QPushButton) if b.text() == "Open terms")
    assert terms.toolTip() == f"{hub.url}/org/model"


def test_that_a_good_token_sizes_the_model_by_itself(app, dialog, qtbot):
    _give(qtbot, dialog, GOOD_TOKEN)
    # The tests have no keyring.
    assert dialog.status.text().startswith("It is tester’s. A token is kept until Plimsoll is")
    assert dialog.field.text() == ""
    qtbot.waitUntil(lambda: app.model.state.model.id == "org/model", timeout=20_000)
    assert not app.trouble.isVisible()


def test_that_a_wrong_token_is_not_kept(app, dialog, qtbot):
    _give(qtbot, dialog, "hf_wrong")
    assert "does not know this token" in dialog.status.text()
    assert app.hub.access.token is None
    assert dialog.field.text() == "hf_wrong"


def test_that_more_than_reading_is_said_and_a_token_can_be_forgotten(app, dialog, qtbot):
    _give(qtbot, dialog, UNGRANTED_TOKEN)
    assert "may also write" in dialog.status.text()
    qtbot.mouseClick(dialog.forget, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: dialog.status.text() == "No token is kept.", timeout=20_000)
    assert app.hub.access.token is None


def test_that_no_token_is_ever_written(app, dialog, qtbot, tmp_path):
    _give(qtbot, dialog, GOOD_TOKEN)
    app.window.close()
    written = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert written
    assert not [p for p in written if GOOD_TOKEN.encode() in p.read_bytes()]


def test_that_off_line_nothing_is_asked_and_it_stays_so(start, hub, qtbot):
    app = start(offline=False, endpoint=hub.url)
    qtbot.waitUntil(lambda: app.model.state.fit is not None, timeout=20_000)
    app.window.commands["offline"].trigger()
    assert "Off-line" in app.window.status_line.hub.words.full_text
    app.browser.open("org/model")
    qtbot.waitUntil(app.trouble.isVisible, timeout=20_000)
    assert "the Hub was not asked" in app.trouble.line.text()
    assert hub.requests == []
    app.window.close()
    again = start(offline=False, endpoint=hub.url)
    assert again.hub.offline
    assert again.window.commands["offline"].isChecked()
    again.window.commands["offline"].trigger()
    again.browser.open("org/model")
    qtbot.waitUntil(lambda: "gated" in again.trouble.line.text(), timeout=20_000)
