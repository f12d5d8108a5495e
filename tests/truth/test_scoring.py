"""The scoreboard's own arithmetic, by hand: errors, fits without their records, what got worse."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.evidence import Basis, Estimate, exactly, total
from tests.truth.scoring import baseline
from tests.truth.scoring.bars import bars
from tests.truth.scoring.board import Board
from tests.truth.scoring.crossed import by_family, by_release, held_out, lines, refitted
from tests.truth.scoring.records import Record
from tests.truth.scoring.scores import Missed, Score, law_of
from tests.truth.scoring.tables import percentile, rows
from tests.truth.scoring.unscored import left_out, unscored
from tests.truth.scoring.versions import range_of, release_of, version_of

if TYPE_CHECKING:
    from pathlib import Path

SCORE = Score(
    "record", "vllm", "0.17 to 0.19", "llama", "graphs", 100.0, 90.0, 100.0, 110.0, 0.0,
    is_region=True, release="0.19", law="captured",
)  # fmt: skip


def measured(value: float, family: str = "llama", **changes: object) -> Score:
    """A record under one law, of which we say 100, from 90 to 110."""
    return replace(SCORE, record=f"{family} {value}", wanted=value, family=family, **changes)


def record(**changes: object) -> Record:
    """A record without anything that it does not state."""
    empty = Record("one", "page", "vllm", "0.19.0", "model", {}, {}, {})
    return replace(empty, **changes)


@pytest.mark.parametrize(("count", "expected"), [(1, 1), (10, 10), (20, 19), (40, 38), (100, 95)])
def test_that_95_of_100_are_at_or_below_the_p95(count: int, expected: int) -> None:
    assert percentile(range(1, count + 1), 0.95) == expected


def test_that_a_family_is_scored_with_what_the_others_say() -> None:
    # The others are 10 above us, half of our range of 20: so would we be, had we not seen it.
    found = [measured(110, "qwen"), measured(110, "gemma"), measured(112, "glm"), measured(104)]
    held = {one.moved.family: one for one in refitted(found, by_family)}
    assert held["llama"].moved.likely == 110
    assert (held["llama"].moved.low, held["llama"].moved.high) == (100, 120)
    assert (held["llama"].ranged.low, held["llama"].ranged.high) == (110, 112)
    assert not held["llama"].ranged.is_inside
    # The middle of 104, 110 and 112.
    assert held["qwen"].moved.likely == 110
    assert held["qwen"].moved.error == 0


def test_that_a_fit_by_one_release_alone_has_no_held_out_figure() -> None:
    found = [measured(100 + step, f"family {step}") for step in range(5)]
    assert list(refitted(found, by_release)) == []
    assert [line.scored for line in lines(found)] == ["as fitted", "without its family"]


def test_that_constants_do_not_stand_for_each_other() -> None:
    found = [measured(110, "qwen"), measured(110, "glm"), measured(110, "phi", law="other")]
    assert list(refitted([*found, measured(100)], by_family)) == []


def test_that_what_follows_from_source_is_scored_as_it_is() -> None:
    plain = measured(100, law="")
    assert list(lines([plain])) == []
    assert held_out([plain]) == [plain]
    assert held_out([measured(100)]) == []


def test_that_what_fits_into_a_pool_moves_with_the_pool() -> None:
    pools = [
        measured(110, family, figure="kv_pool") for family in ("llama", "qwen", "glm", "gemma")
    ]
    count = replace(
        pools[0], figure="concurrency from scratch", wanted=5.5, likely=5.0, is_region=False, law=""
    )
    moved = [s for s in held_out([*pools, count]) if s.figure == "concurrency from scratch"]
    assert [score.likely for score in moved] == [pytest.approx(5.5)]


def test_that_the_widest_fitted_part_is_the_law() -> None:
    narrow = Estimate(0, 1, 2, Basis.FITTED, "a table", label="slots")
    wide = Estimate(0, 5, 9, Basis.ASSUMED, "readings", label="libraries")
    read = exactly(100, Basis.READ, "header")
    assert law_of([total([read, total([narrow, wide])])]) == "libraries: readings"
    assert law_of([read]) == ""


def test_that_a_bar_of_records_wants_every_integer_of_a_record() -> None:
    tokens = replace(SCORE, record="a", figure="kv_tokens from a known pool", law="")
    found = [tokens, replace(tokens, figure="kv_blocks from a known pool", wanted=99)]
    found.append(replace(tokens, record="b"))
    bar = next(bar for bar in bars(found) if "known pool" in bar.name)
    assert (bar.reached, bar.is_met) == ("1 of 2 (50.0 %)", False)


@pytest.mark.parametrize(
    ("runtime", "version", "name"),
    [
        ("vllm", "0.5.4", "0.2 to 0.5"),
        ("vllm", "v0.10.2", "0.6 to 0.10"),
        ("vllm", "0.33.0", "0.20 to 0.33"),
        ("vllm", "2026-04-03", "not stated"),
        ("vllm", "", "not stated"),
        ("vllm", "b5000", "not stated"),
        ("sglang", "2026.10", "not stated"),
        ("llama.cpp", "b5863 (a4575513), llama-bench", "b4798 to b5912"),
        ("transformers", "4.51.3", "4"),
        ("ollama", "0.5.11", "all"),
    ],
)
def test_the_range_that_a_version_falls_into(runtime: str, version: str, name: str) -> None:
    assert range_of(runtime, version) == name


def test_that_a_release_is_found_among_other_words() -> None:
    assert version_of(record(version="mlx 0.32.1, mlx-lm 0.31.3")) == "0.31"
    assert version_of(record(version="0.8", request={"runtime_version": "0.8.5"})) == "0.8.5"


def test_that_patches_of_a_release_stand_together() -> None:
    assert {release_of("0.8.5.post1"), release_of("v0.8.1")} == {"0.8"}
    assert release_of("b11549") == release_of("b11549 (xllamacpp)") == "b11549"
    assert release_of("") == "not stated"


def test_that_every_printed_figure_has_a_score_or_a_reason() -> None:
    one = record(
        printed={"weights": [100, 0], "graphs": [5, 0], "kv_pool": [9, 0], "kv_keys": [4, 0]},
        left_out={"kv_pool": "the card is not named", "longest": "of another start"},
    )
    gone = unscored(one, [replace(SCORE, figure="weights")])
    assert [missed.figure for missed in gone] == ["graphs"]
    # It prints no longest request, so none is missed.
    assert list(left_out(one)) == [Missed("one", "vllm", "kv_pool", "the card is not named")]


def test_that_a_row_outside_every_range_is_seen_as_such() -> None:
    (row,) = rows([measured(150)])
    assert (row.inside, row.outside) == (0.0, 1.0)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """A board of two records whose lines are in a baseline of their own."""
    monkeypatch.setattr(baseline, "BASELINE", tmp_path / "baseline.tsv")
    board = Board((measured(105), measured(105, "qwen")), ())
    assert baseline.write(board, "") == []
    return board


def test_that_more_records_and_smaller_errors_are_not_worse(written: Board) -> None:
    more = Board((*written.scores, measured(104, "glm")), ())
    assert baseline.worse(more) == {}


@pytest.mark.parametrize(
    "scores",
    [(measured(105),), (measured(150), measured(105, "qwen")), ()],
    ids=["a record is gone", "an error grew", "the row is gone"],
)
def test_that_what_got_worse_is_named(written: Board, scores: tuple[Score, ...]) -> None:
    assert "vllm · 0.17 to 0.19 · graphs" in baseline.worse(Board(scores, ()))
    assert written.scores


def test_that_what_got_worse_is_written_only_with_a_reason(written: Board) -> None:
    off = Board((measured(150), *written.scores[1:]), ())
    key = "vllm · 0.17 to 0.19 · graphs"
    assert key in baseline.write(off, "")
    assert baseline.read()[key].note == ""
    assert baseline.worse(off)
    assert baseline.write(off, "the log was misread") == []
    assert baseline.read()[key].note == "the log was misread"
    assert baseline.worse(off) == {}
