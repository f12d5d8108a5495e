"""NVIDIA GPUs through NVML (nvidia-ml-py): memory, reserve and processes of every device.

Each field is optional on its own: a card may answer its total and not its processes, or fall off
the bus while its neighbours go on. Nothing here asks a sleeping laptop GPU anything, and one that
nobody uses is left alone, so that it can fall asleep.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import TelemetryError
from engine.telemetry.adapters import jetson, pci
from engine.telemetry.adapters import nvml_codes as codes
from engine.telemetry.adapters.names import Names
from engine.telemetry.adapters.nvidia_cards import Card, listed
from engine.telemetry.adapters.nvidia_readings import CardReader
from engine.telemetry.lane import ASKS_USER
from engine.telemetry.snapshot import DeviceReading, Missing
from engine.text import printable
from engine.units import MIB
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable

_PCI_VENDOR = "0x10de"
_RETRY_S = 30.0
_UNUSED_FOR_S = 60.0
_REST_S = 30.0
_UNUSED_BYTES = 64 * MIB

_ASLEEP = tr_later("asleep (not polled)")
_NOT_WOKEN = tr_later("not polled: its driver would wake the GPU at {sleeper}")
_RESTING = tr_later("unused (not polled for a while, so that it can fall asleep)")


def binding() -> Any:
    """NVIDIA's own binding, loaded when it is first needed."""
    import pynvml

    return pynvml


class NvidiaAdapter:
    """All NVIDIA devices that the driver lists; a device once seen stays listed."""

    name = "NVIDIA"

    def __init__(
        self,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
        binding: Callable[[], Any] = binding,
    ) -> None:
        """Nothing is opened before the first sample.

        Args:
            root: ``/``, or a made tree in tests.
            clock: tells seconds.
            binding: gives ``pynvml``, or what stands for it.
        """
        self._root = root
        self._binding = binding
        self._clock = clock
        self._displays = pci.Displays(root, _PCI_VENDOR, clock)
        self._names = Names(root, clock)
        self._readers: dict[str, CardReader] = {}
        self._last: dict[str, DeviceReading] = {}
        self._last_at = 0.0
        self._driver = ""
        self._is_open = False
        self._retry_at = 0.0
        self._failure: TelemetryError | None = None
        self._unused_since: float | None = None
        self._rests_until = 0.0

    def open(self) -> None:
        """Load the library and list the devices.

        Raises:
            TelemetryError: no library, no driver, the two do not match, or a GPU sleeps.
        """
        sleeper = next((d.address for d in self._displays.now() if d.is_asleep), "")
        if sleeper:
            message = tr("The GPU at {sleeper} is asleep and is not woken to be measured.").format(
                sleeper=sleeper
            )
            raise TelemetryError(message)
        nvml = self._binding()
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            message = tr("NVIDIA devices cannot be read: {reason}.").format(
                reason=codes.reason(error)
            )
            field = ASKS_USER if error.value == codes.UPDATED else ""
            raise TelemetryError(message, field=field) from error
        try:
            self._driver = printable(str(nvml.nvmlSystemGetDriverVersion()), 32)
            self._take(listed(nvml))
        except nvml.NVMLError as error:
            nvml.nvmlShutdown()
            message = tr("NVIDIA devices cannot be listed: {reason}.").format(
                reason=codes.reason(error)
            )
            raise TelemetryError(message) from error
        self._is_open = True
        self._unused_since = None

    def sample(self) -> tuple[DeviceReading, ...]:
        """One reading per device, in the driver's order.

        Raises:
            TelemetryError: the driver is gone and no device was ever seen.
        """
        still = self._left_alone()
        if still:
            self._release()
            return still
        if not self._is_open and not self._reopened():
            return self._without_driver()
        nvml = self._binding()
        readings = tuple(reader.read(nvml) for reader in self._readers.values())
        self._settle(readings)
        return readings

    def close(self) -> None:
        """Let go of the driver."""
        self._release()

    def _take(self, cards: list[Card]) -> None:
        """Readers for ``cards``; those of before stay listed, their handles are stale."""
        gone = tr("the driver no longer lists this GPU")
        slices = {card.pci_address for card in cards if card.parent is not None}
        before = {
            uuid: self._reader(replace(reader.card, handle=None, fault=gone))
            for uuid, reader in self._readers.items()
            # A card that was cut, or slices that were made anew, are not lost.
            if reader.card.is_named
            and reader.card.parent is None
            and reader.card.pci_address not in slices
        }
        there = {card.uuid for card in cards}
        known = {r.card.index: r.card for uuid, r in before.items() if uuid not in there}
        # A card that gives no handle is the one that had its place before, if that is missing.
        named = [
            card
            if card.is_named or card.index not in known
            else replace(known[card.index], handle=None, fault=card.fault)
            for card in cards
        ]
        self._readers = before | {card.uuid: self._reader(card) for card in named}

    def _reader(self, card: Card) -> CardReader:
        return CardReader(card, self._driver, self._root, self._names)

    def _reopened(self) -> bool:
        """Open again, at most every 30 s; stale handles are replaced by UUID."""
        now = self._clock()
        if self._failure is not None and now < self._retry_at:
            return False
        try:
            self.open()
        except TelemetryError as error:
            self._retry_at, self._failure = now + _RETRY_S, error
            return False
        self._failure = None
        return True

    def _without_driver(self) -> tuple[DeviceReading, ...]:
        if self._failure is None:
            return ()
        module = jetson.reading(self._root)
        if module is not None:
            return (module,)
        if not self._readers:
            raise self._failure
        if self._failure.field == ASKS_USER:
            raise self._failure  # the lane keeps the devices, and what asks the user is told
        reason = self._failure.message
        return tuple(reader.missing(reason) for reader in self._readers.values())

    def _settle(self, readings: tuple[DeviceReading, ...]) -> None:
        """What the sample means for the next one: open again, or list the slices anew."""
        there = [reader for reader in self._readers.values() if reader.card.handle is not None]
        now = self._clock()
        if there and all(reader.fault_code in codes.DRIVER_GONE for reader in there):
            self._is_open = False
        elif now >= self._retry_at and any(map(_is_to_be_listed_anew, self._readers.values())):
            self._retry_at = now + _RETRY_S
            self._release()
        self._last, self._last_at = {reading.uuid: reading for reading in readings}, now
        if any(_is_used(reading) for reading in readings):
            self._unused_since = None
        elif self._unused_since is None:
            self._unused_since = now

    def _left_alone(self) -> tuple[DeviceReading, ...]:
        """The devices without a question, where one would wake a GPU or keep it from sleeping."""
        displays = self._displays.now()
        sleeper = next((d.address for d in displays if d.is_asleep), "")
        now = self._clock()
        if sleeper:
            others = tr(_NOT_WOKEN).format(sleeper=sleeper)
            return tuple(
                reading
                for display in displays
                for reading in self._unpolled(display, tr(_ASLEEP) if display.is_asleep else others)
            )
        since = self._unused_since
        if self._is_open and since is not None and now - since >= _UNUSED_FOR_S:
            if any(d.may_sleep for d in displays):
                self._rests_until = now + _REST_S
            self._unused_since = None
        if now < self._rests_until:
            return tuple(r for display in displays for r in self._unpolled(display, tr(_RESTING)))
        return ()

    def _unpolled(self, display: pci.Display, reason: str) -> tuple[DeviceReading, ...]:
        """The devices of a card as they were last seen: unused, or they would not be left alone."""
        age_s = self._clock() - self._last_at
        seen = tuple(
            replace(reading, note=reason, age_s=age_s)
            for reading in self._last.values()
            if reading.pci_address == display.address
        )
        if seen:
            return seen
        name = f"NVIDIA GPU 10de:{display.device.removeprefix('0x')}"
        card = Card(f"pci-{display.address}", name, None, pci_address=display.address)
        return (self._reader(card).missing(reason),)

    def _release(self) -> None:
        if self._is_open:
            self._is_open = False
            nvml = self._binding()
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                return  # it went before us


def _is_to_be_listed_anew(reader: CardReader) -> bool:
    """Whether another listing may bring it back: a slice that was made anew, a card not named."""
    card = reader.card
    return not card.is_named or bool(reader.fault_code and card.parent is not None)


def _is_used(reading: DeviceReading) -> bool:
    used = reading.used_bytes
    return isinstance(used, Missing) or used > _UNUSED_BYTES or bool(reading.processes)
