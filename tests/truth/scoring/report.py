"""The scoreboard as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.truth.scoring.bars import bars as all_bars
from tests.truth.scoring.page import worst as worst_of
from tests.truth.scoring.tables import percent, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.truth.scoring.board import Board
    from tests.truth.scoring.scores import Score

_SMALLEST_BYTES = 2**24
"""A figure above this is bytes, shown in GiB; below, a count."""


def table(board: Board) -> Iterator[str]:
    """One line per runtime, range of releases and figure."""
    for row in rows(board.scores):
        yield (
            f"{row.key:64} n {row.count:5} exact {row.exact:5} median {percent(row.median, 3):>9}"
            f" p95 {percent(row.p95):>9} worst {percent(row.worst):>10}"
            f" inside {percent(row.inside, 1):>8} width {percent(row.width, 1):>8}"
        )


def bars(board: Board) -> Iterator[str]:
    """One line per bar."""
    for bar in all_bars(board.scores):
        met = {True: "met", False: "NOT MET", None: "not scored"}[bar.is_met]
        yield f"{bar.name:52} {bar.limit:34} {bar.reached:38} n {bar.count:5}  {met}"


def worst(board: Board, count: int) -> Iterator[str]:
    """The figures that are furthest off, per runtime."""
    for runtime in sorted({score.runtime for score in board.scores}):
        yield f"\nworst of {runtime}:"
        mine = [score for score in board.scores if score.runtime == runtime]
        for score in worst_of(mine, count):
            yield f"  {_line(score)}"


def _line(score: Score) -> str:
    unit = 2**30 if abs(score.wanted) > _SMALLEST_BYTES else 1
    return (
        f"{score.record:48.48} {score.figure:28} measured {score.wanted / unit:12.4f}"
        f" ours {score.likely / unit:12.4f} ({100 * score.signed:+.2f} %)"
        f" [{score.low / unit:.3f} … {score.high / unit:.3f}]"
        f"{'' if score.is_inside else ' OUTSIDE'}"
    )


def left_out(board: Board) -> Iterator[str]:
    """What is not scored: how many figures, and why."""
    yield "\nnot scored:"
    reasons = Counter((missed.runtime, missed.reason) for missed in board.missed)
    for (runtime, reason), count in sorted(reasons.items()):
        yield f"  {count:4} {runtime}: {reason}"
