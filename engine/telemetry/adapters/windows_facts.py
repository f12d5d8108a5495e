"""What Windows tells of its display adapters, as it is handed from the door to the judging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.telemetry.snapshot import Missing
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

ADAPTER_COUNTERS: Final = ("Dedicated Usage", "Shared Usage")
PROCESS_COUNTERS: Final = ("Local Usage", "Non Local Usage", "Dedicated Usage")
SIZE_UNKNOWN: Final = tr_later("Windows doesn't say how much memory this adapter has")
_AT_LEAST_4_GIB = tr_later("at least 4 GiB, not known")
_SATURATED_BYTES = 0xFFF00000
"""What a 32-bit field holds of 4 GiB and more, rounded down to a MiB: 4293918720."""


@dataclass(frozen=True, slots=True)
class Graphics:
    """A display adapter as DXGI, or else the registry, describes it."""

    luid: str
    """As the counters write it: ``luid_0x00000000_0x0000d1b2``; lower case."""
    name: str
    dedicated_bytes: int | Missing
    shared_bytes: int = 0
    """Most of the system's memory that it may use."""
    pci_address: str = ""
    vendor: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """One collection of the counters: bytes by counter and instance, as Windows names them."""

    adapters: Mapping[str, Mapping[str, int]]
    processes: Mapping[str, Mapping[str, int]]


def dedicated_bytes(dxgi: int | None, registry: int | None, narrow: int | None) -> int | Missing:
    """An adapter's own memory from the best source that tells.

    Args:
        dxgi: ``DedicatedVideoMemory`` of DXGI; 0 where all is the system's (Snapdragon).
        registry: ``HardwareInformation.qwMemorySize``.
        narrow: WMI's ``AdapterRAM`` or another field of 32 bits, which can't hold 4 GiB: cards of
            32 GB show as 4 (llmfit issue 830). A saturated one is never taken as a size.
    """
    for told in (dxgi, registry):
        if told:
            return told
    narrow = (narrow or 0) % 2**32  # WMI hands it out with a sign
    if not narrow:
        return Missing(tr(SIZE_UNKNOWN)) if dxgi is None else 0
    return Missing(tr(_AT_LEAST_4_GIB)) if narrow >= _SATURATED_BYTES else narrow
