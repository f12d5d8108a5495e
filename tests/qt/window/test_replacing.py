"""A plan that takes the place of what runs now."""

from __future__ import annotations

import subprocess
import sys

import pytest
from PySide6.QtWidgets import QLabel

from engine.units import MIB

HOLDER = "import sys; held = bytearray(b'x') * (96 * 2**20); print('held', flush=True); input()"


@pytest.fixture
def program():
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout.readline() == "held\n"
        yield running
        running.communicate("\n")


@pytest.fixture
def row(app, program, qtbot):
    """The row of the program; from here on one sample counts, since others come and go."""
    app.model.choose_device(None)
    found = []

    def is_found() -> bool:
        state = app.holds.view_model.state
        rows = state.rows if state else ()
        found[:] = [r for r in rows if r.pid == program.pid and r.size_bytes]
        return bool(found)

    qtbot.waitUntil(is_found, timeout=20_000)
    app.watch.stop()
    app.model.set_here(app.watch.machine())
    return found[0]


def _held(app) -> int:
    return app.model.state.here.slots[0].foreign.likely_bytes


def test_that_its_memory_counts_as_free_until_one_goes_back(app, program, row):
    beside = _held(app)
    app.holds.instead_wanted.emit(row)
    assert app.replacing.notice.isVisible()
    assert f"({program.pid})" in app.replacing.notice.line.text()
    # The row is of an earlier sample.
    assert abs(beside - _held(app) - row.size_bytes) < 8 * MIB
    assert row.size_bytes > 96 * MIB
    app.replacing.end()
    assert not app.replacing.notice.isVisible()
    assert _held(app) == beside


def test_that_measuring_again_keeps_to_it_and_the_unit_changes_what_is_said(app, row):
    beside = _held(app)
    app.holds.instead_wanted.emit(row)
    app.window.commands["measure"].trigger()
    assert app.replacing.notice.isVisible()
    assert beside - _held(app) > 90 * MIB
    said = [label.text() for label in app.replacing.notice.findChildren(QLabel)]
    assert any("GiB count as free" in text for text in said)
    app.window.commands["unit GB"].trigger()
    said = [label.text() for label in app.replacing.notice.findChildren(QLabel)]
    assert any("GB count as free" in text for text in said)
    assert not any("GiB" in text for text in said)


def test_that_another_machine_takes_nothing_of_it_over(app, row, qtbot, tmp_path):
    app.watch.start()
    app.watch.record(tmp_path / "run.jsonl")
    with qtbot.waitSignals([app.watch.sampled] * 2, timeout=20_000):
        pass
    app.watch.stop_recording()
    app.holds.instead_wanted.emit(row)
    app.filing.play(tmp_path / "run.jsonl")
    assert app.watch.replay is not None
    assert not app.replacing.notice.isVisible()
