"""A figure that is only a bound is marked as one wherever it is shown, also as what is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.architecture.spec import Direction, Doubt, Subject
from engine.budget.model import Region
from engine.evidence import Basis
from engine.fit.verdict import Fit
from engine.units import UnitSystem
from gui.kit.charts.scene import scene_for
from gui.sizing import beside, comparison, present
from gui.sizing.compare_view_model import CompareViewModel

GIB = UnitSystem.BINARY
SIGNS = {Direction.LOWER: "≥ ", Direction.UPPER: "≤ ", Direction.EITHER: "≈ "}


@pytest.fixture(params=SIGNS)
def doubted(request, loaded, llama):
    """Llama 3.1 8B, of whose sequence state only a bound is known."""
    doubt = Doubt(Subject.SEQUENCE_STATE, "A part is not understood.", request.param)
    spec = replace(llama.spec, doubts=(doubt,))
    loaded.load(replace(llama, spec=spec))
    loaded.choose_runtime("vllm", None)
    loaded.choose_device("RTX 4090")
    loaded.edit("context", max_model_len=8192, concurrency=4)
    return loaded, request.param


def _grown(room):
    """More tokens than the pool of one card has room for: what is drawn is what is needed."""
    room.edit("context", max_model_len=65_536)
    rank = room.state.sizing.budget.ranks[0]
    assert rank.needed.basis is Basis.BOUND
    assert rank.regions[Region.KV_CACHE].estimate.basis is not Basis.BOUND
    return rank


def test_that_what_is_needed_beyond_a_pool_is_marked_in_picture_table_and_ranks(doubted):
    room, direction = doubted
    _grown(room)
    sign, budget = SIGNS[direction], room.state.sizing.budget
    # 4 x 65,536 tokens of 131,072 bytes.
    segment = scene_for(room.state.sizing).panels[0].segment(Region.KV_CACHE)
    assert segment.value == f"{sign}32.00"
    assert segment.is_open == (direction is not Direction.UPPER)
    rows = present.region_rows(budget, 0, GIB, side_by_side=True)
    row = next(row for row in rows if row.region is Region.KV_CACHE)
    assert row.size == row.per_rank[0] == f"{sign}32.00"


def test_that_what_is_needed_within_a_pool_is_marked_in_the_picture(doubted):
    room, direction = doubted
    captions = scene_for(room.state.sizing).panels[0].captions
    needed = next(c for c in captions if "needed" in c.texts[0])
    assert all(text.startswith(SIGNS[direction]) for text in needed.texts)
    spare = next(c for c in captions if "spare" in c.texts[0])
    assert not spare.texts[0].startswith(SIGNS[direction])


def test_that_a_comparison_marks_what_is_needed_and_promises_no_margin(doubted, runner, here):
    room, direction = doubted
    compare = CompareViewModel(runner, here)
    compare.add(room.state)
    (entry,) = compare.entries
    heads = comparison.headings(compare.entries, GIB)
    (line,) = comparison.lines(compare.entries, GIB)
    cells = dict(zip(heads[1:], (word.text for word in line.cells), strict=True))
    assert cells["KV needed"] == f"{SIGNS[direction]}4.00"
    assert cells["KV reserved"][0].isdigit()
    assert cells["Weights"][0].isdigit()
    is_promise = direction is Direction.UPPER
    assert (entry.outcome is not Fit.UNKNOWN) == is_promise
    assert (comparison.margin_words(entry, GIB) == "Unknown") != is_promise


def test_that_a_model_beside_the_plan_promises_no_margin_of_a_bound(doubted, llama):
    room, direction = doubted
    room.choose_runtime("llama.cpp", None)
    room.add_beside(replace(llama, spec=room.state.model.spec))
    room.choose_device("2 x RTX 4090")
    placed = room.state.beside[0]
    is_promise = direction is Direction.UPPER
    assert (placed.sizing.verdict.outcome is not Fit.UNKNOWN) == is_promise
    assert (beside.margin(placed, GIB) != "unknown") == is_promise
