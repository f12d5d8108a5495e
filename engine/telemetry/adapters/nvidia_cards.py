"""Which devices NVIDIA's driver has, and what doesn't change about them while it is loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from engine.telemetry.adapters import nvml_codes as codes
from engine.telemetry.adapters import pci
from engine.text import printable
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_UNIFIED = re.compile(r"\bGB10\b|\b(?:Jetson|Tegra|Orin|Thor|Xavier)\b")
"""Names of parts that have no memory but the system's."""
_CORES_PER_SM = {6: 128, 7: 64, 8: 128, 9: 128, 10: 128, 11: 128, 12: 128}
_CORES_PER_SM_A100 = 64
_ATS: Final = 2
"""Addressing mode of parts whose memory is coherent with the processor's (GH200, GB200)."""
_WDDM: Final = 0
_VIRTUAL: Final = 2
_MOST_SLICES = 64

_COHERENT = tr_later("The system manages this memory: what is claimed may in part be taken back.")
_GUEST = tr_later("A virtual GPU: this is its profile; the card's other guests are not seen.")
_SHARED = tr_later("{count} compute instances share its memory.")
_NO_SLICE = tr_later("MIG is on and has no slice yet: nothing can run here.")


@dataclass(frozen=True, slots=True)
class Card:
    """A card, or one slice of a card in MIG mode."""

    uuid: str
    """``gpu0`` where the driver gives no handle and so nothing else."""
    name: str
    handle: Any
    """None where the driver gives none; ``fault`` then says why."""
    fault: str = ""
    sm_count: int = 0
    compute_capability: float = 0.0
    pci_address: str = ""
    """As sysfs writes it, ``0000:61:00.0``; a slice has its card's."""
    parent: Any = None
    """Handle of the card that this is a slice of."""
    gpu_instance: int | None = None
    """Number of the slice's memory, as process lists state it."""
    others: tuple[Any, ...] = ()
    """Handles of the other compute instances of its memory."""
    is_wddm: bool = False
    """Windows' display driver model, which keeps processes' figures to itself."""
    is_coherent: bool = False
    note: str = ""
    index: int = 0
    """Place in the driver's list; another one after the next start, or not."""

    @property
    def is_named(self) -> bool:
        """Whether the driver told which card this is."""
        return self.uuid != _placeholder(self.index)

    @property
    def is_unified(self) -> bool:
        """Whether a part of this name has no memory but the system's."""
        return bool(_UNIFIED.search(self.name))


def _placeholder(index: int) -> str:
    return f"gpu{index}"


def listed(nvml: Any) -> list[Card]:
    """All devices in the driver's order; slices in place of a card that is cut into them."""
    return [card for index in range(nvml.nvmlDeviceGetCount()) for card in _at(nvml, index)]


def _at(nvml: Any, index: int) -> Iterator[Card]:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        fault = codes.reason(error)
        yield Card(_placeholder(index), f"NVIDIA GPU {index}", None, fault, index=index)
        return
    whole = _whole(nvml, index, handle)
    is_cut, _ = optional(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle), (0, 0))
    slices = list(_by_memory(_slices(nvml, whole))) if is_cut else []
    if is_cut and not slices:
        slices = [replace(whole, note=tr(_NO_SLICE))]
    yield from slices or [whole]


def _whole(nvml: Any, index: int, handle: Any) -> Card:
    def told(ask: Callable[[Any], Any], otherwise: Any) -> Any:
        return optional(nvml, lambda: ask(handle), otherwise)

    major, minor = told(nvml.nvmlDeviceGetCudaComputeCapability, (0, 0))
    cores = told(nvml.nvmlDeviceGetNumGpuCores, 0)
    per_sm = _CORES_PER_SM_A100 if (major, minor) == (8, 0) else _CORES_PER_SM.get(major, 0)
    is_coherent = told(nvml.nvmlDeviceGetAddressingMode, 0) == _ATS
    is_guest = told(nvml.nvmlDeviceGetVirtualizationMode, 0) == _VIRTUAL
    card = Card(
        uuid=printable(str(told(nvml.nvmlDeviceGetUUID, f"GPU {index}"))),
        name=printable(str(told(nvml.nvmlDeviceGetName, "NVIDIA GPU"))),
        handle=handle,
        sm_count=cores // per_sm if per_sm else 0,
        compute_capability=major + minor / 10,
        pci_address=_pci_address(told(lambda h: nvml.nvmlDeviceGetPciInfo(h).busId, "")),
        is_wddm=told(nvml.nvmlDeviceGetCurrentDriverModel, None) == _WDDM,
        is_coherent=is_coherent,
        index=index,
    )
    note = _GUEST if is_guest else _COHERENT if is_coherent and not card.is_unified else ""
    return replace(card, note=tr(note) if note else "")


def _slices(nvml: Any, whole: Card) -> Iterator[Card]:
    most = optional(nvml, lambda: nvml.nvmlDeviceGetMaxMigDeviceCount(whole.handle), _MOST_SLICES)
    for index in range(min(most, _MOST_SLICES)):
        try:
            handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(whole.handle, index)
        except nvml.NVMLError as error:
            if error.value in codes.DRIVER_GONE:
                raise
            continue  # a place that no slice has taken
        yield _slice(nvml, whole, handle, index)


def _by_memory(slices: Iterable[Card]) -> Iterator[Card]:
    """One device for each memory: compute instances of one GPU instance have the same."""
    found: dict[Any, Card] = {}
    for one in slices:
        key = one.uuid if one.gpu_instance is None else one.gpu_instance
        first = found.get(key)
        found[key] = replace(first, others=(*first.others, one.handle)) if first else one
    for one in found.values():
        note = tr(_SHARED).format(count=len(one.others) + 1) if one.others else ""
        yield replace(one, note=note)


def _slice(nvml: Any, whole: Card, handle: Any, index: int) -> Card:
    uuid = optional(nvml, lambda: nvml.nvmlDeviceGetUUID(handle), f"{whole.uuid}/{index}")
    name = printable(str(optional(nvml, lambda: nvml.nvmlDeviceGetName(handle), whole.name)))
    instance = optional(nvml, lambda: nvml.nvmlDeviceGetGpuInstanceId(handle), None)
    cut = optional(nvml, lambda: nvml.nvmlDeviceGetAttributes_v2(handle), None)
    if "MIG" not in name:
        # As `nvidia-smi -L` calls them: 19,968 MiB in two parts are 2g.20gb.
        size = f"{cut.gpuInstanceSliceCount}g.{ceil(cut.memorySizeMB / 1024)}gb" if cut else index
        name = f"{name} MIG {size}"
    return replace(
        whole,
        uuid=printable(str(uuid)),
        name=name,
        handle=handle,
        parent=whole.handle,
        gpu_instance=instance,
        sm_count=cut.multiprocessorCount if cut else 0,
        note="",
    )


def _pci_address(bus_id: Any) -> str:
    text = bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else str(bus_id)
    return pci.as_in_sysfs(text)


def optional(nvml: Any, ask: Callable[[], Any], otherwise: Any) -> Any:
    """What ``ask`` answers; ``otherwise`` where the driver doesn't tell."""
    try:
        return ask()
    except nvml.NVMLError:
        return otherwise
