"""NVIDIA devices through the unmodified binding, on a stand-in for the driver's library."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from engine.errors import TelemetryError
from engine.telemetry.adapters.host import HostAdapter
from engine.telemetry.adapters.nvidia import NvidiaAdapter
from engine.telemetry.adapters.pci import sleeping
from engine.telemetry.lane import Lane
from engine.telemetry.probe import LiveSampler, open_sampler
from engine.telemetry.snapshot import Missing, PoolKind
from tests.helpers import nvml
from tests.helpers.nvml import MIB, Gpus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Clock:
    """A clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def adapter(gpus: Gpus) -> Iterator[NvidiaAdapter]:
    made = NvidiaAdapter()
    yield made
    made.close()


def opened(adapter: NvidiaAdapter) -> NvidiaAdapter:
    adapter.open()
    return adapter


def test_that_used_free_and_reserve_add_up_to_the_total(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090(used=23798 * MIB)
    (card,) = opened(adapter).sample()
    assert card.total_bytes == 24564 * MIB
    assert card.reserved_bytes == 370 * MIB
    assert card.used_bytes == 23798 * MIB
    assert card.free_bytes == (24564 - 370 - 23798) * MIB
    assert card.pool is PoolKind.VRAM
    assert card.source == "NVML 580.126.09"


def test_that_the_card_tells_its_multiprocessors_and_capability(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090()  # 16,384 cores, 128 to a multiprocessor of compute capability 8.9
    gpus.card(1, name="NVIDIA A100-SXM4-80GB", total=81920 * MIB, used=0, cc=80, cores=6912)
    first, second = opened(adapter).sample()
    assert (first.sm_count, first.compute_capability) == (128, 8.9)
    assert (second.sm_count, second.compute_capability) == (108, 8.0)


def test_that_an_older_driver_leaves_the_reserve_unknown_and_inside_used(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.rtx4090(used=1000 * MIB)
    gpus.set(v2="err:13")
    (card,) = opened(adapter).sample()
    assert isinstance(card.reserved_bytes, Missing)
    assert card.used_bytes == 1370 * MIB
    assert card.free_bytes == (24564 - 1370) * MIB


def test_that_a_library_without_the_second_version_is_read_with_the_first(tmp_path: Path):
    library = nvml.build(tmp_path, "-DWITHOUT_V2")
    with nvml.loaded(library, tmp_path) as gpus:
        gpus.rtx4090(used=1000 * MIB)
        adapter = opened(NvidiaAdapter())
        (card,) = adapter.sample()
        adapter.close()
    assert card.used_bytes == 1370 * MIB
    assert isinstance(card.reserved_bytes, Missing)


def test_that_each_value_follows_the_card_from_sample_to_sample(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090(used=f"{10 * MIB},{20 * MIB},{30 * MIB}")
    opened(adapter)
    used = [adapter.sample()[0].used_bytes for _ in range(4)]
    assert used == [10 * MIB, 20 * MIB, 30 * MIB, 30 * MIB]


def test_that_a_process_in_two_lists_counts_once_with_its_larger_value(
    gpus: Gpus, adapter: NvidiaAdapter
):
    me = os.getpid()
    gpus.rtx4090(
        used=900 * MIB,
        compute=f"{me}:{500 * MIB},999999:{100 * MIB}",
        graphics=f"{me}:{600 * MIB}",
        mps=f"999999:{200 * MIB}",
    )
    (card,) = opened(adapter).sample()
    assert not isinstance(card.processes, Missing)
    assert [(p.pid, p.used_bytes) for p in card.processes] == [
        (me, 600 * MIB),
        (999999, 200 * MIB),
    ]


def test_that_a_pid_that_is_not_here_is_said_to_be_outside(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090(compute=f"4194303:{100 * MIB}")
    (card,) = opened(adapter).sample()
    assert not isinstance(card.processes, Missing)
    assert card.processes[0].name == "outside this container"


def test_that_a_process_without_a_figure_is_listed_with_the_reason(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.rtx4090(compute=f"{os.getpid()}:ns")
    (card,) = opened(adapter).sample()
    assert not isinstance(card.processes, Missing)
    assert isinstance(card.processes[0].used_bytes, Missing)


def test_that_unsupported_process_lists_are_missing_and_not_empty(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.rtx4090(compute="ns", graphics="ns", mps="ns")
    (card,) = opened(adapter).sample()
    assert card.processes == Missing("not supported by this device or driver")
    assert card.total_bytes == 24564 * MIB


def test_that_unsupported_memory_of_an_unknown_card_is_missing_and_not_zero(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.rtx4090(total="ns")
    (card,) = opened(adapter).sample()
    assert isinstance(card.total_bytes, Missing)
    assert isinstance(card.used_bytes, Missing)


def test_that_a_part_sharing_system_memory_takes_the_systems_figures(
    gpus: Gpus, adapter: NvidiaAdapter
):
    psutil = pytest.importorskip("psutil")
    gpus.card(0, name="NVIDIA GB10", total="ns", used="ns", compute=f"{os.getpid()}:{196 * MIB}")
    (card,) = opened(adapter).sample()
    assert card.pool is PoolKind.UNIFIED
    assert card.total_bytes == psutil.virtual_memory().total
    assert not isinstance(card.processes, Missing)
    assert card.processes[0].used_bytes == 196 * MIB


def test_that_a_lost_gpu_stays_listed_and_its_neighbour_goes_on(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090(0, used=100 * MIB)
    gpus.rtx4090(1, used=200 * MIB)
    opened(adapter).sample()
    gpus.card(0, total="err:15")
    lost, alive = adapter.sample()
    assert lost.uuid == "GPU-0"
    assert lost.used_bytes == Missing("the GPU fell off the bus")
    assert lost.note == "the GPU fell off the bus"
    assert alive.used_bytes == 200 * MIB


def test_that_a_gpu_lost_before_the_start_does_not_hide_the_others(
    gpus: Gpus, adapter: NvidiaAdapter
):
    gpus.rtx4090(0, handle="err:15")
    gpus.rtx4090(1, used=200 * MIB)
    lost, alive = opened(adapter).sample()
    assert lost.total_bytes == Missing("the GPU fell off the bus")
    assert alive.used_bytes == 200 * MIB


def test_that_a_reloaded_driver_is_opened_again(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090(used=100 * MIB)
    opened(adapter).sample()
    gpus.set(generation=2)
    (gone,) = adapter.sample()
    assert gone.used_bytes == Missing("the driver was unloaded")
    (back,) = adapter.sample()
    assert back.used_bytes == 100 * MIB


def test_that_a_missing_driver_is_asked_again_only_after_half_a_minute(gpus: Gpus):
    clock = Clock()
    adapter = NvidiaAdapter(clock=clock)
    gpus.rtx4090(used=100 * MIB)
    gpus.set(init=18)
    with pytest.raises(TelemetryError, match="the driver was updated; restart the computer"):
        adapter.sample()
    gpus.set(init=0)
    clock.now = 29.0
    with pytest.raises(TelemetryError):
        adapter.sample()
    clock.now = 31.0
    (card,) = adapter.sample()
    assert card.used_bytes == 100 * MIB
    adapter.close()


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (9, "NVIDIA devices cannot be read: the NVIDIA driver is not loaded."),
        (18, "NVIDIA devices cannot be read: the driver was updated; restart the computer."),
    ],
)
def test_that_a_driver_that_does_not_start_says_why(gpus: Gpus, code: int, sentence: str):
    gpus.set(init=code)
    with pytest.raises(TelemetryError) as caught:
        NvidiaAdapter().open()
    assert caught.value.message == sentence


def test_that_a_hanging_driver_leaves_the_host_readable(gpus: Gpus):
    gpus.rtx4090(used=100 * MIB)
    sampler = LiveSampler((NvidiaAdapter(), HostAdapter()), deadline_s=0.2, opening_s=30)
    assert sampler.sample().devices[0].used_bytes == 100 * MIB
    gpus.set(hang=1)
    card, host = sampler.sample().devices
    assert isinstance(card.used_bytes, Missing)
    assert "has not answered" in card.used_bytes.reason
    assert isinstance(host.used_bytes, int)
    snapshot = sampler.sample()
    assert any("has not answered" in note for note in snapshot.notes)
    gpus.remove("hang")
    sampler.close()


def test_that_a_driver_that_hangs_while_it_is_opened_does_not_hold_up_the_host(gpus: Gpus):
    gpus.rtx4090()
    gpus.set(hang=1)
    sampler = LiveSampler((NvidiaAdapter(), HostAdapter()), deadline_s=0.4, opening_s=0.4)
    snapshot = sampler.sample()
    assert [d.pool for d in snapshot.devices] == [PoolKind.HOST]
    assert snapshot.notes == ("The NVIDIA driver has not answered for 0 s.",)
    gpus.remove("hang")
    sampler.close()


def test_that_a_late_answer_is_taken_when_it_comes():
    gate, asked = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        def sample(self):
            asked.set()
            gate.wait()
            return ()

        def close(self):
            pass

    clock = Clock()
    lane = Lane(Slow(), deadline_s=60, opening_s=60, clock=clock)
    lane.ask()
    assert asked.wait(10)
    clock.now = 61.0
    assert lane.answer()[1] == "The slow driver has not answered for 61 s."
    gate.set()
    clock.now = 0.0
    assert lane.answer() == ((), "")
    lane.close()


def test_that_a_sleeping_laptop_gpu_is_never_asked(tmp_path: Path, gpus: Gpus):
    folder = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    (folder / "power").mkdir(parents=True)
    (folder / "vendor").write_text("0x10de\n")
    (folder / "class").write_text("0x030000\n")
    (folder / "power/runtime_status").write_text("suspended\n")
    gpus.rtx4090()
    assert sleeping(tmp_path, "0x10de") == "0000:01:00.0"
    with pytest.raises(TelemetryError, match=r"0000:01:00\.0 is asleep"):
        NvidiaAdapter(root=tmp_path).open()
    (folder / "power/runtime_status").write_text("active\n")
    assert sleeping(tmp_path, "0x10de") == ""


def test_that_a_name_from_the_driver_cannot_steer_a_terminal(gpus: Gpus, adapter: NvidiaAdapter):
    gpus.rtx4090(name="NVIDIA \x1b[31mred")
    (card,) = opened(adapter).sample()
    assert card.name == "NVIDIA \\x1b[31mred"


def test_that_the_sampler_finds_the_library_through_the_loader(nvml_library: Path, tmp_path: Path):
    state = Gpus(tmp_path / "state")
    state.rtx4090(used=77 * MIB)
    program = (
        "from engine.telemetry.probe import open_sampler\n"
        "s = open_sampler(); d = s.sample().devices; s.close()\n"
        "print(*[f'{x.name}={x.used_bytes}' for x in d[:1]], len(d))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ
        | {"LD_LIBRARY_PATH": str(nvml_library.parent), nvml.STATE: str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == f"NVIDIA GeForce RTX 4090={77 * MIB} 2"


def test_that_a_computer_without_the_library_still_answers(tmp_path: Path):
    program = (
        "from engine.telemetry.probe import open_sampler\n"
        "s = open_sampler(); x = s.sample(); s.close(); print(len(x.devices), x.notes)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    if "libnvidia-ml was not found" not in run.stdout:
        pytest.skip("this computer has NVIDIA's library")
    assert run.stdout.startswith("1 ")


def test_that_a_driver_that_is_not_ready_yet_is_asked_again_later(gpus: Gpus):
    gpus.set(init=9)
    sampler = open_sampler()
    snapshot = sampler.sample()
    sampler.close()
    assert [d.pool for d in snapshot.devices] == [PoolKind.HOST]
    assert snapshot.notes == ("NVIDIA devices cannot be read: the NVIDIA driver is not loaded.",)
