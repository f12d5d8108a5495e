"""Why other tools say other numbers, and what was held before: words for the pane."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from engine.telemetry import mapped
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind
from engine.units import MIB, UnitSystem
from gui.kit import format as fmt


@dataclass(frozen=True, slots=True)
class Passage:
    """A heading and a few sentences."""

    heading: str
    text: str


def why(reading: DeviceReading, unit: UnitSystem) -> Passage | None:
    """Why another tool says another number."""
    used, reserved = reading.used_bytes, reading.reserved_bytes
    if reading.pool is PoolKind.HOST:
        return _why_host(reading, unit)
    if reading.pool is PoolKind.UNIFIED:
        return Passage(
            "Why does nvidia-smi say “Not Supported”?",
            "This GPU has no memory of its own. What is shown is the computer's memory, "
            "as the system counts it.",
        )
    if isinstance(used, Missing):
        return None
    shown = f"{round(used / MIB):,} MiB"
    if isinstance(reserved, Missing):
        return Passage(
            f"Why does nvidia-smi say less than {shown}?",
            "This driver counts the part that it keeps for itself as used, and doesn't say how "
            "much that is. nvidia-smi leaves it out.",
        )
    other = "the same number in another unit" if unit is UnitSystem.BINARY else "the same bytes"
    return Passage(
        f"Why does nvidia-smi say {shown}?",
        f"{shown} are {fmt.size(used, unit)}: {other}. "
        f"The {round(reserved / MIB):,} MiB that the driver keeps are in neither.",
    )


def _why_host(reading: DeviceReading, unit: UnitSystem) -> Passage | None:
    used = reading.used_bytes
    if isinstance(used, Missing):
        return None
    tool = {"win32": "Task Manager", "darwin": "Activity Monitor"}.get(sys.platform, "free")
    models = mapped.model_bytes(reading.processes)
    if models:
        return Passage(
            f"Why does {tool} say that less is used?",
            f"It calls {fmt.size(models, unit)} of mapped model files available, since the system "
            "may drop them. A running model reads them for every token, so here they are held.",
        )
    return Passage(
        f"Why does {tool} say another number?",
        "Used is here what the system can't give up: file cache counts as free. Tools that add "
        "up processes count shared pages more than once.",
    )


def before(baseline_bytes: int | None, unit: UnitSystem, *, is_running: bool) -> Passage | None:
    """What others held before a runtime of ours ran here; None where that isn't known."""
    if baseline_bytes is None:
        return None
    held = fmt.size(baseline_bytes, unit)
    if is_running:
        return Passage(
            "Before this run", f"Others held {held}. “Emptied” in the plan takes them as 0."
        )
    return Passage(
        "Nothing of a plan is running",
        f"Others hold {held} now, and a plan counts them. “Emptied” takes them as 0.",
    )


def unreadable(reason: str) -> Passage:
    """What is said in place of figures that can't be read."""
    return Passage(
        "This device can't be read now",
        f"{reason[:1].upper()}{reason[1:]}. The last values are not shown as if they were new.",
    )
