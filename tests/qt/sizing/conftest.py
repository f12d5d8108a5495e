"""A room with real models and a machine whose numbers are known by heart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.architecture.read import read
from engine.contract.desk import default_runtime
from engine.devices import catalogue as devices
from engine.evidence import Basis, exactly
from engine.source import catalogue
from engine.units import GIB
from gui.kit.tasks import TaskRunner
from gui.sizing.view_model import SizingViewModel


def model_named(name: str):
    entry = catalogue.find(name)
    assert entry is not None, name
    return read(catalogue.raw(entry))


@pytest.fixture(scope="session")
def llama():
    return model_named("meta-llama/Llama-3.1-8B-Instruct")


@pytest.fixture(scope="session")
def here():
    """A computer with one RTX 4090 on which others hold 0.5 GiB."""
    machine = devices.machine(devices.find("RTX 4090"))
    held = exactly(GIB // 2, Basis.MEASURED, "test")
    slots = tuple(replace(slot, foreign=held, uuid="gpu") for slot in machine.slots)
    return replace(machine, slots=slots, is_here=True)


@pytest.fixture
def runner(qapp):
    made = TaskRunner()
    yield made
    assert made.shutdown(5000)


@pytest.fixture
def room(runner, here):
    made = SizingViewModel(runner, here, default_runtime)
    yield made
    made.close()


@pytest.fixture
def loaded(qtbot, room, llama):
    room.load(llama)
    qtbot.waitUntil(lambda: room.is_settled, timeout=20_000)
    return room
