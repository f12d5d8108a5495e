"""The way to the Hub as a person sets it, tries it, and sees afterwards what was sent."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel, QLineEdit, QPushButton, QTableView

from gui.kit.settings import FILE_NAME
from tests.helpers import fake_hub
from tests.helpers.certificates import Authority
from tests.helpers.controls import pick
from tests.helpers.fake_hub import GOOD_TOKEN, Repo
from tests.helpers.forward_proxy import proxying
from tests.helpers.hub_models import SIZEABLE


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        running.add(Repo("org/model", {"config.json": json.dumps(SIZEABLE).encode()}))
        yield running


@pytest.fixture
def online(start, qtbot):
    """The window without ``--offline``; asks nobody by itself."""
    made = start(offline=False)
    qtbot.waitUntil(lambda: made.model.state.fit is not None, timeout=20_000)
    return made


@pytest.fixture
def page(online, qtbot):
    return _page(online, qtbot)


def _page(app, qtbot):
    app.window.commands["network"].trigger()
    qtbot.waitUntil(app.networking.page.isVisible)
    return app.networking.page


def _type(qtbot, page, name, text):
    field = page.findChild(QLineEdit, name)
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text) if text else qtbot.keyClick(field, Qt.Key.Key_Delete)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    return field


def _click(qtbot, page, name):
    button = page.findChild(QPushButton, name)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    return button


def _try(qtbot, page):
    """Test the connection: the outcome, and what is said of each step."""
    button = _click(qtbot, page, "test connection")
    qtbot.waitUntil(lambda: button.text() == "Test connection", timeout=20_000)
    steps = [page.findChild(QLabel, f"step {n}").text() for n in range(1, 7)]
    return page.findChild(QLabel, "outcome").text(), steps


def _said(notice):
    return [label.text() for label in notice.findChildren(QLabel)]


def _open(qtbot, app, name):
    app.browser.open(name)
    qtbot.waitUntil(
        lambda: app.model.state.model.id == name or app.trouble.isVisible(), timeout=20_000
    )


def test_that_before_a_test_no_steps_are_listed(page, qtbot):
    assert page.findChild(QLabel, "outcome").text() == "Not tested yet"
    assert not page.trial.steps.isVisible()
    _try(qtbot, page)
    assert page.trial.steps.isVisible()


def test_that_the_command_opens_the_page_and_nothing_is_sent(online, page, hub):
    dialog = online.preferring.dialog
    assert dialog.list.currentItem().text() == "Network"
    assert page.findChild(QLineEdit, "mirror").placeholderText() == "https://huggingface.co"
    assert hub.requests == []


def test_that_a_mirror_is_asked_at_once_and_at_the_next_start(online, page, hub, start, qtbot):
    _type(qtbot, page, "mirror", hub.url + "/")
    assert _try(qtbot, page) == (
        "The Hub can be reached",
        [
            "127.0.0.1 is an address itself",
            "None is used",
            f"Connected to 127.0.0.1, port {hub.url.rpartition(':')[2]}",
            "Not used: the address begins with http://",
            page.findChild(QLabel, "step 5").text(),
            "Answers as the Hub does, without a token",
        ],
    )
    online.window.close()
    again = start(offline=False)
    qtbot.waitUntil(lambda: again.model.state.fit is not None, timeout=20_000)
    _open(qtbot, again, "org/model")
    assert again.model.state.model.id == "org/model"
    assert _page(again, qtbot).findChild(QLineEdit, "mirror").text() == hub.url


def test_that_the_token_stays_with_its_hub(online, page, hub, qtbot):
    with fake_hub.serving() as mirror:
        _type(qtbot, page, "mirror", hub.url)
        online.hub.access.keep(GOOD_TOKEN)
        assert _try(qtbot, page)[1][5] == "Answers as the Hub does, with your token"
        _type(qtbot, page, "mirror", mirror.url)
        assert _try(qtbot, page)[1][5] == "Answers as the Hub does, without a token"
    assert "Authorization" in hub.requests[-1][2]
    assert "Authorization" not in mirror.requests[-1][2]


def test_that_the_failing_step_is_named_with_its_sentence(page, tmp_path, qtbot):
    authority = Authority()
    pem = authority.server(tmp_path / "server.pem", "127.0.0.1")
    (tmp_path / "company.pem").write_bytes(authority.pem)
    with fake_hub.serving(pem) as secure:
        _type(qtbot, page, "mirror", secure.url)
        outcome, steps = _try(qtbot, page)
        assert outcome == "It ends at: Encryption"
        assert "is not trusted here: add your company’s certificates" in steps[3]
        assert steps[4:] == ["", ""]
        _click(qtbot, page, "copy the trial")
        lines = QApplication.clipboard().text().splitlines()
        assert lines[0] == outcome
        assert lines[4] == f"! Encryption: {steps[3]}"
        assert lines[5:] == ["- Answer", "- The Hub"]
        _type(qtbot, page, "certificates", str(tmp_path / "company.pem"))
        outcome, steps = _try(qtbot, page)
        assert (outcome, steps[3]) == (
            "The Hub can be reached", "TLS 1.3, with a certificate of Example Works",
        )  # fmt: skip


def test_that_a_test_can_be_stopped(page, hub, qtbot):
    hub.trouble = "stall"
    _type(qtbot, page, "mirror", hub.url)
    button = _click(qtbot, page, "test connection")
    assert button.text() == "Stop"
    qtbot.waitUntil(lambda: bool(hub.requests), timeout=20_000)
    _click(qtbot, page, "test connection")
    assert button.text() == "Test connection"
    assert page.findChild(QLabel, "outcome").text() == "Stopped"


def test_that_a_proxy_typed_by_hand_is_used(online, page, hub, qtbot):
    address = page.findChild(QLineEdit, "proxy address")
    assert not address.isEnabled()
    with proxying(hub.url) as proxy:
        _type(qtbot, page, "mirror", "http://hub.example")
        pick(page.findChild(object, "proxy"), "By its address")
        assert address.hasFocus()
        _type(qtbot, page, "proxy address", proxy.address)
        assert _try(qtbot, page)[0] == "The Hub can be reached"
        _open(qtbot, online, "org/model")
    assert not online.trouble.isVisible(), _said(online.trouble)
    assert online.model.state.model.id == "org/model"
    assert ("GET", "http://hub.example/api/models?limit=1") in proxy.asked


def test_that_no_password_is_kept(online, page, qtbot, tmp_path):
    pick(page.findChild(object, "proxy"), "By its address")
    _type(qtbot, page, "proxy address", "me:geheim@proxy.example:80")
    assert "No name or password is kept here" in page.findChild(QLabel, "refusal").text()
    assert online.hub.reach.address == ""
    online.window.close()
    kept = (tmp_path / "settings" / FILE_NAME).read_text()
    assert "geheim" not in kept


def test_that_what_cannot_be_meant_is_said_and_the_last_good_value_holds(online, page, hub, qtbot):
    _type(qtbot, page, "mirror", hub.url)
    _type(qtbot, page, "mirror", "ftp://hub.example")
    refusal = page.findChild(QLabel, "refusal")
    assert refusal.isVisible()
    assert "no server’s address" in refusal.text()
    assert online.hub.endpoint == hub.url
    _type(qtbot, page, "mirror", "")
    assert not refusal.isVisible()
    assert online.hub.endpoint == "https://huggingface.co"


def test_that_off_line_is_one_switch_and_then_nothing_is_tried(online, page, hub, qtbot):
    _type(qtbot, page, "mirror", hub.url)
    switch, command = page.findChild(QCheckBox, "stay off-line"), online.window.commands["offline"]
    switch.click()
    assert command.isChecked()
    outcome, steps = _try(qtbot, page)
    assert outcome == "It ends at: Name"
    assert steps[0] == "Offline mode is on, so the Hub was not asked."
    command.trigger()
    assert not switch.isChecked()
    assert hub.requests == []
    assert _try(qtbot, page)[0] == "The Hub can be reached"


def test_that_the_hub_named_at_the_start_is_no_mirrors_business(start, hub, qtbot):
    app = start(offline=False, endpoint=hub.url)
    page = _page(app, qtbot)
    field = page.findChild(QLineEdit, "mirror")
    assert field.text() == hub.url
    assert not field.isEnabled()
    pick(page.findChild(object, "proxy"), "None")
    assert app.hub.endpoint == hub.url
    assert app.settings.reach.mirror == ""


def test_that_each_request_is_listed_newest_first_and_can_be_copied(online, page, hub, qtbot):
    dialog, port = online.preferring.dialog, hub.url.rpartition(":")[2]
    _type(qtbot, page, "mirror", hub.url)
    dialog.open_page("Network activity")
    shown = online.networking.activity
    table = shown.findChild(QTableView, "requests of this session")
    _open(qtbot, online, "org/model")
    qtbot.waitUntil(lambda: f":{port}/org/model/resolve" in _cells(table)[0][1], timeout=20_000)
    asked = [row for row in _cells(table) if f":{port}" in row[1]]
    assert [row[1].split(" ")[0] + " " + row[1].partition(port)[2] for row in asked] == [
        path.partition("?")[0] for path in reversed(hub.paths())
    ]
    assert {row[2] for row in asked} == {"200"}
    config = next(row for row in asked if row[1].endswith("config.json"))
    assert config[3] == str(len(json.dumps(SIZEABLE)))
    _click(qtbot, shown, "copy the list")
    assert f"127.0.0.1:{port}\t/api/models/org/model\t200" in QApplication.clipboard().text()
    promise = shown.findChild(QLabel, "promise").text()
    assert "sent nothing else" in promise
    assert "no telemetry" in promise


def _cells(table):
    model = table.model()
    rows, columns = model.rowCount(), model.columnCount()
    return [[model.index(r, c).data() for c in range(columns)] for r in range(rows)]
