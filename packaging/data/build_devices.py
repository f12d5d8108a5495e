"""Builds ``resources/data/devices.json`` from ``devices.csv`` and the rules below.

Run at the top level: ``PYTHONPATH=. python packaging/data/build_devices.py``. Every row ends with
three capacities: the label (quoted), the driver's total, and what a runtime can allocate (low,
likely, high), each with where it comes from. A total that was seen in a tool's output is taken as
it is; the others follow from a rule of their class, are ``assumed`` and widen the range.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple, cast

from engine.devices import names

MIB = 2**20
GIB = 2**30
HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "resources" / "data" / "devices.json"


class Share(NamedTuple):
    """Driver total as a share of the label read as GiB; ``seen`` is what it was learnt from."""

    low: float
    likely: float
    high: float
    seen: str


class Reserve(NamedTuple):
    """Driver total minus framework total, MiB."""

    low: int
    likely: int
    high: int
    seen: str


TOTALS = {
    "gib": Share(0.9995, 1.0, 1.0, "RTX 3090, 3080, 3060 and 2080 Ti report their label in GiB"),
    "ada": Share(0.9990, 0.9995, 1.0, "RTX 4090, 4080, 4070, 4060 and A6000: 4 to 12 MiB below"),
    "ada-ecc": Share(0.9365, 0.9371, 0.9375, "A40, L40S and L4 with ECC: 15/16 of 24564 or 49140"),
    "gddr-ecc": Share(0.9320, 0.9375, 0.9376, "T4 with ECC: 15/16 of the label in GiB"),
    "blackwell": Share(0.9945, 0.9951, 0.9960, "RTX 5090, 5080, 5070 and 5060 Ti"),
    "blackwell-pro": Share(0.9950, 0.9958, 0.9965, "RTX PRO 6000 and RTX 6000D, ECC makes none"),
    "hbm3e": Share(0.9900, 0.9957, 1.0000, "GH200 96GB and H20: 97871 of 98304 MiB"),
    "jetson": Share(0.9300, 0.9500, 0.9650, "Jetson AGX Orin 32GB: 29.96 of 32 GiB"),
    "arc": Share(0.9900, 0.9966, 1.0, "a 32 GB card states 31.89 GiB to its framework"),
    "arc-a": Share(0.9800, 0.9966, 1.0, "the same; its frameworks see less, 0.944 of the label"),
}
NOMINAL_MINUS_16 = "MI300X, RX 7900 XTX and 16 GB Radeons report 16 MiB less than their label"

RESERVES = {
    "none": Reserve(0, 0, 16, "the framework's total is the driver's"),
    "amd": Reserve(0, 0, 64, "HIP and XPU totals equal the driver's total"),
    "geforce": Reserve(300, 450, 600, "RTX 3090, 4080, 4090, 5080, 5090: 299 to 494 MiB"),
    "gddr": Reserve(300, 450, 650, "L4, L40S, A10, A40, T4, A6000: 259 to 664 MiB"),
    "hopper": Reserve(400, 500, 600, "H100 80GB: 407 to 552 MiB"),
    "hbm": Reserve(550, 650, 950, "H200, B200, RTX PRO 6000: 606 to 729 MiB; GB300 higher"),
    "a100": Reserve(519, 700, 881, "A100: 519 to 881 MiB"),
    "jetson": Reserve(256, 1024, 2048, "system and display share this memory"),
    "arc": Reserve(0, 128, 700, "between Arc B70, 0.997 of the label, and A770, 0.944"),
    "arc-a": Reserve(0, 430, 500, "Arc A580 and A770 state 0.943 and 0.944 of the label"),
    "apu": Reserve(0, 0, 0, ""),
}

# Metal's default limit, MiB: what older systems give, and newer ones. M4 and later (and M3 Ultra)
# ship with the newer system, so there the newer default is the likely one.
# Seen: 8, 16, 24, 32, 48, 64, 96, 128 and 192 GB older; 8, 16, 24, 36, 48, 64, 128, 256, 512 newer
# (llama.cpp, mlx and ollama logs). Newer values of 18, 32, 96 and 192 GB are interpolated.
METAL_NEWER_MIB = {
    8: 5461, 16: 12124, 18: 13640, 24: 18186, 32: 25000, 36: 28753, 48: 38338, 64: 53084,
    96: 80600, 128: 110100, 192: 159700, 256: 212992, 512: 475136,
}  # fmt: skip
METAL_SEEN = {8, 16, 24, 36, 48, 64, 128, 256, 512}
METAL_HIGHEST_MIB = {64: 59392}
"""An M4 Pro with 64 GB stated 59392 MiB; a raised limit cannot be ruled out."""

APPLE = {
    "M1": (8, 16), "M1 Pro": (16, 32), "M1 Max": (32, 64), "M1 Ultra": (64, 128),
    "M2": (8, 16, 24), "M2 Pro": (16, 32), "M2 Max": (32, 64, 96), "M2 Ultra": (64, 128, 192),
    "M3": (8, 16, 24), "M3 Pro": (18, 36), "M3 Max": (36, 48, 64, 96, 128),
    "M3 Ultra": (96, 256, 512),
    "M4": (16, 24, 32), "M4 Pro": (24, 48, 64), "M4 Max": (36, 48, 64, 128),
    "M5": (16, 24, 32), "M5 Pro": (24, 48, 64), "M5 Max": (36, 48, 64, 128),
}  # fmt: skip
NEWER_CHIPS = ("M3 Ultra", "M4", "M5")


def totals_of(row: dict[str, str]) -> tuple[int, int, int, str]:
    """Driver total (low, likely, high bytes) and where it comes from."""
    stated, label_mib = row["total"], int(row["label"].split()[0]) * 1024
    if stated.endswith("kB"):
        size = int(stated[:-2]) * 1024
        return size, size, size, row["evidence"]
    if stated.isdigit():
        size = int(stated) * MIB
        return size, size, size, row["evidence"]
    if stated.startswith("seen+"):
        framework = float(row["framework_gib"].split("/")[1])
        likely = round(framework * GIB) + int(stated[5:]) * MIB
        return likely - 400 * MIB, likely, likely + 400 * MIB, row["evidence"]
    if stated == "amd":
        size = (label_mib - 16) * MIB
        return size - 16 * MIB, size, size + 16 * MIB, f"not seen; {NOMINAL_MINUS_16}"
    rule = TOTALS[stated]
    low, likely, high = (round(label_mib * share) * MIB for share in rule[:3])
    return low, likely, high, f"not seen; from the label as on its class: {rule.seen}"


def allocatable_of(row: dict[str, str], totals: tuple[int, int, int]) -> tuple[list[int], str, str]:
    """(low, likely, high) bytes, basis and source of what a runtime can allocate."""
    low_total, total, high_total = totals
    is_seen = low_total == high_total
    if row["framework_gib"]:
        low, likely, high = (round(float(x) * GIB) for x in row["framework_gib"].split("/"))
        sizes = [min(low, total), min(likely, total), min(high, total)]
        basis = "assumed" if row["reserve"] == "apu" else "fitted"
        return sizes, basis, f"total that frameworks state on this device: {row['evidence']}"
    reserve = RESERVES[row["reserve"]]
    sizes = [
        low_total - reserve.high * MIB,
        total - reserve.likely * MIB,
        min(high_total - reserve.low * MIB, total),
    ]
    source = (
        f"driver total minus the driver's reserve, {reserve.likely} MiB "
        f"({reserve.low} to {reserve.high}), as on its class: {reserve.seen}"
    )
    return sizes, "fitted" if is_seen else "assumed", source


def card(row: dict[str, str]) -> dict[str, object]:
    """One device of the CSV."""
    low, total, high, source = totals_of(row)
    sizes, basis, allocatable_source = allocatable_of(row, (low, total, high))
    return {
        "name": row["name"], "vendor": row["vendor"], "kind": row["kind"], "label": row["label"],
        "total_bytes": total, "total_basis": "fitted" if low == high else "assumed",
        "allocatable_bytes": sizes, "basis": basis, "allocatable_source": allocatable_source,
        "sm_count": int(row["sms"] or 0), "compute_capability": float(row["cc"] or 0),
        "ecc": row["ecc"],
        "aliases": [a.strip("* ") for a in row["aliases"].split(";") if a.strip("* ")],
        "source": source,
    }  # fmt: skip


def apple(chip: str, ram_gb: int) -> dict[str, object]:
    """One Apple chip with one size of memory; the limit is Metal's default working set."""
    older = ram_gb * GIB * 2 // 3 if ram_gb <= 36 else ram_gb * GIB * 3 // 4
    newer = METAL_NEWER_MIB[ram_gb] * MIB
    high = METAL_HIGHEST_MIB.get(ram_gb, METAL_NEWER_MIB[ram_gb]) * MIB
    likely = newer if chip.startswith(NEWER_CHIPS) else older
    sizes = [min(older, newer), likely, max(high, older)]
    seen = "seen in logs" if ram_gb in METAL_SEEN else "interpolated"
    source = (
        f"Metal's recommended working set: {'2/3' if ram_gb <= 36 else '3/4'} of RAM on older "
        f"macOS, {newer / (ram_gb * GIB):.2f} on newer ({seen}); iogpu.wired_limit_mb changes it"
    )
    return {
        "name": f"{chip} {ram_gb} GB", "vendor": "Apple", "kind": "unified",
        "label": f"{ram_gb} GB", "total_bytes": ram_gb * GIB, "total_basis": "exact",
        "allocatable_bytes": sizes, "basis": "assumed", "allocatable_source": source,
        "sm_count": 0, "compute_capability": 0.0, "ecc": "",
        "aliases": [f"Apple {chip} {ram_gb}GB", f"{chip} ({ram_gb} GB)", chip],
        "source": "hw.memsize is the label in GiB",
    }  # fmt: skip


def build() -> list[dict[str, object]]:
    """All devices, cards first."""
    with (HERE / "devices.csv").open(encoding="utf-8", newline="") as file:
        cards = [card(row) for row in csv.DictReader(file)]
    return cards + [apple(chip, ram) for chip, sizes in APPLE.items() for ram in sizes]


def index(devices: list[dict[str, object]]) -> dict[str, list[int]]:
    """Every spelling with the rows it may mean: names first, then aliases, then derived ones."""
    layers: tuple[dict[str, set[int]], ...] = ({}, {}, {})
    derived, written, own = layers
    for row, device in enumerate(devices):
        aliases = cast("list[str]", device["aliases"])
        own.setdefault(names.key(str(device["name"])), set()).add(row)
        for alias in aliases:
            written.setdefault(names.key(alias), set()).add(row)
        for name in (str(device["name"]), *aliases):
            for spelling in names.spellings(name, str(device["label"])):
                derived.setdefault(spelling, set()).add(row)
    return {key: sorted(rows) for key, rows in (derived | written | own).items()}


def main() -> None:
    """Write the file, one device a line."""
    devices = build()
    lines = ",\n".join(json.dumps(d, ensure_ascii=False) for d in devices)
    keys = json.dumps(index(devices), separators=(",", ":"))
    text = f'{{"version": 1, "devices": [\n{lines}\n],\n"keys": {keys}}}\n'
    TARGET.write_text(text, encoding="utf-8")
    print(f"{len(devices)} devices, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
