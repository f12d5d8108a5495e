"""The bundled devices: three capacities each, found by the names people and drivers use."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TypedDict

from engine.devices import names
from engine.devices.device import Device, DeviceKind, Machine, Slot, Vendor
from engine.errors import DeviceError
from engine.evidence import Basis, Estimate, exactly
from engine.units import GIB, MIB, TIB, format_gib, parse_bytes
from engine.words import grouped, tr
from resources import data

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_DEVICES = 1024
_MEMORY = re.compile(r"\d{1,6}(?:\.\d{1,3})? ?(?:GB|GiB)")
_COUNTED = re.compile(r"(\d{1,12}) ?[x×] ?(.*\S)")
_MAX_TOTAL_BYTES = 1024 * TIB
_LEAST_RAM_BYTES = 64 * MIB


class _Row(TypedDict):
    name: str
    vendor: str
    kind: str
    label: str
    total_bytes: int
    total_basis: str
    allocatable_bytes: list[int]
    basis: str
    allocatable_source: str
    sm_count: int
    compute_capability: float
    ecc: str
    aliases: list[str]
    source: str


@cache
def devices() -> tuple[Device, ...]:
    """Every device of the catalogue: cards by maker and generation, then Apple chips."""
    rows: list[_Row] = data("devices")["devices"]
    return tuple(_device(row) for row in rows)


def find(name: str) -> Device:
    """The device meant by ``name``: ``h100``, ``RTX 4090`` or ``NVIDIA GeForce RTX 4090``.

    Raises:
        DeviceError: no such device (the nearest are named), or the name fits several sizes.
    """
    found = _candidates(name)
    shown = name.strip()[:80]  # a quotation spells out what could steer a terminal
    # After a comma drivers write a size; a further device there must not be passed over.
    if any(_candidates(further) for further in name.split(",")[1:]):
        listed = " + ".join(part.strip() for part in shown.split(","))
        message = tr("{shown!r} names several devices: write {listed!r}.").format(
            shown=shown, listed=listed
        )
        raise DeviceError(message, field="gpu")
    if len(found) == 1:
        return found[0]
    if found:
        choices = _listed(device.name for device in found)
        message = tr("{shown!r} comes in several sizes: say {choices}.").format(
            shown=shown, choices=choices
        )
        raise DeviceError(message, field="gpu")
    near = _nearest(name)
    hint = (
        tr("did you mean {listed}?").format(listed=_listed(near))
        if near
        else tr("give its memory instead, such as 24 GB.")
    )
    message = tr("{shown!r} is not in the device catalogue; {hint}").format(shown=shown, hint=hint)
    raise DeviceError(message, field="gpu")


def match(name: str, total_bytes: int) -> Device | None:
    """The catalogue's entry for a driver's ``name``, the size deciding between variants.

    None where the name is unknown, or no variant is within 4% of ``total_bytes``.
    """
    wanted = set(names.keys(name))
    variants = (d for d, keys in _own_keys() if not wanted.isdisjoint(keys))
    found = (*_candidates(name), *variants)
    if not found:
        return None
    best = min(found, key=lambda device: abs(device.total_bytes - total_bytes))
    return best if abs(best.total_bytes - total_bytes) <= total_bytes * 0.04 else None


def custom(total_bytes: int, name: str = "", like: Device | None = None) -> Device:
    """A device of which only the capacity is given: all of it counts as allocatable.

    Args:
        total_bytes: what a framework states as the device's total.
        name: what to call it.
        like: a catalogue device to take everything else from (vendor, SM count, kind).

    Raises:
        DeviceError: the capacity is not a plausible number of bytes.
    """
    if not 0 < total_bytes <= _MAX_TOTAL_BYTES:
        message = tr("A device of {total_bytes} bytes cannot be: give its memory in bytes.").format(
            total_bytes=total_bytes
        )
        raise DeviceError(message, field="gpu_total_bytes")
    allocatable = exactly(total_bytes, Basis.SETTING, tr("capacity as given"))
    shown = name or (
        like.name if like else tr("{total} device").format(total=format_gib(total_bytes, digits=1))
    )
    if like is not None:
        return replace(
            like,
            name=shown,
            total_bytes=total_bytes,
            allocatable=allocatable,
            source=tr("capacity as given"),
        )
    return Device(
        name=shown,
        vendor=Vendor.NVIDIA,
        kind=DeviceKind.DISCRETE,
        label=tr("as given"),
        total_bytes=total_bytes,
        allocatable=allocatable,
        source=tr("capacity as given"),
    )


def machine(device: Device, count: int = 1, host_total_bytes: int | None = None) -> Machine:
    """A machine that isn't here: ``count`` devices with nothing else on them.

    Args:
        device: of the catalogue, or ``custom``.
        count: devices, 1 to 1024.
        host_total_bytes: the machine's RAM; assumed from the devices where it isn't given.

    Raises:
        DeviceError: an impossible count, or RAM that cannot be.
    """
    _check(count, "gpu_count")
    nothing = exactly(0, Basis.ASSUMED, tr("not this computer: nothing else is assumed to run"))
    slot = Slot(device, nothing)
    return Machine(
        name=device.name if count == 1 else f"{count} × {device.name}",
        slots=(slot,) * count,
        host=Slot(host_of((device,) * count, host_total_bytes), nothing),
        is_here=False,
    )


def without_gpu(host_total_bytes: int) -> Machine:
    """A machine that isn't here and has its RAM alone.

    Raises:
        DeviceError: RAM that cannot be.
    """
    nothing = exactly(0, Basis.ASSUMED, tr("not this computer: nothing else is assumed to run"))
    host = Slot(_given_host(host_total_bytes), nothing)
    size = format_gib(host_total_bytes, digits=0)
    return Machine(tr("{size} of RAM").format(size=size), (host,), host, is_here=False)


def mixed(devices: Sequence[Device], host_total_bytes: int | None = None) -> Machine:
    """A machine that isn't here, of these ``devices`` in rank order, with nothing else on them.

    ``host_total_bytes`` is its RAM, as for ``machine``.

    Raises:
        DeviceError: an impossible count, or a device that shares the host's memory among others.
    """
    if len(set(devices)) == 1:
        return machine(devices[0], len(devices), host_total_bytes)
    _check(len(devices), "gpu")
    shared = next((d for d in devices if d.kind is DeviceKind.UNIFIED), None)
    if shared is not None:
        message = tr("{name} shares the computer's memory: it takes no cards beside it.").format(
            name=shared.name
        )
        raise DeviceError(message, field="gpu")
    nothing = exactly(0, Basis.ASSUMED, tr("not this computer: nothing else is assumed to run"))
    return Machine(
        name=" + ".join(
            device.name if count == 1 else f"{count} × {device.name}"
            for device, count in Counter(devices).items()
        ),
        slots=tuple(Slot(device, nothing) for device in devices),
        host=Slot(host_of(devices, host_total_bytes), nothing),
        is_here=False,
    )


def named(text: str) -> tuple[Device, ...]:
    """The devices of ``RTX 4090 + 2 x RTX 3060``, in rank order.

    Each is a name of the catalogue, or memory alone (``24 GB``).

    Raises:
        DeviceError: a name is in no catalogue, or fits several sizes; or an impossible count.
    """
    found: list[Device] = []
    for part in text.split(" + "):
        count, name = _counted(part.strip())
        _check(count, "gpu")
        size_bytes = _memory_alone(name)
        found += [
            custom(size_bytes, tr("{name} device").format(name=name)) if size_bytes else find(name)
        ] * count
    return tuple(found)


def planned(text: str, ranks: int, host_total_bytes: int | None = None) -> Machine:
    """The machine that a person means by ``text``.

    Args:
        text: a list as ``named`` reads it, or one device without a count.
        ranks: how many there are where ``text`` doesn't say.
        host_total_bytes: its RAM, as for ``machine``.

    Raises:
        DeviceError: a name is in no catalogue, or fits several sizes; or RAM that cannot be.
    """
    found = named(text)
    if lists(text):
        return mixed(found, host_total_bytes)
    return machine(found[0], ranks, host_total_bytes)


def takes_ram(text: str) -> bool:
    """Whether the machine that ``text`` means has RAM beside the memory of its devices."""
    return all(device.kind is not DeviceKind.UNIFIED for device in named(text))


def _memory_alone(text: str) -> int:
    """Bytes of ``24 GB`` or ``40 GiB``; 0 for anything else."""
    return parse_bytes(text) if _MEMORY.fullmatch(text) else 0


def lists(text: str) -> bool:
    """Whether ``text`` says how many devices there are, so that ``named`` reads it."""
    return " + " in text or _counted(text.strip())[1] != text.strip()


def _counted(text: str) -> tuple[int, str]:
    """``2 x RTX 3060`` as 2 and ``RTX 3060``; 1 and the text where it says no count."""
    said = _COUNTED.fullmatch(text.strip())
    return (1, text) if said is None else (int(said[1]), said[2])


def _check(count: int, field: str) -> None:
    if not 1 <= count <= MAX_DEVICES:
        message = tr("A machine of {count} devices cannot be planned: give 1 to {max_devices}.")
        message = message.format(count=grouped(count), max_devices=grouped(MAX_DEVICES))
        raise DeviceError(message, field=field)


def _device(row: _Row) -> Device:
    low, likely, high = row["allocatable_bytes"]
    return Device(
        name=row["name"],
        vendor=Vendor(row["vendor"]),
        kind=DeviceKind(row["kind"]),
        label=row["label"],
        total_bytes=row["total_bytes"],
        allocatable=Estimate(low, likely, high, Basis(row["basis"]), row["allocatable_source"]),
        sm_count=row["sm_count"],
        compute_capability=row["compute_capability"],
        ecc=row["ecc"],
        aliases=tuple(row["aliases"]),
        source=row["source"],
    )


def host_of(devices: Sequence[Device], total_bytes: int | None = None) -> Device:
    """The RAM of a machine with these ``devices``; assumed from them where it isn't given.

    Raises:
        DeviceError: RAM that cannot be.
    """
    first = devices[0]
    if first.kind is DeviceKind.UNIFIED:
        if total_bytes is not None:
            message = tr("{name} shares the computer's memory: it has no other to state.")
            raise DeviceError(message.format(name=first.name), field="host_total_bytes")
        return replace(first, name=tr("shared memory"), kind=DeviceKind.HOST)
    if total_bytes is not None:
        return _given_host(total_bytes)
    on_cards = sum(device.total_bytes for device in devices)
    total = max(64 * GIB, 2 * on_cards)
    allocatable = Estimate(
        min(32 * GIB, total),
        max(64 * GIB, on_cards),
        total,
        Basis.ASSUMED,
        tr("RAM of that machine is not stated: as much as its devices hold, at least 64 GiB"),
    )
    return _host_of(total, allocatable)


def _given_host(total_bytes: int) -> Device:
    if not _LEAST_RAM_BYTES <= total_bytes <= _MAX_TOTAL_BYTES:
        message = tr("RAM of {size} cannot be: give that machine's memory, such as 64 GiB.")
        shown = format_gib(total_bytes, digits=3)
        raise DeviceError(message.format(size=shown), field="host_total_bytes")
    return _host_of(total_bytes, exactly(total_bytes, Basis.SETTING, tr("RAM as given")))


def _host_of(total: int, allocatable: Estimate) -> Device:
    return Device(
        name=tr("host RAM"),
        vendor=Vendor.CPU,
        kind=DeviceKind.HOST,
        label="",
        total_bytes=total,
        allocatable=allocatable,
        source=allocatable.source,
    )


def _candidates(name: str) -> tuple[Device, ...]:
    known = _keys()
    for key in names.keys(name):
        if key in known:
            return tuple(devices()[i] for i in known[key])
    return ()


@cache
def _own_keys() -> tuple[tuple[Device, frozenset[str]], ...]:
    """Every device with the spellings of its own name."""
    return tuple((device, frozenset(names.keys(device.name))) for device in devices())


def _nearest(name: str) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415 - for a slip only

    known, wanted = _keys(), next(iter(names.keys(name)), "")
    close = get_close_matches(wanted, known, n=4, cutoff=0.6)
    return list(dict.fromkeys(devices()[i].name for key in close for i in known[key][:2]))[:3]


def _keys() -> Mapping[str, list[int]]:
    """Each spelling with the rows it may mean; a device's own name means nothing else."""
    return data("devices")["keys"]


def _listed(choices: Iterable[str]) -> str:
    words = list(choices)
    return (
        words[0]
        if len(words) == 1
        else tr("{names} or {words}").format(names=", ".join(words[:-1]), words=words[-1])
    )
