"""The words of the report, each in one sentence: those that it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.report import terms
from engine.report.document import Cell, Column, Table, Tone
from engine.units import UnitSystem
from engine.words import tr

if TYPE_CHECKING:
    from engine.budget.model import Budget

_PICTURE = ("Load line", "To spare", "Over", "Low – high", "Least", "Basis")
_UNITS = {UnitSystem.BINARY: "GiB, MiB", UnitSystem.DECIMAL: "GB, MB"}


def table(budget: Budget, unit: UnitSystem) -> Table:
    """Terms of the picture, the regions that hold anything, and the parts of a plan."""
    held = [r for r in Region if any(rank.regions[r].estimate.high_bytes for rank in budget.ranks)]
    told = [(tr(name), tr(terms.PICTURE[name])) for name in _PICTURE]
    if any(rank.has_pool for rank in budget.ranks):
        told.append((tr("Pool"), tr(terms.PICTURE["Pool"])))
    told += [(region.label, tr(terms.REGIONS[region])) for region in held]
    told += [(tr(name), tr(terms.PLAN[name])) for name in ("Context", "At once")]
    if len(budget.ranks) > 1:
        told += [(tr(name), tr(terms.PLAN[name])) for name in ("Rank", "TP × PP")]
    name = _UNITS[unit]
    told.append((tr(name), tr(terms.UNITS[name])))
    columns = Column(tr("Term"), 2.2), Column(tr("What it means"), 7.8, tone=Tone.QUIET)
    rows = tuple((Cell(term, tone=Tone.STRONG), Cell(meaning)) for term, meaning in told)
    return Table(columns, rows, has_header=False)
