"""All that the room shows, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.units import UnitSystem
from gui.browser.columns import Columns
from gui.browser.listing import Wanted
from gui.browser.rows import Source
from gui.browser.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gui.browser.columns import Arranged
    from gui.browser.messages import Message

NOTHING = Columns(())


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """All that the room shows."""

    source: Source = Source.ALL
    query: str = ""
    wanted: Wanted = field(default_factory=Wanted)
    rows: Arranged = field(default_factory=lambda: NOTHING.arranged("", Wanted()))
    arrangement: int = 0
    """Counts how often the user asked for other rows or another order."""
    has_more: bool = False
    counts: Mapping[Source, int] = field(default_factory=dict[Source, int])
    """Known numbers only."""
    summary: str = ""
    message: Message | None = None
    """In place of the list, where nothing is in it."""
    end: Message | None = None
    """Below the last row: what is still to come, or why it doesn't."""
    sends_to: str = ""
    """Where typed words go; empty while they go nowhere."""
    is_busy: bool = False
    unit: UnitSystem = UnitSystem.BINARY
    shelf: Shelf = field(default_factory=Shelf)
