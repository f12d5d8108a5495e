"""Host RAM: what is used, what a container may use, who holds it."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import pytest

from engine.telemetry import mapped
from engine.telemetry.adapters import cgroup, host
from engine.telemetry.adapters.cgroup import GroupMemory
from engine.telemetry.snapshot import Missing, PoolKind, ProcessReading, Quality

if TYPE_CHECKING:
    from pathlib import Path

MIB, GIB = 2**20, 2**30
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@dataclass
class Memory:
    total: int
    available: int


def v2(root: Path, group: str, **files: object) -> None:
    """A cgroup v2 tree with this process in ``group``."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(f"0::{group}\n")
    folder = root / "sys/fs/cgroup" / group.strip("/")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("_", ".", 1)).write_text(f"{content}\n")


def test_that_the_host_reading_adds_up_and_agrees_with_psutil():
    (reading,) = host.HostAdapter().sample()
    assert reading.pool is PoolKind.HOST
    values = (reading.used_bytes, reading.free_bytes, reading.reserved_bytes)
    assert sum(v for v in values if isinstance(v, int)) == reading.total_bytes
    if not reading.note:
        assert reading.total_bytes == psutil.virtual_memory().total


def test_that_without_a_limit_the_machines_figures_hold():
    reading = host.reading(Memory(32 * GIB, 20 * GIB), None, ())
    assert (reading.total_bytes, reading.used_bytes) == (32 * GIB, 12 * GIB)
    assert reading.reserved_bytes == 0
    assert reading.note == ""


def test_that_a_containers_limit_is_the_total():
    reading = host.reading(Memory(32 * GIB, 20 * GIB), GroupMemory(4 * GIB, 1 * GIB), ())
    assert reading.total_bytes == 4 * GIB
    assert reading.used_bytes == 1 * GIB
    assert reading.free_bytes == 3 * GIB
    assert reading.note == "This container may use 4.00 GiB of the machine's 32.00 GiB."


def test_that_a_container_on_a_full_machine_can_get_no_more_than_the_machine_has():
    reading = host.reading(Memory(32 * GIB, 2 * GIB), GroupMemory(16 * GIB, 1 * GIB), ())
    assert reading.free_bytes == 2 * GIB
    assert reading.reserved_bytes == 13 * GIB  # taken by the machine outside the container


def test_that_a_limit_above_the_machines_ram_limits_nothing():
    reading = host.reading(Memory(32 * GIB, 20 * GIB), GroupMemory(64 * GIB, 1 * GIB), ())
    assert reading.total_bytes == 32 * GIB


def test_that_file_cache_charged_to_a_group_does_not_count_as_used(tmp_path: Path):
    # 25.69 GiB charged, of which 24.94 are file cache (ollama issue 15704)
    stat = (
        f"anon {int(0.44 * GIB)}\ninactive_file {int(10.71 * GIB)}\nactive_file {int(14.23 * GIB)}"
    )
    v2(tmp_path, "/", memory_max=32 * GIB, memory_current=int(25.69 * GIB), memory_stat=stat)
    group = cgroup.read(tmp_path)
    assert group is not None
    assert group.limit_bytes == 32 * GIB
    assert group.used_bytes / GIB == pytest.approx(0.75, abs=0.01)


def test_that_a_group_without_a_limit_limits_nothing(tmp_path: Path):
    v2(tmp_path, "/", memory_max="max", memory_current=123, memory_stat="")
    assert cgroup.read(tmp_path) is None


def test_that_the_tightest_limit_on_the_way_up_holds(tmp_path: Path):
    v2(tmp_path, "/pod", memory_max=2 * GIB, memory_current=1 * GIB, memory_stat="")
    v2(tmp_path, "/pod/container", memory_max="max", memory_current=MIB, memory_stat="")
    assert cgroup.read(tmp_path) == GroupMemory(2 * GIB, 1 * GIB)


def test_that_version_one_limits_are_read_and_its_none_is_none(tmp_path: Path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("9:name=systemd:/\n4:memory,hugetlb:/docker/abc\n")
    top = tmp_path / "sys/fs/cgroup/memory"
    inner = top / "docker/abc"
    inner.mkdir(parents=True)
    (top / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (top / "memory.usage_in_bytes").write_text("1\n")
    (inner / "memory.limit_in_bytes").write_text(f"{3 * GIB}\n")
    (inner / "memory.usage_in_bytes").write_text(f"{2 * GIB}\n")
    (inner / "memory.stat").write_text(
        f"inactive_file 5\ntotal_inactive_file {GIB // 2}\ntotal_active_file {GIB // 4}\n"
    )
    assert cgroup.read(tmp_path) == GroupMemory(3 * GIB, 2 * GIB - GIB // 2 - GIB // 4)


def test_that_a_group_named_with_dots_stays_below_the_cgroup_folder(tmp_path: Path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/../../../etc\n")
    assert cgroup.read(tmp_path) is None


@ON_LINUX
def test_that_mapped_files_are_told_from_memory_that_must_stay(tmp_path: Path):
    size = 64 * MIB
    path = tmp_path / "weights.gguf"
    path.write_bytes(b"\1" * size)
    program = (
        "import mmap, sys\n"
        f"f = open({str(path)!r}, 'rb')\n"
        "m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
        "sum(m[i] for i in range(0, len(m), 4096))\n"
        f"held = bytearray(b'\\1') * {32 * MIB}\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        (reading,) = host.HostAdapter().sample()
        child.communicate(b"")
    assert isinstance(reading.processes, tuple)
    row = next(p for p in reading.processes if p.pid == child.pid)
    assert isinstance(row.file_bytes, int)
    assert isinstance(row.used_bytes, int)
    assert 64 * MIB <= row.file_bytes < 96 * MIB
    assert 32 * MIB <= row.used_bytes < 64 * MIB


def test_that_small_processes_are_one_row_that_keeps_their_sum(tmp_path: Path):
    for pid, kib in ((10, 1000), (11, 2000), (12, 900_000)):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "status").write_text(
            f"Name:\tp{pid}\nRssAnon:\t{kib} kB\nRssFile:\t8 kB\nRssShmem:\t4 kB\n"
        )
        (folder / "cmdline").write_bytes(b"prog\0--token\0hf_abcdefghij\0")
    (tmp_path / "13").mkdir()
    (tmp_path / "13/status").write_text("Name:\tkthreadd\n")
    held = tuple(host.processes(tmp_path))
    reading = host.reading(Memory(GIB, GIB), None, held)
    assert isinstance(reading.processes, tuple)
    large, rest = reading.processes
    assert (large.pid, large.used_bytes) == (12, 900_004 * 1024)
    assert large.command == "prog --token ***"
    assert (rest.pid, rest.name) == (0, "2 smaller processes")
    assert rest.used_bytes == 3008 * 1024


@ON_LINUX
def test_that_a_reading_of_this_process_is_what_the_kernel_says():
    anonymous = mmap.mmap(-1, 48 * MIB)
    anonymous.write(b"\1" * (48 * MIB))
    (reading,) = host.HostAdapter().sample()
    assert isinstance(reading.processes, tuple)
    row = next(p for p in reading.processes if p.pid == os.getpid())
    info = psutil.Process().memory_info()
    assert isinstance(row.used_bytes, int)
    assert isinstance(row.file_bytes, int)
    assert row.used_bytes + row.file_bytes == pytest.approx(info.rss, rel=0.05)
    anonymous.close()


def server(pid: int, name: str, gib: int, command: str = "") -> ProcessReading:
    return ProcessReading(pid, name, GIB, command or f"{name} -m {pid}.gguf", gib * GIB)


def test_that_a_mapped_model_counts_as_held_whatever_the_system_calls_it():
    held = (server(7, "llama-server", 11), server(8, "vllm", 2, "vllm serve org/m"))
    reading = host.reading(Memory(64 * GIB, 50 * GIB), None, held)
    # 14 in use: 1 + 1 in processes, 12 in none; 11 mapped come out of the 50 free
    assert (reading.used_bytes, reading.free_bytes) == (13 * GIB, 39 * GIB)
    assert reading.reserved_bytes == 12 * GIB


def test_that_one_model_mapped_twice_counts_once_and_two_models_twice():
    one = server(7, "llama-server", 11, "llama-server -m a.gguf")
    same = server(8, "llama-server", 10, "llama-server -m a.gguf")
    other = server(9, "llama-server", 5, "llama-server -m b.gguf")
    assert mapped.model_bytes((one, same)) == 11 * GIB
    assert mapped.model_bytes((one, same, other)) == 16 * GIB


def test_that_more_is_never_mapped_than_the_system_calls_available():
    reading = host.reading(Memory(64 * GIB, 3 * GIB), None, (server(7, "llama-server", 11),))
    assert (reading.used_bytes, reading.free_bytes) == (4 * GIB, 0)
    assert reading.reserved_bytes == 60 * GIB  # 61 in use, 1 of it in a process


def test_that_what_a_plan_predicts_is_what_must_stay_and_what_is_mapped():
    assert mapped.held_bytes(server(7, "llama-server", 11)) == 12 * GIB
    assert mapped.held_bytes(server(8, "vllm", 2, "vllm serve org/m")) == GIB


def test_that_a_wider_group_that_is_nearly_full_leaves_little(tmp_path: Path):
    # The pod has 8 GiB of which its other container holds 7; ours may have 4 and holds 0.5.
    v2(tmp_path, "/pod", memory_max=8 * GIB, memory_current=7 * GIB + GIB // 2, memory_stat="")
    v2(tmp_path, "/pod/ours", memory_max=4 * GIB, memory_current=GIB // 2, memory_stat="")
    group = cgroup.read(tmp_path)
    assert group == GroupMemory(4 * GIB, GIB // 2, GIB // 2)
    reading = host.reading(Memory(64 * GIB, 50 * GIB), group, ())
    assert (reading.total_bytes, reading.used_bytes) == (4 * GIB, GIB // 2)
    assert reading.free_bytes == GIB // 2
    assert reading.reserved_bytes == 3 * GIB  # taken by the others of the pod


def test_that_a_wider_group_with_room_changes_nothing(tmp_path: Path):
    v2(tmp_path, "/pod", memory_max=32 * GIB, memory_current=GIB, memory_stat="")
    v2(tmp_path, "/pod/ours", memory_max=4 * GIB, memory_current=GIB // 2, memory_stat="")
    assert cgroup.read(tmp_path) == GroupMemory(4 * GIB, GIB // 2)


@pytest.mark.parametrize("none", [9223372036854771712, 9223372036854710272, 2**64 - 1])
def test_that_each_page_size_s_none_limits_nothing(tmp_path: Path, none: int):
    # 2^63 rounded down to pages of 4 and of 64 KiB
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/\n")
    top = tmp_path / "sys/fs/cgroup/memory"
    top.mkdir(parents=True)
    (top / "memory.limit_in_bytes").write_text(f"{none}\n")
    (top / "memory.usage_in_bytes").write_text("1\n")
    assert cgroup.read(tmp_path) is None


def test_that_memory_that_workers_share_is_marked_where_it_is_counted_for_each(tmp_path: Path):
    # Four workers with one object store of 30 GiB in /dev/shm, on a computer that uses 40 GiB
    for pid in (1, 2, 3, 4):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(
            f"Name:\tworker\nRssAnon:\t{2 * 2**20} kB\nRssFile:\t0 kB\nRssShmem:\t{30 * 2**20} kB\n"
        )
    (tmp_path / "5").mkdir()
    (tmp_path / "5/status").write_text(f"Name:\tother\nRssAnon:\t{2 * 2**20} kB\nRssShmem:\t0 kB\n")
    reading = host.reading(Memory(64 * GIB, 24 * GIB), None, tuple(host.processes(tmp_path)))
    assert not isinstance(reading.processes, Missing)
    assert {row.pid: row.quality for row in reading.processes} == {
        **dict.fromkeys((1, 2, 3, 4), Quality.OVER_COUNTS), 5: Quality.EXACT,
    }  # fmt: skip
    one = host.reading(Memory(64 * GIB, 24 * GIB), None, tuple(host.processes(tmp_path))[:1])
    assert not isinstance(one.processes, Missing)
    assert one.processes[0].quality is not Quality.OVER_COUNTS
