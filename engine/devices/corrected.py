"""This computer as its user says it is, where detection is wrong or missing.

A correction says only what differs; what it doesn't say stays as it was detected, and what the
driver says is never overwritten but named beside it. One for a device that isn't found any more
corrects nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard, cast

from engine.devices import catalogue
from engine.devices.device import Device, DeviceKind, Machine, Slot
from engine.errors import DeviceError
from engine.evidence import Basis, Estimate, exactly
from engine.text import printable
from engine.units import MIB, TIB, format_gib
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_CORRECTIONS = 64
MOST_OF_ONE = 64
_LEAST_BYTES = 64 * MIB
_MOST_BYTES = 64 * TIB
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Correction:
    """What a person says of one device. Empty or 0: as detected, or as in the catalogue."""

    uuid: str = ""
    """The detected device that is meant; empty for one that was added."""
    name: str = ""
    total_bytes: int = 0
    allocatable_bytes: int = 0
    count: int = 1
    """How many there are; 0 where the device isn't there."""


def corrected(here: Machine, corrections: Sequence[Correction]) -> Machine:
    """``here`` with ``corrections``; ``here`` itself where they change nothing.

    Raises:
        DeviceError: a correction that cannot be; ``field`` says which of its parts.
    """
    of = {c.uuid: c for c in corrections if c.uuid}
    host = _changed(here.host, of[here.host.uuid]) if here.host.uuid in of else here.host
    gpus = [slot for slot in here.slots if slot.device.kind is not DeviceKind.HOST]
    slots = [made for slot in gpus for made in _several(slot, of.get(slot.uuid))]
    slots += [made for c in corrections if not c.uuid for made in _added(c)]
    kinds = [slot.device.kind for slot in slots]
    if DeviceKind.UNIFIED in kinds and len(slots) > 1:
        shared = slots[kinds.index(DeviceKind.UNIFIED)].device.name
        message = tr("{name} shares the computer’s memory: it takes no cards beside it.")
        raise DeviceError(message.format(name=shared), field="count")
    if len(slots) > catalogue.MAX_DEVICES:
        message = tr("A machine of {count} devices cannot be planned: give up to {most}.")
        message = message.format(count=len(slots), most=catalogue.MAX_DEVICES)
        raise DeviceError(message, field="count")
    changed = tuple(slots) or (host,)
    if changed == here.slots and host == here.host:
        return here
    return replace(
        here, name=f"{here.name}, corrected", slots=changed, host=host, is_corrected=True
    )


def from_plain(items: object) -> tuple[Correction, ...]:
    """Corrections that were kept; one that cannot be meant is left out."""
    kept = cast("list[object]", items)[:MOST_CORRECTIONS] if isinstance(items, list) else []
    return tuple(c for item in kept if (c := _correction(item)) is not None)


def _correction(item: object) -> Correction | None:
    fields = cast("dict[str, object]", item if isinstance(item, dict) else {})
    uuid, name, total, allocatable, count = (fields.get(f) for f in Correction.__slots__)
    if not (_is_text(uuid) and _is_text(name)):
        return None
    if not (_is_size(total) and _is_size(allocatable) and _is_size(count)):
        return None
    return Correction(uuid, name, total, allocatable, count) if count <= MOST_OF_ONE else None


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME and value.isprintable()


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and 0 <= value <= _MOST_BYTES


def _several(slot: Slot, correction: Correction | None) -> Iterator[Slot]:
    """The slot as corrected, as often as is said; only the first is the one that is sampled."""
    if correction is None:
        yield slot
        return
    first = _changed(slot, correction)
    nothing = exactly(
        0, Basis.ASSUMED, tr("counted by your correction: nothing is known of its use")
    )
    for at in range(correction.count):
        yield first if at == 0 else Slot(first.device, nothing, is_said=True)


def _changed(slot: Slot, correction: Correction) -> Slot:
    was = slot.device
    total = correction.total_bytes or was.total_bytes
    _check(correction, total)
    allocatable = was.allocatable
    if correction.allocatable_bytes:
        allocatable = exactly(correction.allocatable_bytes, Basis.SETTING, tr("your correction"))
    elif total != was.total_bytes:
        allocatable = _moved(allocatable, total - was.total_bytes)
    device = replace(was, total_bytes=total, allocatable=allocatable)
    if correction.name and correction.name != was.name:
        device = _named(device, correction.name)
    if device == was:
        return slot
    said = tr("your correction; {source} says {name}, {size}").format(
        source=tr(was.source), name=was.name, size=format_gib(was.total_bytes)
    )
    return replace(slot, device=replace(device, source=said), is_said=True)


def _moved(there: Estimate, shift: int) -> Estimate:
    """What programs get when the total moves and what the driver keeps stays."""
    low, likely, high = (
        max(size + shift, 1) for size in (there.low_bytes, there.likely_bytes, there.high_bytes)
    )
    source = tr("your correction of the total, less what the driver keeps of what it says")
    return Estimate(low, likely, high, Basis.SETTING, source)


def _named(device: Device, name: str) -> Device:
    """``device`` under another name; one of the catalogue brings all else that it is."""
    if device.kind is DeviceKind.HOST:
        return replace(device, name=printable(name, _LONGEST_NAME))
    with suppress(DeviceError):
        like = catalogue.find(name)
        return replace(
            like, total_bytes=device.total_bytes, allocatable=device.allocatable, source=""
        )
    return replace(device, name=printable(name, _LONGEST_NAME), label="", aliases=())


def _added(correction: Correction) -> Iterator[Slot]:
    """A device that detection doesn't find."""
    like: Device | None = None
    with suppress(DeviceError):
        like = catalogue.find(correction.name)
    total = correction.total_bytes or (like.total_bytes if like else 0)
    if not total:
        # The catalogue's own sentence names what comes near.
        like = catalogue.find(correction.name)
    _check(correction, total)
    if like is None or correction.total_bytes:
        device = catalogue.custom(total, printable(correction.name, _LONGEST_NAME), like)
    else:
        device = like
    if correction.allocatable_bytes:
        allocatable = exactly(correction.allocatable_bytes, Basis.SETTING, tr("your correction"))
        device = replace(device, allocatable=allocatable)
    said = tr("added by you; {source}").format(source=tr(device.source))
    device = replace(device, source=said)
    nothing = exactly(0, Basis.ASSUMED, tr("added by you: nothing is known of its use"))
    for _ in range(correction.count):
        yield Slot(device, nothing, is_said=True)


def _check(correction: Correction, total: int) -> None:
    if not _LEAST_BYTES <= total <= _MOST_BYTES:
        message = tr("A device of {size} cannot be: give its memory, such as 24 GiB.")
        message = message.format(size=format_gib(total, digits=3))
        raise DeviceError(message, field="total_bytes")
    if correction.allocatable_bytes and not (_LEAST_BYTES <= correction.allocatable_bytes <= total):
        message = tr("Programs can’t get {size} of a device of {total}.")
        message = message.format(
            size=format_gib(correction.allocatable_bytes), total=format_gib(total)
        )
        raise DeviceError(message, field="allocatable_bytes")
