"""Stated against predicted, region by region and rank by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.evidence import Basis, Estimate, exactly
from engine.logs.buffers import is_host
from engine.logs.reading import RankReading
from engine.logs.regions import Stated, stated_regions
from engine.runtimes import registry
from engine.words import tr

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget
    from engine.logs.reading import LogReading

_OF_THE_CARD = frozenset({Region.HEADROOM, Region.FOREIGN})
"""Regions that depend on the device, and not on the plan alone."""
_LLAMA_CPP = "llama.cpp"
_PINNED = "_Host"
"""Host memory that a device reads by itself: a buffer beside the rest of the host's."""


@dataclass(frozen=True, slots=True)
class Row:
    """One region of one rank."""

    region: Region
    stated: Stated | None
    predicted: Estimate | None

    @property
    def difference_bytes(self) -> int | None:
        """Stated less predicted; None where one of them is not known."""
        if self.stated is None or self.predicted is None:
            return None
        return self.stated.size_bytes - self.predicted.likely_bytes

    @property
    def agrees(self) -> bool | None:
        """Whether the stated figure lies within the prediction's range and its own rounding."""
        if self.stated is None or self.predicted is None:
            return None
        low = self.predicted.low_bytes - self.stated.half_bytes
        high = self.predicted.high_bytes + self.stated.half_bytes
        return low <= self.stated.size_bytes <= high


@dataclass(frozen=True, slots=True)
class RankRows:
    """The regions of one rank or device."""

    name: str
    """As the log calls it; empty where it names none."""
    rows: tuple[Row, ...]

    def row(self, region: Region) -> Row:
        """The row of ``region``."""
        return next(row for row in self.rows if row.region is region)


def reconcile(
    reading: LogReading, budget: Budget | None, *, capacity_known: bool = True
) -> tuple[RankRows, ...]:
    """The rows of every rank that states a region.

    Args:
        reading: what the log says.
        budget: the plan of the same run; None where its model is not known.
        capacity_known: whether the device of the plan is that of the run; where not, what the
            device's size decides is not predicted.
    """
    found: list[RankRows] = []
    failure = reading.failure
    for rank in reading.ranks:
        own = failure if failure is not None and failure.rank == rank.name else None
        stated = stated_regions(rank, own)
        if not stated:
            continue
        predicted = _predicted(rank, budget, capacity_known=capacity_known) if budget else {}
        rows = tuple(Row(r, stated.get(r), predicted.get(r)) for r in Region)
        found.append(RankRows(rank.name, rows))
    if not found and budget is not None and (pool := _pool_of_tokens(reading, budget)):
        rank = RankReading("", 0)
        predicted = _predicted(rank, budget, capacity_known=capacity_known)
        stated = {Region.KV_CACHE: pool}
        found.append(RankRows("", tuple(Row(r, stated.get(r), predicted.get(r)) for r in Region)))
    return tuple(found)


def _pool_of_tokens(reading: LogReading, budget: Budget) -> Stated | None:
    """The pool of a page that states it in tokens alone, at what the plan takes for each."""
    tokens, state = reading.stated("kv_tokens"), budget.sequence_state
    if tokens is None or not (state.pool_tokens and state.num_blocks and state.bytes_per_block):
        return None
    whole_bytes = state.num_blocks * state.bytes_per_block
    size_bytes = tokens.size_bytes * whole_bytes // state.pool_tokens
    return Stated(size_bytes, state.bytes_per_block // 2, (tokens.line,))


def _predicted(
    rank: RankReading, budget: Budget, *, capacity_known: bool
) -> dict[Region, Estimate]:
    planned = _of(rank, budget)
    if planned is None:
        return _buffers(rank.name, budget)
    found = {region: entry.estimate for region, entry in planned.regions.items()}
    if budget.llama_cpp is not None and registry.family(budget.deployment.runtime) == _LLAMA_CPP:
        # Where the plan says the same of a region, it says it with its range.
        found |= {
            region: buffer
            for region, buffer in _buffers(rank.name, budget).items()
            if buffer.likely_bytes != found[region].likely_bytes
        }
        if is_host(rank.name):
            found = {r: e for r, e in found.items() if r not in _OF_THE_CARD}
        if rank.name.endswith(_PINNED):
            found.pop(Region.RUNTIME, None)
    elif planned.has_pool and not capacity_known:
        found.pop(Region.KV_CACHE)
    if not capacity_known:
        found = {r: e for r, e in found.items() if r not in _OF_THE_CARD}
    return found


def _of(rank: RankReading, budget: Budget) -> RankBudget | None:
    """The plan's rank; every one of a plan is like the others where its number is not known.

    The computer's own memory is a rank of its own, of which not every plan takes any.
    """
    if is_host(rank.name):
        host = budget.machine.host
        return next((each for each in budget.ranks if each.slot is host), None)
    return budget.ranks[rank.index] if rank.index < len(budget.ranks) else budget.ranks[0]


def _buffers(device: str, budget: Budget) -> dict[Region, Estimate]:
    """llama.cpp's own buffers on ``device``, by its name."""
    buffers = budget.llama_cpp
    if buffers is None or not any(
        device in held
        for held in (buffers.model_buffers, buffers.kv_buffers, buffers.compute_buffers)
    ):
        return {}
    compute = buffers.compute_buffers.get(device, 0)
    if is_host(device) and device.endswith(_PINNED):
        compute += buffers.output_buffer
    sizes = {
        Region.WEIGHTS: buffers.model_buffers.get(device, 0),
        Region.KV_CACHE: buffers.kv_buffers.get(device, 0),
        Region.RECURRENT_STATE: buffers.rs_buffers.get(device, 0),
        Region.ACTIVATIONS: compute,
    }
    return {
        region: exactly(size, Basis.EXACT, tr("llama.cpp’s own buffers"), label=region.label)
        for region, size in sizes.items()
    }
