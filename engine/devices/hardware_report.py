"""A report on this computer's hardware that can be passed on, and read again as a test's machine.

``{"schema", "program", "system", "sources", "snapshot", "own_pid", "machine"}``: what each source
answered, the snapshot made of it, and the machine made of that.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

from engine.devices import plain
from engine.devices.here import this_machine
from engine.redaction import redacted
from engine.telemetry import plain as plain_telemetry
from engine.telemetry import raw

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "plimsoll.hardware/1"


def hardware_report(root: Path, program: str, *, asks_drivers: bool = True) -> dict[str, Any]:
    """Ask every source of this computer once and say what came of it.

    Args:
        root: ``/``, or a made tree in tests.
        program: name and version of this program.
        asks_drivers: whether anything but the computer's own memory is read.

    Raises:
        TelemetryError: not even the computer's memory can be read.
    """
    read = raw.read(root, asks_drivers=asks_drivers)
    machine = this_machine(read.snapshot)
    return {
        "schema": SCHEMA,
        "program": program,
        "system": redacted(f"{platform.system()} {platform.release()} {platform.machine()}"),
        "sources": read.sources,
        "snapshot": plain_telemetry.to_dict(read.masks.snapshot(read.snapshot)),
        "own_pid": read.masks.own_pid,
        "machine": plain.to_dict(machine),
    }
