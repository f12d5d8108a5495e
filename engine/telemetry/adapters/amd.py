"""AMD GPUs from sysfs and fdinfo: readable by everybody, in microseconds, without a library.

A card's own memory is ``mem_info_vram_*``. What it uses of the system's memory (GTT) is spill. An
APU is the other way round: its VRAM is what the firmware carved out, often 512 MiB, and models
live in GTT, which is a limit on the computer's memory and no memory of its own.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.telemetry.adapters import drm
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    Part,
    PoolKind,
    ProcessReading,
    Quality,
)
from engine.text import printable
from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PCI_VENDOR = "0x1002"
_HELD_EVERY_S = 2.0
"""Going through all processes costs some 9 ms for 350 files of a hundred processes."""
_APU_IDS: Final = frozenset(
    {
        "0x15dd", "0x15d8",  # Raven, Picasso
        "0x1636", "0x1638", "0x164c",  # Renoir, Cezanne, Lucienne
        "0x163f", "0x1435",  # Van Gogh, Sephiroth
        "0x1681", "0x164e", "0x1506",  # Rembrandt, Raphael, Mendocino
        "0x15bf", "0x15c8", "0x1900", "0x1901",  # Phoenix, Hawk Point
        "0x150e", "0x1586", "0x1114", "0x13c0",  # Strix, Strix Halo, Krackan, Granite Ridge
    }
)  # fmt: skip
"""Device numbers of processors with graphics (PCI ID list). Recent kernels list their CPU and GPU
as two nodes, so that the topology alone no longer tells."""
_APU_RATIO: Final = 8
"""GTT is half of the memory or more, a carve-out little: the last resort (LocalAI PR 12094)."""

_ASLEEP = tr_later("asleep, and not woken to be measured")
_UNBOUND = tr_later("no amdgpu driver is bound to this card")
_COUNTED = tr_later("amdgpu counts its own part as used")
_CARVED = tr_later("set aside by the firmware")
_MAPPED = tr_later("system memory used by the GPU")
_NO_MEMINFO = tr_later("the system's memory cannot be read")


class AmdAdapter:
    """All cards with the amdgpu driver, and the graphics of AMD processors."""

    name = "AMD"

    def __init__(self, root: Path = Path("/"), clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is read before the first sample.

        Args:
            root: ``/``, or a made tree in tests.
            clock: tells seconds.
        """
        self._root = root
        self._clock = clock
        self._held: dict[str, tuple[ProcessReading, ...]] = {}
        self._held_at: float | None = None

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading per card, by place on the bus."""
        cards = tuple(drm.cards(self._root, _PCI_VENDOR))
        if cards and not all(card.is_asleep for card in cards):
            self._look_at_processes(cards)
        return tuple(self._read(card) for card in cards)

    def close(self) -> None:
        """Nothing is held."""

    def _look_at_processes(self, cards: tuple[drm.Card, ...]) -> None:
        now = self._clock()
        if self._held_at is not None and now - self._held_at < _HELD_EVERY_S:
            return
        found = drm.holdings(self._root)
        compute = compute_bytes(self._root)
        self._held_at = now
        self._held = {
            card.address: tuple(
                processes(
                    self._root,
                    found.get(card.address, {}),
                    compute.get(card.address, {}),
                    is_apu=is_apu(self._root, card),
                )
            )
            for card in cards
        }

    def _read(self, card: drm.Card) -> DeviceReading:
        total = drm.number(card.folder / "mem_info_vram_total")
        used = drm.number(card.folder / "mem_info_vram_used")
        name = _name(self._root, card)
        if card.is_asleep or total is None or used is None:
            return _silent(card, name, _ASLEEP if card.is_asleep else _UNBOUND)
        gtt = (
            drm.number(card.folder / "mem_info_gtt_total"),
            drm.number(card.folder / "mem_info_gtt_used"),
        )
        held = self._held.get(card.address, ())
        if is_apu(self._root, card):
            return _apu(card, name, (total, used), gtt, drm.system_memory(self._root), held)
        spill = Missing(_COUNTED) if gtt[1] is None else gtt[1]
        return DeviceReading(
            uuid=_uuid(card),
            pci_address=card.address,
            name=name,
            vendor="AMD",
            pool=PoolKind.VRAM,
            total_bytes=total,
            used_bytes=used,
            free_bytes=total - used,
            reserved_bytes=Missing(_COUNTED),
            ceiling_bytes=total,
            spill_bytes=spill,
            processes=held,
            source=_source(),
        )


def is_apu(root: Path, card: drm.Card) -> bool:
    """Whether the card is a part of a processor: by the topology, its number, or GTT's share."""
    location = _location(card.address)
    for node in (root / "sys/class/kfd/kfd/topology/nodes").glob("*"):
        facts = _properties(node)
        if location is not None and (facts.get("domain", 0), facts.get("location_id")) == location:
            if facts.get("simd_count", 0) and facts.get("cpu_cores_count", 0):
                return True
            break
    if card.device_id in _APU_IDS:
        return True
    total = drm.number(card.folder / "mem_info_vram_total") or 0
    gtt = drm.number(card.folder / "mem_info_gtt_total") or 0
    return 0 < total * _APU_RATIO <= gtt


def compute_bytes(root: Path) -> dict[str, dict[int, int]]:
    """What ROCm programs hold by card and process: the kernel keeps it apart from graphics."""
    addresses: dict[str, str] = {}
    for node in (root / "sys/class/kfd/kfd/topology/nodes").glob("*"):
        gpu, facts = drm.text(node / "gpu_id"), _properties(node)
        place = facts.get("location_id")
        if gpu not in {"", "0"} and place is not None:
            bus = f"{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7}"
            addresses[gpu] = f"{facts.get('domain', 0):04x}:{bus}"
    held: dict[str, dict[int, int]] = {}
    for process in (root / "sys/class/kfd/kfd/proc").glob("[0-9]*"):
        for gpu, address in addresses.items():
            size = drm.number(process / f"vram_{gpu}")
            if size:
                held.setdefault(address, {})[int(process.name)] = size
    return held


def processes(
    root: Path,
    graphics: dict[int, drm.Holding],
    compute: dict[int, int],
    *,
    is_apu: bool,
) -> Iterator[ProcessReading]:
    """One row per process, largest first; a ROCm program's figure is the larger of both lists."""
    rows: list[ProcessReading] = []
    for pid in {*graphics, *compute}:
        holding = graphics.get(pid) or drm.holder(root, pid)
        own, system = holding.regions.get("vram", 0), holding.regions.get("gtt", 0)
        own = max(own, compute.get(pid, 0))
        rows.append(
            ProcessReading(
                pid=pid,
                name=holding.name,
                used_bytes=own + system if is_apu else own,
                command=holding.command,
                quality=Quality.OVER_COUNTS if holding.is_shared else Quality.RESIDENT,
                **{"system_bytes" if is_apu else "spill_bytes": system},
            )
        )
    yield from sorted(rows, key=drm.largest)


def _apu(
    card: drm.Card,
    name: str,
    vram: tuple[int, int],
    gtt: tuple[int | None, int | None],
    memory: tuple[int, int] | None,
    held: tuple[ProcessReading, ...],
) -> DeviceReading:
    """Carve-out and GTT as one memory: what is carved out, and of the rest what can be had.

    GTT's total is a limit on memory that the system uses too, so adding it would promise 132 GiB
    on a machine of 128 (ROCm issue 6004).
    """
    limit, mapped = gtt
    parts = (
        Part(_CARVED, *vram),
        Part(
            _MAPPED,
            Missing(_UNBOUND) if limit is None else limit,
            Missing(_UNBOUND) if mapped is None else mapped,
        ),
    )
    if limit is None or mapped is None or memory is None:
        return _silent(card, name, _NO_MEMINFO, PoolKind.CARVE_OUT)
    total = vram[0] + min(limit, memory[1] + mapped)
    used = vram[1] + mapped
    return DeviceReading(
        uuid=_uuid(card),
        pci_address=card.address,
        name=name,
        vendor="AMD",
        pool=PoolKind.CARVE_OUT,
        total_bytes=total,
        used_bytes=used,
        free_bytes=total - used,
        reserved_bytes=0,
        ceiling_bytes=total,
        available_bytes=total - used,
        parts=parts,
        processes=held,
        source=_source(),
    )


def _silent(
    card: drm.Card, name: str, reason: str, pool: PoolKind = PoolKind.VRAM
) -> DeviceReading:
    return drm.silent(card, name, "AMD", _source(), reason, pool)


def _uuid(card: drm.Card) -> str:
    return f"pci-{card.address}"


def _source() -> str:
    return "amdgpu sysfs"


def _name(root: Path, card: drm.Card) -> str:
    """What the board calls itself, else libdrm's list of names, else its number."""
    stated = drm.text(card.folder / "product_name")
    if stated:
        return printable(stated, 64)
    wanted = (_hex(card.device_id), _hex(drm.text(card.folder / "revision")))
    for line in drm.text(root / "usr/share/libdrm/amdgpu.ids").splitlines():
        words = [word.strip() for word in line.split(",", 2)]
        if len(words) == 3 and (_hex(words[0]), _hex(words[1])) == wanted:
            return printable(words[2], 64)
    return f"AMD GPU {card.device_id.removeprefix('0x')}"


def _hex(digits: str) -> int | None:
    try:
        return int(digits, 16)
    except ValueError:
        return None


def _location(address: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", address)
    if not found:
        return None
    domain, bus, device, function = (int(part, 16) for part in found.groups())
    return domain, bus << 8 | device << 3 | function


def _properties(node: Path) -> dict[str, int]:
    facts: dict[str, int] = {}
    for line in drm.text(node / "properties").splitlines():
        key, _, value = line.partition(" ")
        if value.strip().isdigit():
            facts[key] = int(value)
    return facts
