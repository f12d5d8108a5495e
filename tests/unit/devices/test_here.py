"""This computer as a machine to plan for: what its drivers say wins."""

from __future__ import annotations

import json
import os
from contextlib import closing
from dataclasses import replace

import psutil
import pytest

from engine.devices import plain
from engine.devices.device import DeviceKind, Vendor
from engine.devices.here import apple, this_machine
from engine.errors import DeviceError, TelemetryError
from engine.evidence import Basis
from engine.telemetry.probe import simulated_sampler
from engine.telemetry.record import Recorder, Replay
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    ProcessReading,
    Quality,
    TelemetrySnapshot,
)

MIB, GIB = 2**20, 2**30


def card(**changes: object) -> DeviceReading:
    base = DeviceReading(
        uuid="GPU-0",
        name="NVIDIA GeForce RTX 4090",
        pool=PoolKind.VRAM,
        total_bytes=24564 * MIB,
        used_bytes=420 * MIB,
        free_bytes=(24564 - 370 - 420) * MIB,
        reserved_bytes=370 * MIB,
        processes=(ProcessReading(1820, "Xorg", 225 * MIB),),
        source="NVML 580.126.09",
        sm_count=128,
        compute_capability=8.9,
    )
    return replace(base, **changes)  # pyright: ignore[reportArgumentType]


def ram(total: int = 64 * GIB, used: int = 6 * GIB, **changes: object) -> DeviceReading:
    held = (ProcessReading(1, "init", 1 * GIB), ProcessReading(2, "browser", 4 * GIB))
    base = DeviceReading(
        uuid="host",
        name="Computer",
        pool=PoolKind.HOST,
        total_bytes=total,
        used_bytes=used,
        free_bytes=total - used,
        reserved_bytes=0,
        processes=held,
        source="psutil 7",
    )
    return replace(base, **changes)  # pyright: ignore[reportArgumentType]


def moment(*devices: DeviceReading) -> TelemetrySnapshot:
    return TelemetrySnapshot(1.0, 2.0, devices)


def test_that_a_card_keeps_its_live_total_and_its_catalogue_name():
    (slot,) = this_machine(moment(card(total_bytes=24500 * MIB), ram())).slots
    assert slot.device.name == "RTX 4090"
    assert slot.device.total_bytes == 24500 * MIB
    assert slot.uuid == "GPU-0"


def test_that_the_load_line_is_the_total_less_what_the_driver_reserves():
    (slot,) = this_machine(moment(card(), ram())).slots
    assert slot.device.allocatable.likely_bytes == (24564 - 370) * MIB
    assert slot.device.allocatable.basis is Basis.MEASURED


def test_that_the_stated_reserve_gives_what_frameworks_saw_on_the_same_card():
    # RTX PRO 6000: nvidia-smi states 637 MiB reserved, its frameworks 97,247 MiB in all
    reading = card(
        name="NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        total_bytes=97887 * MIB,
        reserved_bytes=637 * MIB,
    )
    estimate = this_machine(moment(reading, ram())).slots[0].device.allocatable
    assert estimate.low_bytes <= 97247 * MIB <= estimate.high_bytes


def test_that_what_others_hold_is_measured_and_leaves_ourselves_out():
    ours = ProcessReading(os.getpid(), "plimsoll", 100 * MIB)
    (slot,) = this_machine(moment(card(processes=(ours,)), ram())).slots
    assert slot.foreign.likely_bytes == 320 * MIB
    assert slot.foreign.basis is Basis.MEASURED


def test_that_a_driver_that_counts_its_reserve_as_used_is_not_charged_twice():
    older = card(reserved_bytes=Missing("counted as used"), used_bytes=(420 + 370) * MIB)
    (slot,) = this_machine(moment(older, ram())).slots
    assert slot.device.allocatable.basis is Basis.FITTED
    both = slot.device.allocatable.likely_bytes + slot.foreign.likely_bytes
    assert both == pytest.approx((24564 - 370) * MIB + 420 * MIB, rel=0.02)


def test_that_an_unknown_card_gets_the_range_of_all_cards():
    reading = card(
        name="NVIDIA Unheard Of", total_bytes=20000 * MIB, reserved_bytes=Missing("too old")
    )
    estimate = this_machine(moment(reading, ram())).slots[0].device.allocatable
    assert estimate.low_bytes == (20000 - 900) * MIB
    assert estimate.high_bytes == (20000 - 300) * MIB


def test_that_a_card_smaller_than_a_usual_reserve_has_nothing_and_not_less():
    reading = card(
        name="Old", total_bytes=512 * MIB, used_bytes=0, reserved_bytes=Missing("not told")
    )
    estimate = this_machine(moment(reading, ram())).slots[0].device.allocatable
    assert (estimate.low_bytes, estimate.likely_bytes) == (0, (512 - 450) * MIB)
    assert estimate.high_bytes == (512 - 300) * MIB


def test_that_unknown_use_is_assumed_and_said_to_be_unknown():
    (slot,) = this_machine(moment(card(used_bytes=Missing("hung")), ram())).slots
    assert slot.foreign.basis is Basis.ASSUMED
    assert slot.foreign.high_bytes > slot.foreign.likely_bytes > 0
    assert "hung" in slot.foreign.source


def test_that_what_processes_are_known_to_hold_is_the_least_where_nobody_tells_what_is_in_use():
    # An Arc card without CAP_PERFMON: a false zero beside a server of 6 GiB
    served = ProcessReading(100, "llama-server", 6 * GIB)
    twice = ProcessReading(101, "firefox", 7 * GIB, quality=Quality.OVER_COUNTS)
    reading = card(used_bytes=Missing("needs CAP_PERFMON"), processes=(served, twice))
    (slot,) = this_machine(moment(reading, ram())).slots
    assert slot.foreign.low_bytes == 6 * GIB
    assert slot.foreign.likely_bytes > 6 * GIB
    (slot,) = this_machine(moment(reading, ram()), instead_of=frozenset({100})).slots
    assert slot.foreign.low_bytes == 0


def test_that_a_lost_card_is_no_place_to_plan_on():
    gone = Missing("the GPU fell off the bus")
    machine = this_machine(moment(card(total_bytes=gone), card(uuid="GPU-1"), ram()))
    assert [s.uuid for s in machine.slots] == ["GPU-1"]


def test_that_without_a_gpu_the_host_is_the_one_place_to_plan_on():
    machine = this_machine(moment(ram()))
    assert machine.slots == (machine.host,)
    assert machine.name == "this computer"
    assert machine.is_here
    assert machine.host.device.vendor is Vendor.CPU


@pytest.mark.parametrize(
    ("system", "release", "platform"),
    [
        ("linux", "6.8.0-45-generic", "linux"),
        ("linux", "5.15.153.1-microsoft-standard-WSL2", "wsl"),
        ("win32", "10", "windows"),
        ("darwin", "25.0.0", "macos"),
    ],
)
def test_that_the_system_under_us_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, system: str, release: str, platform: str
):
    monkeypatch.setattr("engine.devices.here.sys.platform", system)
    name = os.uname()
    told = (name.sysname, name.nodename, release, name.version, "x86_64")
    monkeypatch.setattr("engine.devices.here.os.uname", lambda: os.uname_result(told))
    assert this_machine(moment(ram())).platform == platform


def test_that_ram_outside_any_process_is_the_kernels_and_not_to_be_had():
    host = this_machine(moment(ram(total=64 * GIB, used=6 * GIB))).host
    assert host.device.allocatable.likely_bytes == 63 * GIB  # 6 in use, 5 of them in processes
    assert host.foreign.likely_bytes == 5 * GIB


def test_that_a_model_another_run_has_mapped_is_held_by_others():
    server = ProcessReading(7, "llama-server", 1 * GIB, "llama-server -m a.gguf", 11 * GIB)
    host = this_machine(moment(ram(total=64 * GIB, used=14 * GIB, processes=(server,)))).host
    assert host.foreign.likely_bytes == 12 * GIB
    assert host.device.allocatable.likely_bytes == 62 * GIB


def test_that_a_containers_limit_counts_what_the_machine_took_outside_it_as_others():
    limited = ram(
        total=16 * GIB, used=6 * GIB, free_bytes=2 * GIB, reserved_bytes=8 * GIB, name="Container"
    )
    host = this_machine(moment(limited)).host
    assert host.device.total_bytes == 16 * GIB
    assert host.foreign.likely_bytes == 13 * GIB
    left = host.device.allocatable.likely_bytes - host.foreign.likely_bytes
    assert left == 2 * GIB


def test_that_a_part_sharing_system_memory_is_unified_and_keeps_room_for_the_system():
    total = 127_600_748 * 1024
    reading = card(
        name="NVIDIA GB10",
        pool=PoolKind.UNIFIED,
        total_bytes=total,
        used_bytes=total - 118_566_368 * 1024,
        reserved_bytes=0,
    )
    (slot,) = this_machine(moment(reading, ram(total=total))).slots
    assert slot.device.kind is DeviceKind.UNIFIED
    assert slot.device.allocatable.likely_bytes == total
    assert slot.device.allocatable.low_bytes < 118_566_368 * 1024


def test_that_metal_gives_a_share_of_memory_and_others_count_only_beyond_the_rest():
    host = this_machine(moment(ram(total=48 * GIB, used=6 * GIB))).host
    slot = apple("Apple M4 Pro", host)
    assert slot.device.name == "M4 Pro 48 GB"
    assert slot.device.allocatable.high_bytes == 38338 * MIB
    assert slot.foreign.likely_bytes == 0  # 5 GiB of other programs fit beside the GPU's share
    busy = replace(host, foreign=replace(host.foreign, likely_bytes=20 * GIB, high_bytes=20 * GIB))
    outside = 48 * GIB - slot.device.allocatable.likely_bytes
    assert apple("Apple M4 Pro", busy).foreign.likely_bytes == 20 * GIB - outside


def test_that_an_unknown_apple_chip_gets_the_general_rule_as_a_range():
    host = this_machine(moment(ram(total=40 * GIB))).host
    allocatable = apple("Apple M9", host).device.allocatable
    assert allocatable.low_bytes == 40 * GIB * 2 // 3
    assert allocatable.basis is Basis.ASSUMED


def test_that_a_moment_of_cards_alone_has_its_memory_assumed_from_them():
    host = this_machine(moment(card())).host
    # Twice what is on one card of 24 GB is less than the 64 GiB that are assumed at least.
    assert (host.device.total_bytes, host.device.allocatable.basis) == (64 * GIB, Basis.ASSUMED)


def test_that_a_moment_without_anything_to_plan_on_is_an_error():
    with pytest.raises(TelemetryError):
        this_machine(moment(card(total_bytes=Missing("lost"))))


def test_that_a_machine_elsewhere_is_called_by_its_place_and_is_of_no_known_system():
    found = this_machine(moment(card(), ram()), place="gpu-box:9400")
    assert (found.name, found.place, found.platform) == ("gpu-box:9400", "gpu-box:9400", "")


def test_that_a_card_elsewhere_is_known_by_its_model_and_not_by_its_computer_s_name():
    told = card(
        name="NVIDIA A100-SXM4-80GB @ gpu-box", machine="gpu-box", total_bytes=81920 * MIB,
        used_bytes=1000 * MIB, free_bytes=80034 * MIB, reserved_bytes=Missing("not exported"),
        sm_count=0, compute_capability=0.0,
    )  # fmt: skip
    (slot,) = this_machine(moment(told), place="gpu-box:9400").slots
    # NVIDIA's A100 whitepaper: 108 SMs, compute capability 8.0.
    found = (slot.device.name, slot.device.sm_count, slot.device.compute_capability)
    assert found == ("A100 80GB", 108, 8.0)


def test_that_a_reserve_that_stands_beside_used_and_free_is_not_taken_from_what_is_used():
    # DCGM without its field for the reserve: 24564 = 1000 + 23205 + 359 that nobody states.
    sizes = {"used_bytes": 1000 * MIB, "free_bytes": 23205 * MIB}
    told = card(reserved_bytes=Missing("not exported"), **sizes)
    (slot,) = this_machine(moment(told)).slots
    assert slot.foreign.likely_bytes == 1000 * MIB


def test_that_this_very_computer_is_read():
    machine = this_machine()
    total = machine.host.device.total_bytes
    assert 0 < total <= psutil.virtual_memory().total
    assert 0 < machine.host.device.allocatable.likely_bytes <= total
    assert machine.slots


def test_that_a_machine_becomes_a_plain_dict_that_json_can_hold():
    machine = json.loads(json.dumps(plain.to_dict(this_machine(moment(card(), ram())))))
    assert machine["devices"][0]["allocatable"] == {
        "low": (24564 - 370 - 64) * MIB,
        "likely": (24564 - 370) * MIB,
        "high": (24564 - 370) * MIB,
        "basis": "measured",
        "source": "NVML 580.126.09, total minus the reserve it states",
    }
    assert machine["host"]["kind"] == "host"


def test_that_the_place_of_a_process_can_be_taken():
    server = ProcessReading(4211, "VLLM::EngineCore", 18 * GIB)
    held = card(used_bytes=19 * GIB, processes=(server,))
    snapshot = TelemetrySnapshot(1.0, 1.0, (held, ram()))
    beside, instead = this_machine(snapshot), this_machine(snapshot, instead_of=frozenset({4211}))
    assert beside.slots[0].foreign.likely_bytes == 19 * GIB
    assert instead.slots[0].foreign.likely_bytes == 1 * GIB
    assert instead.host.foreign == beside.host.foreign


def test_that_a_process_on_the_host_gives_its_private_memory_back():
    snapshot = TelemetrySnapshot(1.0, 1.0, (ram(),))
    beside, instead = this_machine(snapshot), this_machine(snapshot, instead_of=frozenset({2}))
    assert beside.host.foreign.likely_bytes - instead.host.foreign.likely_bytes == 4 * GIB


def test_that_a_process_that_holds_nothing_is_named():
    snapshot = TelemetrySnapshot(1.0, 1.0, (card(), ram()))
    with pytest.raises(DeviceError, match="no process 99 ") as caught:
        this_machine(snapshot, instead_of=frozenset({99}))
    assert caught.value.field == "instead_of"


def test_that_a_slice_is_planned_for_as_what_it_is():
    piece = card(
        name="NVIDIA A100-SXM4-80GB MIG 2g.20gb",
        total_bytes=19968 * MIB,
        used_bytes=12 * MIB,
        free_bytes=19956 * MIB,
        reserved_bytes=0,
        processes=(),
    )
    (slot,) = this_machine(moment(piece, ram())).slots
    assert slot.device.name == "A100-SXM4-80GB MIG 2g.20gb"  # not the card that it is cut from
    assert slot.device.total_bytes == 19968 * MIB
    assert slot.device.allocatable.likely_bytes == 19968 * MIB
    assert slot.foreign.likely_bytes == 12 * MIB


def test_that_notes_on_the_computer_s_memory_make_it_no_container():
    noted = ram(note="2.00 GiB are set aside for huge pages.")
    assert this_machine(moment(noted)).host == this_machine(moment(ram())).host


def test_that_a_recording_is_of_its_own_machine_whatever_this_one_is(monkeypatch):
    monkeypatch.setattr("engine.devices.here._apple_chip", lambda: "Apple M4 Pro")
    host = DeviceReading(
        "host", "x", PoolKind.HOST, 48 * GIB, 8 * GIB, 40 * GIB, 0, (), "psutil 7.2.2"
    )
    here = TelemetrySnapshot(0.0, 0.0, (host,))
    assert this_machine(here).slots[0].device.vendor is Vendor.APPLE
    played = replace(here, devices=(replace(host, source="recording a.jsonl, psutil 7.2.2"),))
    assert this_machine(played).slots[0].device.vendor is Vendor.CPU


def test_that_a_simulated_machine_stays_one_in_its_recording(tmp_path):
    path = tmp_path / "made-up.jsonl"
    sampler = simulated_sampler()
    with closing(sampler):
        first = sampler.sample()
    with closing(Recorder(path, {})) as recorder:
        recorder.write(first)
    with closing(Replay(path)) as replay:
        played = replay.sample()
    assert this_machine(first).is_simulated
    assert this_machine(played).is_simulated
    assert not this_machine(moment(card(), ram())).is_simulated
