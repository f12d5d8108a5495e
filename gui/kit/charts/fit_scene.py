"""What the fit map and the curve show, before anything is a pixel: bytes, tokens, words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.budget.drawn import drawn_bytes, needed_bytes
from engine.budget.model import STACK_ORDER, Region
from gui.kit.charts.captions import is_open

if TYPE_CHECKING:
    from engine.budget.model import Budget
    from engine.fit.curve import Curve
    from engine.fit.fit_map import FitMap
    from engine.units import UnitSystem

_AXIS_OVER_TOTAL = 1.025
_AXIS_OVER_STACK = 1.03
_HIGHEST_OF_TOTAL = 2
"""A stack higher than this many devices is cut off: what is far too much needs no scale."""


@dataclass(frozen=True, slots=True)
class PlanPoint:
    """The plan in force, on the axes."""

    context: int
    requests: int
    text: str
    block_tokens: int = 16
    """Tokens of one block of the cache: the finest step that matters."""


@dataclass(frozen=True, slots=True)
class MapScene:
    """The fit map."""

    map: FitMap
    edges_bytes: tuple[int, ...]
    """Between the classes of margin, rising; five for six classes."""
    point: PlanPoint
    alternative: tuple[tuple[float, float], ...]
    """The limit of another plan, as in ``FitMap``; empty for none."""
    alternative_text: str
    other: str
    """What cells without a margin are called: unknown, refused, not offered."""
    name: str
    description: str

    @property
    def ground(self) -> tuple[object, ...]:
        """What all but the plan point is painted from."""
        return self.map, self.edges_bytes, self.alternative


@dataclass(frozen=True, slots=True)
class Layer:
    """One region of one stack, in bytes from the bottom."""

    region: Region
    bottom_bytes: int
    spare_from_bytes: int
    """Above this the region is reserved but not needed."""
    top_bytes: int


@dataclass(frozen=True, slots=True)
class CurveScene:
    """The curve over context."""

    contexts: tuple[int, ...]
    stacks: tuple[tuple[Layer, ...] | None, ...]
    """For each context, bottom up; None where the runtime refuses the plan."""
    load_line_bytes: int
    total_bytes: int
    axis_max_bytes: int
    unit: UnitSystem
    point: PlanPoint
    most_requests: int
    longest: int | None
    """The longest context that fits, where it is known."""
    name: str
    description: str

    @property
    def ground(self) -> tuple[object, ...]:
        """What all but the plan point is painted from."""
        return id(self.stacks), self.unit


def curve_scene(
    found: Curve,
    rank: int,
    unit: UnitSystem,
    point: PlanPoint,
    longest: int | None,
    words: tuple[str, str],
) -> CurveScene | None:
    """The stacks of ``rank``, or of the last there is; None where no plan is taken."""
    taken = [budget for budget in found.budgets if budget]
    if not taken:
        return None
    # A curve of the plan before may have fewer.
    rank = min(rank, *(len(budget.ranks) - 1 for budget in taken))
    device = taken[0].ranks[rank].slot.device
    stacks = tuple(budget and _stack(budget, rank) for budget in found.budgets)
    highest = max((stack[-1].top_bytes for stack in stacks if stack), default=0)
    axis = max(device.total_bytes * _AXIS_OVER_TOTAL, highest * _AXIS_OVER_STACK)
    return CurveScene(
        contexts=found.contexts,
        stacks=stacks,
        load_line_bytes=device.allocatable.likely_bytes,
        total_bytes=device.total_bytes,
        axis_max_bytes=round(min(axis, device.total_bytes * _HIGHEST_OF_TOTAL)),
        unit=unit,
        point=point,
        most_requests=found.axes.most_requests,
        longest=longest,
        name=words[0],
        description=words[1],
    )


def _stack(budget: Budget, rank: int) -> tuple[Layer, ...]:
    found = budget.ranks[rank]
    made: list[Layer] = []
    bottom = 0
    for region in STACK_ORDER:
        size = drawn_bytes(found, region)
        needed = needed_bytes(found) if region is Region.KV_CACHE else size
        made.append(Layer(region, bottom, bottom + min(max(needed, 0), size), bottom + size))
        bottom += size
        if is_open(budget, found, region):
            # More may be needed, and nobody knows how much: nothing can lie above it.
            break
    return tuple(made)
