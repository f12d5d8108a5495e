"""The narrow browser with a Hub of its own and an empty home."""

from __future__ import annotations

import pytest

from engine.devices import catalogue as devices
from engine.source.hub import HubClient
from gui.browser.view import BrowserView
from gui.kit.tasks import TaskRunner
from gui.kit.theme import load_theme
from tests.helpers import fake_hub
from tests.helpers.browser import settle


@pytest.fixture
def card():
    return devices.machine(devices.find("RTX 4090"), 1)


@pytest.fixture
def runner(qapp):
    made = TaskRunner()
    yield made
    assert made.shutdown(5000)


@pytest.fixture
def hub():
    with fake_hub.serving() as running:
        fake_hub.fill(running, 120)
        yield running


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return tmp_path


@pytest.fixture
def open_browser(qtbot, runner, hub, home):
    def made(**settings):
        client = HubClient(hub.url, timeout_s=settings.pop("timeout_s", 5), **settings)
        view = BrowserView(runner, client, load_theme("light"))
        qtbot.addWidget(view)
        view.resize(296, 700)
        view.show()
        settle(qtbot, view)
        return view

    return made
