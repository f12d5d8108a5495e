"""Every term of the window has its one line."""

from __future__ import annotations

import pytest

from engine.budget.model import Region
from engine.evidence import Basis
from engine.report import terms


def test_that_every_region_and_every_basis_is_explained():
    assert set(terms.REGIONS) == set(Region)
    assert set(terms.BASES) == set(Basis)


@pytest.mark.parametrize(
    "table",
    [terms.REGIONS, terms.BASES, terms.PICTURE, terms.VERDICT, terms.PLAN, terms.UNITS],
)
def test_that_a_term_takes_one_line(table):
    for term, words in table.items():
        assert words.endswith((".", "…")), term
        assert len(words) <= 120, term
        assert "\n" not in words
