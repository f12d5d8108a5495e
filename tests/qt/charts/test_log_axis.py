"""Places on a logarithmic axis, its ticks, and steps along it."""

from __future__ import annotations

import pytest

from gui.kit.charts.log_axis import LogAxis, nearest_round, stepped

AXIS = LogAxis(1024, 131_072, 100, 800)


def test_that_octaves_are_evenly_spaced():
    assert [AXIS.at(1024 << n) for n in range(8)] == pytest.approx(
        [100 + 100 * n for n in range(8)]
    )


@pytest.mark.parametrize("value", [1024, 1500, 8192, 100_000, 131_072])
def test_that_a_place_leads_back_to_its_value(value):
    assert AXIS.value(AXIS.at(value)) == pytest.approx(value)


def test_that_places_outside_belong_to_the_ends():
    assert AXIS.value(-50) == 1024
    assert AXIS.value(5000) == 131_072


def test_that_ticks_keep_their_distance():
    assert AXIS.ticks(50) == [1024 << n for n in range(8)]
    assert AXIS.ticks(150) == [1024, 4096, 16_384, 65_536]
    assert LogAxis(1, 48, 0, 100).ticks(1) == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    ("value", "steps", "rounded", "found"),
    [
        (8192, 4, True, 16_384),
        (8192, -4, True, 4096),
        # 2 ** 13.25 = 9,742: the nearest multiple of 128 is 9,728.
        (8192, 1, True, 9728),
        # From between two steps to the next one, not beyond it.
        (9000, 1, True, 9728),
        (9000, -1, True, 8192),
        (1, 1, False, 2),
        (2, -1, False, 1),
        (4, 1, False, 5),
        (16, 1, False, 19),
    ],
)
def test_that_a_step_is_a_quarter_octave_and_at_least_one(value, steps, rounded, found):
    assert stepped(value, steps, rounded=rounded) == found


def test_that_there_and_back_again_is_where_it_began():
    assert stepped(stepped(8192, 1, rounded=True), -1, rounded=True) == 8192


@pytest.mark.parametrize(
    ("tokens", "found"), [(8200.0, 8192), (8300.0, 8320), (1030.0, 1024), (5.2, 5), (0.3, 1)]
)
def test_that_dragging_gives_round_numbers(tokens, found):
    assert nearest_round(tokens) == found
