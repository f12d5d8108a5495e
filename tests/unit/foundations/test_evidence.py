"""Estimates keep their range, their parts and the weakest of their bases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.evidence import Basis, Estimate, exactly, total

SIZES = st.integers(0, 2**50)


@st.composite
def estimates(draw):
    low, likely, high = sorted(draw(st.tuples(SIZES, SIZES, SIZES)))
    return Estimate(low, likely, high, draw(st.sampled_from(Basis)), "made")


@given(st.lists(estimates(), max_size=6))
def test_that_a_sum_adds_every_end_and_keeps_its_parts(parts):
    whole = total(parts)
    assert whole.low_bytes == sum(p.low_bytes for p in parts)
    assert whole.likely_bytes == sum(p.likely_bytes for p in parts)
    assert whole.high_bytes == sum(p.high_bytes for p in parts)
    assert whole.parts == tuple(parts)


def test_that_the_weakest_basis_that_holds_bytes_names_the_sum():
    read = exactly(10, Basis.READ, "header")
    fitted = Estimate(1, 2, 3, Basis.FITTED, "logs")
    nothing = exactly(0, Basis.BOUND, "not there")
    assert total((read, fitted, nothing)).basis is Basis.FITTED
    assert total((read, nothing)).basis is Basis.READ


def test_that_a_range_out_of_order_is_refused():
    with pytest.raises(ValueError, match="out of order"):
        Estimate(2, 1, 3, Basis.EXACT, "")
