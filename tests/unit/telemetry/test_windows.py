"""Windows' counters and adapters, judged from what they answered; the door itself needs Windows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from engine.telemetry.adapters import windows
from engine.telemetry.adapters.windows_facts import Counted, Graphics, dedicated_bytes
from engine.telemetry.merge import merged
from engine.telemetry.snapshot import Missing, PoolKind, ProcessReading, Quality
from engine.telemetry.spill import SpillWatch
from tests.helpers.live_records import fault
from tests.helpers.readings import card, host, moment

if TYPE_CHECKING:
    from pathlib import Path

    from engine.telemetry.snapshot import DeviceReading

MIB, GIB = 2**20, 2**30
LUID = "luid_0x00000000_0x0000d1b2"
OTHER = "luid_0x00000000_0x0000e5f0"
RTX = Graphics(LUID, "NVIDIA GeForce RTX 4090", 24156 * MIB, 32 * GIB, vendor="NVIDIA")
NAMES = {4242: ("llama-server", "llama-server -m a.gguf"), 1400: ("dwm.exe", "")}


def named(pid: int) -> tuple[str, str]:
    return NAMES.get(pid, (f"p{pid}", ""))


def counted(
    processes: dict[str, dict[int, int]] | None = None,
    luid: str = LUID,
    **adapters: int,
) -> Counted:
    """Counters of one adapter, with instances as Windows writes them."""
    return Counted(
        {name.replace("_", " "): {f"{luid}_phys_0": size} for name, size in adapters.items()},
        {
            counter: {f"pid_{pid}_{luid}_phys_0": size for pid, size in by_pid.items()}
            for counter, by_pid in (processes or {}).items()
        },
    )


def only(seen: Counted, graphics: Graphics = RTX) -> DeviceReading:
    (reading,) = windows.readings(seen, (graphics,), named)
    return reading


def held(reading: DeviceReading) -> dict[int, ProcessReading]:
    assert not isinstance(reading.processes, Missing)
    return {process.pid: process for process in reading.processes}


def test_that_an_adapter_holds_what_is_dedicated_and_spills_what_is_shared():
    reading = only(counted(Dedicated_Usage=15 * GIB, Shared_Usage=300 * MIB))
    assert reading.pool is PoolKind.VRAM
    assert (reading.total_bytes, reading.used_bytes) == (24156 * MIB, 15 * GIB)
    assert reading.free_bytes == 24156 * MIB - 15 * GIB
    assert reading.spill_bytes == 300 * MIB
    assert reading.source == "Windows counters"


def test_that_a_process_holds_what_is_resident_and_not_what_it_was_promised(shared: Path):
    assert "Dedicated Usage 14013 MiB, Local Usage 312 MiB" in fault(shared, "B24")["input"]
    reading = only(
        counted(
            {"Dedicated Usage": {1400: 14013 * MIB}, "Local Usage": {1400: 312 * MIB}},
            Dedicated_Usage=2048 * MIB,
        )
    )
    dwm = held(reading)[1400]
    assert (dwm.name, dwm.used_bytes, dwm.quality) == ("dwm.exe", 312 * MIB, Quality.RESIDENT)
    assert dwm.committed_bytes == 14013 * MIB


def test_that_an_older_windows_tells_promises_only_and_they_are_marked():
    reading = only(counted({"Dedicated Usage": {1400: 14013 * MIB}}, Dedicated_Usage=GIB))
    assert held(reading)[1400].quality is Quality.COMMITTED
    assert isinstance(held(reading)[1400].spill_bytes, Missing)


def test_that_more_than_the_card_has_is_shown_and_marked_and_not_cut():
    reading = only(counted(Dedicated_Usage=30 * GIB))
    assert reading.used_bytes == 30 * GIB
    assert isinstance(reading.free_bytes, Missing)
    assert reading.note == "Windows counts more as used than there is."


def test_that_a_processor_s_graphics_has_its_own_part_and_the_window():
    arc = Graphics(LUID, "Intel(R) Arc(TM) 140V GPU (16GB)", 128 * MIB, 16 * GIB, vendor="Intel")
    reading = only(
        counted(
            {"Local Usage": {4242: 100 * MIB}, "Non Local Usage": {4242: 5 * GIB}},
            Dedicated_Usage=100 * MIB,
            Shared_Usage=5 * GIB,
        ),
        arc,
    )
    assert reading.pool is PoolKind.WINDOW
    assert reading.total_bytes == 16 * GIB + 128 * MIB
    assert reading.used_bytes == 5 * GIB + 100 * MIB
    assert [part.used_bytes for part in reading.parts] == [100 * MIB, 5 * GIB]
    server = held(reading)[4242]
    assert (server.used_bytes, server.system_bytes) == (5 * GIB + 100 * MIB, 5 * GIB)
    assert server.spill_bytes == 0


@pytest.mark.parametrize("name", ["AMD Radeon(TM) 8060S Graphics", "AMD Radeon(TM) Graphics"])
def test_that_a_large_carve_out_is_still_a_processor_s(name: str):
    reading = only(
        counted(Dedicated_Usage=GIB, Shared_Usage=0), Graphics(LUID, name, 96 * GIB, GIB)
    )
    assert reading.pool is PoolKind.CARVE_OUT


def test_that_a_card_of_the_same_maker_is_a_card():
    pro = Graphics(LUID, "AMD Radeon AI PRO R9700", 34208743424, 32 * GIB)
    assert only(counted(Dedicated_Usage=GIB), pro).pool is PoolKind.VRAM


def test_that_a_saturated_field_of_32_bits_is_never_a_size(shared: Path):
    assert "4293918720" in fault(shared, "B20")["input"]
    assert dedicated_bytes(34208743424, None, 4293918720) == 34208743424  # 31.9 GiB
    assert dedicated_bytes(None, None, 4293918720) == Missing("at least 4 GiB, not known")
    assert dedicated_bytes(None, None, 2147483648) == 2147483648


def test_that_recorded_sizes_that_disagree_give_the_wider_field(shared: Path):
    text = (shared / "live/samples/windows/vram_sources_disagree.txt").read_text()
    rows = [line.rsplit("|", 1) for line in text.splitlines() if not line.startswith("#")]
    told: dict[str, dict[str, int]] = {}
    for words, size in rows:
        source, name = words.split(maxsplit=1)
        told.setdefault(name, {})[source] = int(size)
    sizes = {
        name: dedicated_bytes(None, fields.get("registry"), fields.get("AdapterRAM"))
        for name, fields in told.items()
    }
    assert sizes == {
        "AMD Radeon AI PRO R9700": Missing("at least 4 GiB, not known"),
        "AMD Radeon PRO V710": 28 * GIB,
        "AMD Radeon 780M Graphics": 2 * GIB,
        "NVIDIA GeForce RTX 4070": 12 * GIB,
    }


def test_that_the_recorded_counters_are_the_ones_that_are_asked(shared: Path):
    text = (shared / "live/samples/windows/counter_commands.txt").read_text()
    for counter in windows.ADAPTER_COUNTERS:
        assert f"\\GPU Adapter Memory(*)\\{counter}" in text
    for counter in windows.PROCESS_COUNTERS:
        assert f"\\GPU Process Memory(*)\\{counter}" in text


def test_that_without_dxgi_the_adapter_is_there_and_its_size_is_missing():
    (reading,) = windows.readings(counted(Dedicated_Usage=GIB), (), named)
    assert (reading.uuid, reading.used_bytes) == (LUID, GIB)
    assert isinstance(reading.total_bytes, Missing)
    assert isinstance(reading.free_bytes, Missing)


@pytest.mark.parametrize(
    "instance", ["", "pid_x_luid_0x0_0x1", "luid_", "_Total", "pid_1_luid_0x0_0x1_eng_0"]
)
def test_that_an_instance_that_is_none_is_passed_over(instance: str):
    odd = Counted({"Dedicated Usage": {instance: GIB}}, {"Local Usage": {instance: GIB}})
    reading = only(odd)
    assert isinstance(reading.used_bytes, Missing)
    assert reading.processes == ()


def driver(**changes: object) -> DeviceReading:
    """What NVML says of a card under WDDM: totals, and processes without figures."""
    unreported = Missing("not reported by Windows (display driver model WDDM)")
    rows = (
        ProcessReading(4242, "llama-server", unreported, quality=Quality.NOT_REPORTED),
        ProcessReading(77, "game", unreported, quality=Quality.NOT_REPORTED),
    )
    return card(uuid="GPU-0", processes=rows, **changes)


def test_that_what_the_driver_keeps_to_itself_comes_from_windows(shared: Path):
    assert "PDH Local Usage pid 4242 = 6442450944" in fault(shared, "B06")["input"]
    seen = only(counted({"Local Usage": {4242: 6442450944}}, Dedicated_Usage=7 * GIB))
    one, computer = merged((driver(), seen, host()))
    assert computer.pool is PoolKind.HOST
    assert (one.uuid, one.source) == ("GPU-0", "NVML 580.126.09, Windows counters")
    assert (one.total_bytes, one.reserved_bytes) == (24564 * MIB, 359 * MIB)  # the driver's
    rows = held(one)
    assert rows[4242].used_bytes == 6 * GIB
    assert rows[77].used_bytes == Missing("not reported by Windows (display driver model WDDM)")
    assert merged((driver(), host())) == (driver(), host())


def test_that_two_equal_cards_are_told_apart_by_their_place_and_never_count_twice():
    first = Graphics(LUID, RTX.name, 24 * GIB, 0, "0000:21:00.0")
    second = Graphics(OTHER, RTX.name, 24 * GIB, 0, "0000:01:00.0")
    seen = windows.readings(
        counted({"Local Usage": {4242: GIB}}, Dedicated_Usage=GIB), (first, second), named
    )
    cards = (driver(pci_address="0000:01:00.0"), driver(pci_address="0000:21:00.0"))
    left, right = merged((*cards, *seen))
    assert isinstance(held(left)[4242].used_bytes, Missing)
    assert held(right)[4242].used_bytes == GIB
    unplaced = windows.readings(counted(), (RTX, Graphics(OTHER, RTX.name, 24 * GIB)), named)
    assert merged((*cards, *unplaced)) == cards


def spilling(non_local: float, *, name: str = "llama-server") -> DeviceReading:
    """A card of 16 GiB that is nearly full; sizes in GiB."""
    row = ProcessReading(
        4242, name, 15 * GIB, f"{name} -m a.gguf", spill_bytes=round(non_local * GIB)
    )
    return card(used_bytes=round(15.6 * GIB), processes=(row,))


def test_that_work_moved_to_system_memory_is_told_once(shared: Path):
    assert "0.1 → 1.9 GiB in 30 s" in fault(shared, "B25")["input"]
    watch = SpillWatch()
    told = [
        spill
        for second, size in enumerate((0.1, 0.1, 0.2, 1.9, 1.9, 1.9, 1.8))
        for spill in watch.take(moment(spilling(size), second=second * 10))
    ]
    (spill,) = told
    assert (spill.pid, spill.name, spill.at_s) == (4242, "llama-server", 130.0)
    assert round(spill.size_bytes / GIB, 1) == 1.8
    assert spill.words == (
        "1.8 GiB of llama-server on NVIDIA GeForce RTX 4090 run from system memory, which is slow. "
        "A shorter context, fewer requests at once or a smaller batch leaves room."
    )


def test_that_the_next_episode_is_told_again_and_other_programs_are_not():
    watch = SpillWatch()
    sizes = (0.1, 1.9, 0.1, 1.9)
    told = [watch.take(moment(spilling(size), second=at)) for at, size in enumerate(sizes)]
    assert [len(spills) for spills in told] == [0, 1, 0, 1]
    browser = SpillWatch()
    for at, size in enumerate(sizes):
        assert browser.take(moment(spilling(size, name="firefox"), second=at)) == ()


@pytest.mark.parametrize(("loads", "count"), [(True, 1), (False, 0)])
def test_that_a_device_s_shared_memory_counts_where_a_load_goes_with_it(loads: bool, count: int):
    watch = SpillWatch()
    told = []
    for second, there in ((0, 200), (20, 500), (40, 900), (50, 900)):
        used = 4 * GIB + (second * GIB // 20 if loads else 0)
        reading = card(used_bytes=used, spill_bytes=there * MIB, processes=Missing("not told"))
        told += watch.take(moment(reading, second=second))
    assert len(told) == count
    assert all(spill.size_bytes == 300 * MIB for spill in told)


@pytest.mark.skipif(sys.platform != "win32", reason="asks Windows itself")
def test_that_windows_itself_answers():
    adapter = windows.WindowsAdapter()
    for reading in adapter.sample():
        assert reading.source == "Windows counters"
    adapter.close()


def test_that_a_field_of_32_bits_with_a_sign_is_saturated_too():
    # WMI's AdapterRAM of 4293918720 comes as -1048576 through 32-bit tools
    assert dedicated_bytes(None, None, -1048576) == Missing("at least 4 GiB, not known")


def test_that_graphics_without_memory_of_their_own_have_the_window():
    # Snapdragon: DXGI states 0 dedicated bytes
    none = dedicated_bytes(0, None, None)
    adreno = Graphics(LUID, "Qualcomm(R) Adreno(TM) X1-85 GPU", none, 16 * GIB)
    reading = only(counted(Dedicated_Usage=0, Shared_Usage=2 * GIB), adreno)
    assert reading.pool is PoolKind.WINDOW
    assert (reading.total_bytes, reading.used_bytes) == (16 * GIB, 2 * GIB)


@pytest.mark.parametrize(
    ("name", "pool"),
    [
        ("AMD Radeon(TM) RX Vega 11 Graphics", PoolKind.CARVE_OUT),
        ("AMD Radeon(TM) Vega 8 Graphics", PoolKind.CARVE_OUT),
        ("AMD Radeon 780M Graphics", PoolKind.CARVE_OUT),
        ("AMD Radeon RX Vega 56", PoolKind.VRAM),
        ("AMD Radeon RX 6800S", PoolKind.VRAM),
        ("AMD Radeon VII", PoolKind.VRAM),
    ],
)
def test_that_a_processor_s_graphics_are_told_by_their_name(name: str, pool: PoolKind):
    made = Graphics(LUID, name, 8 * GIB, 16 * GIB)
    assert only(counted(Dedicated_Usage=GIB, Shared_Usage=0), made).pool is pool


def test_that_a_resident_figure_beyond_what_is_in_use_is_marked():
    reading = only(
        counted(
            {"Local Usage": {1400: 14013 * MIB, 4242: GIB}, "Non Local Usage": {1400: 0}},
            Dedicated_Usage=2048 * MIB,
            Shared_Usage=0,
        )
    )
    assert held(reading)[1400].quality is Quality.OVER_COUNTS
    assert held(reading)[1400].used_bytes == 14013 * MIB
    assert held(reading)[4242].quality is Quality.RESIDENT


def test_that_a_counter_that_has_run_over_is_no_size():
    reading = only(
        counted({"Local Usage": {4242: 2**62, 1400: GIB}}, Dedicated_Usage=2**62, Shared_Usage=0)
    )
    assert isinstance(reading.used_bytes, Missing)
    assert list(held(reading)) == [1400]


def test_that_an_adapter_without_any_memory_has_no_total():
    drawn = Graphics(LUID, "Microsoft Remote Display Adapter", 0, 0)
    reading = only(counted(Dedicated_Usage=0, Shared_Usage=0), drawn)
    assert isinstance(reading.total_bytes, Missing)
