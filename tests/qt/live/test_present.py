"""What holds a device, as rows that add up to it."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    Part,
    PoolKind,
    ProcessReading,
    Quality,
)
from engine.units import UnitSystem
from gui.kit import format as fmt
from gui.live import explain, present
from gui.live.present import HoldsState, Kind
from tests.helpers.readings import DESKTOP, ENGINE, GIB, MIB, TOTAL, USED, card, host, moment

BINARY = UnitSystem.BINARY


def shown(reading: DeviceReading, **more) -> HoldsState:
    return present.present(reading, BINARY, **more)


def labels(state: HoldsState) -> list[str]:
    return [row.label for row in state.rows]


def parts(state: HoldsState) -> int:
    return sum(row.size_bytes or 0 for row in state.rows if row.kind is not Kind.TOTAL)


def test_that_the_rows_are_those_of_the_mock_up():
    state = shown(card())
    assert labels(state) == [
        "vLLM, engine core", "Xorg", "gnome-shell", "firefox", "Free, below the load line",
        "Driver", "Card",
    ]  # fmt: skip
    assert [f"{(row.size_bytes or 0) / GIB:.2f}" for row in state.rows] == [
        "22.83", "0.22", "0.13", "0.06", "0.40", "0.35", "23.99",
    ]  # fmt: skip
    assert state.process_count == 4


def test_that_the_balance_names_used_free_and_driver():
    assert shown(card()).balance == "23.24 used + 0.40 free + 0.35 driver = 23.99 GiB"


def test_that_the_other_tools_number_is_explained():
    passage = shown(card()).passages[0]
    assert passage.heading == "Why does nvidia-smi say 23,798 MiB?"
    assert passage.text == (
        "23,798 MiB are 23.24 GiB: the same number in another unit. "
        "The 359 MiB that the driver keeps are in neither."
    )


@given(
    used=st.integers(0, TOTAL - 359 * MIB),
    held=st.lists(st.integers(0, 30 * GIB), max_size=60),
)
def test_that_the_rows_add_up_to_the_device_whatever_the_processes_say(used: int, held: list[int]):
    processes = tuple(ProcessReading(i + 1, f"p{i}", size) for i, size in enumerate(held))
    state = shown(card(used_bytes=used, processes=processes))
    assert abs(parts(state) - TOTAL) < MIB


@given(used=st.integers(0, 64 * GIB), mapped=st.integers(0, 64 * GIB))
def test_that_the_hosts_rows_add_up_with_mapped_files_too(used: int, mapped: int):
    server = ProcessReading(7, "llama-server", 0, "llama-server -m a.gguf", mapped)
    used = max(used, mapped)
    reading = host(used_bytes=used, free_bytes=64 * GIB - used, processes=(server,))
    state = shown(reading)
    assert abs(parts(state) - 64 * GIB) < MIB
    assert all((row.size_bytes or 0) >= 0 for row in state.rows)


def test_that_memory_in_no_process_has_a_row_of_its_own():
    state = shown(card(processes=DESKTOP))
    rest = next(row for row in state.rows if row.kind is Kind.REST)
    assert rest.label == "In no process's name"
    assert rest.size_bytes == USED - sum(p.used_bytes for p in DESKTOP)


def test_that_an_empty_list_beside_memory_in_use_means_other_containers():
    # eight H100s at 70 GiB each without a single row: nvidia-smi inside a container
    state = shown(card(processes=()))
    assert "Outside this container" in labels(state)


def test_that_an_idle_card_accuses_nobody():
    state = shown(card(used_bytes=12 * MIB, processes=()))
    assert "Outside this container" not in labels(state)


def test_that_processes_without_figures_are_listed_with_a_dash_and_their_sum():
    # Windows with WDDM: the driver lists processes and says "not available" for each
    silent = Missing("the driver doesn't say how much this process holds")
    processes = (ProcessReading(2936, "TextInputHost.exe", silent),)
    state = shown(card(processes=processes))
    first, rest = state.rows[:2]
    assert first.size_bytes is None
    assert "doesn't say" in first.tooltip
    assert (rest.label, rest.size_bytes) == ("Held by the processes above", USED)


def test_that_processes_the_driver_does_not_tell_leave_one_named_row():
    state = shown(card(processes=Missing("no permission to read it")))
    rest = next(row for row in state.rows if row.kind is Kind.REST)
    assert rest.label == "Held, processes not told"
    assert "no permission" in rest.tooltip
    assert state.process_count is None


def test_that_pages_shared_by_processes_do_not_hide_in_another_row():
    state = shown(card(used_bytes=1 * GIB, processes=(ENGINE,)))
    rest = next(row for row in state.rows if row.kind is Kind.REST)
    assert rest.label == "Shared, counted more than once"
    assert (rest.size_bytes or 0) < 0


def test_that_a_lost_card_shows_no_number_but_the_reason():
    gone = Missing("the GPU fell off the bus")
    state = shown(card(total_bytes=gone, used_bytes=gone, processes=gone))
    assert [(row.label, row.size_bytes) for row in state.rows] == [("Card", None)]
    assert state.passages[0].text.startswith("The GPU fell off the bus.")
    assert state.balance == ""


def test_that_a_driver_that_hides_its_reserve_gets_a_dash_and_not_zero():
    older = card(reserved_bytes=Missing("this driver counts its reserve as used"))
    state = shown(older)
    driver = next(row for row in state.rows if row.kind is Kind.DRIVER)
    assert driver.size_bytes is None
    assert "counts its reserve as used" in driver.tooltip
    assert state.passages[0].heading == "Why does nvidia-smi say less than 23,798 MiB?"


def test_that_mapped_model_files_are_held_and_told_apart():
    state = shown(host())
    rows = {row.label: row.size_bytes for row in state.rows}
    assert rows["Mapped model files"] == 11 * GIB
    assert rows["Free, below the load line"] == 45 * GIB
    assert rows["llama-server"] == 3 * GIB
    assert rows["System"] == round(2.5 * GIB)
    assert rows["Computer"] == 64 * GIB


def test_that_two_processes_on_one_mapped_file_count_it_once():
    pair = tuple(
        ProcessReading(pid, "llama-server", GIB, "llama-server -m a.gguf", 11 * GIB)
        for pid in (7, 8)
    )
    rows = {row.label: row.size_bytes for row in shown(host(processes=pair)).rows}
    assert rows["Mapped model files"] == 11 * GIB


def test_that_a_containers_total_is_called_a_container():
    limited = host(name="Container", reserved_bytes=4 * GIB, free_bytes=41 * GIB, note="limit")
    state = shown(limited)
    assert labels(state)[-2:] == ["Held outside this container", "Container"]
    assert state.note == "limit"


def test_that_small_programs_are_one_row_but_a_runtime_never_is():
    small = tuple(ProcessReading(100 + i, f"daemon{i}", MIB) for i in range(30))
    runtime = ProcessReading(7, "llama-server", 2 * MIB, "llama-server -m a.gguf")
    state = shown(card(processes=(*small, runtime, *DESKTOP)))
    assert labels(state)[0] == "llama-server"
    others = next(row for row in state.rows if row.label == "Other programs")
    assert others.size_bytes == 30 * MIB
    assert "daemon0" in others.tooltip


def test_that_a_workers_model_is_taken_from_its_parents_command():
    parent = ProcessReading(4210, "vllm", GIB, "vllm serve meta-llama/Llama-3.1-8B-Instruct")
    snapshot = moment(card(), host(processes=(parent,)))
    models = present.models_by_runtime(snapshot)
    assert shown(card(), models=models).rows[0].runtime == "vLLM, Llama-3.1-8B-Instruct"


def test_that_two_models_of_one_runtime_are_not_mixed_up():
    servers = tuple(
        ProcessReading(pid, "vllm", GIB, f"vllm serve org/{name}")
        for pid, name in ((1, "a"), (2, "b"))
    )
    assert present.models_by_runtime(moment(host(processes=servers))) == {}


def test_that_decimal_units_reach_every_number():
    state = present.present(card(), UnitSystem.DECIMAL)
    assert state.balance == "24.95 used + 0.43 free + 0.38 driver = 25.76 GB"
    assert "24.95 GB: the same bytes" in state.passages[0].text


def test_that_a_gpu_sharing_the_computers_memory_is_explained_so():
    unified = card(name="NVIDIA GB10", pool=PoolKind.UNIFIED, reserved_bytes=0)
    state = shown(unified)
    assert state.passages[0].heading == "Why does nvidia-smi say “Not Supported”?"
    assert labels(state)[-1] == "Computer"


@pytest.mark.skipif(sys.platform != "linux", reason="names the tool of Linux")
def test_that_a_smaller_figure_of_other_tools_is_explained_by_mapped_files():
    passage = explain.why(host(), BINARY)
    assert passage is not None
    assert passage.heading == "Why does free say that less is used?"
    assert passage.text.startswith("It calls 11.00 GiB of mapped model files available")


def shared_gpu(
    pool: PoolKind, used: int, *held: ProcessReading, vendor: str = "Intel"
) -> DeviceReading:
    total = 16288 * MIB
    return DeviceReading(
        "pci-0", "Arc A770", pool, total, used, total - used, 0, held, "xe", vendor=vendor
    )


def test_that_a_process_counted_more_than_once_is_told_and_takes_nothing_from_the_others():
    # xpumanager issue 145: 7,692 MiB for a browser on a card with 3,642 MiB in use
    busy = shared_gpu(
        PoolKind.VRAM,
        3642 * MIB,
        ProcessReading(1, "firefox", 7692 * MIB, quality=Quality.OVER_COUNTS),
        ProcessReading(2, "compositor", 900 * MIB),
        ProcessReading(3, "llama-server", 2500 * MIB, "llama-server -m a.gguf"),
    )
    state = shown(busy)
    by_name = {row.label: row for row in state.rows}
    assert "counted more than once" in by_name["firefox"].runtime
    rest = by_name["In no process's name"].size_bytes
    assert rest is not None
    # other programs = 3,642 − 2,500: the compositor's 900 and what is left of the browser's
    assert rest + 900 * MIB == (3642 - 2500) * MIB


def test_that_a_mac_says_what_macos_keeps_and_names_no_tool_of_another_maker():
    mac = shared_gpu(PoolKind.WIRED, 4 * GIB, vendor="Apple")
    mac = replace(mac, free_bytes=8 * GIB, reserved_bytes=mac.total_bytes - 12 * GIB)
    assert "macOS = 15.91 GiB" in shown(mac).balance
    passage = explain.why(mac, BINARY)
    assert passage is not None
    assert "Activity Monitor" in passage.heading


def test_that_an_apu_explains_what_the_firmware_set_aside():
    apu = shared_gpu(PoolKind.CARVE_OUT, 4 * GIB, vendor="AMD")
    apu = replace(apu, parts=(Part("set aside", 512 * MIB, 100 * MIB),))
    passage = explain.why(apu, BINARY)
    assert passage is not None
    assert passage.heading == "Why do other tools say 0.50 GiB of VRAM?"


def test_that_a_card_of_another_maker_is_not_explained_by_nvidias_tool():
    assert explain.why(shared_gpu(PoolKind.VRAM, GIB, vendor="AMD"), BINARY) is None


def test_that_what_windows_promised_stands_in_the_details_alone():
    dwm = ProcessReading(
        1400, "dwm.exe", 312 * MIB, quality=Quality.RESIDENT, committed_bytes=14013 * MIB
    )
    state = shown(card(processes=(dwm,), used_bytes=2048 * MIB))
    row = next(row for row in state.rows if row.pid == 1400)
    assert row.size_bytes == 312 * MIB
    assert f"{fmt.exact_bytes(14013 * MIB)} were promised" in row.tooltip


def test_that_work_in_system_memory_is_told_beside_its_process():
    server = ProcessReading(7, "llama-server", 15 * GIB, "llama-server", spill_bytes=2 * GIB)
    state = shown(card(processes=(server,)))
    row = next(row for row in state.rows if row.pid == 7)
    assert "of its work in system memory, which is slow" in row.tooltip


def test_that_a_promise_without_a_resident_figure_is_called_one():
    old = ProcessReading(7, "game", 15 * GIB, quality=Quality.COMMITTED, committed_bytes=15 * GIB)
    row = next(r for r in shown(card(processes=(old,))).rows if r.pid == 7)
    assert "promised, and not all of it in memory" in row.tooltip


def test_that_what_spilled_stands_below_the_sum_and_is_no_part_of_it():
    spilled = shown(card(spill_bytes=2 * GIB))
    assert labels(spilled)[-2:] == ["Card", "Besides, in system RAM"]
    assert (spilled.rows[-1].size_bytes, spilled.rows[-1].adds_up) == (2 * GIB, False)
    assert f"{2 * GIB:,} bytes" in spilled.rows[-1].tooltip
    assert spilled.rows[:-1] == shown(card()).rows
    assert shown(card(spill_bytes=100 * MIB)).rows == shown(card()).rows
