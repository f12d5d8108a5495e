"""``plimsoll machine``: devices, what they can give, what is free now, and how we know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cli import streams
from engine.cli.encode import encode
from engine.cli.look import Look, fitted, wrapped
from engine.cli.runtimes_text import Seer, described
from engine.contract.machine import machine_answer, reading_of
from engine.devices.here import this_machine
from engine.telemetry.probe import open_sampler
from engine.telemetry.snapshot import Missing
from engine.units import format_gib

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from engine.devices.device import Machine, Slot
    from engine.telemetry.snapshot import TelemetrySnapshot


def run(options: argparse.Namespace) -> int:
    """Sample once and describe what is here."""
    sampler = open_sampler()
    try:
        snapshot = sampler.sample()
    finally:
        sampler.close()
    machine = this_machine(snapshot)
    output = streams.output()
    seen = Seer().look(snapshot) if options.runtimes else None
    if options.json:
        output.write(encode(machine_answer(machine, snapshot, seen)) + "\n")
    else:
        look = Look.of(output)
        look.write(_describe(machine, snapshot, look), output)
        if seen is not None:
            look.write(("", *described(seen, look)), output)
    return 0


def _describe(machine: Machine, snapshot: TelemetrySnapshot, look: Look) -> Iterator[str]:
    title = machine.name[:1].upper() + machine.name[1:]
    yield look.strong(look.line(title))
    slots = list(machine.slots)
    if machine.host not in slots:
        slots.append(machine.host)
    for slot in slots:
        yield ""
        yield from _slot(slot, snapshot, look)
    for note in snapshot.notes:
        yield ""
        yield from wrapped(note, look.width, first="  ", rest="  ")


def _slot(slot: Slot, snapshot: TelemetrySnapshot, look: Look) -> Iterator[str]:
    device, reading = slot.device, reading_of(slot, snapshot)
    yield look.strong(look.line(f"{device.name} · {device.kind.value}"))
    lines = [
        ("Label", device.label, ""),
        ("Total", format_gib(device.total_bytes), device.source),
        (
            "Allocatable",
            format_gib(device.allocatable.likely_bytes),
            f"{device.allocatable.basis.word}: {device.allocatable.source}",
        ),
        ("Others hold", format_gib(slot.foreign.likely_bytes), slot.foreign.source),
    ]
    if reading is not None:
        free = reading.free_bytes
        shown = "not known" if isinstance(free, Missing) else format_gib(free)
        why = free.reason if isinstance(free, Missing) else reading.source
        lines.append(("Free now", shown, why))
    for name, value, source in lines:
        if value:
            left = look.width - 34
            text = f"  {fitted(name, 14)}{fitted(value, 16, right=True)}  "
            yield text + look.faint(look.line(source, left))
