"""NVIDIA devices that aren't a plain card: slices, unified memory, WDDM, guests, containers."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pynvml
import pytest

from engine.errors import TelemetryError
from engine.telemetry.adapters.nvidia import NvidiaAdapter
from engine.telemetry.probe import LiveSampler
from engine.telemetry.snapshot import Missing, PoolKind, Quality
from tests.helpers.live_records import fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.telemetry.snapshot import DeviceReading
    from tests.helpers.nvml import Gpus

MIB, GIB = 2**20, 2**30
SPARK_KIB = 127_600_748
"""MemTotal of a DGX Spark (recorded with driver 580.173)."""


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """The binding, which counts what it is asked."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("nvmlDeviceGet"):
            self.names.append(name.removeprefix("nvmlDeviceGet"))
        return getattr(pynvml, name)


@pytest.fixture
def adapter(gpus: Gpus, tmp_path: Path) -> Iterator[NvidiaAdapter]:
    made = NvidiaAdapter(tmp_path)
    yield made
    made.close()


def meminfo(root: Path, *, available: float, free: float, total_kib: int = SPARK_KIB) -> None:
    """The system's memory; sizes in GiB."""
    (root / "proc").mkdir(exist_ok=True)
    (root / "proc/meminfo").write_text(
        f"MemTotal: {total_kib} kB\nMemFree: {round(free * 2**20)} kB\n"
        f"MemAvailable: {round(available * 2**20)} kB\n"
    )


def held(card: DeviceReading) -> list[tuple[int, int | Missing]]:
    assert not isinstance(card.processes, Missing)
    return [(p.pid, p.used_bytes) for p in card.processes]


def test_that_an_address_window_is_in_no_total(gpus: Gpus, adapter: NvidiaAdapter, shared: Path):
    assert "BAR1 total 32768 MiB" in fault(shared, "B01")["input"]
    gpus.card(0, name="NVIDIA GeForce RTX 3090", total=24576 * MIB, used=10240 * MIB)
    gpus.card(0, free=14000 * MIB, reserved=336 * MIB)
    asked = Asked()
    (card,) = NvidiaAdapter(binding=lambda: asked).sample()
    assert card.total_bytes == 24 * GIB
    assert (card.used_bytes, card.reserved_bytes) == (10240 * MIB, 336 * MIB)
    assert not [name for name in asked.names if "BAR1" in name]


def test_that_what_is_used_is_the_same_whether_or_not_it_contains_the_reserve(
    gpus: Gpus, adapter: NvidiaAdapter
):
    # nvidia-smi of an RTX PRO 6000, driver 590: 65720 + 31531 + 637 = 97888 of 97887 MiB
    gpus.card(0, name="NVIDIA RTX PRO 6000", total=97887 * MIB, used=65719 * MIB)
    gpus.card(0, reserved=637 * MIB)
    (apart,) = adapter.sample()
    gpus.set(used_with_reserve=1)
    (within,) = adapter.sample()
    assert apart.used_bytes == within.used_bytes == 65719 * MIB


def test_that_an_idle_card_holds_nothing_but_its_reserve(
    gpus: Gpus, adapter: NvidiaAdapter, shared: Path
):
    assert "108003328" in fault(shared, "B05")["input"]
    gpus.card(0, name="Tesla P100-PCIE-16GB", total=17179869184, used=0, reserved=108003328)
    (card,) = adapter.sample()
    assert (card.used_bytes, card.reserved_bytes) == (0, 103 * MIB)
    assert card.ceiling_bytes == 17179869184 - 103 * MIB
    assert card.processes == ()


@pytest.mark.parametrize("answer", ["ns", 0, 131072 * MIB])
def test_that_a_shared_memory_part_reads_the_same_whatever_its_driver_answers(
    gpus: Gpus, adapter: NvidiaAdapter, tmp_path: Path, shared: Path, answer: object
):
    assert "NotSupported" in fault(shared, "B03")["input"]
    meminfo(tmp_path, available=118566368 / 2**20, free=60)
    gpus.card(0, name="NVIDIA GB10", total=answer, used=answer, compute=f"7:{196 * MIB}")
    (card,) = adapter.sample()
    assert card.pool is PoolKind.UNIFIED
    assert card.total_bytes == 127600748 * 1024
    assert card.free_bytes == card.available_bytes == 118566368 * 1024
    assert card.used_bytes == (127600748 - 118566368) * 1024
    assert held(card) == [(7, 196 * MIB)]
    assert card.source == "NVML 580.126.09, /proc/meminfo"


def test_that_a_lost_shared_memory_part_is_lost_and_not_read_from_the_system(
    gpus: Gpus, adapter: NvidiaAdapter, tmp_path: Path
):
    meminfo(tmp_path, available=100, free=60)
    gpus.card(0, name="NVIDIA GB10", total="err:15", used="err:15")
    (card,) = adapter.sample()
    assert card.total_bytes == Missing("the GPU fell off the bus")


def test_that_used_and_free_of_a_shared_memory_part_make_its_total(
    gpus: Gpus, adapter: NvidiaAdapter, tmp_path: Path, shared: Path
):
    assert "95245 MiB" in fault(shared, "B12")["input"]
    meminfo(tmp_path, available=28.1, free=20, total_kib=round(121.7 * 2**20))
    gpus.card(0, name="NVIDIA GB10", total="ns", used="ns", compute=f"900:{95245 * MIB}")
    (card,) = adapter.sample()
    assert isinstance(card.used_bytes, int)
    assert isinstance(card.free_bytes, int)
    assert card.used_bytes + card.free_bytes == card.total_bytes
    assert round(card.used_bytes / GIB, 1) == 93.6
    assert round(card.free_bytes / GIB, 1) == 28.1
    assert held(card) == [(900, 95245 * MIB)]  # 93.0 GiB


def test_that_file_cache_counts_as_available_and_what_cuda_says_of_it_is_told(
    gpus: Gpus, adapter: NvidiaAdapter, tmp_path: Path
):
    # GB10, the same instant: cudaMemGetInfo 2.77 GiB free, 52 GiB available
    meminfo(tmp_path, available=52, free=2.77)
    gpus.card(0, name="NVIDIA GB10", total="ns", used="ns")
    (card,) = adapter.sample()
    assert card.available_bytes == 52 * GIB
    assert "CUDA calls only 2.77 GiB of it free" in card.note


def test_that_not_supported_makes_no_card_a_shared_memory_part_but_coherent_ones(
    gpus: Gpus, adapter: NvidiaAdapter, tmp_path: Path
):
    meminfo(tmp_path, available=52, free=20)
    gpus.card(0, name="NVIDIA A100-SXM4-80GB", total="ns", used="ns")
    gpus.card(1, name="NVIDIA Graphics Device", total="ns", used="ns", ats=2)
    plain, coherent = adapter.sample()
    assert plain.total_bytes == Missing("not supported by this device or driver")
    assert plain.pool is PoolKind.VRAM
    assert coherent.total_bytes == SPARK_KIB * 1024
    assert coherent.pool is PoolKind.UNIFIED


def test_that_coherent_memory_of_its_own_is_claimed_and_partly_reclaimable(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.card(0, name="NVIDIA GH200 480GB", total=97871 * MIB, used=5 * GIB, ats=2)
    (card,) = adapter.sample()
    assert card.pool is PoolKind.VRAM
    assert "may in part be taken back" in card.note


def test_that_each_slice_of_a_cut_card_is_a_device_and_the_card_is_none(
    gpus: Gpus, adapter: NvidiaAdapter, shared: Path
):
    assert "NoPermission" in fault(shared, "B08")["input"]
    gpus.card(0, name="NVIDIA A100-SXM4-80GB", total="err:4", used="err:4", mig=1)
    gpus.card(0, cc=80, pci="00000000:01:00.0")
    gpus.card(0, **{"mig0.total": 20937965568, "mig0.used": 12582912, "mig0.gi": 3})
    gpus.card(0, **{"mig0.name": "NVIDIA A100-SXM4-80GB", "mig0.parts": 2, "mig0.sms": 28})
    (card,) = adapter.sample()
    assert (card.uuid, card.name) == ("MIG-0-0", "NVIDIA A100-SXM4-80GB MIG 2g.20gb")
    assert (card.total_bytes, card.used_bytes) == (19968 * MIB, 12 * MIB)  # 19.5 GiB
    assert (card.sm_count, card.pci_address) == (28, "0000:01:00.0")


def test_that_a_process_counts_in_the_slice_it_runs_in(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.card(0, name="NVIDIA A100-SXM4-80GB", total=81920 * MIB, used=50 * MIB, mig=1)
    gpus.card(0, compute=f"900:{9826 * MIB}:5,800:{14366 * MIB}:3")
    for index, instance in ((0, 3), (1, 5), (3, 6)):  # a place may stay empty
        gpus.card(0, **{f"mig{index}.total": 19968 * MIB, f"mig{index}.used": 15 * GIB})
        gpus.card(0, **{f"mig{index}.gi": instance, f"mig{index}.compute": "ns"})
        gpus.card(0, **{f"mig{index}.graphics": "ns", f"mig{index}.mps": "ns"})
    first, second, third = adapter.sample()
    assert held(first) == [(800, 14366 * MIB)]
    assert held(second) == [(900, 9826 * MIB)]
    assert third.processes == Missing("held by processes outside this container")


def test_that_a_card_that_is_cut_into_nothing_yet_says_so(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.card(0, name="NVIDIA A100-SXM4-80GB", total=81920 * MIB, used=50 * MIB, mig=1)
    (card,) = adapter.sample()
    assert card.note == "MIG is on and has no slice yet: nothing can run here."


def test_that_windows_keeps_what_a_process_holds_and_it_is_not_zero(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.card(0, name="NVIDIA GeForce RTX 3080 Ti", total=12 * GIB, used=7 * GIB, model=0)
    gpus.card(0, compute="4242:ns", graphics="4242:ns,2936:ns")
    (card,) = adapter.sample()
    why = Missing("not reported by Windows (display driver model WDDM)")
    assert held(card) == [(2936, why), (4242, why)]
    assert not isinstance(card.processes, Missing)
    assert {p.quality for p in card.processes} == {Quality.NOT_REPORTED}


def test_that_the_compute_driver_model_of_windows_is_a_plain_card(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.card(0, name="NVIDIA RTX A6000", total=48 * GIB, used=7 * GIB, model=1)
    gpus.card(0, compute=f"4242:{6 * GIB}")
    (card,) = adapter.sample()
    assert held(card) == [(4242, 6 * GIB)]


def test_that_a_guest_is_told_that_it_sees_its_profile_only(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.card(0, name="GRID A100-10C", total=10 * GIB, used=GIB, virtual=2, compute=f"5:{GIB}")
    (card,) = adapter.sample()
    assert card.total_bytes == 10 * GIB
    assert "this is its profile" in card.note


def test_that_memory_in_use_without_a_process_is_held_outside_this_container(
    gpus: Gpus, adapter: NvidiaAdapter
):
    # Eight H100 in a container, 70 GiB used on each and not one row in the table
    gpus.card(0, name="NVIDIA H100 80GB HBM3", total=81559 * MIB, used=70690 * MIB)
    gpus.card(1, name="NVIDIA H100 80GB HBM3", total=81559 * MIB, used=4 * MIB)
    full, idle = adapter.sample()
    assert full.processes == Missing("held by processes outside this container")
    assert full.used_bytes == 70690 * MIB
    assert idle.processes == ()


def test_that_inside_wsl_the_other_programs_are_those_of_windows(
    gpus: Gpus, adapter: NvidiaAdapter, tmp_path: Path
):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/version").write_text("Linux version 6.6.87.2-microsoft-standard-WSL2\n")
    gpus.rtx4090(0, used=9 * GIB)
    gpus.rtx4090(1, used=9 * GIB, compute="4194303:ns")
    wsl = NvidiaAdapter(tmp_path)
    silent, foreign = wsl.sample()
    wsl.close()
    assert isinstance(silent.processes, Missing)
    assert "Windows programs" in silent.processes.reason
    assert "Windows programs included" in silent.note
    assert not isinstance(foreign.processes, Missing)
    assert foreign.processes[0].name == "a Windows program"


def test_that_clients_of_the_mps_server_count_each_for_itself(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090(used=9 * GIB, compute=f"50:{30 * MIB}", mps=f"61:{4 * GIB},62:{3 * GIB}")
    (card,) = adapter.sample()
    assert held(card) == [(61, 4 * GIB), (62, 3 * GIB), (50, 30 * MIB)]


def test_that_a_card_is_asked_at_most_two_questions_a_sample(gpus: Gpus, tmp_path: Path):
    gpus.rtx4090(used=9 * GIB, compute=f"50:{4 * GIB}", graphics=f"51:{4 * GIB}")
    asked = Asked()
    adapter = NvidiaAdapter(tmp_path, binding=lambda: asked)
    adapter.sample()
    asked.names.clear()
    counts = []
    for _ in range(8):
        before = len(asked.names)
        adapter.sample()
        counts.append(len(asked.names) - before)
    adapter.close()
    assert max(counts) == 2
    # Half rate for compute programs, a quarter for the others
    lists = [n for n in asked.names if "Processes" in n]
    assert lists.count("ComputeRunningProcesses_v3") == 4
    assert lists.count("GraphicsRunningProcesses_v3") == 2
    assert lists.count("MPSComputeRunningProcesses_v3") == 2


def test_that_a_new_process_is_seen_within_two_samples(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090(used=9 * GIB, compute=f"50:{4 * GIB}")
    adapter.sample()
    gpus.rtx4090(used=9 * GIB, compute=f"50:{4 * GIB},51:{5 * GIB}")
    adapter.sample()
    assert held(adapter.sample()[0]) == [(51, 5 * GIB), (50, 4 * GIB)]


def test_that_figures_that_contradict_each_other_are_no_figures(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.card(0, name="NVIDIA A30", total=24 * GIB, used=GIB, free=2**63)
    (card,) = adapter.sample()
    assert card.used_bytes == Missing("the driver's figures contradict each other")


def test_that_after_a_reload_a_card_is_found_by_its_uuid_whatever_its_number(
    gpus: Gpus, tmp_path: Path
):
    gpus.rtx4090(0, used=GIB, uuid="GPU-a")
    gpus.rtx4090(1, used=2 * GIB, uuid="GPU-b")
    adapter = NvidiaAdapter(tmp_path)
    assert [c.uuid for c in adapter.sample()] == ["GPU-a", "GPU-b"]
    gpus.set(generation=2)
    gpus.rtx4090(0, used=2 * GIB, uuid="GPU-b")
    gpus.rtx4090(1, used=GIB, uuid="GPU-a")
    gone = adapter.sample()
    assert {c.note for c in gone} == {"the driver was unloaded"}
    back = {c.uuid: c.used_bytes for c in adapter.sample()}
    adapter.close()
    assert back == {"GPU-a": GIB, "GPU-b": 2 * GIB}


def test_that_an_updated_driver_leaves_the_rest_running_and_comes_back_by_itself(
    gpus: Gpus, tmp_path: Path, shared: Path
):
    assert "LibRmVersionMismatch for 90 s" in fault(shared, "B09")["input"]
    gpus.rtx4090(used=GIB)
    gpus.set(init=18)
    clock = Clock()
    sampler = LiveSampler((NvidiaAdapter(tmp_path, clock=clock), Host()), opening_s=30)
    seen = {}
    for second in range(0, 130, 10):
        clock.now = float(second)
        if second == 90:
            gpus.set(init=0)
        snapshot = sampler.sample()
        seen[second] = (len(snapshot.devices), snapshot.notes)
        assert snapshot.urgent == snapshot.notes  # what it asks is told as a banner
    sampler.close()
    words = "NVIDIA devices cannot be read: the driver was updated; restart the computer."
    assert seen[0] == seen[80] == (1, (words,))
    assert seen[120] == (2, ())


class Host:
    """Something else that is read beside the GPUs."""

    name = "host"

    def sample(self) -> tuple[DeviceReading, ...]:
        from tests.helpers.readings import host

        return (host(),)

    def close(self) -> None:
        pass


def laptop(root: Path, status: str, control: str = "auto") -> None:
    """A laptop's GPU with its power state as sysfs tells it."""
    power = root / "sys/bus/pci/devices/0000:01:00.0/power"
    power.mkdir(parents=True, exist_ok=True)
    (power.parent / "vendor").write_text("0x10de\n")
    (power.parent / "device").write_text("0x28a0\n")
    (power.parent / "class").write_text("0x030000\n")
    (power / "runtime_status").write_text(f"{status}\n")
    (power / "control").write_text(f"{control}\n")


def test_that_a_sleeping_gpu_is_listed_and_no_question_reaches_its_driver(
    gpus: Gpus, tmp_path: Path
):
    laptop(tmp_path, "suspended")
    asked = Asked()
    gpus.rtx4090()
    adapter = NvidiaAdapter(tmp_path, binding=lambda: asked)
    (card,) = adapter.sample()
    assert card.used_bytes == Missing("asleep (not polled)")
    assert (card.name, card.pci_address) == ("NVIDIA GPU 10de:28a0", "0000:01:00.0")
    assert asked.names == []
    laptop(tmp_path, "active")
    gpus.rtx4090(used=GIB, pci="00000000:01:00.0")
    (awake,) = adapter.sample()
    assert awake.used_bytes == GIB
    laptop(tmp_path, "suspended")
    asked.names.clear()
    (again,) = adapter.sample()
    assert (again.uuid, again.name) == (awake.uuid, awake.name)
    assert (again.note, again.used_bytes) == ("asleep (not polled)", GIB)
    assert again.age_s > 0
    assert asked.names == []


def test_that_a_gpu_that_nobody_uses_is_left_alone_so_that_it_can_fall_asleep(
    gpus: Gpus, tmp_path: Path
):
    laptop(tmp_path, "active")
    clock, asked = Clock(), Asked()
    gpus.rtx4090(used=2 * MIB, pci="00000000:01:00.0")
    adapter = NvidiaAdapter(tmp_path, clock=clock, binding=lambda: asked)
    assert adapter.sample()[0].used_bytes == 2 * MIB
    clock.now = 61.0
    asked.names.clear()
    assert "fall asleep" in adapter.sample()[0].note
    clock.now = 90.0
    (left,) = adapter.sample()
    assert (left.used_bytes, left.age_s) == (2 * MIB, 90.0)
    assert asked.names == []
    clock.now = 92.0  # still awake: somebody else keeps it so
    assert adapter.sample()[0].used_bytes == 2 * MIB
    adapter.close()


@pytest.mark.parametrize(("control", "used"), [("on", 2 * MIB), ("auto", GIB)])
def test_that_a_gpu_in_use_or_without_sleep_is_read_on_and_on(
    gpus: Gpus, tmp_path: Path, control: str, used: int
):
    laptop(tmp_path, "active", control)
    clock = Clock()
    gpus.rtx4090(used=used, compute=f"{os.getpid()}:{used}", pci="00000000:01:00.0")
    adapter = NvidiaAdapter(tmp_path, clock=clock)
    for second in (0.0, 61.0, 122.0):
        clock.now = second
        assert adapter.sample()[0].used_bytes == used
    adapter.close()


def test_that_a_module_without_the_library_is_read_from_the_system(gpus: Gpus, tmp_path: Path):
    gpus.set(init=9)
    meminfo(tmp_path, available=20, free=9, total_kib=32_000_000)
    (tmp_path / "proc/device-tree").mkdir()
    (tmp_path / "proc/device-tree/model").write_text("NVIDIA Jetson AGX Xavier\0")
    clients = tmp_path / "sys/kernel/debug/nvmap/iovmm/clients"
    clients.parent.mkdir(parents=True)
    clients.write_text(
        "CLIENT      PROCESS      PID     SIZE\nuser    llama-server   77   4194304K\n"
        "user    llama-server   77   1048576K\ntotal          5242880K\n"
    )
    (card,) = NvidiaAdapter(tmp_path).sample()
    assert (card.name, card.total_bytes) == ("NVIDIA Jetson AGX Xavier", 32_000_000 * 1024)
    assert held(card) == [(77, 5 * GIB)]


def broken(gpus: Gpus, dice: random.Random) -> None:
    """One of the ways in which drivers and cards fail."""
    card = dice.randrange(3)
    match dice.randrange(7):
        case 0:
            gpus.set(generation=dice.randrange(1, 9))  # reloaded
        case 1:
            gpus.set(init=dice.choice((9, 18, 999)))
        case 2:
            gpus.card(card, total=dice.choice(("err:15", "err:16", "err:10", "ns", 0)))
        case 3:
            gpus.card(card, free=dice.choice((2**64 - 1, 2**63, 80 * GIB)))
        case 4:
            gpus.card(card, compute=dice.choice(("err:999", "ns", "1:ns,1:5", "4194303:99")))
        case 5:
            gpus.card(card, handle=dice.choice(("err:15", "err:4")))
        case _:
            gpus.set(v2=dice.choice(("err:13", "err:999")))


def healed(gpus: Gpus, generation: int) -> None:
    gpus.remove("init", "v2", *(f"gpu{n}.{key}" for n in range(3) for key in ("handle", "free")))
    gpus.set(generation=generation)
    for number in range(3):
        gpus.rtx4090(number, used=number * GIB, compute=f"{100 + number}:{number * GIB}")


def test_that_every_card_recovers_from_whatever_its_driver_did(gpus: Gpus, tmp_path: Path):
    dice, clock = random.Random(7), Clock()
    adapter = NvidiaAdapter(tmp_path, clock=clock)
    healed(gpus, 1)
    for step in range(1200):
        clock.now += 1.0
        if dice.random() < 0.3:
            broken(gpus, dice)
        with suppress(TelemetryError):
            for card in adapter.sample():
                sizes = (card.used_bytes, card.free_bytes, card.reserved_bytes)
                if isinstance(card.total_bytes, int):
                    assert sum(s for s in sizes if isinstance(s, int)) == card.total_bytes
                    assert min(s for s in sizes if isinstance(s, int)) >= 0
        if step % 40 == 39:
            healed(gpus, 10 + step)
            for _ in range(40):  # it is tried again every 30 s
                clock.now += 1.0
                with suppress(TelemetryError):
                    readings = adapter.sample()
            assert [card.used_bytes for card in readings] == [0, GIB, 2 * GIB]
            assert [held(card)[0][0] for card in readings] == [100, 101, 102]
    adapter.close()
