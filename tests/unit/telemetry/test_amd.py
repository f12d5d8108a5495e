"""AMD GPUs from a made sysfs and /proc; figures from public reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.devices.device import DeviceKind, Vendor
from engine.devices.here import this_machine
from engine.telemetry.adapters.amd import AmdAdapter
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    Quality,
    TelemetrySnapshot,
)
from tests.helpers import drm_tree as tree

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2**30
MIB = 2**20
APU = {"device": "0x150e", "address": "0000:c5:00.0"}


def read(root: Path) -> tuple[DeviceReading, ...]:
    return AmdAdapter(root, clock=lambda: 0.0).sample()


def strix(root: Path, **files: int) -> None:
    """A Radeon 890M as homelab-monitor PR 237 reports it: 148 of 512 MiB, 18 of 126976 MiB."""
    figures = {
        "mem_info_vram_total": 512 * MIB,
        "mem_info_vram_used": 148 * MIB,
        "mem_info_gtt_total": 126976 * MIB,
        "mem_info_gtt_used": 18 * MIB,
    }
    tree.card(root, **APU, **(figures | files))
    tree.meminfo(root, total_kib=125 * 2**20, available_kib=120 * 2**20)


def test_that_fill_is_vram_used_over_total_and_never_the_busy_percentage(tmp_path: Path):
    # elementary/monitor issue 369: a card of 8 GB shown at 1 % while it was 79.5 % full
    tree.card(
        tmp_path,
        mem_busy_percent=1,
        mem_info_vram_used=6812925952,
        mem_info_vram_total=8573157376,
        mem_info_gtt_total=4294967296,
        mem_info_gtt_used=25165824,
    )
    (card,) = read(tmp_path)
    assert (card.used_bytes, card.total_bytes) == (6812925952, 8573157376)
    assert card.free_bytes == 8573157376 - 6812925952
    assert round(100 * 6812925952 / 8573157376, 1) == 79.5
    assert card.pool is PoolKind.VRAM
    assert card.spill_bytes == 25165824


def test_that_gtt_of_a_card_is_spill_and_never_adds_to_its_ceiling(tmp_path: Path):
    # gpu-utils issue 118: an RX 570 whose GTT total equals its VRAM total
    tree.card(
        tmp_path,
        mem_info_vram_total=4294967296,
        mem_info_vram_used=0,
        mem_info_gtt_total=4294967296,
        mem_info_gtt_used=1048576,
    )
    (card,) = read(tmp_path)
    assert card.total_bytes == card.ceiling_bytes == 4294967296


def test_that_an_apu_is_measured_against_what_it_can_have_and_not_against_its_carve_out(
    tmp_path: Path,
):
    strix(tmp_path)
    (apu,) = read(tmp_path)
    # 0.5 GiB carved out, and of 124 GiB of GTT the 120 GiB that are available and its own 18 MiB
    ceiling = 512 * MIB + 120 * GIB + 18 * MIB
    assert apu.pool is PoolKind.CARVE_OUT
    assert (apu.ceiling_bytes, apu.total_bytes) == (ceiling, ceiling)
    assert round(ceiling / GIB, 1) == 120.5
    assert apu.used_bytes == 166 * MIB
    assert apu.free_bytes == ceiling - 166 * MIB
    assert [(part.total_bytes, part.used_bytes) for part in apu.parts] == [
        (512 * MIB, 148 * MIB),
        (126976 * MIB, 18 * MIB),
    ]


def test_that_gtt_is_a_limit_and_no_memory_beside_the_computers_own(tmp_path: Path):
    # ROCm issue 6004: 8 GiB carved out and 124 GiB of GTT on a machine of 128 GiB
    tree.card(
        tmp_path,
        **APU | {"device": "0x1586"},
        mem_info_vram_total=8589934592,
        mem_info_vram_used=0,
        mem_info_gtt_total=133143986176,
        mem_info_gtt_used=0,
    )
    tree.meminfo(tmp_path, total_kib=119 * 2**20, available_kib=110 * 2**20)
    (apu,) = read(tmp_path)
    assert apu.total_bytes == (8 + 110) * GIB  # not the 132 GiB that were printed


def test_that_a_large_carve_out_is_an_apu_too(tmp_path: Path):
    # ollama issue 16462: 96 GiB carved out, 31 GiB left to the system
    tree.card(
        tmp_path,
        **APU | {"device": "0x1586"},
        mem_info_vram_total=96 * GIB,
        mem_info_vram_used=2 * GIB,
        mem_info_gtt_total=16 * GIB,
        mem_info_gtt_used=GIB,
    )
    tree.meminfo(tmp_path, total_kib=31 * 2**20, available_kib=27 * 2**20)
    (apu,) = read(tmp_path)
    assert apu.total_bytes == (96 + 16) * GIB
    assert apu.used_bytes == 3 * GIB


def test_that_a_model_in_gtt_counts_for_its_process(tmp_path: Path):
    # nvtop PR 492: 24 GB in GTT, shown as 5 MiB
    strix(tmp_path, mem_info_gtt_used=25258000 * 1024, mem_info_vram_used=5348 * 1024)
    tree.fdinfo(
        tmp_path,
        4211,
        7,
        "llama-server",
        drm_pdev=APU["address"],
        drm_client_id=9,
        drm_memory_vram="5348 KiB",
        drm_memory_gtt="25258000 KiB",
        drm_memory_cpu="0 KiB",
    )
    (apu,) = read(tmp_path)
    assert not isinstance(apu.processes, Missing)
    (process,) = apu.processes
    assert process.used_bytes == (25258000 + 5348) * 1024
    assert round((25258000 + 5348) / 2**20, 2) == 24.09
    assert process.system_bytes == 25258000 * 1024
    assert apu.parts[1].name == "system memory used by the GPU"
    assert process.used_bytes == apu.used_bytes


def test_that_a_client_open_twice_and_inherited_counts_once_for_the_first_process(tmp_path: Path):
    # nvtop issue 271: an assertion failed on the second sight
    tree.card(tmp_path, mem_info_vram_total=8 * GIB, mem_info_vram_used=2 * GIB)
    for pid, fd in ((100, 5), (100, 9), (200, 5)):
        tree.fdinfo(tmp_path, pid, fd, drm_client_id=42, drm_memory_vram="1048576 KiB")
    (card,) = read(tmp_path)
    assert not isinstance(card.processes, Missing)
    assert [(p.pid, p.used_bytes) for p in card.processes] == [(100, GIB)]


def test_that_resident_is_taken_before_the_older_key_and_shared_is_marked(tmp_path: Path):
    tree.card(tmp_path, mem_info_vram_total=8 * GIB, mem_info_vram_used=2 * GIB)
    tree.fdinfo(
        tmp_path,
        100,
        5,
        drm_client_id=1,
        drm_memory_vram="3 MiB",
        drm_resident_vram="2 MiB",
        drm_total_vram="9 MiB",
        drm_resident_gtt="4096",
        drm_shared_vram="1 MiB",
    )
    (card,) = read(tmp_path)
    assert not isinstance(card.processes, Missing)
    (process,) = card.processes
    assert process.used_bytes == 2 * MIB
    assert process.spill_bytes == 4096  # no unit means bytes
    assert process.quality is Quality.OVER_COUNTS


def test_that_rocm_memory_comes_from_the_kernels_own_list_and_counts_once(tmp_path: Path):
    tree.card(tmp_path, mem_info_vram_total=16 * GIB, mem_info_vram_used=12 * GIB)
    node = tmp_path / "sys/class/kfd/kfd/topology/nodes/1"
    tree.write(node / "gpu_id", 51100)
    tree.write(node / "properties", "cpu_cores_count 0\nsimd_count 192\nlocation_id 768\ndomain 0")
    tree.write(tmp_path / "sys/class/kfd/kfd/proc/77/vram_51100", 10 * GIB)
    tree.fdinfo(tmp_path, 77, 5, "python3", drm_client_id=1, drm_memory_vram="1 MiB")
    (card,) = read(tmp_path)
    assert not isinstance(card.processes, Missing)
    assert [(p.pid, p.name, p.used_bytes) for p in card.processes] == [(77, "python3", 10 * GIB)]
    assert card.pool is PoolKind.VRAM  # location 768 is bus 3: a GPU without CPU cores


def test_that_a_node_with_cores_and_shaders_is_an_apu(tmp_path: Path):
    tree.card(
        tmp_path,
        mem_info_vram_total=2 * GIB,
        mem_info_vram_used=0,
        mem_info_gtt_total=6 * GIB,
        mem_info_gtt_used=0,
    )
    tree.meminfo(tmp_path, total_kib=14 * 2**20, available_kib=12 * 2**20)
    node = tmp_path / "sys/class/kfd/kfd/topology/nodes/0"
    tree.write(node / "properties", "cpu_cores_count 8\nsimd_count 12\nlocation_id 768\ndomain 0")
    (apu,) = read(tmp_path)
    assert apu.pool is PoolKind.CARVE_OUT
    assert apu.total_bytes == 8 * GIB


def test_that_two_cards_of_one_name_stay_two_and_the_card_is_planned_before_the_processor(
    tmp_path: Path,
):
    # llmfit issue 271: the processor's graphics counted as a second 7900 XTX of 24 GiB
    tree.card(
        tmp_path,
        0,
        address="0000:11:00.0",
        device="0x164e",
        product_name="Radeon RX 7900 XTX",
        mem_info_vram_total=536870912,
        mem_info_vram_used=0,
        mem_info_gtt_total=16 * GIB,
        mem_info_gtt_used=0,
    )
    tree.card(
        tmp_path,
        1,
        product_name="Radeon RX 7900 XTX",
        mem_info_vram_total=25753026560,
        mem_info_vram_used=0,
        mem_info_gtt_total=16 * GIB,
        mem_info_gtt_used=0,
    )
    tree.meminfo(tmp_path, total_kib=32 * 2**20, available_kib=30 * 2**20)
    readings = read(tmp_path)
    assert [r.uuid for r in readings] == ["pci-0000:03:00.0", "pci-0000:11:00.0"]
    assert [r.pool for r in readings] == [PoolKind.VRAM, PoolKind.CARVE_OUT]
    host = replace(readings[0], uuid="host", name="Computer", pool=PoolKind.HOST)
    machine = this_machine(TelemetrySnapshot(0.0, 0.0, (readings[1], readings[0], host)))
    first, second = (slot.device for slot in machine.slots)
    assert (first.vendor, first.kind, first.total_bytes) == (
        Vendor.AMD,
        DeviceKind.DISCRETE,
        25753026560,
    )
    assert second.kind is DeviceKind.UNIFIED


def test_that_a_sleeping_card_is_listed_and_not_asked(tmp_path: Path):
    folder = tree.card(tmp_path, status="suspended", mem_info_vram_total=8 * GIB)
    (folder / "mem_info_vram_used").mkdir()  # reading it would fail
    (card,) = read(tmp_path)
    assert card.total_bytes == Missing("asleep, and not woken to be measured")
    assert card.uuid == "pci-0000:03:00.0"


def test_that_a_card_without_its_driver_says_so_and_is_never_zero(tmp_path: Path):
    tree.card(tmp_path, driver="vfio-pci")
    (card,) = read(tmp_path)
    assert isinstance(card.total_bytes, Missing)
    assert isinstance(card.used_bytes, Missing)


def test_that_a_name_comes_from_the_list_of_names_by_number_and_revision(tmp_path: Path):
    tree.card(tmp_path, mem_info_vram_total=GIB, mem_info_vram_used=0, revision="0xc8")
    tree.write(
        tmp_path / "usr/share/libdrm/amdgpu.ids",
        "1.0.0\n744C,\tC0,\tAMD Radeon RX 7900\n744C,\tC8,\tAMD Radeon RX 7900 XTX",
    )
    (card,) = read(tmp_path)
    assert card.name == "AMD Radeon RX 7900 XTX"


def test_that_garbage_in_every_file_is_no_exception(tmp_path: Path):
    tree.card(tmp_path, mem_info_vram_total="9" * 400, mem_info_vram_used="-1")
    tree.fdinfo(tmp_path, 5, 3, drm_client_id="x", drm_memory_vram="many KiB", drm_memory_gtt="")
    tree.write(tmp_path / "sys/class/kfd/kfd/topology/nodes/0/properties", "location_id ?\n\0")
    (card,) = read(tmp_path)
    assert isinstance(card.total_bytes, Missing)


def old_fdinfo(root: Path, pid: int, fd: int, vram_kib: int, pasid: int) -> None:
    """As amdgpu wrote it before the keys were agreed on (kernel 5.14)."""
    tree.fdinfo(root, pid, fd)
    tree.write(
        root / f"proc/{pid}/fdinfo/{fd}",
        f"pos:\t0\npdev:\t0000:03:00.0\npasid:\t{pasid}\nvram mem:\t{vram_kib} kB\n"
        "gtt mem:\t512 kB\ncpu mem:\t0 kB",
    )


def vram(root: Path, total: int = 24 * GIB, used: int = 12 * GIB, **more: str | int) -> Path:
    return tree.card(root, mem_info_vram_total=total, mem_info_vram_used=used, **more)


def held(reading: DeviceReading) -> dict[int, int | Missing]:
    assert not isinstance(reading.processes, Missing)
    return {row.pid: row.used_bytes for row in reading.processes}


def test_that_keys_of_before_the_standard_are_read_in_their_unit(tmp_path: Path):
    vram(tmp_path)
    old_fdinfo(tmp_path, 100, 5, vram_kib=4 * 2**20, pasid=1)
    old_fdinfo(tmp_path, 100, 6, vram_kib=4 * 2**20, pasid=1)
    old_fdinfo(tmp_path, 200, 5, vram_kib=2**20, pasid=2)
    (card,) = read(tmp_path)
    assert held(card) == {100: 4 * GIB, 200: GIB}


def test_that_clients_without_a_number_are_each_counted(tmp_path: Path):
    vram(tmp_path)
    for pid, gib in ((100, 4), (200, 2)):
        tree.fdinfo(tmp_path, pid, 5, drm_memory_vram=f"{gib * 1024} MiB")
    (card,) = read(tmp_path)
    assert held(card) == {100: 4 * GIB, 200: 2 * GIB}


def test_that_clients_of_one_number_on_two_cards_are_two(tmp_path: Path):
    vram(tmp_path)
    tree.card(
        tmp_path, 1, address="0000:43:00.0", mem_info_vram_total=24 * GIB,
        mem_info_vram_used=12 * GIB,
    )  # fmt: skip
    tree.fdinfo(tmp_path, 100, 5, drm_client_id=7, drm_memory_vram="1 GiB")
    tree.fdinfo(tmp_path, 100, 6, drm_pdev="0000:43:00.0", drm_client_id=7, drm_memory_vram="2 GiB")
    first, second = read(tmp_path)
    assert (held(first), held(second)) == ({100: GIB}, {100: 2 * GIB})


def test_that_a_unit_that_nobody_knows_is_no_size(tmp_path: Path):
    vram(tmp_path)
    tree.fdinfo(tmp_path, 100, 5, drm_client_id=1, drm_memory_vram="4096 pages")
    (card,) = read(tmp_path)
    assert held(card) == {100: 0}


def test_that_a_process_beyond_what_is_in_use_is_marked_and_the_others_are_not(tmp_path: Path):
    # xpumanager issue 145: 7692 MiB for a browser, 3642 MiB in use
    vram(tmp_path, total=16288 * MIB, used=3642 * MIB)
    for pid, mib in ((1, 7692), (2, 900), (3, 2500)):
        tree.fdinfo(tmp_path, pid, 5, drm_client_id=pid, drm_memory_vram=f"{mib} MiB")
    (card,) = read(tmp_path)
    assert not isinstance(card.processes, Missing)
    assert {row.pid: row.quality for row in card.processes} == {
        1: Quality.OVER_COUNTS, 2: Quality.RESIDENT, 3: Quality.RESIDENT,
    }  # fmt: skip


def test_that_processes_beyond_what_is_in_use_together_are_all_marked(tmp_path: Path):
    vram(tmp_path, used=3642 * MIB)
    for pid in (1, 2):
        tree.fdinfo(tmp_path, pid, 5, drm_client_id=pid, drm_memory_vram="2500 MiB")
    (card,) = read(tmp_path)
    assert not isinstance(card.processes, Missing)
    assert {row.quality for row in card.processes} == {Quality.OVER_COUNTS}


def test_that_a_total_of_zero_is_no_total(tmp_path: Path):
    vram(tmp_path, total=0, used=0)
    (card,) = read(tmp_path)
    assert isinstance(card.total_bytes, Missing)
    assert card.note == "the driver states a total of 0"


def test_that_a_number_for_unknown_is_no_size(tmp_path: Path):
    vram(tmp_path, used=2**64 - 1)
    (card,) = read(tmp_path)
    assert isinstance(card.used_bytes, Missing)


def test_that_more_in_use_than_there_is_is_shown_with_a_mark_and_nothing_is_free(tmp_path: Path):
    vram(tmp_path, total=8 * GIB, used=9 * GIB)
    (card,) = read(tmp_path)
    assert (card.total_bytes, card.used_bytes) == (8 * GIB, 9 * GIB)
    assert isinstance(card.free_bytes, Missing)
    assert card.note == "more is counted as used than there is"


def test_that_more_mapped_than_the_limit_leaves_the_rest_of_the_carve_out_free(tmp_path: Path):
    strix(tmp_path, mem_info_gtt_total=2 * GIB, mem_info_gtt_used=3 * GIB)
    (card,) = read(tmp_path)
    assert card.used_bytes == 148 * MIB + 3 * GIB
    assert card.free_bytes == (512 - 148) * MIB


def test_that_a_card_in_a_computer_of_much_memory_is_no_apu(tmp_path: Path):
    # GTT is half of the memory: eight times the card's own in a server of 512 GB
    vram(tmp_path, total=16 * GIB, used=GIB, device="0x66a1", mem_info_gtt_total=252 * GIB)
    vendor = {"mem_info_vram_vendor": "samsung"}
    tree.card(
        tmp_path, 1, address="0000:43:00.0", device="0x699f", mem_info_vram_total=2 * GIB,
        mem_info_vram_used=0, mem_info_gtt_total=16 * GIB, **vendor,
    )  # fmt: skip
    assert [card.pool for card in read(tmp_path)] == [PoolKind.VRAM, PoolKind.VRAM]


def test_that_rocm_memory_that_an_apu_keeps_in_gtt_counts_once(tmp_path: Path):
    strix(tmp_path, mem_info_gtt_used=21 * GIB)
    node = tmp_path / "sys/class/kfd/kfd/topology/nodes/1"
    tree.write(node / "gpu_id", 777)
    tree.write(node / "properties", f"simd_count 32\nlocation_id {0xC500}\ndomain 0")
    tree.write(tmp_path / "sys/class/kfd/kfd/proc/100/vram_777", 20 * GIB)
    tree.fdinfo(
        tmp_path, 100, 5, drm_pdev="0000:c5:00.0", drm_client_id=1,
        drm_memory_gtt=f"{20 * 2**20} KiB", drm_memory_vram="5348 KiB",
    )  # fmt: skip
    (card,) = read(tmp_path)
    assert held(card) == {100: 20 * GIB + 5348 * 1024}


def test_that_a_card_that_is_numbered_anew_stays_the_same_device(tmp_path: Path):
    before, after = tmp_path / "before", tmp_path / "after"
    vram(before)
    tree.card(
        after, 1, address="0000:03:00.0", mem_info_vram_total=24 * GIB, mem_info_vram_used=GIB
    )
    assert [c.uuid for c in read(before)] == [c.uuid for c in read(after)] == ["pci-0000:03:00.0"]


def test_that_what_amdgpus_counter_leaves_out_is_what_rocm_programs_hold(tmp_path: Path):
    # ROCm issue 5444: GTT did not move for 51.75 GiB of hipMalloc on a machine of 128 GiB
    strix(tmp_path, mem_info_gtt_total=100 * GIB, mem_info_gtt_used=GIB // 2)
    (before,) = read(tmp_path)
    assert before.total_bytes == 512 * MIB + 100 * GIB
    tree.meminfo(tmp_path, total_kib=125 * 2**20, available_kib=round(68.25 * 2**20))
    node = tmp_path / "sys/class/kfd/kfd/topology/nodes/1"
    tree.write(node / "gpu_id", 777)
    tree.write(node / "properties", f"simd_count 32\nlocation_id {0xC500}\ndomain 0")
    tree.write(tmp_path / "sys/class/kfd/kfd/proc/100/vram_777", round(51.75 * GIB))
    tree.write(tmp_path / "proc/100/comm", "python3")
    (after,) = read(tmp_path)
    assert after.total_bytes == before.total_bytes
    assert after.used_bytes == round(51.75 * GIB)
    assert isinstance(after.free_bytes, int)
    assert after.free_bytes == before.total_bytes - round(51.75 * GIB)
    assert held(after) == {100: round(51.75 * GIB)}
    assert not isinstance(after.processes, Missing)
    assert after.processes[0].quality is Quality.RESIDENT
    assert after.note == "amdgpu's counter leaves out 51.11 GiB that ROCm programs hold."
