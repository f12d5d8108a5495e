"""The scoreboard as lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.scoring.bars import all_bars
from tests.truth.scoring.crossed import lines
from tests.truth.scoring.reasons import UNEXPLAINED, reason_for
from tests.truth.scoring.tables import Row, percent, rows, worst_of
from tests.truth.scoring.words import in_order, reasons, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.truth.scoring.board import Board
    from tests.truth.scoring.scores import Score


def table(board: Board) -> Iterator[str]:
    """One line per runtime, range of releases and figure."""
    for row in rows(board.scores):
        yield f"{row.key:64} {_figures(row)} exact {row.exact:5}"


def bars(board: Board) -> Iterator[str]:
    """One line per bar."""
    yield "\nbars, and what is reached without the model family that is scored:"
    for bar in all_bars(board.scores):
        met = {True: "met", False: "NOT MET", None: "not scored"}[bar.is_met]
        yield (
            f"{bar.name:52} {bar.limit:34} {bar.reached:38} n {bar.count:5}  {met:10}"
            f" held out: {bar.held_out}"
        )


def fits(board: Board) -> Iterator[str]:
    """One line per fitted figure and group that is left out."""
    yield "\nfitted figures, and the same without their own records:"
    for line in lines(board.scores):
        ranged = ""
        if line.ranged is not None:
            inside, width = percent(line.ranged.inside, 1), percent(line.ranged.width, 1)
            ranged = f" range of the others: inside {inside:>8} width {width:>8}"
        name = f"{line.runtime} · {line.figure} · {line.scored}"
        yield f"{name:64} {_figures(line.row)}{ranged}"


def worst(board: Board, count: int) -> Iterator[str]:
    """The figures that are furthest off, per runtime, each with its reason."""
    unexplained = 0
    for runtime in in_order(score.runtime for score in board.scores):
        yield f"\nworst of {runtime}:"
        mine = [score for score in board.scores if score.runtime == runtime]
        for score in worst_of(mine, count):
            unexplained += reason_for(score) == UNEXPLAINED
            yield f"  {_line(score)}"
    yield f"\n{UNEXPLAINED}: {unexplained} of these"


def left_out(board: Board) -> Iterator[str]:
    """What is not scored: how many records, which figures, and why."""
    yield "\nnot scored:"
    for runtime, reason, figures, count in reasons(board.missed):
        yield f"  {count:4} {runtime}: {reason} ({figures})"


def _figures(row: Row) -> str:
    return (
        f"n {row.count:5} median {percent(row.median, 3):>9} p95 {percent(row.p95):>9}"
        f" worst {percent(row.worst):>10} inside {percent(row.inside, 1):>8}"
        f" width {percent(row.width, 1):>8}"
    )


def _line(score: Score) -> str:
    return (
        f"{score.record:48.48} {score.figure:28} measured {shown(score.wanted):>12}"
        f" ours {shown(score.likely, score.wanted):>12} ({100 * score.signed:+.2f} %)"
        f" [{shown(score.low, score.wanted)} … {shown(score.high, score.wanted)}]"
        f"{'' if score.is_inside else ' OUTSIDE'} {reason_for(score)}"
    )
