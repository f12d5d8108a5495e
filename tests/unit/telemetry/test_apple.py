"""Apple silicon from recorded answers of its commands; figures from public reports."""

from __future__ import annotations

import pytest

from engine.devices.here import this_machine
from engine.telemetry.adapters import macos
from engine.telemetry.adapters.apple import AppleAdapter, Sources, footprint, working_set
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    Quality,
    TelemetrySnapshot,
)

GIB = 2**30

VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                              300000.
Pages active:                            700000.
Pages speculative:                         4000.
Pages wired down:                        262144.
Pages purgeable:                          20000.
"Translation faults":                 123456789.
File-backed pages:                       400000.
Anonymous pages:                         900000.
Pages occupied by compressor:            131072.
"""
SYSTEM = (900_000 - 20_000 + 262_144 + 131_072) * 16384
"""App + wired + compressed, as Activity Monitor adds them (btop issue 834)."""


def accelerator(in_use: int, allocated: int = 0) -> str:
    return (
        '      "PerformanceStatistics" = {"In use system memory (driver)"=0,'
        f'"Alloc system memory"={allocated},"Device Utilization %"=67,'
        f'"In use system memory"={in_use}}}'
    )


def mac(
    memory: int,
    *,
    in_use: int = 0,
    allocated: int = 0,
    wired_mib: int = 0,
    metal: int | None = None,
    more: str = "",
    clients: str = "",
) -> DeviceReading:
    def run(command: tuple[str, ...]) -> str:
        if command == macos.VM_STAT:
            return VM_STAT
        if command == macos.SYSCTL:
            return (
                f"hw.memsize: {memory}\nmachdep.cpu.brand_string: Apple M4 Max\n"
                f"iogpu.wired_limit_mb: {wired_mib}\n{more}"
            )
        return clients if "AGXDeviceUserClient" in command else accelerator(in_use, allocated)

    sizes = {501: 3 * GIB}
    sources = Sources(run, lambda: metal, sizes.get, lambda pid: ("mlx_lm.server", str(pid)))
    (only,) = AppleAdapter(sources, lambda: 0.0).sample()
    return only


def test_that_system_memory_is_what_activity_monitor_shows_and_files_stand_apart():
    found = macos.system_memory(str(64 * GIB), VM_STAT)
    assert found is not None
    assert found.used_bytes == SYSTEM
    assert round(SYSTEM / GIB, 1) == 19.4
    assert found.cached_bytes == (400_000 + 20_000) * 16384
    assert found.available == 64 * GIB - SYSTEM


@pytest.mark.parametrize("text", ["", "Mach Virtual Memory Statistics: (page size of x bytes)"])
def test_that_an_answer_without_pages_is_no_figure(text: str):
    assert macos.system_memory(str(64 * GIB), text) is None
    assert macos.system_memory("", VM_STAT) is None


def test_that_fill_is_what_the_gpu_holds_of_what_metal_lets_it_hold():
    # btop issue 1832: GPU activity of 67 % was drawn as memory; 40 of 51 GiB are 78 %
    gpu = mac(64 * GIB, in_use=40 * GIB, metal=51 * GIB)
    assert (gpu.used_bytes, gpu.ceiling_bytes) == (40 * GIB, 51 * GIB)
    assert round(100 * 40 / 51) == 78
    assert gpu.free_bytes == 11 * GIB
    assert gpu.reserved_bytes == 13 * GIB  # what macOS keeps: used + free + reserved = total


def test_that_the_drivers_own_counter_beside_it_is_not_taken_for_what_is_in_use():
    # the recorded idle M4: 351141888 in use, 1574862848 allocated, 0 under "(driver)"
    gpu = mac(24 * GIB, in_use=351141888, allocated=1574862848, metal=16 * GIB)
    assert gpu.used_bytes == 351141888
    assert [part.used_bytes for part in gpu.parts] == [351141888, 1574862848]


def test_that_a_limit_that_the_user_raised_is_believed_before_metals():
    # lmstudio issue 651: 126976 MiB set on 128 GiB, models above 64 GB still refused
    gpu = mac(137438953472, wired_mib=126976, metal=133143986176)
    assert gpu.ceiling_bytes == 124 * GIB
    assert "124.00 GiB" in gpu.note
    assert "iogpu.wired_limit_mb" in gpu.note
    host = DeviceReading(
        "host", "Computer", PoolKind.HOST, 128 * GIB, 4 * GIB, 124 * GIB, 0, (), "psutil 7"
    )
    (slot,) = this_machine(TelemetrySnapshot(0.0, 0.0, (gpu, host))).slots
    assert slot.device.allocatable.likely_bytes == 124 * GIB
    assert slot.uuid == "apple-gpu"


def test_that_without_a_raised_limit_metals_own_figure_holds():
    gpu = mac(137438953472, wired_mib=0, metal=107374182400)
    assert gpu.ceiling_bytes == 107374182400
    assert gpu.note == ""


def test_that_without_metal_the_limit_is_missing_and_not_the_whole_memory():
    gpu = mac(16 * GIB, in_use=GIB)
    assert isinstance(gpu.ceiling_bytes, Missing)
    assert isinstance(gpu.free_bytes, Missing)
    assert gpu.used_bytes == GIB


def test_that_what_can_be_had_now_ends_where_the_computers_memory_does():
    gpu = mac(32 * GIB, in_use=GIB, metal=24 * GIB)
    assert gpu.free_bytes == 23 * GIB
    assert gpu.available_bytes == 32 * GIB - SYSTEM


def test_that_pressure_is_told_with_what_is_swapped_out():
    swap = "vm.swapusage: total = 4096.00M  used = 2560.00M  free = 1536.00M  (encrypted)"
    level = "kern.memorystatus_vm_pressure_level: {}\n"
    assert "2.50 GiB" in mac(16 * GIB, metal=GIB, more=level.format(4) + swap).note
    assert mac(16 * GIB, metal=GIB, more=level.format(1) + swap).note == ""


def test_that_a_process_has_its_footprint_and_one_of_another_user_has_none():
    listed = (
        '    "IOUserClientCreator" = "pid 501, python3.12"\n'
        '    "IOUserClientCreator" = "pid 88, WindowServer"\n'
    )
    gpu = mac(16 * GIB, metal=GIB, clients=listed)
    assert not isinstance(gpu.processes, Missing)
    held = {p.pid: (p.name, p.used_bytes, p.quality) for p in gpu.processes}
    assert held[501] == ("python3.12", 3 * GIB, Quality.RESIDENT)
    assert isinstance(held[88][1], Missing)
    assert held[88][2] is Quality.NOT_REPORTED


def test_that_off_a_mac_nothing_is_found_and_nothing_fails():
    silent = Sources(lambda _: "", lambda: None, lambda _: None, lambda _: ())
    assert AppleAdapter(silent, lambda: 0.0).sample() == ()
    assert working_set() is None or working_set() > 0
    assert footprint(1) is None or footprint(1) >= 0


def test_that_a_mac_with_another_maker_s_processor_has_no_such_gpu():
    def run(command: tuple[str, ...]) -> str:
        if command == macos.VM_STAT:
            return VM_STAT
        brand = "machdep.cpu.brand_string: Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz"
        return f"hw.memsize: {64 * GIB}\n{brand}" if command == macos.SYSCTL else ""

    sources = Sources(run, lambda: 4 * GIB, lambda _: None, lambda _: ())
    assert AppleAdapter(sources).sample() == ()


def test_that_swapped_out_is_read_with_a_comma_too():
    more = "kern.memorystatus_vm_pressure_level: 2\nvm.swapusage: total = 4096,00M  used = 1536,00M"
    reading = mac(64 * GIB, in_use=GIB, metal=48 * GIB, more=more)
    assert "1.50 GiB are swapped out" in reading.note


def test_that_a_limit_above_the_memory_ends_with_it():
    reading = mac(64 * GIB, in_use=GIB, wired_mib=90_000, metal=48 * GIB)
    assert reading.ceiling_bytes == 64 * GIB


def test_that_more_in_use_than_metal_recommends_leaves_nothing_and_still_adds_up():
    reading = mac(64 * GIB, in_use=50 * GIB, metal=48 * GIB)
    assert (reading.used_bytes, reading.free_bytes) == (50 * GIB, 0)
    assert reading.reserved_bytes == 14 * GIB


@pytest.mark.parametrize("memory", [0, 2**64 - 1])
def test_that_a_size_that_is_none_makes_no_device(memory: int):
    def run(command: tuple[str, ...]) -> str:
        return VM_STAT if command == macos.VM_STAT else f"hw.memsize: {memory}"

    sources = Sources(run, lambda: 4 * GIB, lambda _: None, lambda _: ())
    assert AppleAdapter(sources).sample() == ()


def test_that_metals_figure_ends_with_the_memory_too():
    # A guest of a virtual machine has less than what its host's Metal recommends.
    assert mac(8 * GIB, in_use=GIB, metal=48 * GIB).ceiling_bytes == 8 * GIB


def test_that_more_in_use_than_there_is_leaves_nothing_free():
    reading = mac(8 * GIB, in_use=9 * GIB, metal=6 * GIB)
    assert reading.used_bytes == 9 * GIB
    assert isinstance(reading.free_bytes, Missing)
    assert isinstance(reading.reserved_bytes, Missing)


def test_that_a_figure_that_is_no_digit_of_ours_is_none():
    more = "iogpu.wired_limit_mb: ²\nkern.memorystatus_vm_pressure_level: ²"
    reading = mac(64 * GIB, in_use=GIB, metal=48 * GIB, more=more)
    assert reading.ceiling_bytes == 48 * GIB
