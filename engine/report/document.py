"""A report as values: what it says and in which order, without fonts, pixels or pages.

Every text is plain; foreign names in it have passed ``engine.text.printable``. The same
inputs make an equal document.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from engine.budget.model import RankBudget, Region
    from engine.fit.fit_map import FitMap
    from engine.report.measured import MeasuredRun
    from engine.sizing import Sizing
    from engine.units import UnitSystem


class Tone(StrEnum):
    """How much a text stands out."""

    NORMAL = "normal"
    STRONG = "strong"
    QUIET = "quiet"


class Align(StrEnum):
    """Words to the left, figures to the right."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Heading:
    """Begins a part of the report, or something within one."""

    text: str
    is_part: bool = False
    """Whether it begins a whole part, such as the assumptions."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str
    tone: Tone = Tone.NORMAL


@dataclass(frozen=True, slots=True)
class Command:
    """A command line: broken between words only, so that it can be copied."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences, one below the other."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Short values under their names, a few to a row."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: str
    weight: float
    """Share of the width, relative to the other columns."""
    align: Align = Align.LEFT
    tone: Tone = Tone.NORMAL


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table, and the text that shows it."""

    text: str
    value_bytes: int | None = None
    """The exact figure behind the text, where it is a size."""
    region: Region | None = None
    """Whose colour stands before the text."""
    tone: Tone | None = None
    """None takes the column's."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. ``total`` is the last row, set apart."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] = ()
    has_header: bool = True


@dataclass(frozen=True, slots=True)
class Formula:
    """One figure, worked out: its name, the calculation with numbers put in, its source."""

    name: str
    value: str
    calculation: str
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """The one picture: the plan and, where there was one, a measured run."""

    sizing: Sizing
    runs: Mapping[int, MeasuredRun]
    """By rank; empty for a prediction alone."""
    unit: UnitSystem
    caption: str
    rank: int | None
    """Only this rank; None shows all."""


@dataclass(frozen=True, slots=True, eq=False)
class MapFigure:
    """Plans by context and requests at once: what fits, and where the limit lies."""

    map: FitMap
    context: int
    """Of the plan."""
    requests: int
    """Of the plan."""
    point: str
    """What stands beside the plan."""
    total_bytes: int
    """Of the device, by which margins are told apart."""
    unit: UnitSystem
    caption: str
    spoken: str
    """The picture in words, for those who don't see it."""


@dataclass(frozen=True, slots=True, eq=False)
class BarsFigure:
    """Plans side by side on one scale, each with its own load line."""

    bars: tuple[tuple[str, RankBudget], ...]
    """The rank that decides, by the plan's letter."""
    unit: UnitSystem
    caption: str


@dataclass(frozen=True, slots=True)
class PageBreak:
    """What follows begins on a new page."""


Block = (
    Heading
    | Paragraph
    | Command
    | Bullets
    | Facts
    | Table
    | Formula
    | Figure
    | MapFigure
    | BarsFigure
    | PageBreak
)


@dataclass(frozen=True, slots=True, eq=False)
class ReportDocument:
    """The whole report."""

    title: str
    """For the file's properties: ``Memory sizing: … on …``."""
    subject: str
    """The line over the headline: which model on which device."""
    headline: str
    detail: str
    on: date
    footer: str
    blocks: tuple[Block, ...]
    version: str
