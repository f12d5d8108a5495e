"""The figures of a picture have the separators of the window's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine import words
from engine.units import GIB, UnitSystem
from gui.kit.charts.axis import tick_values
from gui.kit.charts.layout import Scale

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def german() -> Iterator[None]:
    """German, and English again afterwards."""
    words.choose("de")
    yield
    words.choose("en")


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize(
    ("span_gib", "texts"),
    [(2, ["0,0", "0,5", "1,0", "1,5", "2,0"]), (4096, ["0", "1.024", "2.048", "3.072", "4.096"])],
)
def test_that_ticks_are_written_as_the_language_writes_numbers(
    span_gib: int, texts: list[str]
) -> None:
    scale = Scale(0, span_gib * GIB, 0, 120)
    assert [text for _, text in tick_values(scale, UnitSystem.BINARY, 30)] == texts
