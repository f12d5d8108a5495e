"""What Linux tells beyond used and free, and the host's share of other tools' faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from engine.telemetry import mapped
from engine.telemetry.adapters import cgroup, host, host_details
from engine.telemetry.snapshot import Part, PoolKind, Pressure, ProcessReading
from tests.helpers.live_records import fault

if TYPE_CHECKING:
    from pathlib import Path

MIB, GIB = 2**20, 2**30


@dataclass
class Memory:
    total: int
    available: int


def gib(size: float) -> int:
    return round(size * GIB)


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_that_page_cache_of_a_group_without_a_limit_leaves_the_machine_s_memory_available(
    tmp_path: Path, shared: Path
):
    assert 'memory.max "max"; memory.current 25.69 GiB' in fault(shared, "B29")["input"]
    write(tmp_path, "proc/self/cgroup", "0::/\n")
    write(tmp_path, "sys/fs/cgroup/memory.max", "max\n")
    write(tmp_path, "sys/fs/cgroup/memory.current", f"{gib(25.69)}\n")
    write(
        tmp_path,
        "sys/fs/cgroup/memory.stat",
        f"anon {gib(0.44)}\nfile {gib(25.03)}\ninactive_file {gib(10.71)}\n"
        f"active_file {gib(14.23)}\n",
    )
    reading = host.reading(Memory(gib(32.77), gib(30.1)), cgroup.read(tmp_path), ())
    assert reading.free_bytes == gib(30.1)
    assert reading.name == "Computer"


def test_that_a_limit_of_version_one_that_means_none_limits_nothing(tmp_path: Path, shared: Path):
    assert "cgroup v1 limit 9223372036854771712" in fault(shared, "B41")["input"]
    write(tmp_path, "proc/self/cgroup", "4:memory:/docker/abc\n")
    top = "sys/fs/cgroup/memory/docker/abc"
    write(tmp_path, f"{top}/memory.limit_in_bytes", "9223372036854771712\n")
    write(tmp_path, f"{top}/memory.usage_in_bytes", f"{400 * GIB}\n")
    reading = host.reading(Memory(512 * GIB, 480 * GIB), cgroup.read(tmp_path), ())
    assert reading.free_bytes == 480 * GIB


def test_that_mapped_weights_are_told_from_what_must_stay(tmp_path: Path, shared: Path):
    assert "RssAnon 1.1 GiB, RssFile 38.9 GiB" in fault(shared, "B31")["input"]
    write(
        tmp_path,
        "7/status",
        f"Name:\tllama-server\nVmRSS:\t{gib(40) // 1024} kB\nRssAnon:\t{gib(1.1) // 1024} kB\n"
        f"RssFile:\t{gib(38.9) // 1024} kB\nRssShmem:\t0 kB\n",
    )
    (tmp_path / "7/cmdline").write_bytes(b"llama-server\0-m\0a.gguf\0")
    (server,) = host.processes(tmp_path)
    assert (server.used_bytes, server.file_bytes) == (
        gib(1.1) // 1024 * 1024,
        gib(38.9) // 1024 * 1024,
    )
    assert mapped.file_bytes(server) == server.file_bytes
    reading = host.reading(Memory(62 * GIB, 55 * GIB), None, (server,))
    # Not a question of survival: the total in use still leaves room, held is 38.9 + 1.1
    assert reading.free_bytes == 55 * GIB - gib(38.9) // 1024 * 1024


def test_that_locked_weights_must_stay(tmp_path: Path):
    # llama-server --mlock: the file's 38 GiB are locked beside 1 GiB of its own
    write(
        tmp_path,
        "7/status",
        f"Name:\tllama-server\nVmLck:\t{39 * 2**20} kB\nRssAnon:\t{2**20} kB\n"
        f"RssFile:\t{38 * 2**20 + 8192} kB\nRssShmem:\t0 kB\n",
    )
    (server,) = host.processes(tmp_path)
    assert (server.used_bytes, server.file_bytes) == (39 * GIB, 8 * MIB)


def test_that_huge_pages_of_a_process_count_as_its_own(tmp_path: Path):
    write(
        tmp_path,
        "7/status",
        f"Name:\tx\nRssAnon:\t{2**20} kB\nRssFile:\t0 kB\nRssShmem:\t0 kB\n"
        f"HugetlbPages:\t{4 * 2**20} kB\n",
    )
    (process,) = host.processes(tmp_path)
    assert process.used_bytes == 5 * GIB


def meminfo(root: Path, **more: str) -> None:
    fields = {"MemTotal": "67108864 kB", "MemFree": "1048576 kB", "MemAvailable": "33554432 kB"}
    lines = (f"{key}: {value}\n" for key, value in (fields | more).items())
    write(root, "proc/meminfo", "".join(lines))


def test_that_huge_pages_and_swap_are_said(tmp_path: Path):
    meminfo(
        tmp_path,
        HugePages_Total="1024",
        HugePages_Free="24",
        Hugepagesize="2048 kB",
        SwapTotal="8388608 kB",
        SwapFree="7340032 kB",
    )
    details = host_details.read(tmp_path)
    assert (details.huge_bytes, details.huge_free_bytes) == (2 * GIB, 48 * MIB)
    assert details.swapped_bytes == GIB
    reading = host.reading(Memory(64 * GIB, 32 * GIB), None, (), details)
    assert reading.note == "2.00 GiB are set aside for huge pages. 1.00 GiB are swapped out."
    assert reading.name == "Computer"


def test_that_what_zfs_gives_back_is_available(tmp_path: Path):
    write(
        tmp_path,
        "proc/spl/kstat/zfs/arcstats",
        "13 1 0x01 123 33456 8000000000 9000000000\nname                            type data\n"
        f"c_min        4    {2 * GIB}\nsize         4    {18 * GIB}\n",
    )
    details = host_details.read(tmp_path)
    assert details.giving_back_bytes == 16 * GIB
    reading = host.reading(Memory(64 * GIB, 30 * GIB), None, (), details)
    assert reading.free_bytes == 46 * GIB
    assert "16.00 GiB of ZFS's cache count as free" in reading.note


@pytest.mark.parametrize(
    ("some", "full", "pressure"),
    [
        ("0.00", "0.00", Pressure.NONE),
        ("12.50", "1.00", Pressure.SOME),
        ("60.00", "31.25", Pressure.CRITICAL),
    ],
)
def test_that_waiting_for_memory_is_pressure(
    tmp_path: Path, some: str, full: str, pressure: Pressure
):
    write(
        tmp_path,
        "proc/pressure/memory",
        f"some avg10={some} avg60=0.00 avg300=0.00 total=0\n"
        f"full avg10={full} avg60=0.00 avg300=0.00 total=0\n",
    )
    assert host_details.read(tmp_path).pressure is pressure
    assert (
        host.reading(Memory(GIB, GIB), None, (), host_details.read(tmp_path)).pressure is pressure
    )


def test_that_a_kernel_that_tells_no_pressure_is_not_called_free_of_it(tmp_path: Path):
    assert host_details.read(tmp_path).pressure is Pressure.UNKNOWN


def test_that_each_node_has_its_own_line_where_there_are_several(tmp_path: Path):
    for node, free in ((0, 8), (1, 24)):
        write(
            tmp_path,
            f"sys/devices/system/node/node{node}/meminfo",
            f"Node {node} MemTotal:       {32 * 2**20} kB\n"
            f"Node {node} MemFree:        {free * 2**20} kB\n"
            f"Node {node} FilePages:      {5 * 2**20} kB\nNode {node} Shmem:          {2**20} kB\n"
            f"Node {node} Active(file):   7 kB\n",
        )
    parts = host_details.read(tmp_path).nodes
    # used = 32 − free − (5 − 1) of cache
    assert parts == (Part("NUMA 0", 32 * GIB, 20 * GIB), Part("NUMA 1", 32 * GIB, 4 * GIB))


def test_that_one_node_is_the_computer_itself(tmp_path: Path):
    write(tmp_path, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 5 kB\n")
    assert host_details.read(tmp_path).nodes == ()


def test_that_processes_are_gone_through_every_other_second(tmp_path: Path):
    now = [0.0]
    adapter = host.HostAdapter(tmp_path, clock=lambda: now[0])

    def pids() -> list[int]:
        (reading,) = adapter.sample()
        assert isinstance(reading.processes, tuple)
        return sorted(p.pid for p in reading.processes)

    def start(pid: int) -> None:
        status = f"Name:\tp{pid}\nRssAnon:\t9000 kB\nRssFile:\t0 kB\nRssShmem:\t0 kB\n"
        write(tmp_path, f"proc/{pid}/status", status)

    start(1)
    assert pids() == [1]
    start(2)
    now[0] = 1.0
    assert pids() == [1]
    now[0] = 2.0
    assert pids() == [1, 2]


def test_that_a_reading_keeps_its_kind_and_its_sum_with_every_detail(tmp_path: Path):
    meminfo(tmp_path, HugePages_Total="1024", Hugepagesize="2048 kB")
    row = ProcessReading(5, "x", 20 * GIB, "x", 0)
    reading = host.reading(Memory(64 * GIB, 32 * GIB), None, (row,), host_details.read(tmp_path))
    parts = (reading.used_bytes, reading.free_bytes, reading.reserved_bytes)
    assert parts == (20 * GIB, 32 * GIB, 12 * GIB)
    assert reading.pool is PoolKind.HOST
