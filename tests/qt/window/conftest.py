"""The whole window, as ``gui.app`` puts it together, with folders of its own and no network."""

from __future__ import annotations

import gc

import pytest
from PySide6.QtCore import QCoreApplication, QEvent

from engine.seen.look import Here, Looker
from gui.app import App, Options, dress_application


@pytest.fixture
def start(qtbot, qapp, tmp_path):
    """Start the app; everything is left in order at the end of the test."""
    dress_application(qapp)
    font, palette, style_sheet = qapp.font(), qapp.palette(), qapp.styleSheet()
    apps = []

    def begin(crashes=None, **options) -> App:
        options = {"offline": True, "settings_folder": tmp_path / "settings"} | options
        app = App(qapp, Options(**options), crashes)
        apps.append(app)
        # What runs on this computer is nobody's business in a test.
        app.seeing.looker = Looker(Here(tuple, lambda _pids: ()))
        app.start()
        qtbot.waitExposed(app.window)
        return app

    yield begin
    while apps:
        app = apps.pop()
        app.window.close()
        app.window.deleteLater()
        app.deleteLater()
        del app
    # Dead windows else stay until the collector comes by, and every style sheet walks over them:
    # a fifth of the time and of the memory of these tests.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.unfreeze()
    gc.collect()
    # Large text or another scheme is for one test alone.
    qapp.setFont(font)
    qapp.setPalette(palette)
    qapp.setStyleSheet(style_sheet)


@pytest.fixture
def app(qtbot, start):
    """The app with its worked example answered."""
    made = start()
    made.window.resize(1440, 900)
    qtbot.waitUntil(lambda: made.model.state.fit is not None, timeout=20_000)
    qtbot.waitUntil(lambda: made.model.is_settled, timeout=20_000)
    return made
