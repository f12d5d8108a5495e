"""Sizes and token counts: text to value and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import words
from engine.units import (
    GIB,
    UnitSystem,
    align_up,
    ceil_div,
    format_bytes,
    format_gib,
    in_unit,
    parse_bytes,
    parse_tokens,
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("8192", 8192),
        ("8,192", 8192),
        ("8.192", 8192),
        ("131 072", 131072),
        ("32k", 32768),
        ("1.5K", 1536),
        ("1m", 1048576),
        (" 0 ", 0),
        ("9" * 24, 10**24 - 1),
    ],
)
def test_that_token_counts_are_read_as_people_write_them(text, tokens):
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize("text", ["", "abc", "-5", "1e9", "8k k", "٣٢", "8\n9", "NaN"])
def test_that_what_is_no_count_is_refused(text):
    with pytest.raises(ValueError, match="is not a number of tokens"):
        parse_tokens(text)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("24 GiB", 24 * 2**30),
        ("80GB", 80 * 10**9),
        ("1024", 1024),
        ("1,5 kib", 1536),
        ("0.5 TB", 5 * 10**11),
    ],
)
def test_that_binary_and_decimal_units_are_told_apart(text, size_bytes):
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize("text", ["24 GX", "GiB", "-1 GiB", "inf"])
def test_that_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="is not a size"):
        parse_bytes(text)


@given(st.integers(0, 2**80))
def test_that_whole_bytes_survive_reading_at_any_length(size_bytes):
    assert parse_bytes(f"{size_bytes} B") == size_bytes


def test_that_the_sign_survives_rounding_to_nought():
    assert format_gib(-1, digits=1) == "\N{MINUS SIGN}0.0 GiB"
    assert format_gib(GIB // 100, digits=1, signed=True) == "+0.0 GiB"


def test_that_the_largest_unit_that_keeps_a_whole_is_chosen():
    assert format_bytes(1536) == "1.50 KiB"
    assert format_bytes(16_060_522_496) == "14.96 GiB"  # Llama-3.1-8B in BF16
    assert format_bytes(16_060_522_496, UnitSystem.DECIMAL) == "16.06 GB"
    assert format_bytes(999) == "999 B"


def test_that_division_rounds_up_and_alignment_never_shrinks():
    assert (ceil_div(7, 2), ceil_div(8, 2)) == (4, 4)
    assert (align_up(1, 256), align_up(256, 256), align_up(257, 256)) == (256, 256, 512)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # 23.63 x 1.073741824 = 25.3725..., 4.00 x 1.073741824 = 4.2949...
        ("Rest of 0.92 × 23.63 GiB; needs 4.00 GiB", "Rest of 0.92 × 25.37 GB; needs 4.29 GB"),
        ("1,024.50 GiB", "1,100.05 GB"),
        ("36 MiB + 2.8 MiB × 128 SM = 394 MiB", "37.7 MB + 2.9 MB × 128 SM = 413.1 MB"),
        ("(16 KiB)", "(16.4 kB)"),
        ("8,030,261,248 parameters, 1.50 GB, 3GiB", "8,030,261,248 parameters, 1.50 GB, 3GiB"),
        ("1.5.2 GiB", "1.5.2 GiB"),
    ],
)  # fmt: skip
def test_that_sizes_in_a_sentence_follow_the_unit_and_other_numbers_stay(text, expected):
    assert in_unit(text, UnitSystem.DECIMAL) == expected
    assert in_unit(text, UnitSystem.BINARY) == text


def test_that_sizes_in_a_sentence_keep_the_separators_of_the_language():
    try:
        words.choose("de")
        assert in_unit("Rest: 1.024,50 GiB", UnitSystem.DECIMAL) == "Rest: 1.100,05 GB"
    finally:
        words.choose("en")
