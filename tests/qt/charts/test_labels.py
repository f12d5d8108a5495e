"""Labels stand beside their marks, apart from each other, inside their space."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gui.kit.charts.labels import capacity, spread, steps

_PLACES = st.lists(st.floats(-200, 600), min_size=1, max_size=9).map(sorted)


@given(_PLACES)
def test_that_labels_keep_their_distance_and_stay_inside(wanted: list[float]) -> None:
    placed = spread(wanted, 17, 10, 320)
    assert all(b - a >= 17 - 1e-6 for a, b in pairwise(placed))
    assert placed[0] >= 10 - 1e-6
    assert placed[-1] <= 320 + 1e-6


@given(_PLACES)
def test_that_solving_twice_changes_nothing(wanted: list[float]) -> None:
    placed = spread(wanted, 17, 10, 320)
    assert spread(placed, 17, 10, 320) == pytest.approx(placed)


def test_that_labels_with_room_stand_where_they_want() -> None:
    assert spread([20.0, 60.0, 200.0], 17, 0, 300) == [20.0, 60.0, 200.0]


def test_that_two_labels_at_one_place_part_evenly() -> None:
    assert spread([100.0, 100.0], 17, 0, 300) == [91.5, 108.5]


def test_that_a_cluster_at_the_upper_edge_grows_downwards() -> None:
    assert spread([10.0, 10.0, 10.0], 17, 10, 300) == [10.0, 27.0, 44.0]


def test_that_more_labels_than_there_is_room_for_are_refused() -> None:
    assert capacity(17, 0, 34) == 3
    with pytest.raises(ValueError, match="do not fit"):
        spread([0.0] * 4, 17, 0, 34)


@pytest.mark.parametrize(
    ("span", "room", "step"),
    [(24.59, 278, 4), (45.6, 243, 8), (3.57, 278, 0.5), (144.0, 240, 32)],
)
def test_that_binary_ticks_are_the_smallest_step_with_room(
    span: float, room: float, step: float
) -> None:
    assert steps(span, room, 30, binary=True) == step
