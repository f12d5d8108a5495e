"""What was reached before: one line a row of the tables, with a note where it got worse."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.truth.scoring.bars import bars
from tests.truth.scoring.tables import rows

if TYPE_CHECKING:
    from tests.truth.scoring.board import Board

BASELINE = Path(__file__).resolve().parents[1] / "baseline.tsv"
_HEAD = "# row\tfigures\tmedian\tp95\tworst\toutside\tnote"
LONGEST_NOTE = 100
"""Letters in which a row has to say why it got worse."""
_ROUNDING = 5e-5
"""A hundredth of a percent, which the page doesn't show."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row's figures; all but the count are better when smaller."""

    count: int
    median: float
    p95: float
    worst: float
    outside: float
    note: str = ""

    def is_worse_than(self, before: Line) -> bool:
        """Whether any figure got worse, or records are gone."""
        now = (self.median, self.p95, self.worst, self.outside)
        then = (before.median, before.p95, before.worst, before.outside)
        return self.count < before.count or any(
            a > b + _ROUNDING for a, b in zip(now, then, strict=True)
        )


def lines(board: Board) -> dict[str, Line]:
    """The lines of today: rows of the tables, and bars (0 where met, 1 where not)."""
    found = {
        row.key: Line(row.count, row.median, row.p95, row.worst, row.outside)
        for row in rows(board.scores)
    }
    for bar in bars(board.scores):
        if bar.is_met is not None:
            missed = 0.0 if bar.is_met else 1.0
            found[bar.key] = Line(bar.count, missed, missed, missed, missed)
    return found


def read() -> dict[str, Line]:
    """The lines as they are written down."""
    found: dict[str, Line] = {}
    for text in BASELINE.read_text(encoding="utf-8").splitlines():
        if text.startswith("#"):
            continue
        key, count, *figures, note = text.split("\t")
        found[key] = Line(int(count), *(float(f) for f in figures), note=note)
    return found


def worse(board: Board) -> dict[str, tuple[Line | None, Line | None]]:
    """Rows that got worse or are gone: before, and now."""
    now = lines(board)
    return {
        key: (before, now.get(key))
        for key, before in read().items()
        if key not in now or now[key].is_worse_than(before)
    }


def write(board: Board, note: str) -> list[str]:
    """Write today's lines; those that got worse only with ``note``. Returns what was refused."""
    before = read() if BASELINE.exists() else {}
    refused = list(worse(board)) if before and not note else []
    kept: dict[str, Line] = {key: before[key] for key in refused}
    for key, line in lines(board).items():
        if key in kept:
            continue
        old = before.get(key)
        said = note if old is not None and line.is_worse_than(old) else old.note if old else ""
        kept[key] = Line(line.count, line.median, line.p95, line.worst, line.outside, said)
    text = [_HEAD]
    for key, line in sorted(kept.items()):
        figures = (line.median, line.p95, line.worst, line.outside)
        numbers = "\t".join(f"{figure:.5f}" for figure in figures)
        text.append(f"{key}\t{line.count}\t{numbers}\t{line.note}")
    BASELINE.write_text("\n".join(text) + "\n", encoding="utf-8")
    return refused
