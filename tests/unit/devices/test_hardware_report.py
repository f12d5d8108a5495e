"""A report on the hardware: what the sources said, passed on without whose computer it is."""

from __future__ import annotations

import getpass
import json
import platform
from pathlib import Path

import pytest

from engine import redaction
from engine.devices import plain
from engine.devices.hardware_report import hardware_report
from engine.telemetry import raw
from tests.helpers.hardware_report import machine_of
from tests.helpers.nvml import MIB

GIB = 2**30


def _copied(root: Path = Path("/")) -> dict:
    """The report as it comes out of the clipboard."""
    return json.loads(json.dumps(hardware_report(root, "Plimsoll test"), indent=1))


def test_that_a_copied_report_makes_the_same_machine_again(gpus, tmp_path):
    gpus.rtx4090(used=420 * MIB, uuid="GPU-8e9f11aa-0000-1111-2222-333344445555")
    gpus.rtx4090(1, used=0)
    report = _copied()
    machine = machine_of(report, tmp_path)
    assert plain.to_dict(machine) == report["machine"]
    first, second = machine.slots
    assert first.device.total_bytes == 24564 * MIB
    assert first.foreign.likely_bytes == 420 * MIB
    assert first.uuid != second.uuid


def test_that_a_report_without_a_driver_makes_the_same_machine_again(gpus, tmp_path):
    gpus.set(init=9)
    report = _copied()
    assert report["sources"]["NVML"]["nvmlInit"] == {"error": 9}
    assert any("not loaded" in note for note in report["snapshot"]["notes"])
    machine = machine_of(report, tmp_path)
    assert plain.to_dict(machine) == report["machine"]
    assert machine.slots == (machine.host,)


def test_that_a_container_s_limit_is_in_the_report(gpus, tmp_path):
    root, again = tmp_path / "root", tmp_path / "again"
    group = root / "sys/fs/cgroup/a"
    group.mkdir(parents=True)
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("0::/a\n")
    (group / "memory.max").write_text(f"{2 * GIB}\n")
    (group / "memory.current").write_text(f"{GIB}\n")
    (group / "memory.stat").write_text(f"inactive_file {GIB // 4}\nactive_file 0\n")
    report = _copied(root)
    assert report["machine"]["host"]["total_bytes"] == 2 * GIB
    assert plain.to_dict(machine_of(report, again)) == report["machine"]


@pytest.fixture
def names(monkeypatch):
    """Names of user and computer that stand in nothing else."""
    redaction._names.cache_clear()
    monkeypatch.setattr(getpass, "getuser", lambda: "annika")
    monkeypatch.setattr(platform, "node", lambda: "tower7")
    yield
    redaction._names.cache_clear()


@pytest.mark.usefixtures("names")
def test_that_a_report_names_no_serial_number_person_computer_or_program(gpus, tmp_path):
    serial = "GPU-8e9f11aa-0000-1111-2222-333344445555"
    gpus.rtx4090(used=GIB, uuid=serial)
    root = tmp_path / "root"
    (root / "proc/self").mkdir(parents=True)
    container = "9" * 64
    group = f"sys/fs/cgroup/annika/{container}"
    (root / group).mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"0::/annika/{container}\n")
    (root / group / "memory.max").write_text("max\n")
    ours = root / "proc/4711"
    ours.mkdir()
    (ours / "status").write_text("Name:\tprivatename\nRssAnon:\t9000 kB\nRssShmem:\t0 kB\n")
    (ours / "cmdline").write_bytes(b"privatename\0--to\0tower7\0")
    text = json.dumps(hardware_report(root, "Plimsoll test"))
    for word in (serial, "annika", "tower7", "privatename", container, "4711"):
        assert word not in text
    assert "9216000" in text


def test_that_no_source_says_more_than_16_kib_and_what_is_left_out_is_counted(gpus, tmp_path):
    for index in range(16):
        gpus.rtx4090(index)
    group = tmp_path / "sys/fs/cgroup/a"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/a\n")
    (group / "memory.max").write_text(f"{2 * GIB}\n")
    (group / "memory.current").write_text(f"{GIB}\n")
    (group / "memory.stat").write_text("anon 1\n" * 6000)
    report = _copied(tmp_path)
    made = {"NVML", "psutil", "files", "processes", "PCI", "amdsmi", "Level Zero"}
    assert set(report["sources"]) == made
    for answers in report["sources"].values():
        assert len(json.dumps(answers)) <= raw.MOST_BYTES == 16 * 1024
    assert report["sources"]["files"]["cut"] == 1
    assert "sys/fs/cgroup/a/memory.max" in report["sources"]["files"]


def test_that_a_mapped_model_still_counts_as_held_where_the_report_is_read(gpus, tmp_path):
    gpus.set(init=9)
    root, again = tmp_path / "root", tmp_path / "again"
    server = root / "proc/12"
    server.mkdir(parents=True)
    (server / "status").write_text(
        "Name:\tllama-server\nRssAnon:\t102400 kB\nRssShmem:\t0 kB\nRssFile:\t1048576 kB\n"
    )
    (server / "cmdline").write_bytes(b"llama-server\0-m\0/data/annika/private.gguf\0")
    report = _copied(root)
    assert "private" not in json.dumps(report)
    assert plain.to_dict(machine_of(report, again)) == report["machine"]
    (row,) = report["sources"]["processes"]
    assert row["file_bytes"] == GIB
