"""What Linux says of AMD's and Intel's GPUs, as files that can be passed on and laid out again.

The readings are made of the copied files and of nothing else, so that whoever reads the report has
what we had.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from engine.telemetry.adapters import amd, amdsmi, drm, intel, intel_regions, level_zero
from engine.telemetry.snapshot import ProcessReading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.telemetry.adapters.second import SecondSource, Told
    from engine.telemetry.raw import Masks
    from engine.telemetry.snapshot import DeviceReading

_VENDORS: Final = ("0x1002", "0x8086")
_CARD_FILES: Final = ("vendor", "device", "revision", "product_name", "power/runtime_status")
_BUS: Final = "sys/bus/pci/devices"
_KFD: Final = "sys/class/kfd/kfd"
_NODE_FACTS: Final = re.compile(
    r"(?:domain|location_id|simd_count|cpu_cores_count|gfx_target_version|device_id|vendor_id) \d+"
)
"""Of a node's properties; ``unique_id`` is a serial number."""
_DRM_KEY: Final = re.compile(
    r"drm-(?:pdev|driver|client-id|(?:total|resident|memory|shared|active|purgeable)-[a-z0-9_-]+)"
    r"|amd-[a-z-]+"
)
"""Of what a file's ``fdinfo`` says; a client's name is one that its program chose."""
_IDS: Final = "usr/share/libdrm/amdgpu.ids"


def read(root: Path, masks: Masks) -> tuple[dict[str, Any], tuple[DeviceReading, ...]]:
    """The sources by name, fit to pass on, and the GPUs that they tell of.

    Args:
        root: ``/``, or a made tree in tests.
        masks: stand-ins for processes.
    """
    cards = [card for vendor in _VENDORS for card in drm.cards(root, vendor)]
    files = {**dict(_of_cards(root, cards)), **dict(_of_bus(root))}
    listed = {card.address for card in cards}
    held = {
        pid: {name: said for name, said in drm.open_files(root / "proc" / pid) if said}
        for pid in _numbers(root / "proc")
    }
    held = {
        pid: mine
        for pid, open_ in held.items()
        if (mine := {n: said for n, said in open_.items() if said.get("drm-pdev") in listed})
    }
    regions = {
        card.address: intel_regions.ask(card, root)
        for card in cards
        if card.driver in {"xe", "i915"} and not card.is_asleep
    }
    meminfo = drm.text(root / "proc/meminfo")
    seconds = (_Heard(amd.library(), root), _Heard(intel.library(), root))
    with TemporaryDirectory(prefix="plimsoll-report-") as folder:
        there = Path(folder)
        unmasked = dict(_of_processes(root, held, None))
        lay_out({**files, **unmasked, "proc/meminfo": meminfo}, there)
        adapters = (
            amd.AmdAdapter(there, library=seconds[0]),
            intel.IntelAdapter(
                there, regions=lambda card, _: regions.get(card.address, ()), library=seconds[1]
            ),
        )
        devices = tuple(device for adapter in adapters for device in adapter.sample())
        for adapter in adapters:
            adapter.close()
    files |= _of_processes(root, held, masks)
    sources: dict[str, Any] = {
        "DRM": files,
        "Intel regions": {at: [list(_plain(r)) for r in one] for at, one in regions.items() if one},
        amdsmi.NAME: seconds[0].said(),
        level_zero.NAME: seconds[1].said(),
    }
    return {name: said for name, said in sources.items() if said}, devices


def lay_out(files: Mapping[str, Any], folder: Path) -> None:
    """Write the files of a report below ``folder``, as the kernel has them.

    A report is a stranger's: nothing is written outside, and what is no text is passed over.
    """
    for name, text in files.items():
        place = folder / name
        if not isinstance(text, str) or not place.resolve().is_relative_to(folder.resolve()):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if re.fullmatch(r"proc/\d+/fd/\d+", name):
            place.symlink_to(text)
        else:
            place.write_text(text, encoding="utf-8")


class _Heard:
    """A maker's library, asked for the computer itself, whose answer is written down."""

    def __init__(self, library: SecondSource, root: Path) -> None:
        self._library = library
        self._root = root
        self._told: Mapping[str, Told] = {}
        self.age_s = 0.0

    def ask(self, _: Path) -> Mapping[str, Told]:
        self._told = self._library.ask(self._root)
        return self._told

    def said(self) -> dict[str, Any]:
        """What it said of each GPU, or the line that says why it says nothing."""
        said: dict[str, Any] = {at: asdict(told) for at, told in self._told.items()}
        return said | ({"silent": self._library.why} if self._library.why else {})

    def close(self) -> None:
        self._library.close()


def _of_cards(root: Path, cards: list[drm.Card]) -> Iterator[tuple[str, str]]:
    """Files of the cards, by their paths."""
    for card in cards:
        folder = card.folder.relative_to(root).as_posix()
        yield f"{folder}/uevent", f"DRIVER={card.driver}\nPCI_SLOT_NAME={card.address}"
        memory = [file.name for file in sorted(card.folder.glob("mem_info_*"))]
        for name in (*_CARD_FILES, *memory):
            if text := drm.text(card.folder / name):
                yield f"{folder}/{name}", text
        if card.drives_display:
            yield f"{Path(folder).parent.as_posix()}-DP-1/status", "connected"
        counters = root / "sys/kernel/debug/dri" / card.address
        for file in sorted(counters.glob("tile*/vram_mm")):
            yield file.relative_to(root).as_posix(), drm.text(file)
    wanted = {card.device_id.removeprefix("0x").lower() for card in cards}
    names = drm.text(root / _IDS).splitlines()
    known = [line for line in names if line.partition(",")[0].strip().lower() in wanted]
    if known:
        yield _IDS, "\n".join(known)


def _of_bus(root: Path) -> Iterator[tuple[str, str]]:
    """Files of the bus and of AMD's compute driver, by their paths."""
    for place in sorted((root / _BUS).glob("*")):
        if drm.text(place / "vendor") in _VENDORS and _is_gpu(place):
            for name in ("vendor", "device", "class", "power/runtime_status", "power/control"):
                yield f"{_BUS}/{place.name}/{name}", drm.text(place / name)
    for node in sorted((root / _KFD / "topology/nodes").glob("*")):
        name = node.relative_to(root).as_posix()
        yield f"{name}/gpu_id", drm.text(node / "gpu_id")
        facts = drm.text(node / "properties").splitlines()
        yield f"{name}/properties", "\n".join(f for f in facts if _NODE_FACTS.fullmatch(f.strip()))


def _is_gpu(place: Path) -> bool:
    return drm.text(place / "class").startswith(("0x03", "0x12"))


def _of_processes(
    root: Path, held: dict[str, dict[str, dict[str, str]]], masks: Masks | None
) -> Iterator[tuple[str, str]]:
    """What processes hold, the most first; under other numbers and names where there are masks."""
    compute = {
        pid: {
            file.name: drm.text(file) for file in (root / _KFD / "proc" / pid).glob("vram_[0-9]*")
        }
        for pid in _numbers(root / _KFD / "proc")
    }
    for pid in sorted({*held, *compute}, key=lambda pid: -len(held.get(pid, {}))):
        holder = drm.holder(root, int(pid))
        shown = ProcessReading(holder.pid, holder.name, 0, holder.command)
        shown = shown if masks is None else masks.of(shown)
        place = f"proc/{shown.pid}"
        yield f"{place}/comm", shown.name
        yield f"{place}/cmdline", shown.command.replace(" ", "\0")
        for number, said in held.get(pid, {}).items():
            kept = (f"{key}:\t{value}" for key, value in said.items() if _DRM_KEY.fullmatch(key))
            yield f"{place}/fd/{number}", "/dev/dri/renderD128"
            yield f"{place}/fdinfo/{number}", "\n".join(kept)
        for name, size in compute.get(pid, {}).items():
            yield f"{_KFD}/proc/{shown.pid}/{name}", size


def _numbers(folder: Path) -> list[str]:
    return sorted((file.name for file in folder.glob("[0-9]*")), key=int)


def _plain(region: intel_regions.Region) -> tuple[bool, int, int]:
    return region.is_local, region.total_bytes, region.used_bytes
