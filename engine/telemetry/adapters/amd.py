"""AMD GPUs from sysfs and fdinfo: readable by everybody, in microseconds, without a library.

A card's own memory is ``mem_info_vram_*``. What it uses of the system's memory (GTT) is spill. An
APU is the other way round: its VRAM is what the firmware carved out, often 512 MiB, and models
live in GTT, which is a limit on the computer's memory and no memory of its own.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.telemetry.adapters import amd_apu, amdsmi, drm, kfd, plausible, second
from engine.telemetry.adapters.second import SecondSource, Told
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    ProcessReading,
    Quality,
)
from engine.text import printable
from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.telemetry.adapters.second import Second

_PCI_VENDOR = "0x1002"
_SYSFS: Final = "amdgpu sysfs"
_HELD_EVERY_S = 2.0
"""Going through all processes costs some 9 ms for 350 files of a hundred processes."""
_ASLEEP = tr_later("asleep, and not woken to be measured")
_UNBOUND = tr_later("no amdgpu driver is bound to this card")
_COUNTED = tr_later("amdgpu counts its own part as used")
_NO_MEMINFO = tr_later("the system's memory cannot be read")
_NO_TOTAL = tr_later("the driver states a total of 0")
_OVER_FULL = tr_later("more is counted as used than there is")


class AmdAdapter:
    """All cards with the amdgpu driver, and the graphics of AMD processors."""

    name = "AMD"

    def __init__(
        self,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
        library: Second | None = None,
    ) -> None:
        """Nothing is read before the first sample.

        Args:
            root: ``/``, or a made tree in tests.
            clock: tells seconds.
            library: is asked where the kernel says nothing.
        """
        self._root = root
        self._clock = clock
        self._library = library
        self._held: dict[str, tuple[ProcessReading, ...]] = {}
        self._held_at: float | None = None
        self._uncounted: dict[str, int] = {}

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading per card, by place on the bus."""
        listed = tuple(drm.cards(self._root, _PCI_VENDOR))
        sizes = {card.address: _stated(card) for card in listed}
        is_silent = any(None in (one.total_bytes, one.used_bytes) for one in sizes.values())
        told: Mapping[str, Told] = {}
        is_asleep = any(card.is_asleep for card in listed)
        if self._library is not None and (is_silent or not listed) and not is_asleep:
            told = self._library.ask(self._root)
        cards = second.cards(self._root, listed, told)
        sizes = {
            card.address: sizes.get(card.address, Told()).filled(told.get(card.address, Told()))
            for card in cards
        }
        if cards and not all(card.is_asleep for card in cards):
            self._look_at_processes(cards, sizes)
        age_s = 0.0 if self._library is None else self._library.age_s
        return tuple(
            replace(reading, age_s=0.0 if reading.source == _SYSFS else age_s)
            for reading in (self._read(card, sizes[card.address]) for card in cards)
        )

    def close(self) -> None:
        """Let go of the library."""
        if self._library is not None:
            self._library.close()

    def _look_at_processes(self, cards: tuple[drm.Card, ...], sizes: dict[str, Told]) -> None:
        now = self._clock()
        if self._held_at is not None and now - self._held_at < _HELD_EVERY_S:
            return
        found = drm.holdings(self._root)
        compute = kfd.compute_bytes(self._root)
        self._held_at, self._held = now, {}
        for card in cards:
            size, rocm = sizes[card.address], compute.get(card.address, {})
            shares = amd_apu.is_apu(self._root, card, size)
            left_out = amd_apu.uncounted_bytes(size, rocm) if shares else 0
            rows = processes(self._root, found.get(card.address, {}), rocm, is_apu=shares)
            used, mapped = size.used_bytes, size.gtt_used_bytes if shares else 0
            known = None if used is None or mapped is None else used + mapped + left_out
            self._held[card.address] = plausible.marked(rows, known)
            self._uncounted[card.address] = left_out

    def _read(self, card: drm.Card, size: Told) -> DeviceReading:
        total, used = size.total_bytes, size.used_bytes
        name = _name(self._root, card)
        if card.is_asleep or total is None or used is None:
            return _silent(card, name, _ASLEEP if card.is_asleep else _UNBOUND)
        if not total:
            return _silent(card, name, _NO_TOTAL)
        held = self._held.get(card.address, ())
        if amd_apu.is_apu(self._root, card, size):
            memory, left_out = drm.system_memory(self._root), self._uncounted.get(card.address, 0)
            apu = memory and amd_apu.reading(card, name, size, memory, left_out)
            if apu:
                return replace(apu, processes=held)
            return _silent(card, name, _NO_MEMINFO, PoolKind.CARVE_OUT)
        spill = Missing(_COUNTED) if size.gtt_used_bytes is None else size.gtt_used_bytes
        return DeviceReading(
            uuid=_uuid(card),
            pci_address=card.address,
            name=name,
            vendor="AMD",
            pool=PoolKind.VRAM,
            total_bytes=total,
            used_bytes=used,
            free_bytes=total - used if used <= total else Missing(_OVER_FULL),
            reserved_bytes=Missing(_COUNTED),
            ceiling_bytes=total,
            spill_bytes=spill,
            processes=held,
            source=size.source,
            note="" if used <= total else _OVER_FULL,
        )


def library() -> SecondSource:
    """The maker's library, asked for all its GPUs of this computer."""
    # Instinct cards are "processing accelerators" (0x12), Radeons displays (0x03).
    return SecondSource(amdsmi.NAME, _PCI_VENDOR, ("0x03", "0x12"), amdsmi.AmdSmi)


def with_library() -> AmdAdapter:
    """The adapter of this computer, with the maker's library where it is."""
    return AmdAdapter(library=library())


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
        # Newer kernels put what an APU's compute driver calls VRAM into GTT.
        own = max(own, compute.get(pid, 0) - (system if is_apu else 0))
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


def _silent(
    card: drm.Card, name: str, reason: str, pool: PoolKind = PoolKind.VRAM
) -> DeviceReading:
    return drm.silent(card, name, "AMD", _SYSFS, reason, pool)


def _uuid(card: drm.Card) -> str:
    return f"pci-{card.address}"


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
    return card.name or f"AMD GPU {card.device_id.removeprefix('0x')}".rstrip()


def _stated(card: drm.Card) -> Told:
    def told(name: str) -> int | None:
        return drm.number(card.folder / f"mem_info_{name}")

    sizes = told("vram_total"), told("vram_used"), told("gtt_total"), told("gtt_used")
    return Told("", *sizes, source=_SYSFS if any(s is not None for s in sizes) else "")


def _hex(digits: str) -> int | None:
    try:
        return int(digits, 16)
    except ValueError:
        return None
