"""RAM of a machine that isn't here: as stated, exactly, or assumed and said to be."""

from __future__ import annotations

import pytest

from engine.cancel import CancelToken
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.devices import catalogue
from engine.devices.device import DeviceKind
from engine.errors import DeviceError, PlimsollError
from engine.evidence import Basis
from engine.fit.verdict import Fit
from engine.sizing import size
from engine.units import GIB

LLAMA_70B = {
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "RTX 4090",
    "runtime": "llama.cpp",
    "weight_format": "Q4_K_M",
    "max_model_len": 8192,
}


def _sized(**more):
    plan = Desk(CancelToken()).plan(parse(LLAMA_70B | more))
    return size(plan.model, plan.deployment, plan.machine)


@pytest.mark.parametrize(
    "machine",
    [
        lambda ram: catalogue.planned("RTX 4090", 2, ram),
        lambda ram: catalogue.planned("RTX 4090 + 2 x RTX 3060 12GB", 1, ram),
        catalogue.without_gpu,
    ],
)
def test_that_stated_ram_is_taken_to_the_byte_as_a_setting(machine):
    host = machine(48 * GIB + 1).host.device
    assert host.total_bytes == 48 * GIB + 1
    assert host.allocatable.is_point
    assert host.allocatable.likely_bytes == 48 * GIB + 1
    assert host.allocatable.basis is Basis.SETTING


def test_that_ram_nobody_states_is_assumed_and_says_so():
    host = catalogue.planned("RTX 4090", 1).host.device.allocatable
    assert host.basis is Basis.ASSUMED
    assert "not stated" in host.source


@pytest.mark.parametrize("ram", [0, 64, 2**80])
def test_that_ram_which_cannot_be_is_refused(ram):
    with pytest.raises(DeviceError, match="cannot be: give that machine") as caught:
        catalogue.planned("RTX 4090", 1, ram)
    assert caught.value.field == "host_total_bytes"


def test_that_a_chip_with_shared_memory_has_no_ram_beside_it():
    assert not catalogue.takes_ram("M4 Max 64 GB")
    assert catalogue.takes_ram("2 x RTX 4090")
    with pytest.raises(DeviceError, match="shares the computer's memory"):
        catalogue.planned("M4 Max 64 GB", 1, 64 * GIB)


def test_that_layers_left_to_the_host_need_the_ram_that_is_stated():
    # Q4_K_M of 70 billion parameters is some 40 GiB: 40 of 80 layers are 20 GiB in RAM.
    much, little = (_sized(n_gpu_layers=40, mmap=False, host_total_bytes=n * GIB) for n in (64, 12))
    hosts = [s.budget.ranks[-1].slot.device for s in (much, little)]
    assert [host.kind for host in hosts] == [DeviceKind.HOST] * 2
    assert [host.total_bytes for host in hosts] == [64 * GIB, 12 * GIB]
    assert much.verdict.outcome is not Fit.DOES_NOT_FIT
    assert little.verdict.outcome is Fit.DOES_NOT_FIT


def test_that_the_verdict_says_whether_ram_is_stated_or_assumed():
    bf16 = {"weight_format": "auto"}
    assert "64.0 GiB of RAM assumed" in _sized(**bf16).verdict.detail
    stated = _sized(**bf16, host_total_bytes=64 * GIB).verdict.detail
    assert "even with the computer’s own memory" in stated
    enough = _sized(**bf16, host_total_bytes=256 * GIB).verdict.detail
    assert "keeps fewer layers on the GPU" in enough


def test_that_ram_of_this_machine_is_not_stated_but_measured():
    with pytest.raises(PlimsollError, match="RAM is measured") as caught:
        Desk(CancelToken()).plan(parse({"model": "gpt2", "host_total_bytes": 64 * GIB}))
    assert caught.value.field == "host_total_bytes"


def test_that_a_machine_of_ram_alone_can_be_planned():
    asked = parse(LLAMA_70B | {"gpu": None, "gpu_count": 0, "host_total_bytes": 128 * GIB})
    machine = Desk(CancelToken()).plan(asked).machine
    assert machine.slots == (machine.host,)
    assert not machine.is_here
    assert machine.name == "128 GiB of RAM"
