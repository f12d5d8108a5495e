"""The scoreboard is current, and no row of it got worse without a word."""

from __future__ import annotations

import difflib
from functools import cache

from tests.truth.scoring import baseline
from tests.truth.scoring.board import Board, board
from tests.truth.scoring.page import GLANCE_FILE, PAGE, glance_data, page
from tests.truth.scoring.records import records, runs


@cache
def _board() -> Board:
    return board()


def test_that_the_page_is_current() -> None:
    # Refresh with: python -m tests.truth --write
    old = PAGE.read_text(encoding="utf-8").splitlines()
    new = page(_board()).splitlines()
    changes = list(difflib.unified_diff(old, new, "docs", "now", n=0, lineterm=""))
    assert changes == []


def test_that_no_row_got_worse_without_a_reason() -> None:
    # A row may get worse with a reason: python -m tests.truth --write --because "…"
    assert baseline.worse(_board()) == {}


def test_that_every_record_is_scored_or_left_out_with_a_reason() -> None:
    found = _board()
    seen = {score.record for score in found.scores} | {missed.record for missed in found.missed}
    assert {record.id for record in records()} | {run["id"] for run in runs()} <= seen
    assert all(missed.reason for missed in found.missed)


def test_that_every_record_has_a_source_and_no_two_have_one_name() -> None:
    names = [record.id for record in records()]
    assert len(names) == len(set(names))
    assert all(record.source for record in records())


def test_that_the_product_says_the_figures_of_the_page() -> None:
    # python -m tests.truth --write
    assert GLANCE_FILE.read_text(encoding="utf-8") == glance_data(PAGE.read_text(encoding="utf-8"))
