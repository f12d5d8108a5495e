"""Every language-model class of transformers: parameters and caches beside the measured ones."""

from __future__ import annotations

from collections import Counter
from functools import cache

from tests.helpers.evidence import Grade, Graded, cache_grade, parameter_grades, rows


@cache
def counted() -> list[tuple[str, Graded]]:
    return [
        (f"{row['type']} {row['class']} {graded.what}", graded)
        for row in rows()
        for graded in parameter_grades(row)
    ]


@cache
def kept() -> list[tuple[str, Graded]]:
    found = ((f"{row['type']} {row['class']}", cache_grade(row)) for row in rows())
    return [(name, graded) for name, graded in found if graded is not None]


def test_that_no_count_of_parameters_is_wrong_without_a_word() -> None:
    wrong = [(name, g.ours, g.measured) for name, g in counted() if g.grade is Grade.WRONG]
    assert not wrong, (len(wrong), wrong[:20])


def test_that_no_size_of_a_cache_is_wrong_without_a_word() -> None:
    wrong = [(name, g.ours, g.measured) for name, g in kept() if g.grade is Grade.WRONG]
    assert not wrong, (len(wrong), wrong[:20])


def test_that_what_is_exact_stays_exact() -> None:
    parameters = Counter(g.grade for _, g in counted())
    caches = Counter(g.grade for _, g in kept())
    assert parameters[Grade.EXACT] >= 6900
    assert parameters[Grade.DOUBTED] + parameters[Grade.REFUSED] <= 150
    assert caches[Grade.EXACT] >= 300
    assert caches[Grade.DOUBTED] + caches[Grade.REFUSED] <= 12
