"""What the one picture shows, before anything is a pixel: bytes, words, order.

A scene is frozen and knows no Qt: the widget and the PDF paint the same one, and tests can
ask it questions. Positions are bytes from the bottom of the stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from engine.budget.drawn import drawn_bytes, needed_bytes
from engine.budget.model import STACK_ORDER, RankBudget, Region
from engine.devices.device import DeviceKind
from engine.fit.judge import judge
from engine.overlay.group import Planned
from engine.units import UnitSystem, format_gib, in_unit
from engine.words import tr
from gui.kit.charts import captions
from gui.kit.format import exact_bytes

if TYPE_CHECKING:
    from engine.budget.model import Budget
    from engine.sizing import Sizing
    from gui.kit.charts.captions import Caption

AXIS_OVER_TOTAL = 1.025
AXIS_OVER_STACK = 1.03
_HARDLY = 4
"""Host RAM of which the plan takes less than a fourth isn't drawn beside cards."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One region in the stack."""

    region: Region
    label: str
    value: str
    """Two decimals, without the unit; a bound carries its sign."""
    bottom_bytes: int
    top_bytes: int
    spare_from_bytes: int | None
    """Above this the region is reserved but not needed by the plan; None where all is needed."""
    low_bytes: int
    """Where the upper edge lies with this region at its low end."""
    high_bytes: int
    is_open: bool
    """Whether only the lower edge is known: drawn as a bracket that is open above."""
    tooltip: str
    edges: tuple[int, ...] = ()
    """Where it is divided: between the models beside the plan's."""

    @property
    def size_bytes(self) -> int:
        """Height in bytes."""
        return self.top_bytes - self.bottom_bytes

    @property
    def parts(self) -> tuple[tuple[int, int, bool], ...]:
        """Lower and upper edge of what is needed and of what is spare; whether it is spare."""
        if self.spare_from_bytes is None:
            ends = (self.bottom_bytes, *self.edges, self.top_bytes)
            return tuple((low, high, False) for low, high in pairwise(ends))
        return (
            (self.bottom_bytes, self.spare_from_bytes, False),
            (self.spare_from_bytes, self.top_bytes, True),
        )


@dataclass(frozen=True, slots=True)
class Panel:
    """One device of the plan."""

    rank: int
    title: str
    summary: str
    """``42.4 of 44.5 GiB``: planned, of what can be allocated."""
    is_fullest: bool
    uuid: str
    """Key of the device's readings; empty for a device that isn't here."""
    segments: tuple[Segment, ...]
    captions: tuple[Caption, ...]
    load_line_bytes: int
    total_bytes: int
    load_texts: tuple[str, ...]
    """What stands at the load line, longest wording first."""
    reserve_label: str
    reserve_text: str
    over_bytes: int
    """How far the stack rises above the load line; 0 if it doesn't."""
    over_texts: tuple[str, ...]
    """How far that is, longest wording first; none if it doesn't."""

    @property
    def stack_bytes(self) -> int:
        """Top of the stack."""
        return self.segments[-1].top_bytes if self.segments else 0

    @property
    def held_bytes(self) -> int:
        """Top of what will really be held: the stack without headroom."""
        below = [s.top_bytes for s in self.segments if s.region is not Region.HEADROOM]
        return below[-1] if below else 0

    def summary_of(self, held_bytes: int, unit: UnitSystem) -> str:
        """``summary`` for another figure, such as a measured one."""
        return _summary(held_bytes, self.load_line_bytes, unit)

    def segment(self, region: Region) -> Segment | None:
        """The segment of ``region``, if it is drawn."""
        return next((s for s in self.segments if s.region is region), None)


@dataclass(frozen=True, slots=True)
class PictureScene:
    """The whole picture."""

    panels: tuple[Panel, ...]
    unit: UnitSystem
    axis_max_bytes: int
    is_here: bool
    """Whether the devices are this computer's, so that a measurement can be shown."""
    is_simulated: bool
    """Whether what is shown as measured is made up."""
    planned: Planned
    """Whose processes are the plan's."""
    asides: tuple[str, ...]
    """What the plan holds where nothing is drawn, longest wording first; usually none."""
    name: str
    """The verdict, for those who hear the picture."""
    description: str
    """Every region with its size, for the same."""


def scene_for(
    sizing: Sizing, unit: UnitSystem = UnitSystem.BINARY, rank: int | None = None
) -> PictureScene:
    """The picture of ``sizing``.

    Args:
        sizing: budget and verdict.
        unit: GiB or GB.
        rank: only this rank; None shows all that matter.
    """
    budget = sizing.budget
    ranks, asides = _shown(sizing, unit)
    if rank is not None:
        ranks, asides = tuple(r for r in budget.ranks if r.rank == rank), ()
    fullest = min(ranks, key=_left_bytes).rank
    panels = tuple(_panel(budget, r, unit, is_fullest=r.rank == fullest) for r in ranks)
    return PictureScene(
        panels=panels,
        unit=unit,
        axis_max_bytes=max(
            max(
                round(p.total_bytes * AXIS_OVER_TOTAL),
                round(p.stack_bytes * AXIS_OVER_STACK),
            )
            for p in panels
        ),
        is_here=budget.machine.is_here,
        is_simulated=budget.machine.is_simulated,
        name=_headline(sizing, unit),
        planned=Planned(budget.deployment.runtime, budget.model.id),
        asides=asides,
        description=" ".join((_description(panels, unit), *asides[:1])),
    )


def _headline(sizing: Sizing, unit: UnitSystem) -> str:
    """The verdict's; the engine wrote it in GiB."""
    is_same = unit is UnitSystem.BINARY
    return sizing.verdict.headline if is_same else judge(sizing.budget, unit).headline


def _left_bytes(rank: RankBudget) -> int:
    """What is left below the load line by all that is really held."""
    held = sum(drawn_bytes(rank, r) for r in Region if r is not Region.HEADROOM)
    return rank.slot.device.allocatable.likely_bytes - held


def _shown(sizing: Sizing, unit: UnitSystem) -> tuple[tuple[RankBudget, ...], tuple[str, ...]]:
    """The ranks to draw, and in words what is left out.

    The host's RAM beside GPUs is left out where the plan hardly touches it: on the scale of a
    whole machine's RAM the cards would be too small to read.
    """
    ranks = sizing.budget.ranks
    cards = tuple(r for r in ranks if r.slot.device.kind is not DeviceKind.HOST)
    rest = [r for r in ranks if r.slot.device.kind is DeviceKind.HOST]
    hardly = all(
        r.planned.likely_bytes * _HARDLY < r.slot.device.allocatable.likely_bytes
        and r.rank != sizing.verdict.binding_rank
        for r in rest
    )
    if not cards or not rest or not hardly:
        return ranks, ()
    used = sum(r.planned.likely_bytes for r in rest)
    size = format_gib(used, unit)
    return cards, (
        tr("Besides, {size} of host memory").format(size=size),
        tr("+ {size} of host memory").format(size=size),
        f"+ {size}",
    )


def _panel(budget: Budget, rank: RankBudget, unit: UnitSystem, *, is_fullest: bool) -> Panel:
    device = rank.slot.device
    segments = _segments(budget, rank, unit)
    line = device.allocatable.likely_bytes
    stack = segments[-1].top_bytes if segments else 0
    held = stack - rank.regions[Region.HEADROOM].estimate.likely_bytes
    over = max(0, stack - line)
    return Panel(
        rank=rank.rank,
        title=_title(budget, rank),
        summary=_summary(held, line, unit),
        is_fullest=is_fullest,
        uuid=rank.slot.uuid,
        segments=segments,
        captions=captions.captions(budget, rank, unit),
        load_line_bytes=line,
        total_bytes=device.total_bytes,
        load_texts=captions.load_texts(device, unit),
        reserve_label=captions.reserve_label(device),
        reserve_text=captions.reserve_text(device, unit),
        over_bytes=over,
        over_texts=_over_texts(over, unit) if over else (),
    )


def _summary(held_bytes: int, line_bytes: int, unit: UnitSystem) -> str:
    held = format_gib(held_bytes, unit, digits=1, unit=False)
    return tr("{held} of {line}").format(held=held, line=format_gib(line_bytes, unit, digits=1))


def _over_texts(over_bytes: int, unit: UnitSystem) -> tuple[str, ...]:
    size = format_gib(over_bytes, unit, digits=1)
    return (
        tr("{size} over the load line").format(size=size),
        tr("{size} over").format(size=size),
    )


def _title(budget: Budget, rank: RankBudget) -> str:
    """``Rank 0``; where devices differ, the device's name too."""
    names = [r.slot.device.name for r in budget.ranks]
    name = rank.slot.device.name
    if len(set(names)) == 1:
        return tr("Rank {rank}").format(rank=rank.rank)
    name = tr(name)
    name = name[0].upper() + name[1:]
    if names.count(rank.slot.device.name) == 1:
        return name
    return tr("{device}, rank {rank}").format(device=name, rank=rank.rank)


def _segments(budget: Budget, rank: RankBudget, unit: UnitSystem) -> tuple[Segment, ...]:
    made: list[Segment] = []
    bottom = 0
    for region in STACK_ORDER:
        estimate = rank.regions[region].estimate
        drawn = drawn_bytes(rank, region)
        is_open = captions.is_open(budget, rank, region)
        if drawn <= 0 and not is_open:
            continue
        needed = needed_bytes(rank) if region is Region.KV_CACHE else drawn
        grown = drawn > estimate.likely_bytes
        made.append(
            Segment(
                region=region,
                label=tr("KV needed") if grown else region.label,
                value=captions.drawn_sign(budget, rank, region)
                + format_gib(drawn, unit, unit=False)
                if drawn
                else tr("unknown"),
                bottom_bytes=bottom,
                top_bytes=bottom + drawn,
                spare_from_bytes=bottom + max(0, needed) if needed < drawn else None,
                low_bytes=bottom + (drawn if grown else estimate.low_bytes),
                high_bytes=bottom + (drawn if grown else estimate.high_bytes),
                is_open=is_open,
                tooltip=tr("{region}: {size}. {note}").format(
                    region=region.label,
                    size=exact_bytes(drawn),
                    note=in_unit(tr(rank.regions[region].note), unit),
                ),
                edges=captions.others_edges(rank) if region is Region.FOREIGN else (),
            )
        )
        bottom += drawn
        if is_open and region in {Region.KV_CACHE, Region.RECURRENT_STATE}:
            # Nobody knows where the regions above would begin.
            break
    return tuple(made)


def _description(panels: tuple[Panel, ...], unit: UnitSystem) -> str:
    sentences: list[str] = []
    for panel in panels:
        regions = ", ".join(f"{s.label} {s.value}" for s in reversed(panel.segments))
        if len(panels) > 1:
            sentences.append(f"{panel.title}.")
        words = tr("Load line at {line} of {total}. From the top, in {unit}: {regions}.")
        sentences.append(
            words.format(
                line=format_gib(panel.load_line_bytes, unit),
                total=format_gib(panel.total_bytes, unit),
                unit=unit.value,
                regions=regions,
            )
        )
        sentences += (f"{text}." for text in panel.over_texts[:1])
    return " ".join(sentences)
