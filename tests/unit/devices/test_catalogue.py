"""The bundled devices against what drivers and frameworks printed."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from engine.devices import catalogue, names
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeviceError
from engine.evidence import Basis

if TYPE_CHECKING:
    from pathlib import Path

MIB, GIB = 2**20, 2**30

# The rows of the capacity table under our names. A class row stands for one of its cards.
OURS = {
    "NVIDIA B300 SXM6 AC": ["B300"],
    "NVIDIA GB200": ["GB200"],
    "NVIDIA B200": ["B200"],
    "NVIDIA H200 / H200 NVL": ["H200", "H200 NVL"],
    "NVIDIA H20": ["H20"],
    "NVIDIA GH200 (96 GB HBM3)": ["GH200 96GB"],
    "NVIDIA H100 NVL": ["H100 NVL"],
    "NVIDIA H100 80GB HBM3 (SXM) / H100 PCIe": ["H100 80GB HBM3", "H100 PCIe"],
    "NVIDIA A100 80GB (SXM/PCIe)": ["A100-SXM4-80GB", "A100 80GB PCIe"],
    "NVIDIA A100 40GB": ["A100 40GB"],
    "Tesla V100 32GB": ["V100 32GB"],
    "Tesla V100 16GB": ["V100 16GB"],
    "NVIDIA RTX PRO 6000 Blackwell": ["RTX PRO 6000 Blackwell"],
    "NVIDIA RTX 6000D": ["RTX 6000D"],
    "NVIDIA L40S / L40": ["L40S", "L40"],
    "NVIDIA A40": ["A40"],
    "NVIDIA RTX 6000 Ada": ["RTX 6000 Ada (ECC on)"],
    "NVIDIA RTX A6000 / Quadro RTX 8000": ["RTX A6000 (ECC on)", "Quadro RTX 8000 (ECC on)"],
    "NVIDIA RTX 4000 Ada / 4000 SFF Ada": ["RTX 4000 Ada (ECC on)"],
    "NVIDIA A10 / A10G": ["A10", "A10G"],
    "NVIDIA L4": ["L4"],
    "Tesla T4": ["Tesla T4"],
    "Tesla P100-PCIE-16GB": ["Tesla P100-PCIE-16GB"],
    "NVIDIA GeForce RTX 5090": ["RTX 5090"],
    "NVIDIA GeForce RTX 5080": ["RTX 5080"],
    "NVIDIA GeForce RTX 5070 Ti": ["RTX 5070 Ti"],
    "NVIDIA GeForce RTX 5070": ["RTX 5070"],
    "NVIDIA GeForce RTX 5060 Ti 16GB": ["RTX 5060 Ti 16GB"],
    "NVIDIA GeForce RTX 5060 Ti 8GB": ["RTX 5060 Ti 8GB"],
    "NVIDIA GeForce RTX 4090": ["NVIDIA GeForce RTX 4090"],
    "NVIDIA GeForce RTX 4080 / 4080 SUPER": ["RTX 4080", "RTX 4080 SUPER"],
    "NVIDIA GeForce RTX 4070 / Ti / SUPER 12GB": ["RTX 4070", "RTX 4070 Ti", "RTX 4070 SUPER"],
    "NVIDIA GeForce RTX 4060 Ti 16GB": ["RTX 4060 Ti 16GB"],
    "NVIDIA GeForce RTX 4060 Ti / 4060 / 4070 Laptop 8GB": [
        "RTX 4060 Ti 8GB", "RTX 4060", "RTX 4070 Laptop GPU",
    ],
    "NVIDIA GeForce RTX 4080 Laptop 12GB": ["RTX 4080 Laptop GPU"],
    "NVIDIA GeForce RTX 3090 / 3090 Ti": ["RTX 3090", "RTX 3090 Ti"],
    "NVIDIA GeForce RTX 3080 10GB": ["RTX 3080 10GB"],
    "NVIDIA GeForce RTX 3080 12GB": ["RTX 3080 12GB"],
    "NVIDIA GeForce RTX 3060 12GB": ["RTX 3060 12GB"],
    "NVIDIA GeForce RTX 2080 Ti": ["RTX 2080 Ti"],
    "NVIDIA GB10 (DGX Spark)": ["GB10"],
    "AMD Instinct MI350-series (0x75b0)": ["MI350X", "MI355X"],
    "AMD Instinct MI300X": ["MI300X"],
    "AMD Instinct MI250 (per GCD)": ["MI250"],
    "AMD Radeon RX 7900 XTX": ["RX 7900 XTX"],
    "AMD Radeon 16 GB class": ["RX 6800", "RX 9070 XT"],
    "AMD 32 GB class": ["AMD 32 GB class"],
    "Intel 32 GB class": ["Intel 32 GB class"],
}  # fmt: skip


def rows(shared: Path) -> list[dict[str, str]]:
    text = (shared / "memory-model/gpu-capacity.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_that_every_measured_driver_total_is_ours_to_the_mib(shared: Path):
    checked = 0
    for row in rows(shared):
        names = OURS[row["device"]]
        if not row["driver_total_mib"] and not row["driver_total_ecc_off_mib"]:
            continue
        accepted = {
            int(x) for x in (row["driver_total_mib"] or row["driver_total_ecc_off_mib"]).split("|")
        }
        for name in names:
            device = catalogue.find(name)
            assert device.total_bytes % MIB == 0
            assert device.total_bytes // MIB in accepted, name
            checked += 1
    assert checked >= 55


def test_that_totals_with_ecc_off_are_ours_too(shared: Path):
    variants = {
        "NVIDIA L40S / L40": ("L40S (ECC off)", "L40 (ECC off)"),
        "NVIDIA A40": ("A40 (ECC off)",),
        "NVIDIA RTX 6000 Ada": ("RTX 6000 Ada",),
        "NVIDIA RTX A6000 / Quadro RTX 8000": ("RTX A6000", "Quadro RTX 8000"),
        "NVIDIA RTX 4000 Ada / 4000 SFF Ada": ("RTX 4000 Ada",),
        "NVIDIA A10 / A10G": ("A10 (ECC off)",),
        "Tesla T4": ("T4 (ECC off)",),
    }
    for row in rows(shared):
        for name in variants.get(row["device"], ()):
            total = catalogue.find(name).total_bytes
            assert total == int(row["driver_total_ecc_off_mib"]) * MIB


def test_that_ecc_takes_a_sixteenth_of_gddr_memory():
    for on, off in (("A40", "A40 (ECC off)"), ("T4", "T4 (ECC off)"), ("A10", "A10 (ECC off)")):
        with_ecc, without = catalogue.find(on).total_bytes, catalogue.find(off).total_bytes
        assert abs(with_ecc - without * 15 // 16) <= MIB


def test_that_every_framework_total_that_was_printed_lies_in_our_range(shared: Path):
    checked = 0
    for path in ("truth/runtime-logs/records.jsonl", "truth/second-corpus/records.jsonl"):
        for line in (shared / path).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            total, name = record.get("gpu_total_gib"), record.get("gpu") or ""
            try:
                device = catalogue.find(name)
            except DeviceError:
                continue
            if not total or device.vendor is Vendor.APPLE or "WSL" in name:
                continue
            # printed with one or two decimals; Windows and whole-card figures state the total
            allowed = (device.allocatable.low_bytes / GIB - 0.01, device.total_bytes / GIB + 0.05)
            assert allowed[0] <= total <= allowed[1], (name, total)
            checked += 1
    assert checked >= 70


def test_that_metal_limits_printed_by_macs_lie_in_our_range():
    # llama.cpp breakdown tables, MiB (memory specification, 4.6, and its second corpus)
    printed = {
        "M5 24 GB": (18186,),
        "M3 Max 64 GB": (53084, 49152),
        "M1 8 GB": (5461,),
        "M4 Pro 64 GB": (59392,),
        "M4 Pro 48 GB": (38338,),
        "M3 Max 128 GB": (110100,),
        "M3 Ultra 256 GB": (212992,),
    }
    for name, limits in printed.items():
        allocatable = catalogue.find(name).allocatable
        for limit in limits:
            assert allocatable.low_bytes <= (limit + 1) * MIB
            assert limit * MIB <= allocatable.high_bytes + MIB


def test_that_there_are_enough_devices_and_each_is_whole():
    devices = catalogue.devices()
    assert len(devices) >= 120
    assert len({d.name for d in devices}) == len(devices)
    for device in devices:
        estimate = device.allocatable
        assert 0 < estimate.low_bytes <= estimate.likely_bytes <= estimate.high_bytes
        assert estimate.high_bytes <= device.total_bytes
        assert estimate.likely_bytes > device.total_bytes // 2
        assert device.source
        assert estimate.source
        assert device.label
        assert estimate.basis is not Basis.MEASURED  # nothing here was measured on this machine


def test_that_a_device_is_found_by_its_own_name_and_every_alias_leads_to_it():
    for device in catalogue.devices():
        assert catalogue.find(device.name) is device
        assert catalogue.match(device.name, device.total_bytes) is device


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("h100", "H100 SXM 80GB"),
        ("H100 80GB", "H100 SXM 80GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM 80GB"),
        ("nvidia geforce rtx 4090", "RTX 4090"),
        ("RTX4090", "RTX 4090"),
        ("rtx-4090", "RTX 4090"),
        ("4090", "RTX 4090"),
        ("3090ti", "RTX 3090 Ti"),
        ("A100-SXM4-80G", "A100 80GB"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB"),
        ("Tesla T4", "T4"),
        ("L40S", "L40S"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA GeForce RTX 4070 Laptop GPU", "RTX 4070 Laptop"),
        ("AMD Instinct MI300X 192GB", "MI300X"),
        ("apple m4 pro 48gb", "M4 Pro 48 GB"),
        ("Apple M3 Ultra 256GB", "M3 Ultra 256 GB"),
        ("NVIDIA GB10 (DGX Spark)", "GB10 (DGX Spark)"),
        ("AMD Ryzen AI Max+ 395 / Radeon 8060S (Strix Halo, 128 GB, gfx1151)",
         "Ryzen AI Max+ 395 128 GB"),
    ],
)  # fmt: skip
def test_that_a_device_is_found_as_people_and_drivers_write_it(written: str, name: str):
    assert catalogue.find(written).name == name


def test_that_a_name_of_several_sizes_is_not_guessed():
    with pytest.raises(DeviceError) as caught:
        catalogue.find("A100")
    assert caught.value.message == "'A100' comes in several sizes: say A100 80GB or A100 40GB."
    assert caught.value.field == "gpu"


def test_that_the_size_a_driver_states_decides_between_variants():
    def matched(name: str, mib: int) -> str | None:
        device = catalogue.match(name, mib * MIB)
        return device.name if device else None

    assert matched("NVIDIA GeForce RTX 4060 Ti", 16380) == "RTX 4060 Ti 16GB"
    assert matched("NVIDIA GeForce RTX 4060 Ti", 8188) == "RTX 4060 Ti 8GB"
    assert matched("NVIDIA RTX 6000 Ada Generation", 46068) == "RTX 6000 Ada (ECC on)"
    assert matched("Tesla T4", 16384) == "T4 (ECC off)"
    assert matched("NVIDIA GeForce RTX 4090", 49140) is None  # a card rebuilt with twice the memory
    assert matched("Unheard of", 8188) is None


def test_that_an_unknown_device_is_answered_with_the_nearest_names():
    with pytest.raises(DeviceError, match=r"did you mean RTX 4090"):
        catalogue.find("RTX 4091")


@pytest.mark.parametrize("name", ["", "   ", "24 GB", "(((", "\u202e\x1b[31m", "9" * 10**6, "🙂"])
def test_that_junk_is_answered_with_one_printable_sentence(name: str):
    with pytest.raises(DeviceError) as caught:
        catalogue.find(name)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 400


def test_that_a_capacity_as_given_is_allocatable_to_the_byte():
    device = catalogue.custom(int(79.18 * GIB))
    assert device.allocatable.likely_bytes == device.total_bytes == int(79.18 * GIB)
    assert device.allocatable.basis is Basis.SETTING


def test_that_a_capacity_as_given_keeps_the_card_it_is_like():
    card = catalogue.find("H100")
    device = catalogue.custom(70 * GIB, like=card)
    assert (device.sm_count, device.compute_capability) == (132, 9.0)
    assert device.allocatable.likely_bytes == 70 * GIB


@pytest.mark.parametrize("size", [0, -1, 2**63])
def test_that_an_impossible_capacity_is_refused_with_its_field(size: int):
    with pytest.raises(DeviceError) as caught:
        catalogue.custom(size)
    assert caught.value.field == "gpu_total_bytes"


def test_that_a_machine_of_several_devices_says_that_it_is_not_here():
    machine = catalogue.machine(catalogue.find("RTX 4090"), 2)
    assert machine.name == "2 × RTX 4090"
    assert len(machine.slots) == 2
    assert not machine.is_here
    assert all(s.foreign.basis is Basis.ASSUMED for s in machine.slots)
    assert machine.host.device.allocatable.basis is Basis.ASSUMED
    assert machine.host.device.kind is DeviceKind.HOST


@pytest.mark.parametrize(
    ("listed", "gib"), [("12 GiB + 12 GiB + 24 GiB", 64), ("80 GiB + 12 GiB", 92)]
)
def test_that_the_assumed_ram_beside_mixed_cards_follows_from_all_of_them(listed: str, gib: int):
    machine = catalogue.mixed(catalogue.named(listed))
    assert machine.host.device.allocatable.likely_bytes == gib * GIB


def test_that_a_unified_devices_host_memory_is_the_same_memory():
    machine = catalogue.machine(catalogue.find("M4 Pro 48 GB"))
    assert machine.host.device.total_bytes == machine.slots[0].device.total_bytes


@pytest.mark.parametrize("count", [0, -1, 10**9])
def test_that_an_impossible_count_is_refused(count: int):
    with pytest.raises(DeviceError) as caught:
        catalogue.machine(catalogue.find("H100"), count)
    assert caught.value.field == "gpu_count"


def test_that_a_machine_may_hold_different_devices():
    found = catalogue.mixed(catalogue.named("RTX 4090 + 2 x RTX 3060 12GB"))
    assert [slot.device.name for slot in found.slots] == ["RTX 4090", *("RTX 3060 12GB",) * 2]
    assert found.name == "RTX 4090 + 2 × RTX 3060 12GB"
    assert catalogue.named("2 × RTX 4090") == (catalogue.find("RTX 4090"),) * 2
    assert catalogue.mixed(catalogue.named("2x RTX 4090")).name == "2 × RTX 4090"


def test_that_no_device_of_a_list_is_passed_over():
    assert catalogue.named("4x4090") == (catalogue.find("RTX 4090"),) * 4
    assert catalogue.find("NVIDIA GeForce RTX 4090, 24564 MiB").name == "RTX 4090"
    with pytest.raises(DeviceError, match=r"write 'RTX 4090 \+ RTX 3090'"):
        catalogue.find("RTX 4090, RTX 3090")


def test_that_memory_alone_is_a_device_too():
    (card,) = catalogue.named("24 GB")
    assert card.total_bytes == 24 * 10**9
    assert card.allocatable.likely_bytes == 24 * 10**9
    assert catalogue.planned("40 GiB", 2).slots[1].device.total_bytes == 40 * 2**30
    both = catalogue.planned("RTX 4090 + 2 x 16 GiB", 1)
    assert [slot.device.total_bytes // 2**30 for slot in both.slots] == [23, 16, 16]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0 x RTX 4090", "0"),
        ("1025 x RTX 4090", "1,025"),
        ("RTX 3060 12GB + 1000000000x24 GB", "1,000,000,000"),
    ],
)
def test_that_an_impossible_count_of_a_list_is_named_as_such(text: str, count: str):
    with pytest.raises(DeviceError) as caught:
        catalogue.mixed(catalogue.named(text))
    said = f"A machine of {count} devices cannot be planned: give 1 to 1,024."
    assert caught.value.message == said
    assert caught.value.field == "gpu"


def test_that_a_count_alone_is_a_list_too():
    assert catalogue.lists("2 x RTX 3090")
    assert not catalogue.lists("RTX 3090")
    assert catalogue.mixed(catalogue.named("2 x RTX 3090")).name == "2 × RTX 3090"


@pytest.mark.parametrize("text", ["RTX 4090 + ", "RTX 4090 + nonesuch", "RTX 4090 + M4 24 GB"])
def test_that_a_machine_that_cannot_be_is_refused(text: str):
    with pytest.raises(DeviceError):
        catalogue.mixed(catalogue.named(text))


def test_that_many_devices_are_matched_without_reading_the_whole_catalogue_s_names_each_time(
    monkeypatch,
):
    catalogue.match("NVIDIA H100 80GB HBM3", 81559 * 2**20)
    asked = []
    keys = names.keys
    monkeypatch.setattr(names, "keys", lambda name: asked.append(name) or keys(name))
    for _ in range(3):
        catalogue.match("NVIDIA H100 80GB HBM3", 81559 * 2**20)
    assert set(asked) == {"NVIDIA H100 80GB HBM3"}
