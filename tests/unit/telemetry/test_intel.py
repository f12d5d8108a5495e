"""Intel GPUs: answers of the kernel by its published layout, and a made sysfs and /proc."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from engine.devices.here import this_machine
from engine.telemetry.adapters.intel import IntelAdapter
from engine.telemetry.adapters.intel_regions import Region, i915_regions, xe_regions
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    ProcessReading,
    Quality,
    TelemetrySnapshot,
)
from tests.helpers import drm_tree as tree

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2**30
MIB = 2**20
B580 = 12809404416


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def b580(root: Path, **more: str) -> Path:
    return tree.card(root, vendor="0x8086", device="0xe20b", driver="xe", **more)


def read(root: Path, *regions: Region) -> DeviceReading:
    (only,) = IntelAdapter(root, lambda: 0.0, lambda _card, _root: regions).sample()
    return only


def packed(header: bytes, *regions: tuple[int, int, int]) -> bytes:
    """Regions of 88 bytes each: class, total, and the second size."""
    rows = (struct.pack("<HHIQQ64x", kind, 0, 4096, total, size) for kind, total, size in regions)
    return header + b"".join(rows)


def test_that_xe_states_what_is_used():
    answer = packed(struct.pack("<II", 2, 0), (0, 64 * GIB, 5 * GIB), (1, B580, 3 * GIB))
    assert xe_regions(answer) == (Region(False, 64 * GIB, 5 * GIB), Region(True, B580, 3 * GIB))


def test_that_i915_states_what_is_unallocated():
    answer = packed(struct.pack("<IIII", 1, 0, 0, 0), (1, 8 * GIB, 6 * GIB))
    assert i915_regions(answer) == (Region(True, 8 * GIB, 2 * GIB),)


@pytest.mark.parametrize("read_regions", [xe_regions, i915_regions])
def test_that_a_short_answer_with_a_large_count_is_read_as_far_as_it_goes(read_regions):
    assert read_regions(b"\xff\xff\xff\xff" + bytes(40)) == ()
    assert read_regions(b"\x01") == ()


def test_that_nothing_used_beside_processes_is_a_false_zero_and_says_what_is_needed(
    tmp_path: Path,
):
    # level-zero issue 133: a B580 whose free memory equals its total without CAP_PERFMON
    b580(tmp_path)
    tree.fdinfo(
        tmp_path, 100, 5, "llama-server",
        drm_driver="xe", drm_client_id=1, drm_resident_vram0="6291456 KiB",
        drm_resident_system="2048 KiB",
    )  # fmt: skip
    card = read(tmp_path, Region(True, B580, 0))
    assert card.total_bytes == B580
    assert isinstance(card.used_bytes, Missing)
    assert "CAP_PERFMON" in card.used_bytes.reason
    assert isinstance(card.free_bytes, Missing)
    assert card.processes == (
        ProcessReading(
            100, "llama-server", 6 * GIB, "llama-server",
            quality=Quality.RESIDENT, spill_bytes=2 * MIB,
        ),
    )  # fmt: skip


def test_that_a_driven_display_alone_makes_a_zero_false(tmp_path: Path):
    b580(tmp_path, display="DP-1")
    assert isinstance(read(tmp_path, Region(True, B580, 0)).used_bytes, Missing)


def test_that_an_idle_card_without_display_and_processes_is_truly_empty(tmp_path: Path):
    b580(tmp_path)
    assert read(tmp_path, Region(True, B580, 0)).used_bytes == 0


def test_that_the_superusers_counter_is_believed_even_where_the_answer_is_a_false_zero(
    tmp_path: Path,
):
    b580(tmp_path, display="DP-1")
    tree.write(
        tmp_path / "sys/kernel/debug/dri/0000:03:00.0/tile0/vram_mm",
        "  use_type: 1\n  use_tt: 0\n  size: 8522825728\n  usage: 32079872\nvisible_size: 8128MiB",
    )
    assert read(tmp_path, Region(True, 8522825728, 0)).used_bytes == 32079872


def test_that_graphics_without_memory_of_their_own_use_the_computers_and_are_no_place_to_plan(
    tmp_path: Path,
):
    tree.card(tmp_path, vendor="0x8086", device="0x7d55", driver="i915")
    tree.meminfo(tmp_path, total_kib=32 * 2**20, available_kib=20 * 2**20)
    reading = read(tmp_path, Region(False, 32 * GIB, 0))
    assert (reading.pool, reading.total_bytes) == (PoolKind.WINDOW, 32 * GIB)
    assert (reading.used_bytes, reading.free_bytes) == (12 * GIB, 20 * GIB)
    host = DeviceReading(
        "host", "Computer", PoolKind.HOST, 32 * GIB, 12 * GIB, 20 * GIB, 0, (), "psutil 7"
    )
    machine = this_machine(TelemetrySnapshot(0.0, 0.0, (reading, host)))
    assert [slot.uuid for slot in machine.slots] == ["host"]


def test_that_a_sleeping_card_is_not_asked(tmp_path: Path):
    b580(tmp_path, status="suspended")

    def never(*_: object) -> tuple[Region, ...]:
        raise AssertionError

    (card,) = IntelAdapter(tmp_path, lambda: 0.0, never).sample()
    assert isinstance(card.used_bytes, Missing)
    assert card.name == "Intel Arc B580"


def test_that_a_card_whose_node_cannot_be_opened_has_no_figures_and_says_why(tmp_path: Path):
    b580(tmp_path)
    (card,) = IntelAdapter(tmp_path, lambda: 0.0).sample()
    assert isinstance(card.total_bytes, Missing)


def test_that_a_size_that_the_driver_does_not_know_is_no_size(tmp_path: Path):
    # i915_drm.h: a probed size of -1 means unknown
    answer = packed(struct.pack("<IIII", 1, 0, 0, 0), (1, 2**64 - 1, 2**64 - 1))
    b580(tmp_path)
    card = read(tmp_path, *i915_regions(answer))
    assert isinstance(card.total_bytes, Missing)
    assert isinstance(card.used_bytes, Missing)


def test_that_more_in_use_than_there_is_leaves_nothing_free_and_is_marked(tmp_path: Path):
    b580(tmp_path)
    card = read(tmp_path, Region(True, 12 * GIB, 13 * GIB))
    assert card.used_bytes == 13 * GIB
    assert isinstance(card.free_bytes, Missing)
    assert card.note == "more is counted as used than there is"


def test_that_a_browser_beyond_what_is_in_use_is_marked_and_stays_so(tmp_path: Path):
    # xpumanager issue 145; xe before 6.13 states nothing as shared
    b580(tmp_path)
    for pid, mib in ((1, 7692), (2, 900), (3, 2500)):
        tree.fdinfo(
            tmp_path, pid, 5, drm_driver="xe", drm_client_id=pid, drm_resident_vram0=f"{mib} MiB"
        )
    regions = (Region(True, 16288 * MIB, 3642 * MIB),)
    adapter = IntelAdapter(tmp_path, lambda: 0.0, lambda _card, _root: regions)
    for _ in range(2):  # the second sample keeps the first one's list
        (card,) = adapter.sample()
        assert not isinstance(card.processes, Missing)
        assert {row.pid: row.quality for row in card.processes} == {
            1: Quality.OVER_COUNTS, 2: Quality.RESIDENT, 3: Quality.RESIDENT,
        }  # fmt: skip


def test_that_both_keys_of_one_region_are_one_size_and_tiles_add_up(tmp_path: Path):
    b580(tmp_path)
    tree.fdinfo(
        tmp_path, 100, 5, drm_driver="i915", drm_client_id=1, drm_total_local0="9 GiB",
        drm_memory_local0="8 GiB", drm_resident_local0="2 GiB", drm_resident_local1="1 GiB",
    )  # fmt: skip
    card = read(tmp_path, Region(True, 16 * GIB, 4 * GIB))
    assert not isinstance(card.processes, Missing)
    assert [row.used_bytes for row in card.processes] == [3 * GIB]


def test_that_more_available_than_there_is_is_never_less_than_nothing_used(tmp_path: Path):
    tree.card(tmp_path, vendor="0x8086", device="0x7d55", driver="i915")
    tree.meminfo(tmp_path, total_kib=32 * 2**20, available_kib=33 * 2**20)
    reading = read(tmp_path, Region(False, 32 * GIB, 0))
    assert (reading.used_bytes, reading.free_bytes) == (0, 32 * GIB)


def test_that_a_card_that_nobody_uses_is_left_alone_so_that_it_can_fall_asleep(tmp_path: Path):
    folder = b580(tmp_path)
    tree.write(folder / "power/control", "auto")
    clock, asked = Clock(), 0

    def regions(_card: object, _root: object) -> tuple[Region, ...]:
        nonlocal asked
        asked += 1
        return (Region(True, B580, 0),)

    adapter = IntelAdapter(tmp_path, clock, regions)
    for clock.now in (0.0, 1.0, 29.0):
        (card,) = adapter.sample()
        assert (card.used_bytes, card.age_s) == (0, clock.now)
    assert asked == 1
    clock.now = 30.0
    adapter.sample()
    assert asked == 2
    # A program on it keeps it awake anyway.
    tree.fdinfo(tmp_path, 100, 5, drm_client_id=1, drm_resident_vram0="6 GiB")
    for clock.now in (33.0, 34.0, 35.0):
        (card,) = adapter.sample()
        assert card.age_s == 0.0
    assert asked == 5


def test_that_a_card_that_never_sleeps_is_read_on_and_on(tmp_path: Path):
    b580(tmp_path)
    asked: list[object] = []

    def regions(card: object, _root: object) -> tuple[Region, ...]:
        asked.append(card)
        return (Region(True, B580, 0),)

    adapter = IntelAdapter(tmp_path, lambda: 0.0, regions)
    for _ in range(3):
        adapter.sample()
    assert len(asked) == 3
