"""Garbage is collected on the GUI thread, never on a worker."""

from __future__ import annotations

import gc
import threading

import pytest

from gui.kit import collector as module
from gui.kit.collector import Collector


class _Knot:
    def __init__(self, freed_on: list[int]) -> None:
        self.myself = self
        self._freed_on = freed_on

    def __del__(self) -> None:
        self._freed_on.append(threading.get_ident())


@pytest.fixture
def collector(qapp, monkeypatch):
    monkeypatch.setattr(module, "_LOOK_MS", 5)
    made = Collector()
    yield made
    made.close()
    gc.unfreeze()
    assert gc.isenabled()


def test_that_a_worker_that_makes_much_garbage_leaves_collecting_to_the_gui_thread(
    collector, qtbot
):
    freed_on: list[int] = []

    def work() -> None:
        for _ in range(module._YOUNG * 2):
            _Knot(freed_on)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert not freed_on
    qtbot.waitUntil(lambda: len(freed_on) == module._YOUNG * 2, timeout=20_000)
    assert set(freed_on) == {threading.get_ident()}
