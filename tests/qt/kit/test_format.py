"""Numbers on screen: right, rounded once, and never mixed."""

from __future__ import annotations

import pytest

from engine.units import GIB, MIB, UnitSystem
from gui.kit import format as fmt


def test_that_a_margin_that_rounds_to_zero_keeps_its_sign():
    assert fmt.margin(10 * MIB) == "+0.0 GiB"
    assert fmt.margin(-10 * MIB) == "\N{MINUS SIGN}0.0 GiB"


def test_that_the_toggle_changes_number_and_suffix_together():
    assert fmt.size(8 * GIB) == "8.00 GiB"
    assert fmt.size(8 * GIB, UnitSystem.DECIMAL) == "8.59 GB"


def test_that_a_point_has_no_range():
    assert fmt.size_range(GIB, GIB) == ""
    assert fmt.size_range(GIB, 2 * GIB) == "1.00 \N{EN DASH} 2.00"


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (131072, "128k"),
        (1048576, "1M"),
        (1024, "1k"),
        (1000, "1,000"),
        (40960, "40k"),
        (512, "512"),
    ],
)
def test_that_only_whole_multiples_are_shortened(tokens, text):
    assert fmt.tokens_short(tokens) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (8_030_261_248, "8.03 B"),
        (70_553_706_496, "70.6 B"),
        (671_026_419_200, "671 B"),
        (1_026_000_000_000, "1.03 T"),
        (134_515_008, "135 M"),
        (999, "999"),
    ],
)
def test_that_parameters_have_three_figures(number, text):
    assert fmt.parameters(number) == text


def test_that_bytes_are_exact():
    assert fmt.exact_bytes(5710544896) == "5,710,544,896 bytes"
    assert fmt.exact_bytes(1) == "1 byte"
