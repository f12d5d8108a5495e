"""Foreign text cannot steer a terminal, reorder a line or flood a screen."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from engine.text import printable


def test_that_escapes_and_reordering_marks_are_spelt_out():
    assert printable("a\x1b[31mb") == r"a\x1b[31mb"
    assert printable("abc\u202egpj.exe") == r"abc\u202egpj.exe"
    assert printable("two\nlines") == r"two\nlines"


def test_that_letters_of_every_script_stay():
    assert printable("通义千问 Żółw") == "通义千问 Żółw"


@given(st.text(max_size=300))
def test_that_no_hidden_character_is_left(text):
    hidden = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert not {unicodedata.category(c) for c in printable(text)} & hidden


def test_that_a_flood_is_cut_and_says_so():
    shown = printable("x" * 100_000, limit=80)
    assert len(shown) == 80
    assert shown.endswith("\N{HORIZONTAL ELLIPSIS}")
