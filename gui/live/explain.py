"""Why other tools say other numbers, and what was held before: words for the pane."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from engine.telemetry import mapped
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind
from engine.units import MIB, UnitSystem
from engine.words import grouped, tr, tr_later
from gui.kit import format as fmt

_TOOLS = {"win32": tr_later("Task Manager"), "darwin": tr_later("Activity Monitor")}
"""What tells of memory where there is another tool than ``free``."""


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
            tr("Why does nvidia-smi say “Not Supported”?"),
            tr(
                "This GPU has no memory of its own. What is shown is the computer's memory, "
                "as the system counts it."
            ),
        )
    if reading.pool is not PoolKind.VRAM:
        return _why_shared(reading, unit)
    if isinstance(used, Missing) or reading.vendor not in {"", "NVIDIA"}:
        return None
    shown = f"{grouped(round(used / MIB))} MiB"
    if isinstance(reserved, Missing):
        return Passage(
            tr("Why does nvidia-smi say less than {shown}?").format(shown=shown),
            tr(
                "This driver counts the part that it keeps for itself as used, and doesn't say how "
                "much that is. nvidia-smi leaves it out."
            ),
        )
    if unit is UnitSystem.BINARY:
        text = tr(
            "{shown} are {size}: the same number in another unit. "
            "The {reserved} MiB that the driver keeps are in neither."
        )
    else:
        text = tr(
            "{shown} are {size}: the same bytes. "
            "The {reserved} MiB that the driver keeps are in neither."
        )
    return Passage(
        tr("Why does nvidia-smi say {shown}?").format(shown=shown),
        text.format(
            shown=shown, size=fmt.size(used, unit), reserved=grouped(round(reserved / MIB))
        ),
    )


def _why_shared(reading: DeviceReading, unit: UnitSystem) -> Passage:
    """A GPU that works in the computer's memory."""
    if reading.pool is PoolKind.WIRED:
        return Passage(
            tr("Why does Activity Monitor say another number?"),
            tr(
                "It counts the whole computer. Here is what the GPU holds, and up to which line "
                "macOS lets it; above that line it swaps."
            ),
        )
    if reading.pool is PoolKind.CARVE_OUT and reading.parts:
        carved = reading.parts[0].total_bytes
        size = tr(carved.reason) if isinstance(carved, Missing) else fmt.size(carved, unit)
        return Passage(
            tr("Why do other tools say {size} of VRAM?").format(size=size),
            tr(
                "That is what the firmware set aside. Models live in system memory that is mapped "
                "for the GPU, which counts here as far as it can be had."
            ),
        )
    return Passage(
        tr("Why is this the computer's memory?"),
        tr(
            "This GPU has no memory of its own. What is shown is the computer's memory, "
            "as the system counts it."
        ),
    )


def _why_host(reading: DeviceReading, unit: UnitSystem) -> Passage | None:
    used = reading.used_bytes
    if isinstance(used, Missing):
        return None
    tool = tr(_TOOLS.get(sys.platform, "free"))
    models = mapped.model_bytes(reading.processes)
    if models:
        return Passage(
            tr("Why does {tool} say that less is used?").format(tool=tool),
            tr(
                "It calls {size} of mapped model files available, since the system may drop them. "
                "A running model reads them for every token, so here they are held."
            ).format(size=fmt.size(models, unit)),
        )
    return Passage(
        tr("Why does {tool} say another number?").format(tool=tool),
        tr(
            "Used is here what the system can't give up: file cache counts as free. Tools that add "
            "up processes count shared pages more than once."
        ),
    )


def before(baseline_bytes: int | None, unit: UnitSystem, *, is_running: bool) -> Passage | None:
    """What others held before a runtime of ours ran here; None where that isn't known."""
    if baseline_bytes is None:
        return None
    held = fmt.size(baseline_bytes, unit)
    if is_running:
        return Passage(
            tr("Before this run"),
            tr("Others held {held}. “Emptied” in the plan takes them as 0.").format(held=held),
        )
    return Passage(
        tr("Nothing of a plan is running"),
        tr("Others hold {held} now, and a plan counts them. “Emptied” takes them as 0.").format(
            held=held
        ),
    )


def unreadable(reason: str) -> Passage:
    """What is said in place of figures that can't be read."""
    words = tr("{reason}. The last values are not shown as if they were new.")
    return Passage(
        tr("This device can't be read now"),
        words.format(reason=f"{reason[:1].upper()}{reason[1:]}"),
    )
