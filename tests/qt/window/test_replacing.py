"""A plan that takes the place of what runs now."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


def test_that_its_memory_counts_as_free_until_one_goes_back(app, program, qtbot):
    app.model.choose_device(None)
    row = None

    def found() -> bool:
        nonlocal row
        state = app.holds.view_model.state
        rows = state.rows if state else ()
        row = next((r for r in rows if r.pid == program.pid and r.size_bytes), None)
        return row is not None

    qtbot.waitUntil(found, timeout=20_000)
    # Other programs come and go meanwhile: from here on one sample counts.
    app.watch.stop()
    app.model.set_here(app.watch.machine())
    beside = app.model.state.here.slots[0].foreign.likely_bytes
    app.holds.instead_wanted.emit(row)
    assert app.replacing.notice.isVisible()
    assert f"({program.pid})" in app.replacing.notice.line.text()
    instead = app.model.state.here.slots[0].foreign.likely_bytes
    # The row is of an earlier sample.
    assert abs(beside - instead - row.size_bytes) < 8 * MIB
    assert row.size_bytes > 96 * MIB
    app.replacing.end()
    assert not app.replacing.notice.isVisible()
    assert app.model.state.here.slots[0].foreign.likely_bytes == beside
