"""A lattice holds what the function says, and asks it only where it must."""

from __future__ import annotations

from itertools import product
from math import isnan, nan

import pytest

from engine.fit.lattice import filled

ACROSS = [16 * n for n in range(64, 128)]
UP = list(range(1, 41))


def counted(function):
    calls = []

    def value(x, y):
        calls.append((x, y))
        return function(x, y)

    return value, calls


def test_that_tokens_times_requests_is_exact_at_the_cost_of_a_few_plans():
    value, calls = counted(lambda x, y: 5e9 - 131_072.0 * x * y)
    rows = filled(value, ACROSS, UP, 1.0)
    assert len(calls) == len(set(calls)) < 80
    for (j, y), (i, x) in product(enumerate(UP), enumerate(ACROSS)):
        assert rows[j][i] == pytest.approx(5e9 - 131_072 * x * y, abs=1)


def test_that_a_kink_is_found_and_followed():
    # A window of 1,500 tokens: above it a request takes no more.
    def function(x, y):
        return -1e6 * min(x, 1500) * y

    rows = filled(function, ACROSS, UP, 1e7)
    worst = max(
        abs(rows[j][i] - function(x, y)) / max(1e7, abs(function(x, y)) / 32)
        for (j, y), (i, x) in product(enumerate(UP), enumerate(ACROSS))
    )
    assert worst <= 2


def test_that_what_has_no_value_gets_none_and_spoils_nothing_beside_it():
    rows = filled(lambda x, y: nan if y > 8 else float(x + y), ACROSS, UP, 0.5)
    for (j, y), (i, x) in product(enumerate(UP), enumerate(ACROSS)):
        assert isnan(rows[j][i]) if y > 8 else rows[j][i] == pytest.approx(x + y, abs=0.5)


def test_that_an_axis_of_two_is_enough():
    assert filled(lambda x, y: float(x * y), [1, 5], [2, 3], 0) == [[2.0, 10.0], [3.0, 15.0]]


def test_that_equal_numbers_on_an_axis_do_no_harm():
    assert filled(lambda x, y: float(x * y), [4, 4], [2, 3], 0) == [[8.0, 8.0], [12.0, 12.0]]
