"""A sizing as rows of comma-separated values: every figure a whole number of bytes.

It is for other programs: names are those of the machine contract, in any language of the window.
"""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.budget.phases import peaks
from engine.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.budget.model import RankBudget
    from engine.evidence import Estimate
    from engine.sizing import Sizing

COLUMNS = (
    "rank",
    "device",
    "part",
    "name",
    "low (bytes)",
    "likely (bytes)",
    "high (bytes)",
    "least (bytes)",
    "basis",
    "source",
)
"""``part`` is region, phase, or sum; ``least`` is empty where the architecture states none."""
_STARTS_A_FORMULA = ("=", "+", "-", "@")


def csv_text(sizing: Sizing) -> str:
    """One row for each region, phase and sum of each rank, as RFC 4180 has them."""
    made = StringIO()
    writer = csv.writer(made)
    writer.writerow(COLUMNS)
    for rank in sizing.budget.ranks:
        device = _inert(printable(rank.slot.device.name, 80))
        writer.writerows((rank.rank, device, *row) for row in _rows(rank))
    return made.getvalue()


def _rows(rank: RankBudget) -> Iterator[tuple[object, ...]]:
    for region in Region:
        entry = rank.regions[region]
        least = "" if entry.least_bytes is None else entry.least_bytes
        yield "region", region.value, *_sizes(entry.estimate), least, *_why(entry.estimate)
    for peak in peaks(rank):
        driver = _inert(printable(peak.driver, 400))
        yield "phase", peak.phase.value, *_sizes(peak.estimate), "", "", driver
    planned, line = rank.planned, rank.slot.device.allocatable
    yield "sum", "planned", *_sizes(planned), "", "", "the regions together"
    yield "sum", "allocatable", *_sizes(line), "", *_why(line)


def _sizes(estimate: Estimate) -> tuple[int, int, int]:
    return estimate.low_bytes, estimate.likely_bytes, estimate.high_bytes


def _why(estimate: Estimate) -> tuple[str, str]:
    return estimate.basis.value, _inert(printable(estimate.source, 400))


def _inert(text: str) -> str:
    """``text`` so that no spreadsheet takes it for a formula."""
    return f"'{text}" if text.startswith(_STARTS_A_FORMULA) else text
