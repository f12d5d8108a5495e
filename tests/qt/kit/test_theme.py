"""Colours can be told apart and read in every scheme; fonts and icons are ours on any machine."""

from __future__ import annotations

from itertools import pairwise
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import pytest
from PySide6.QtGui import QColor, QFontInfo, QFontMetricsF, QPalette

import resources
from gui.kit import fonts, icons
from gui.kit.theme import SCHEMES, Theme, ThemeManager, load_theme, palette, style_sheet

pytestmark = pytest.mark.usefixtures("qapp")

GROUNDS = (
    "surface.window",
    "surface.base",
    "surface.sunken",
    "surface.selected",
    "surface.control",
    "surface.hover",
)
STACK = ("foreign", "weights", "kv", "state", "activations", "graphs", "runtime", "slack")
# Machado, Oliveira and Fernandes 2009, severity 1.0
DEFICIENCIES = {
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}


def _linear(color: QColor) -> list[float]:
    channels = (color.redF(), color.greenF(), color.blueF())
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in channels]


def _contrast(theme: Theme, name: str, ground: str) -> float:
    """The ratio of WCAG 2.2."""
    weights = (0.2126, 0.7152, 0.0722)
    one, other = (
        sum(w * v for w, v in zip(weights, _linear(theme.color(c)), strict=True)) + 0.05
        for c in (name, ground)
    )
    return max(one, other) / min(one, other)


def _pairs(text: bool) -> list[tuple[str, str]]:
    if not text:
        marks = ("line.focus", "chart.measured", "chart.loadline")
        regions = tuple(f"region.{name}" for name in STACK)
        edges = [
            ("line.control.edge", g) for g in ("surface.base", "surface.control", "surface.window")
        ]
        classes = [("map.contour", f"map.{k}{i}") for k in ("fit", "over") for i in (1, 2, 3)]
        focus = [(m, g) for m in ("line.focus", "accent") for g in GROUNDS]
        return [*((m, "surface.base") for m in (*marks, *regions)), *edges, *focus, *classes]
    body = [(f"text.{t}", g) for t in ("primary", "secondary", "tertiary") for g in GROUNDS]
    words = ("accent.text", "fits", "tight", "over")
    plain = ("surface.base", "surface.window", "surface.control")
    return [
        *body,
        *((w, g) for w in words for g in plain),
        ("accent.text", "surface.selected"),
        ("accent.on", "accent"),
        ("accent.on", "accent.hover"),
        *((v, f"{v}.soft") for v in ("fits", "tight", "over", "unknown")),
        ("text.tooltip", "surface.tooltip"),
        *(("text.primary", f"map.{k}{i}") for k in ("fit", "over") for i in (1, 2, 3)),
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_that_all_text_has_a_contrast_of_four_and_a_half(scheme: str) -> None:
    theme = load_theme(scheme)
    poor = {p: _contrast(theme, *p) for p in _pairs(text=True) if _contrast(theme, *p) < 4.5}
    assert not poor


@pytest.mark.parametrize("scheme", SCHEMES)
def test_that_all_marks_have_a_contrast_of_three(scheme: str) -> None:
    theme = load_theme(scheme)
    poor = {p: _contrast(theme, *p) for p in _pairs(text=False) if _contrast(theme, *p) < 3}
    assert not poor


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_that_neighbours_in_the_stack_differ_for_every_eye(scheme: str, deficiency: str) -> None:
    theme = load_theme(scheme)
    seen = [_lab(theme.color(f"region.{name}"), DEFICIENCIES[deficiency]) for name in STACK]
    # 10 in whole numbers; the closest pair (dark, deuteranopia) is at 9.92.
    assert round(min(_difference(a, b) for a, b in pairwise(seen))) >= 10


def _lab(color: QColor, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """CIELAB of a colour as an eye with the deficiency sees it."""
    linear = _linear(color)
    r, g, b = (
        min(1.0, max(0.0, sum(m * v for m, v in zip(row, linear, strict=True)))) for row in matrix
    )
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _difference(p: tuple[float, float, float], q: tuple[float, float, float]) -> float:
    """CIEDE2000 (Sharma, Wu and Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = p, q
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    grow = 1 + 0.5 * (1 - sqrt(mean**7 / (mean**7 + 25**7)))
    c1, c2 = hypot(a1 * grow, b1), hypot(a2 * grow, b2)
    h1, h2 = degrees(atan2(b1, a1 * grow)) % 360, degrees(atan2(b2, a2 * grow)) % 360
    turn = h2 - h1 - (360 if h2 - h1 > 180 else -360 if h2 - h1 < -180 else 0)
    dh = 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    level, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    hue = (h1 + h2) / 2 + (180 if abs(h1 - h2) > 180 else 0)
    weight = (
        1
        - 0.17 * cos(radians(hue - 30))
        + 0.24 * cos(radians(2 * hue))
        + 0.32 * cos(radians(3 * hue + 6))
        - 0.2 * cos(radians(4 * hue - 63))
    )
    sl = 1 + 0.015 * (level - 50) ** 2 / sqrt(20 + (level - 50) ** 2)
    sc, sh = 1 + 0.045 * chroma, 1 + 0.015 * chroma * weight
    turn_weight = sin(radians(60 * exp(-(((hue - 275) / 25) ** 2))))
    rt = -2 * sqrt(chroma**7 / (chroma**7 + 25**7)) * turn_weight
    dl, dc = l2 - l1, c2 - c1
    return sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + rt * dc / sc * dh / sh)


def test_that_every_scheme_names_the_same_colours() -> None:
    names = [set(load_theme(scheme).colors) for scheme in SCHEMES]
    assert all(n == names[0] for n in names)


def test_that_figures_are_of_one_width_and_running_text_is_not() -> None:
    theme = load_theme("light")
    figures = QFontMetricsF(theme.font("table.num"))
    assert figures.horizontalAdvance("1111") == figures.horizontalAdvance("0000")
    words = QFontMetricsF(theme.font("table"))
    assert words.horizontalAdvance("1111") < words.horizontalAdvance("0000")


def test_that_the_bundled_fonts_are_the_ones_used() -> None:
    assert set(fonts.load()) >= {"Inter", "JetBrains Mono"}
    theme = load_theme("light")
    assert QFontInfo(theme.font("body")).family() == "Inter"
    assert QFontInfo(theme.font("mono")).family() == "JetBrains Mono"
    assert QFontInfo(theme.font("body.strong")).weight() == 600


def test_that_the_text_scale_enlarges_text_and_what_holds_it() -> None:
    plain, large = load_theme("light"), load_theme("light", 2.0)
    assert large.font("body").pixelSize() == 2 * plain.font("body").pixelSize()
    assert large.size("control") == 2 * plain.size("control")
    assert large.size("browser.width") == plain.size("browser.width")


def test_that_the_palette_takes_its_colours_from_the_theme() -> None:
    theme = load_theme("dark")
    made = palette(theme)
    assert made.color(QPalette.ColorRole.Window) == theme.color("surface.window")
    disabled = made.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text)
    assert disabled == theme.color("text.disabled")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_that_no_name_is_left_unfilled_in_the_style_sheet(scheme: str) -> None:
    assert "@" not in style_sheet(load_theme(scheme)).replace("@2x", "").split("*/", 1)[1]


def test_that_the_manager_tells_once_when_the_scheme_changes() -> None:
    manager = ThemeManager()
    told: list[Theme] = []
    manager.changed.connect(told.append)
    manager.pin("contrast-dark")
    manager.pin("contrast-dark")
    assert [t.scheme for t in told] == ["contrast-dark"]
    assert manager.current.is_dark
    assert manager.current.is_contrast


def test_that_every_icon_draws_in_the_colour_asked_for() -> None:
    color = QColor("#B3261E")
    names = [
        p.name[:-4]
        for p in resources.path("icons").iterdir()
        if p.name.endswith(".svg") and p.name != "app.svg"
    ]
    for name in names:
        image = icons.pixmap(name, color, 24, 2.0).toImage()
        assert image.width() == 48
        drawn = {
            image.pixelColor(x, y).rgb()
            for x in range(48)
            for y in range(48)
            if image.pixelColor(x, y).alpha() == 255
        }
        # Where two strokes cross, a channel may be rounded twice.
        pairs = [pair for one in drawn for pair in zip(_rgb(one), _rgb(color), strict=True)]
        assert drawn, name
        assert max(abs(a - b) for a, b in pairs) <= 1, name


def _rgb(color: QColor | int) -> tuple[int, int, int]:
    made = QColor(color)
    return made.red(), made.green(), made.blue()


def test_that_the_mark_has_its_own_drawing_at_every_size() -> None:
    sizes = {s.width() for s in icons.app_icon().availableSizes()}
    assert sizes == {16, 32, 48, 128, 512}
