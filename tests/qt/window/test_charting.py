"""The chart's tools in the window: menu, buttons, markers, files."""

from __future__ import annotations

import csv
import json

import pytest
from PySide6.QtWidgets import QFileDialog, QLineEdit

from engine.telemetry.markers import Marker, MarkerKind
from gui.charting import MarkerDialog


@pytest.fixture
def measured(app, qtbot):
    qtbot.waitUntil(lambda: app.view.picture.has_time, timeout=10_000)
    return app


def _choose(app, path) -> None:
    (dialog,) = [d for d in app.window.findChildren(QFileDialog) if d.isVisible()]
    dialog.fileSelected.emit(str(path))
    dialog.close()


def _entries(app) -> list[str]:
    menu = app.charting.tools.more.menu()
    app.charting.fill(menu)
    return [action.text() for action in menu.actions() if action.text()]


def test_that_the_buttons_stand_under_the_labels_and_tell_the_time_shown(measured):
    tools, picture = measured.charting.tools, measured.view.picture
    assert tools.isVisible()
    assert tools.span.text() == "2 min"
    tools.longer.click()
    assert (tools.span.text(), picture.span_s) == ("5 min", 300)
    tools.shorter.click()
    tools.shorter.click()
    assert tools.span.text() == "1 min"
    assert not tools.shorter.isEnabled()
    last = tools.span.menu().actions()[-1]
    last.trigger()
    assert (last.text(), picture.span_s) == ("24 h", 86_400)
    assert tools.span.accessibleName() == "The chart shows 24 h"
    # Nothing of the picture lies under them.
    places = picture._places
    lowest = max(place.y for place in places.panels[0].labels)
    assert tools.geometry().top() > lowest
    assert tools.geometry().right() < places.panels[0].time.left()


def test_that_the_menu_holds_moves_and_follows_again(measured):
    commands, picture = measured.window.commands, measured.view.picture
    commands["hold"].trigger()
    assert picture.is_held
    commands["newest"].trigger()
    assert not picture.is_held
    assert not commands["hold"].isChecked()


def test_that_least_average_and_most_stand_in_the_menu_and_begin_anew(measured, qtbot):
    (first, *_), picture = _entries(measured), measured.view.picture
    assert first.startswith("Least ")
    assert "GiB since " in first
    measured.window.commands["reset extent"].trigger()
    assert picture.kept.extents == {}
    qtbot.waitUntil(lambda: bool(picture.kept.extents), timeout=10_000)


def test_that_a_key_sets_a_marker_for_chart_and_recording(measured, qtbot, tmp_path):
    path = tmp_path / "marked.jsonl"
    measured.watch.record(path)
    at = measured.watch.last.monotonic_s
    measured.window.commands["mark"].trigger()
    (dialog,) = measured.window.findChildren(MarkerDialog)
    dialog.findChild(QLineEdit).setText("long prompt & more")
    dialog.accept()
    ((place, marker),) = measured.view.picture.kept.markers
    assert (place, marker.text) == (at, "long prompt & more")
    assert "Go to a mar&ker" in _entries(measured)
    measured.watch.stop_recording()
    lines = map(json.loads, path.read_text().splitlines())
    (written,) = [line["marker"] for line in lines if "marker" in line]
    assert (written["kind"], written["text"]) == ("note", "long prompt & more")


def test_that_what_the_samples_show_is_marked_by_itself(measured):
    load = Marker(MarkerKind.LOAD, measured.watch.last.monotonic_s, 0, "", "host", 2**33)
    measured.watch._mark(load)
    assert [m for _, m in measured.view.picture.kept.markers] == [load]


def test_that_figures_and_picture_are_written_where_one_says(measured, qtbot, tmp_path):
    commands = measured.window.commands
    commands["export figures"].trigger()
    _choose(measured, tmp_path / "m.csv")
    qtbot.waitUntil((tmp_path / "m.csv").exists, timeout=10_000)
    with (tmp_path / "m.csv").open(newline="") as file:
        head, first, *_ = csv.reader(file)
    assert "(bytes)" in head[2]
    assert int(first[2]) > 2**20
    for name, begins in (("m.svg", b"<?xml"), ("m.png", b"\x89PNG")):
        commands["export picture"].trigger()
        _choose(measured, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    commands["export picture"].trigger()
    _choose(measured, tmp_path / "no" / "m.svg")
    assert measured.trouble.isVisible()


def test_that_a_name_that_is_taken_gets_a_number(measured, tmp_path):
    kept = tmp_path / "m.jsonl"
    kept.write_text("mine\n")
    measured.window.commands["record"].trigger()
    _choose(measured, kept)
    measured.watch.stop_recording()
    assert kept.read_text() == "mine\n"
    assert (tmp_path / "m 2.jsonl").read_text().startswith('{"schema"')
    assert measured.note.line.text() == "Recording to m 2.jsonl"
