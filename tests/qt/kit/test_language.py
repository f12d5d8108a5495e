"""The window speaks the language that was chosen, or the system's, and so does Qt in it."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QLocale, Qt, QTranslator
from PySide6.QtWidgets import QDialogButtonBox

from engine import words
from gui.kit.language import speak, wanted


@pytest.fixture
def english(qapp):
    """Everything in English again afterwards."""
    before = QLocale()
    yield
    words.choose("en")
    QLocale.setDefault(before)
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
        translator.deleteLater()
    qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


@pytest.mark.parametrize(
    ("code", "system", "spoken"),
    [
        ("de", "en_US", "de"),
        ("", "de_AT", "de"),
        ("", "fr_FR", "en"),
        ("xx", "de_DE", "en"),
        ("", "C", "en"),
    ],
)
def test_that_the_chosen_language_wins_over_the_systems(code, system, spoken):
    assert wanted(code, QLocale(system)) == spoken


def test_that_qts_own_buttons_speak_it_too(qapp, qtbot, english):
    speak(qapp, "de")
    assert words.chosen().code == "de"
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
    qtbot.addWidget(box)
    assert box.button(QDialogButtonBox.StandardButton.Cancel).text() == "Abbrechen"
    assert QLocale().decimalPoint() == ","


def test_that_english_is_written_with_a_point_whatever_the_system(qapp, english):
    speak(qapp, "en")
    assert QLocale().toString(1234.5, "f", 1) == "1,234.5"
    assert qapp.layoutDirection() is Qt.LayoutDirection.LeftToRight
