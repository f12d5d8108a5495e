"""Intel GPUs through the kernel: memory regions by ioctl (xe, i915), processes from fdinfo.

Without ``CAP_PERFMON`` the kernel says that all memory is free: a false zero, which is told from a
true one by what processes hold or by a display that is being driven (level-zero issue 133).
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.telemetry.adapters import drm, level_zero, plausible, second
from engine.telemetry.adapters.intel_regions import Region, ask
from engine.telemetry.adapters.second import SecondSource
from engine.telemetry.snapshot import (
    DeviceReading,
    Missing,
    PoolKind,
    ProcessReading,
    Quality,
)
from engine.words import tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.telemetry.adapters.second import Second, Told

_PCI_VENDOR = "0x8086"
_HELD_EVERY_S = 2.0
_REST_S = 30.0
_NAMES: Final = {
    "0x56a0": "Intel Arc A770", "0x56a1": "Intel Arc A750", "0x56a2": "Intel Arc A580",
    "0x56a5": "Intel Arc A380", "0x56a6": "Intel Arc A310",
    "0x5690": "Intel Arc A770M", "0x5691": "Intel Arc A730M", "0x5692": "Intel Arc A550M",
    "0x5693": "Intel Arc A370M", "0x5694": "Intel Arc A350M",
    "0xe20b": "Intel Arc B580", "0xe20c": "Intel Arc B570",
    "0xe211": "Intel Arc Pro B60", "0xe212": "Intel Arc Pro B50",
    "0x56c0": "Intel Data Center GPU Flex 170", "0x56c1": "Intel Data Center GPU Flex 140",
    "0x0bd5": "Intel Data Center GPU Max 1550", "0x0bda": "Intel Data Center GPU Max 1100",
}  # fmt: skip
"""Device numbers of Intel's cards (PCI ID list)."""

_RIGHTS = re.compile(r"(?m)^CapEff:\s*([0-9a-f]{1,16})$")
_PERFMON, _SYS_ADMIN = 1 << 38, 1 << 21

_ASLEEP = tr_later("asleep, and not woken to be measured")
_RESTING = tr_later("unused (not polled for a while, so that it can fall asleep)")
_NO_DRIVER = tr_later("its driver (xe or i915) states no memory")
_FALSE_ZERO = tr_later("the kernel tells what is in use only with the right CAP_PERFMON")
_OVER_FULL = tr_later("more is counted as used than there is")
_IN_SYSTEM = tr_later("This GPU uses the computer's memory; it has none of its own.")
_KEPT = tr_later("not told apart by this driver")


class IntelAdapter:
    """All Intel GPUs, cards and processor graphics."""

    name = "Intel"

    def __init__(
        self,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
        regions: Callable[[drm.Card, Path], tuple[Region, ...]] | None = None,
        library: Second | None = None,
    ) -> None:
        """Nothing is read before the first sample.

        Args:
            root: ``/``, or a made tree in tests.
            clock: tells seconds.
            regions: asks a card's driver for its memories.
            library: is asked where the kernel says nothing, or a false zero.
        """
        self._root = root
        self._clock = clock
        self._regions = regions or ask
        self._library = library
        self._held: dict[str, dict[int, drm.Holding]] = {}
        self._held_at: float | None = None
        self._last: dict[str, tuple[float, DeviceReading]] = {}

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading per GPU, by place on the bus."""
        listed = tuple(drm.cards(self._root, _PCI_VENDOR))
        now = self._clock()
        is_due = self._held_at is None or now - self._held_at >= _HELD_EVERY_S
        if is_due and not all(card.is_asleep for card in listed):
            self._held, self._held_at = drm.holdings(self._root), now
        found = {card.address: self._looked_at(card, now) for card in listed}
        lacking = [card for card in listed if not _is_told(card, found[card.address])]
        if lacking or not listed:
            found |= self._from_library(listed, lacking)
        if is_due:
            self._mark(found)
        return tuple(found.values())

    def close(self) -> None:
        """Let go of the library."""
        if self._library is not None:
            self._library.close()

    def _mark(self, found: dict[str, DeviceReading]) -> None:
        """See now, while both are new, whether processes hold more than is in use."""
        for address, reading in found.items():
            used, rows = reading.used_bytes, reading.processes
            if reading.pool is not PoolKind.VRAM or not isinstance(used, int):
                continue
            rows = plausible.marked(() if isinstance(rows, Missing) else rows, used)
            for row in rows:
                is_over = row.quality is Quality.OVER_COUNTS
                self._held[address][row.pid].is_shared |= is_over
            found[address] = replace(reading, processes=rows)

    def _from_library(
        self, listed: tuple[drm.Card, ...], lacking: list[drm.Card]
    ) -> dict[str, DeviceReading]:
        """What the library adds to the cards ``lacking`` figures, and those that it alone knows."""
        if self._library is None or any(card.is_asleep for card in listed):
            return {}
        told = self._library.ask(self._root)
        return {
            card.address: replace(self._read(card, told[card.address]), age_s=self._library.age_s)
            for card in second.cards(self._root, listed, told)
            if card.address in told and (card in lacking or card not in listed)
        }

    def _looked_at(self, card: drm.Card, now: float) -> DeviceReading:
        """The card now; as it was before where each question would keep it from falling asleep.

        xe resumes a card for every ioctl and lets it sleep a second later.
        """
        at_s, reading = self._last.get(card.address, (-_REST_S, None))
        is_free = not (card.drives_display or self._held.get(card.address) or card.is_asleep)
        if card.may_sleep and is_free and reading is not None and now - at_s < _REST_S:
            return replace(reading, age_s=now - at_s, note=reading.note or _RESTING)
        reading = self._read(card, None)
        self._last[card.address] = now, reading
        return reading

    def _read(self, card: drm.Card, told: Told | None) -> DeviceReading:
        """The card as the kernel tells, or with what the library told where that says less."""
        if card.is_asleep:
            return _silent(card, _ASLEEP)
        held = self._held.get(card.address, {})
        regions = self._regions(card, self._root)
        local = [region for region in regions if region.is_local and region.total_bytes]
        if local:
            return _card(self._root, card, local, held, told)
        if regions and not any(region.is_local for region in regions):
            return _integrated(self._root, card, held)
        if told is not None and told.total_bytes is not None:
            return _card(self._root, card, [], held, told)
        return _silent(card, _NO_DRIVER)


def library() -> SecondSource:
    """The maker's library, asked for all its GPUs of this computer."""
    return SecondSource(level_zero.NAME, _PCI_VENDOR, ("0x03",), level_zero.LevelZero)


def with_library() -> IntelAdapter:
    """The adapter of this computer, with the maker's library where it is."""
    return IntelAdapter(library=library())


def _is_told(card: drm.Card, reading: DeviceReading) -> bool:
    """Whether the library has nothing to add; on a desktop it shows the kernel's false zero."""
    is_false_zero = card.drives_display and not isinstance(reading.total_bytes, Missing)
    return is_false_zero or not isinstance(reading.used_bytes, Missing)


def _root_counter(root: Path, card: drm.Card) -> int | None:
    """What xe counts as used, in debugfs; for the superuser alone."""
    used = 0
    files = list((root / "sys/kernel/debug/dri" / card.address).glob("tile*/vram_mm"))
    for file in files:
        stated = [line.split() for line in drm.text(file).splitlines()]
        usage = [words[1] for words in stated if words[:1] == ["usage:"] and len(words) == 2]
        if not usage or not usage[0].isdigit():
            return None
        used += int(usage[0])
    return used if files else None


def _card(
    root: Path,
    card: drm.Card,
    local: list[Region],
    held: dict[int, drm.Holding],
    told: Told | None,
) -> DeviceReading:
    counted = _root_counter(root, card)
    total = sum(region.total_bytes for region in local)
    stated = counted if counted is not None else sum(region.used_bytes for region in local)
    rows = tuple(_processes(held, own=("vram", "local", "stolen-local"), beside=("system", "gtt")))
    is_used = card.drives_display or bool(rows)
    source = f"{card.driver} kernel driver"
    if told is not None and told.total_bytes is not None and counted is None and not stated:
        # The library asks the same kernel. Of a card that no file describes, nobody else can say
        # whether it is used.
        stated = told.used_bytes or 0
        is_used = is_used or (not local and not _may_see_use(root))
        source = f"{source}, {level_zero.NAME}" if local else level_zero.NAME
        total = total or told.total_bytes
    is_false = stated == 0 and counted is None and is_used
    used = Missing(_FALSE_ZERO) if is_false else stated
    free = used if isinstance(used, Missing) else total - used
    if isinstance(free, int) and free < 0:
        free = Missing(_OVER_FULL)
    return DeviceReading(
        uuid=f"pci-{card.address}",
        pci_address=card.address,
        name=_name(card),
        vendor="Intel",
        pool=PoolKind.VRAM,
        total_bytes=total,
        used_bytes=used,
        free_bytes=free,
        reserved_bytes=Missing(_KEPT),
        ceiling_bytes=total,
        processes=rows,
        source=source,
        note=free.reason if isinstance(free, Missing) else "",
    )


def _may_see_use(root: Path) -> bool:
    """Whether this program has the right without which the kernel calls all memory free."""
    found = _RIGHTS.search(drm.text(root / "proc/self/status"))
    return bool(found and int(found[1], 16) & (_PERFMON | _SYS_ADMIN))


def _integrated(root: Path, card: drm.Card, held: dict[int, drm.Holding]) -> DeviceReading:
    """Graphics without memory of their own: the system's figures, the driver's process list."""
    memory = drm.system_memory(root)
    if memory is None:
        return _silent(card, _NO_DRIVER, PoolKind.WINDOW)
    total, available = memory
    return DeviceReading(
        uuid=f"pci-{card.address}",
        pci_address=card.address,
        name=_name(card),
        vendor="Intel",
        pool=PoolKind.WINDOW,
        total_bytes=total,
        used_bytes=total - available,
        free_bytes=available,
        reserved_bytes=0,
        available_bytes=available,
        processes=tuple(_processes(held, own=("system", "gtt", "stolen-system"), beside=())),
        source=f"{card.driver} kernel driver",
        note=_IN_SYSTEM,
    )


def _processes(
    held: dict[int, drm.Holding], own: tuple[str, ...], beside: tuple[str, ...]
) -> Iterator[ProcessReading]:
    rows = [
        ProcessReading(
            pid=holding.pid,
            name=holding.name,
            used_bytes=sum(holding.regions.get(region, 0) for region in own),
            command=holding.command,
            quality=Quality.OVER_COUNTS if holding.is_shared else Quality.RESIDENT,
            spill_bytes=sum(holding.regions.get(region, 0) for region in beside)
            if beside
            else Missing(_IN_SYSTEM),
        )
        for holding in held.values()
    ]
    yield from sorted(rows, key=drm.largest)


def _silent(card: drm.Card, reason: str, pool: PoolKind = PoolKind.VRAM) -> DeviceReading:
    source = f"{card.driver or 'PCI'} kernel driver"
    return drm.silent(card, _name(card), "Intel", source, reason, pool)


def _name(card: drm.Card) -> str:
    unknown = f"Intel GPU {card.device_id.removeprefix('0x')}".rstrip()
    return _NAMES.get(card.device_id) or card.name or unknown
