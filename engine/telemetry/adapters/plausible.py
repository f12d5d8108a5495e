"""Figures of processes that can't all be true, marked as such and not mended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.telemetry.snapshot import Quality
from engine.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.telemetry.snapshot import ProcessReading

_SLACK_BYTES = 64 * MIB


def marked(rows: Iterable[ProcessReading], used: int | None) -> tuple[ProcessReading, ...]:
    """``rows``, of which those that can't all be true are said to count shared memory too often.

    No process holds more of a card than is in use there, nor do all of them together (xpumanager
    issue 145: 7692 MiB for a browser, 3642 in use).

    Args:
        rows: read at the same time as ``used``.
        used: bytes in use on the card; None where that isn't known.
    """
    rows = tuple(rows)
    sizes = [row.used_bytes if isinstance(row.used_bytes, int) else 0 for row in rows]
    if used is None:
        return rows
    most = used + max(used // 20, _SLACK_BYTES)
    # Where some are too large alone, it is they; else nobody can say which.
    least = most if max(sizes, default=0) > most else 0 if sum(sizes) > most else None
    return tuple(
        row
        if least is None or size <= least or row.quality is not Quality.RESIDENT
        else replace(row, quality=Quality.OVER_COUNTS)
        for row, size in zip(rows, sizes, strict=True)
    )
