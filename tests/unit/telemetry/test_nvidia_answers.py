"""Answers of NVIDIA's driver that are odd and still mean something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.telemetry.adapters.nvidia import NvidiaAdapter
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.telemetry.snapshot import DeviceReading
    from tests.helpers.nvml import Gpus

MIB, GIB = 2**20, 2**30


@pytest.fixture
def adapter(gpus: Gpus, tmp_path: Path) -> Iterator[NvidiaAdapter]:
    made = NvidiaAdapter(tmp_path)
    yield made
    made.close()


def held(card: DeviceReading) -> list[tuple[int, int | Missing]]:
    assert not isinstance(card.processes, Missing)
    return [(p.pid, p.used_bytes) for p in card.processes]


@pytest.mark.parametrize("code", [2, 25])
def test_that_a_driver_that_refuses_the_form_of_a_question_is_asked_in_the_older_one(
    gpus: Gpus, adapter: NvidiaAdapter, code: int
):
    # 2 invalid argument, 25 NVML_ERROR_ARGUMENT_VERSION_MISMATCH (nvml.h)
    gpus.rtx4090(used=1000 * MIB)
    gpus.set(v2=f"err:{code}")
    (card,) = adapter.sample()
    assert card.used_bytes == 1370 * MIB  # the reserve of 370 MiB is in it
    assert isinstance(card.reserved_bytes, Missing)


def test_that_a_process_that_one_list_does_not_tell_of_has_the_other_s_figure(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.rtx4090(used=9 * GIB, compute="7:ns", graphics=f"7:{3 * GIB},8:{GIB}", mps=f"8:{2 * GIB}")
    (card,) = adapter.sample()
    assert held(card) == [(7, 3 * GIB), (8, 2 * GIB)]


def test_that_a_process_named_twice_in_one_list_counts_once(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090(used=9 * GIB, compute=f"7:{3 * GIB},7:{2 * GIB}")
    (card,) = adapter.sample()
    assert held(card) == [(7, 3 * GIB)]


def test_that_two_slices_of_one_size_keep_their_own_processes(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.card(0, name="NVIDIA A30", total=24 * GIB, used=0, mig=1)
    gpus.card(0, compute=f"900:{GIB}:3,901:{2 * GIB}:4")
    for index, instance in ((0, 3), (1, 4)):
        gpus.card(0, **{f"mig{index}.total": 6 * GIB, f"mig{index}.used": 3 * GIB})
        gpus.card(0, **{f"mig{index}.gi": instance, f"mig{index}.compute": "ns"})
        gpus.card(0, **{f"mig{index}.graphics": "ns", f"mig{index}.mps": "ns"})
    first, second = adapter.sample()
    assert first.uuid != second.uuid
    assert (held(first), held(second)) == ([(900, GIB)], [(901, 2 * GIB)])


def test_that_figures_rounded_apart_are_no_contradiction(gpus: Gpus, adapter: NvidiaAdapter):
    # RTX PRO 6000: 65720 + 31531 + 637 are 97888 of 97887 MiB
    free = (97887 - 637) * MIB + MIB
    gpus.rtx4090(total=97887 * MIB, reserved=637 * MIB, used=0, free=free)
    (card,) = adapter.sample()
    assert (card.used_bytes, card.free_bytes) == (0, free)
    assert card.note == ""


def test_that_a_contradiction_is_shown_with_a_mark_and_not_mended(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.rtx4090(used=0, free=24400 * MIB)
    (card,) = adapter.sample()
    assert (card.total_bytes, card.free_bytes) == (24564 * MIB, 24400 * MIB)
    assert card.reserved_bytes == 370 * MIB
    assert card.used_bytes == Missing("the driver's figures contradict each other")
    assert card.note == "the driver's figures contradict each other"


@pytest.mark.parametrize(
    ("stated", "address"),
    [
        ("00000000:61:00.0", "0000:61:00.0"),
        ("0000BA21:00:00.0", "ba21:00:00.0"),  # Azure
        ("00010000:E1:00.0", "10000:e1:00.0"),  # behind Intel's VMD
        ("nowhere", ""),
        ("x:00:00.0", ""),
    ],
)
def test_that_a_place_on_the_bus_is_written_as_in_sysfs(
    gpus: Gpus, adapter: NvidiaAdapter, stated: str, address: str
):
    gpus.rtx4090(pci=stated)
    (card,) = adapter.sample()
    assert card.pci_address == address


def test_that_compute_instances_of_one_memory_are_one_device(gpus: Gpus, adapter: NvidiaAdapter):
    # Two 1c.2g.10gb in one GPU instance: each handle tells the same 9856 MiB
    gpus.card(0, name="NVIDIA A100-SXM4-40GB", total="err:4", used="err:4", mig=1)
    for index, instance, pid in ((0, 3, 900), (1, 3, 901), (2, 5, 902)):
        gpus.card(0, **{f"mig{index}.total": 9856 * MIB, f"mig{index}.used": 4 * GIB})
        gpus.card(
            0, **{f"mig{index}.gi": instance, f"mig{index}.compute": f"{pid}:{GIB}:{instance}"}
        )
    first, second = adapter.sample()
    assert (first.total_bytes, second.total_bytes) == (9856 * MIB, 9856 * MIB)
    assert held(first) == [(900, GIB), (901, GIB)]
    assert held(second) == [(902, GIB)]
    assert (first.note, second.note) == ("2 compute instances share its memory.", "")
