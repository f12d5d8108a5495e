"""Each language is complete, current, and keeps what a text needs."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

from engine import words
from gui.kit.actions import COMMANDS, MENUS

ROOT = Path(__file__).resolve().parents[2]
CODES = [one.code for one in words.LANGUAGES[1:]]


@pytest.fixture(scope="module")
def languages():
    spec = importlib.util.spec_from_file_location("tool", ROOT / "packaging" / "languages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def speaking():
    yield words.choose
    words.choose("en")


@pytest.mark.parametrize("code", CODES)
def test_that_nothing_is_left_in_english_and_the_files_are_those_of_the_code(languages, code):
    found = languages.merged(code)
    assert languages.missing(found) == []
    folder = languages.LOCALE / code / "LC_MESSAGES"
    po, mo = languages.written(found)
    assert (folder / "plimsoll.po").read_bytes() == po
    assert (folder / "plimsoll.mo").read_bytes() == mo


@pytest.mark.parametrize("code", CODES)
def test_that_a_translation_fills_in_what_the_text_does(languages, code):
    def fields(text: str) -> set[str]:
        return set(re.findall(r"\{[^{}]*\}", text))

    for message in languages.merged(code):
        if message.id and isinstance(message.id, str):
            assert fields(message.string) == fields(message.id), message.id
        elif message.id:
            for said in message.string:
                assert fields(said) <= fields(message.id[1]), message.id


@pytest.mark.parametrize("code", ["en", *CODES])
def test_that_no_menu_has_a_letter_twice(speaking, code):
    speaking(code)
    menus = {menu: [words.tr(c.text) for c in COMMANDS if c.menu == menu] for menu in MENUS}
    menus["the bar"] = [words.tr(menu) for menu in MENUS]
    for menu, texts in menus.items():
        letters = [re.search(r"&(\w)", text) for text in texts]
        assert all(letters), (menu, texts)
        counted = Counter(found[1].lower() for found in letters if found)
        assert [letter for letter, n in counted.items() if n > 1] == [], menu


def test_that_numbers_take_the_separators_of_the_language(speaking):
    speaking("de_AT")
    assert words.figures("1,234.50") == "1.234,50"
    assert words.grouped(1_234_567) == "1.234.567"
    speaking("xx")
    assert words.figures("1,234.50") == "1,234.50"
