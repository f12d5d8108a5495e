"""The bundled fonts, so that screen and report look the same on every machine."""

from __future__ import annotations

from functools import cache

from PySide6.QtGui import QFontDatabase

import resources

UI_FAMILY = "Inter"
MONO_FAMILY = "JetBrains Mono"
FIGURES_FAMILY = "Inter Tabular"
"""Figures of one width for paper, where an OpenType feature would make them unreadable to a
search (``packaging/prepare_fonts.py``)."""
FACES = (
    "Inter-Regular.otf",
    "Inter-Medium.otf",
    "Inter-SemiBold.otf",
    "Inter-Bold.otf",
    "InterTabular-Regular.otf",
    "InterTabular-Medium.otf",
    "InterTabular-SemiBold.otf",
    "JetBrainsMono-Regular.ttf",
)


@cache
def load() -> tuple[str, ...]:
    """Register the bundled faces once; needs a ``QGuiApplication``.

    Returns:
        The families that are now there.
    """
    families: list[str] = []
    for face in FACES:
        data = resources.path("fonts", face).read_bytes()
        number = QFontDatabase.addApplicationFontFromData(data)
        families += QFontDatabase.applicationFontFamilies(number)
    return tuple(dict.fromkeys(families))
