"""This computer as its user says it is: the driver is corrected, never overwritten."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.devices.corrected import Correction, corrected, from_plain
from engine.devices.device import DeviceKind, Vendor
from engine.devices.here import this_machine
from engine.errors import DeviceError
from engine.evidence import Basis
from engine.telemetry.snapshot import PoolKind, TelemetrySnapshot
from tests.helpers import readings

MIB, GIB = 2**20, 2**30


def machine(*devices):
    return this_machine(TelemetrySnapshot(1.0, 2.0, (*devices, readings.host())))


@pytest.fixture
def here():
    """One RTX 4090: 24,564 MiB, of which the driver keeps 359."""
    return machine(readings.card())


@pytest.fixture
def bare():
    """No GPU found."""
    return machine()


def test_that_a_corrected_total_keeps_the_driver_s_reserve_and_names_what_the_driver_says(here):
    (slot,) = corrected(here, [Correction("GPU-0", total_bytes=48 * GIB)]).slots
    assert slot.device.total_bytes == 48 * GIB
    assert slot.device.allocatable.likely_bytes == 48 * GIB - 359 * MIB
    assert slot.device.allocatable.basis is Basis.SETTING
    assert slot.device.source == "your correction; NVML 580.126.09 says RTX 4090, 23.99 GiB"
    assert slot.uuid == "GPU-0"
    assert slot.foreign == here.slots[0].foreign


def test_that_what_programs_get_is_taken_as_it_was_typed(here):
    (slot,) = corrected(here, [Correction("GPU-0", allocatable_bytes=20 * GIB)]).slots
    found = slot.device.allocatable
    assert (found.low_bytes, found.likely_bytes, found.high_bytes) == (20 * GIB,) * 3
    assert found.basis is Basis.SETTING
    assert slot.device.total_bytes == 24564 * MIB


def test_that_a_name_of_the_catalogue_brings_what_the_device_is(here):
    (slot,) = corrected(here, [Correction("GPU-0", name="MI300X")]).slots
    assert slot.device.name == "MI300X"
    assert slot.device.vendor is Vendor.AMD
    assert slot.device.total_bytes == 24564 * MIB
    assert slot.device.allocatable == here.slots[0].device.allocatable


def test_that_of_several_alike_only_the_one_that_was_found_is_sampled(here):
    found = corrected(here, [Correction("GPU-0", count=3)])
    assert [slot.uuid for slot in found.slots] == ["GPU-0", "", ""]
    assert [slot.foreign.likely_bytes for slot in found.slots[1:]] == [0, 0]
    assert found.slots[1].foreign.basis is Basis.ASSUMED
    assert found.is_corrected
    assert found.is_here


def test_that_a_device_that_is_not_there_leaves_the_plan_to_the_computer_s_memory(here):
    found = corrected(here, [Correction("GPU-0", count=0)])
    assert found.slots == (here.host,)


def test_that_a_missing_device_is_added_from_the_catalogue_or_by_hand(bare):
    assert bare.slots[0].device.kind is DeviceKind.HOST
    wanted = [
        Correction(name="RTX 4090"),
        Correction(name="My card", total_bytes=40 * GIB, allocatable_bytes=39 * GIB),
    ]
    first, second = corrected(bare, wanted).slots
    assert first.device.total_bytes == 24564 * MIB
    assert first.device.source.startswith("added by you; ")
    assert (second.device.name, second.device.total_bytes) == ("My card", 40 * GIB)
    assert second.device.allocatable.likely_bytes == 39 * GIB
    assert (first.uuid, second.uuid) == ("", "")


def test_that_the_computer_s_memory_can_be_corrected_where_there_is_no_gpu(bare):
    found = corrected(bare, [Correction("host", total_bytes=128 * GIB)])
    assert found.slots == (found.host,)
    assert found.host.device.total_bytes == 128 * GIB


@pytest.mark.parametrize(
    "corrections",
    [
        [],
        [Correction("GPU-0")],
        [Correction("GPU-0", name="RTX 4090", total_bytes=24564 * MIB)],
        [Correction("GPU-gone", total_bytes=48 * GIB)],
    ],
)
def test_that_what_changes_nothing_leaves_the_machine_as_it_was_found(here, corrections):
    found = corrected(here, corrections)
    assert found is here
    assert not found.is_corrected


@pytest.mark.parametrize(
    ("correction", "field", "words"),
    [
        (Correction("GPU-0", total_bytes=1), "total_bytes", "cannot be"),
        (Correction("GPU-0", allocatable_bytes=25 * GIB), "allocatable_bytes", "Programs can’t"),
        (Correction(name="My card"), "gpu", "'My card' is not in the device catalogue"),
        (Correction(name="GB10"), "count", "takes no cards beside it"),
    ],
)
def test_that_what_cannot_be_is_one_sentence_with_its_field(here, correction, field, words):
    with pytest.raises(DeviceError, match=words) as caught:
        corrected(here, [correction])
    assert caught.value.field == field


def test_that_kept_corrections_are_read_back_as_they_were():
    kept = (Correction("GPU-0", "RTX 3090", 24 * GIB, 0, 2), Correction(name="A", total_bytes=GIB))
    assert from_plain([asdict(c) for c in kept]) == kept


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["uuid", "name", "total_bytes", "allocatable_bytes", "count"]),
                inner,
            )
        ),
    )
)
def test_that_nothing_that_was_kept_can_harm(kept):
    here = machine(readings.card())
    for correction in from_plain(kept):
        with suppress(DeviceError):
            assert corrected(here, [correction]).slots


def test_that_a_machine_that_shares_its_memory_is_still_one_device():
    unified = machine(readings.card(name="NVIDIA GB10", pool=PoolKind.UNIFIED))
    with pytest.raises(DeviceError, match="takes no cards beside it"):
        corrected(unified, [Correction(name="RTX 4090")])
