"""A hardware report of AMD's, Intel's, Apple's and Windows' sources, read again as a machine."""

from __future__ import annotations

import getpass
import json
import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine import redaction
from engine.devices import plain
from engine.devices.hardware_report import hardware_report
from engine.devices.here import this_machine
from engine.telemetry import raw, raw_systems
from engine.telemetry.adapters import apple, macos, windows_facts
from engine.telemetry.raw_linux import lay_out
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, TelemetrySnapshot
from tests.helpers import drm_tree as tree
from tests.helpers import smi
from tests.helpers.hardware_report import machine_of, others_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers.nvml import Gpus

GIB = 2**30
MIB = 2**20
KIB_OF_GIB = 2**20
SERIAL = "a1b2c3d4e5f60718"


@pytest.fixture(autouse=True)
def _names(gpus: Gpus, monkeypatch: pytest.MonkeyPatch):
    """No NVIDIA driver, and names of user and computer that stand in nothing else."""
    gpus.set(init=9)
    redaction._names.cache_clear()
    monkeypatch.setattr(getpass, "getuser", lambda: "annika")
    monkeypatch.setattr(platform, "node", lambda: "tower7")
    yield
    redaction._names.cache_clear()


def _copied(root: Path) -> dict[str, Any]:
    return json.loads(json.dumps(hardware_report(root, "Plimsoll test"), indent=1))


def _radeon_and_apu(root: Path) -> None:
    tree.card(
        root, mem_info_vram_total=24 * GIB, mem_info_vram_used=9 * GIB, mem_info_gtt_total=30 * GIB,
        mem_info_gtt_used=GIB, unique_id=SERIAL, serial_number=SERIAL, revision="0xc8",
    )  # fmt: skip
    tree.card(
        root, 1, address="0000:c5:00.0", device="0x150e", mem_info_vram_total=GIB // 2,
        mem_info_vram_used=MIB, mem_info_gtt_total=60 * GIB, mem_info_gtt_used=2 * GIB,
    )  # fmt: skip
    tree.meminfo(root, total_kib=125 * KIB_OF_GIB, available_kib=100 * KIB_OF_GIB)
    tree.write(root / "usr/share/libdrm/amdgpu.ids", "1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX")
    tree.fdinfo(
        root, 4711, 5, "privatename", drm_client_id=42, drm_client_name="annika's work",
        drm_memory_vram=f"{8 * KIB_OF_GIB} KiB", drm_memory_gtt="512 KiB",
    )  # fmt: skip
    node = root / "sys/class/kfd/kfd/topology/nodes/1"
    tree.write(node / "gpu_id", 5005)
    tree.write(node / "properties", "simd_count 96\nlocation_id 768\ndomain 0\nunique_id 81985529")
    tree.write(root / "sys/class/kfd/kfd/proc/4711/vram_5005", 8 * GIB + MIB)


def test_that_a_report_of_amds_cards_makes_the_same_machine_again(tmp_path: Path):
    root = tmp_path / "root"
    _radeon_and_apu(root)
    report = _copied(root)
    first, second = report["machine"]["devices"]
    assert first["total_bytes"] == 24 * GIB
    assert second["total_bytes"] == GIB // 2 + 60 * GIB
    again = tmp_path / "again"
    assert plain.to_dict(machine_of(report, again)) == report["machine"]
    card, _ = others_of(report["sources"], again)
    assert card.name == "AMD Radeon RX 7900 XTX"
    assert not isinstance(card.processes, Missing)
    (row,) = card.processes
    assert row.used_bytes == 8 * GIB + MIB
    assert row.spill_bytes == 512 * 1024


def test_that_a_report_of_cards_names_no_serial_number_person_or_program(tmp_path: Path):
    root = tmp_path / "root"
    _radeon_and_apu(root)
    text = json.dumps(_copied(root))
    for word in (SERIAL, "81985529", "privatename", "annika", "tower7", "4711"):
        assert word not in text
    assert str(9 * GIB) in text


def test_that_a_report_of_intels_card_keeps_what_its_library_said(tmp_path: Path):
    root = tmp_path / "root"
    tree.card(root, vendor="0x8086", device="0xe20b", driver="xe", display="DP-1")
    tree.fdinfo(
        root, 4711, 5, "privatename", drm_driver="xe", drm_client_id=1,
        drm_resident_vram0=f"{3 * KIB_OF_GIB} KiB",
    )  # fmt: skip
    report = _copied(root)
    again = tmp_path / "again"
    assert plain.to_dict(machine_of(report, again)) == report["machine"]
    assert report["sources"]["Level Zero"] == {"silent": "Level Zero is not on this computer"}
    sources = report["sources"] | {"Intel regions": {"0000:03:00.0": [[True, 12 * GIB, 4 * GIB]]}}
    (card,) = others_of(sources, again)
    assert (card.name, card.used_bytes) == ("Intel Arc B580", 4 * GIB)
    assert not isinstance(card.processes, Missing)
    assert [row.used_bytes for row in card.processes] == [3 * GIB]


def test_that_a_card_that_only_the_library_knows_is_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # As ROCm installs it: found by ROCM_PATH, asked through its C interface.
    rocm, state = tmp_path / "rocm/lib", tmp_path / "state"
    rocm.mkdir(parents=True)
    smi.build(rocm).rename(rocm / "libamd_smi.so")
    monkeypatch.setenv("ROCM_PATH", str(rocm.parent))
    monkeypatch.setenv(smi.STATE, str(state))
    library = smi.Smi(rocm / "libamd_smi.so", state)
    library.gpu(
        0, "0000:83:00.0", name="AMD Instinct MI210",
        vram=f"{64 * GIB}:{5 * GIB}", gtt=f"{128 * GIB}:0",
    )  # fmt: skip
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    tree.on_bus(root, "0000:83:00.0", vendor="0x1002", kind="0x120000", device="0x740f")
    report = _copied(root)
    (card,) = report["machine"]["devices"]
    assert (card["total_bytes"], card["source"]) == (64 * GIB, "amdsmi")
    assert "MI210" in card["name"]
    again = tmp_path / "again"
    assert plain.to_dict(machine_of(report, again)) == report["machine"]


def _host(total: int) -> DeviceReading:
    used = total // 4
    return DeviceReading(
        "host", "Computer", PoolKind.HOST, total, used, total - used, 0, (), "psutil 7"
    )


def _machine(total: int, *devices: DeviceReading) -> dict[str, Any]:
    snapshot = TelemetrySnapshot(0.0, 0.0, (*devices, _host(total)))
    return plain.to_dict(this_machine(snapshot))


VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                              300000.
Pages wired down:                        262144.
Pages purgeable:                          20000.
Anonymous pages:                         900000.
Pages occupied by compressor:            131072.
"""
IOREG = f"""+-o AGXAcceleratorG16X  <class AGXAcceleratorG16X, id 0x1000004d2>
    {{
      "IOPlatformSerialNumber" = "{SERIAL}"
      "PerformanceStatistics" = {{"In use system memory (driver)"=0,"Alloc system memory"=9663676416,"Device Utilization %"=67,"In use system memory"=8589934592}}
    }}
"""  # noqa: E501 - as ioreg prints it
CLIENTS = """+-o AGXDeviceUserClient
      "IOUserClientCreator" = "pid 4711, privatename"
"""


def test_that_a_report_of_a_mac_makes_the_same_machine_again(tmp_path: Path):
    total = 64 * GIB
    printed = {
        macos.SYSCTL: f"kern.hostname: tower7\nhw.memsize: {total}\niogpu.wired_limit_mb: 57344\n"
        "machdep.cpu.brand_string: Apple M4 Max\nkern.memorystatus_vm_pressure_level: 1",
        macos.VM_STAT: VM_STAT,
        apple.GPU: IOREG,
        apple.CLIENTS: CLIENTS,
    }
    asked = apple.Sources(
        lambda command: printed[command],
        lambda: 51 * GIB,
        lambda pid: 7 * GIB if pid == 4711 else None,
        lambda _: ("privatename", "--of", "annika"),
    )
    masks = raw.Masks()
    sources, devices = raw_systems.of_apple(masks, asked)
    copied = json.loads(json.dumps(sources))
    for word in (SERIAL, "tower7", "annika", "privatename", "4711"):
        assert word not in json.dumps(copied)
    (before,) = masks.snapshot(TelemetrySnapshot(0.0, 0.0, devices)).devices
    (after,) = others_of(copied, tmp_path)
    assert after.used_bytes == 8 * GIB
    assert after.ceiling_bytes == 56 * GIB
    assert not isinstance(after.processes, Missing)
    assert [row.used_bytes for row in after.processes] == [7 * GIB]
    assert replace(after, age_s=0.0) == replace(before, age_s=0.0)
    assert _machine(total, after) == _machine(total, *devices)


class Door:
    """Windows with one card of 16 GiB."""

    def graphics(self) -> tuple[windows_facts.Graphics, ...]:
        luid = "luid_0x00000000_0x0000d1b2"
        name = "AMD Radeon RX 9070 XT"
        unknown = windows_facts.Graphics(
            "luid_0x00000000_0x0000eeee", "Basic", Missing("not told"), 8 * GIB
        )
        card = windows_facts.Graphics(luid, name, 16 * GIB, 32 * GIB, "0000:03:00.0", "AMD")
        return card, unknown

    def counted(self) -> windows_facts.Counted:
        card = "luid_0x00000000_0x0000D1B2_phys_0"
        process = f"pid_4711_{card}"
        return windows_facts.Counted(
            {"Dedicated Usage": {card: 6 * GIB}, "Shared Usage": {card: GIB}},
            {
                "Local Usage": {process: 5 * GIB},
                "Non Local Usage": {process: 0},
                "Dedicated Usage": {process: 9 * GIB},
            },
        )

    def close(self) -> None:
        pass


def test_that_a_report_of_windows_counters_makes_the_same_machine_again(tmp_path: Path):
    masks = raw.Masks()
    sources, devices, why = raw_systems.of_windows(masks, Door)
    assert why == ""
    copied = json.loads(json.dumps(sources))
    assert "4711" not in json.dumps(copied)
    after = tuple(others_of(copied, tmp_path))
    assert after[0].used_bytes == 6 * GIB
    assert not isinstance(after[0].processes, Missing)
    (row,) = after[0].processes
    assert (row.used_bytes, row.committed_bytes) == (5 * GIB, 9 * GIB)
    assert row.pid == masks.pid(4711)
    assert isinstance(after[1].total_bytes, Missing)
    assert _machine(64 * GIB, *after) == _machine(64 * GIB, *devices)


def test_that_a_strangers_report_writes_nothing_outside_its_folder(tmp_path: Path):
    inside = tmp_path / "inside"
    inside.mkdir()
    lay_out({"../outside": "x", "/etc/x-plimsoll": "x", "a/b": "kept", "cut": 3}, inside)
    assert [file.name for file in tmp_path.iterdir() if file.name == "outside"] == []
    assert (inside / "a/b").read_text() == "kept"
