"""A number is taken as it was typed, or refused with one sentence; never quietly changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QLocale, QPoint, Qt
from PySide6.QtWidgets import QToolButton

from gui.kit.controls import LineField
from gui.kit.fields import TOKENS, NumberField, NumberKind, double_or_halve, parse_count


@pytest.fixture
def field(qtbot):
    made = NumberField(TOKENS)
    qtbot.addWidget(made)
    made.set_value(8192)
    made.show()
    return made


def _type(qtbot, field, text):
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


@pytest.mark.parametrize(
    ("text", "value"),
    [("32k", 32768), ("8.192", 8192), ("8,192", 8192), ("131072", 131072), ("1m", 1048576)],
)
def test_that_both_separators_and_k_are_read_under_any_locale(qtbot, field, text, value):
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German))
    try:
        taken = []
        field.committed.connect(taken.append)
        field.set_value(1)
        _type(qtbot, field, text)
        assert taken == [value]
        assert field.value == value
    finally:
        QLocale.setDefault(before)


@pytest.mark.parametrize("text", ["abc", "-5", "1.5.", "12 monkeys", "0", "9" * 40])
def test_that_a_text_that_is_no_context_is_refused_in_one_sentence_and_left_standing(
    qtbot, field, text
):
    refused, taken = [], []
    field.refused.connect(refused.append)
    field.committed.connect(taken.append)
    _type(qtbot, field, text)
    assert taken == []
    assert field.value == 8192
    assert field.text() == text
    assert refused[-1].startswith("Context: ")
    assert refused[-1].endswith(".")


def test_that_escape_brings_the_last_good_value_back(qtbot, field):
    _type(qtbot, field, "abc")
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == "8,192"
    assert not field.is_wrong


def test_that_arrow_keys_double_and_halve_the_context(qtbot, field):
    taken = []
    field.committed.connect(taken.append)
    qtbot.keyClick(field, Qt.Key.Key_Up)
    qtbot.keyClick(field, Qt.Key.Key_Down)
    qtbot.keyClick(field, Qt.Key.Key_Down)
    assert taken == [16384, 8192, 4096]


def test_that_an_unfocused_wheel_changes_nothing(qtbot):
    made = NumberField(NumberKind("At once", 1, 8))
    qtbot.addWidget(made)
    assert made.focusPolicy() == Qt.FocusPolicy.StrongFocus


@given(st.integers(min_value=0, max_value=10**15))
def test_that_a_grouped_number_reads_back_whatever_the_separator(number):
    grouped = f"{number:,}"
    assert parse_count(grouped) == number
    assert parse_count(grouped.replace(",", ".")) == number
    assert parse_count(grouped.replace(",", "\N{NARROW NO-BREAK SPACE}")) == number


@pytest.mark.parametrize("text", ["0.90", "1,5", "12,34", "1.2.3", "", "٣"])
def test_that_a_fraction_is_not_mistaken_for_a_whole_number(text):
    with pytest.raises(ValueError, match="whole number"):
        parse_count(text)


@given(st.integers(min_value=1, max_value=2**40), st.integers(min_value=1, max_value=10))
def test_that_halving_undoes_doubling(value, steps):
    assert double_or_halve(double_or_halve(value, steps), -steps) == value


def test_that_a_field_left_empty_asks_for_a_number():
    with pytest.raises(ValueError, match=r"^Context: type a whole number such as 8192 or 32k\.$"):
        TOKENS.read("  ")


def test_that_an_absurd_number_is_quoted_digit_by_digit():
    with pytest.raises(ValueError, match="“999999999999999999999999” is outside 1 to 100,000,000"):
        TOKENS.read("9" * 24)


def test_that_the_cross_of_a_line_is_large_enough_to_hit(qtbot):
    line = LineField()
    qtbot.addWidget(line)
    line.setClearButtonEnabled(True)
    line.resize(200, 34)
    line.show()
    qtbot.keyClicks(line, "words")
    cross = line.findChild(QToolButton)
    # WCAG 2.2, 2.5.8: 24 by 24.
    assert cross.size().toTuple() == (24, 24)
    assert line.rect().contains(cross.geometry())
    qtbot.mouseClick(cross, Qt.MouseButton.LeftButton, pos=QPoint(2, 22))
    assert line.text() == ""
