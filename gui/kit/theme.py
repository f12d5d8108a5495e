"""Colours, fonts and sizes by name. Palette first; a style sheet only for what it can't say.

The figures live in ``resources/styles/tokens.json``. Everything that paints, on screen or on
paper, asks a ``Theme``; nothing else names a colour. ``ThemeManager`` follows the desktop
and tells everyone with one signal.

Style sheet roles, set with ``widget.setProperty("role", …)``: ``primary`` and ``flat`` on
push buttons, ``chip`` and ``segment`` on checkable tool buttons, ``segments`` on the frame
round them, ``strip`` on the plan strip's frame, ``caption``, ``secondary``, ``title``,
``fact`` and ``verdict`` on labels.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import QDir, QObject, Qt, QTemporaryDir, Signal
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPalette

import resources
from gui.kit import fonts, icons

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCHEMES = ("light", "dark", "contrast-light", "contrast-dark")

_WEIGHTS = {
    "regular": QFont.Weight.Normal,
    "medium": QFont.Weight.Medium,
    "strong": QFont.Weight.DemiBold,
    "heavy": QFont.Weight.Bold,
}
_ROLE_WEIGHTS = {"verdict": "heavy", "verdict.compact": "heavy", "title": "strong"}
_PICTURE = 14
"""Of the pictures in a style sheet, at plain text size."""
_VERDICT_SPACING_PERCENT = 98.5
"""Inter is drawn for small sizes; at 24 px it wants to stand a little closer."""


@dataclass(frozen=True, slots=True, eq=False)
class Theme:
    """One scheme at one text scale. Compared by identity: cheap as a cache key."""

    scheme: str
    text_scale: float
    colors: Mapping[str, str] = field(repr=False)
    sizes: Mapping[str, float] = field(repr=False)
    font_sizes: Mapping[str, float] = field(repr=False)
    is_paper: bool = False
    """Whether it is for a PDF: no ligatures and no glyphs that a search could not find."""
    patterns: bool = False
    """Whether every region is hatched, whatever the scheme."""
    is_still: bool = False
    """Whether nothing moves of itself."""

    @property
    def is_dark(self) -> bool:
        """Whether text is lighter than its ground."""
        return self.scheme.endswith("dark")

    @property
    def is_contrast(self) -> bool:
        """Whether it is one of the high-contrast schemes, in which every region is hatched."""
        return self.scheme.startswith("contrast")

    def color(self, name: str) -> QColor:
        """The colour ``name`` of the tokens, such as ``text.primary`` or ``region.kv``."""
        return QColor(self.colors[name])

    def mixed(self, name: str, alpha: float, ground: str = "surface.base") -> QColor:
        """``name`` at ``alpha`` over ``ground``, as an opaque colour."""
        top, below = self.color(name), self.color(ground)
        rest = 1 - alpha
        return QColor(
            round(top.red() * alpha + below.red() * rest),
            round(top.green() * alpha + below.green() * rest),
            round(top.blue() * alpha + below.blue() * rest),
        )

    def alpha(self, name: str) -> float:
        """A chart alpha (``band``, ``share``, ``kvLive``, ``bandEdge``) for this scheme."""
        side = "dark" if self.is_dark else "light"
        plain = f"chart.alpha.{name}"
        return self.sizes[plain] if plain in self.sizes else self.sizes[f"{plain}.{side}"]

    def size(self, name: str) -> int:
        """A size in device-independent pixels; heights of what holds text grow with the text.

        Names are the tokens' own: ``control``, ``row.table``, ``browser.width``,
        ``space.4``, ``radius.control``, ``chart.bar.width``, ``line.chart.loadline``.
        """
        return round(self.sizes[name])

    def grown(self, pixels: float) -> int:
        """``pixels`` of what stands beside text or holds it, at this size of text."""
        return round(pixels * self.text_scale)

    def font(self, role: str) -> QFont:
        """The font of a role: a size, then at will a weight and ``num``.

        Sizes: ``verdict``, ``verdict.compact``, ``title``, ``fact``, ``body``, ``table``,
        ``small``, ``caption``, ``mono``. Weights: ``regular``, ``medium``, ``strong``,
        ``heavy``. ``num`` gives figures of one width, for numbers only. Examples: ``body``,
        ``small.strong``, ``table.strong.num``.
        """
        return QFont(_font(self, role))


@cache
def _font(theme: Theme, role: str) -> QFont:
    fonts.load()
    words = role.split(".")
    numbers = words[-1] == "num"
    if numbers:
        words.pop()
    weight = words.pop() if words[-1] in _WEIGHTS else ""
    name = ".".join(words)
    font = QFont(fonts.MONO_FAMILY if name == "mono" else fonts.UI_FAMILY)
    font.setPixelSize(int(theme.font_sizes[name] * theme.text_scale + 0.5))
    font.setWeight(_WEIGHTS[weight or _ROLE_WEIGHTS.get(name, "regular")])
    if name.startswith("verdict"):
        font.setLetterSpacing(QFont.SpacingType.PercentageSpacing, _VERDICT_SPACING_PERCENT)
    if theme.is_paper:
        font.setFeature(QFont.Tag("liga"), 0)
        font.setFeature(QFont.Tag("calt"), 0)
        if numbers:
            font.setFamilies([fonts.FIGURES_FAMILY, fonts.UI_FAMILY])
    elif numbers:
        font.setFeature(QFont.Tag("tnum"), 1)
    return font


@cache
def tokens() -> dict[str, Any]:
    """The parsed token file."""
    return json.loads(resources.path("styles", "tokens.json").read_text(encoding="utf-8"))


def text_scale() -> float:
    """How much larger than usual the text is now, for what is made or painted without a theme."""
    plain: float = tokens()["font"]["size"]["body"]
    pixels = QGuiApplication.font().pixelSize()
    # A font that is measured in points is none of ours.
    return pixels / plain if pixels > 0 else 1.0


@cache
def load_theme(
    scheme: str,
    text_scale: float = 1.0,
    *,
    is_paper: bool = False,
    patterns: bool = False,
    is_still: bool = False,
) -> Theme:
    """The theme ``light``, ``dark``, ``contrast-light`` or ``contrast-dark``.

    Args:
        scheme: one of ``SCHEMES``.
        text_scale: how much larger than usual text is wanted (1.0 to 3.0).
        is_paper: for a PDF.
        patterns: hatch every region.
        is_still: let nothing move of itself.
    """
    known = tokens()
    sizes = dict(_flat(known["size"], ""))
    for name in sizes:
        if not name.startswith(("window", "browser", "detail", "hit")):
            sizes[name] *= text_scale
    for group in ("space", "radius", "line", "chart"):
        sizes |= dict(_flat(known[group], f"{group}."))
    return Theme(
        scheme,
        text_scale,
        known["color"][scheme],
        sizes,
        known["font"]["size"],
        is_paper=is_paper,
        patterns=patterns,
        is_still=is_still,
    )


def _flat(tree: dict[str, Any], prefix: str) -> Iterator[tuple[str, float]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            branch = cast("dict[str, Any]", value)
            yield from _flat(branch, f"{prefix}{name}.")
            if "base" in branch:
                yield f"{prefix}{name}", branch["base"]
        elif isinstance(value, list):
            figures = cast("list[float]", value)
            yield from ((f"{prefix}{name}.{i}", v) for i, v in enumerate(figures))
        elif isinstance(value, (int, float)):
            yield f"{prefix}{name}", value


@dataclass(frozen=True, slots=True)
class Appearance:
    """What a person asked for; ``scheme`` is None where the desktop's is wanted."""

    scheme: str | None = None
    text_scale: float = 1.0
    patterns: bool = False
    is_still: bool = False


class ThemeManager(QObject):
    """Follows the desktop's scheme and contrast wish until one is pinned."""

    changed = Signal(object)
    """The new ``Theme``."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._asked = Appearance()
        self._hints = QGuiApplication.styleHints()
        self._hints.colorSchemeChanged.connect(self._on_desktop_changed)
        if hasattr(self._hints, "accessibility"):
            self._accessibility = self._hints.accessibility()
            self._accessibility.contrastPreferenceChanged.connect(self._on_desktop_changed)
        self.current = self._wanted()

    def ask(self, appearance: Appearance) -> None:
        """Take on ``appearance`` at once."""
        self._asked = appearance
        self._update()

    def pin(self, scheme: str | None) -> None:
        """Stay with ``scheme`` whatever the desktop says; None follows the desktop again."""
        self.ask(replace(self._asked, scheme=scheme))

    def _on_desktop_changed(self) -> None:
        self._update()

    def _update(self) -> None:
        theme = self._wanted()
        if theme is not self.current:
            self.current = theme
            self.changed.emit(theme)

    def _wanted(self) -> Theme:
        asked = self._asked
        return load_theme(
            asked.scheme or self._desktops_scheme(),
            asked.text_scale,
            patterns=asked.patterns,
            is_still=asked.is_still,
        )

    def _desktops_scheme(self) -> str:
        scheme = self._hints.colorScheme()
        dark = scheme == Qt.ColorScheme.Dark
        if scheme == Qt.ColorScheme.Unknown:
            ground = QGuiApplication.palette().color(QPalette.ColorRole.Window)
            dark = ground.lightness() < 128
        return f"{'contrast-' if self._wants_contrast() else ''}{'dark' if dark else 'light'}"

    def _wants_contrast(self) -> bool:
        if not hasattr(self, "_accessibility"):
            return False
        return self._accessibility.contrastPreference() == Qt.ContrastPreference.HighContrast


_PALETTE = {
    QPalette.ColorRole.Window: "surface.window",
    QPalette.ColorRole.Base: "surface.base",
    QPalette.ColorRole.AlternateBase: "surface.window",
    QPalette.ColorRole.Button: "surface.control",
    QPalette.ColorRole.WindowText: "text.primary",
    QPalette.ColorRole.Text: "text.primary",
    QPalette.ColorRole.ButtonText: "text.primary",
    QPalette.ColorRole.BrightText: "over",
    QPalette.ColorRole.PlaceholderText: "text.tertiary",
    QPalette.ColorRole.ToolTipBase: "surface.tooltip",
    QPalette.ColorRole.ToolTipText: "text.tooltip",
    QPalette.ColorRole.Highlight: "surface.selected",
    QPalette.ColorRole.HighlightedText: "text.primary",
    QPalette.ColorRole.Accent: "accent",
    QPalette.ColorRole.Link: "accent.text",
    QPalette.ColorRole.LinkVisited: "accent.text",
    QPalette.ColorRole.Light: "surface.base",
    QPalette.ColorRole.Midlight: "line.hair",
    QPalette.ColorRole.Mid: "line.control",
    QPalette.ColorRole.Dark: "line.control.edge",
    QPalette.ColorRole.Shadow: "line.control.edge",
}
_DISABLED = (
    QPalette.ColorRole.WindowText,
    QPalette.ColorRole.Text,
    QPalette.ColorRole.ButtonText,
    QPalette.ColorRole.HighlightedText,
)


_STILL = "\n* { widget-animation-duration: 0; }\n"
"""What Qt's own widgets heed; ours ask their style for the same hint."""


def palette(theme: Theme) -> QPalette:
    """The application palette of ``theme``."""
    made = QPalette()
    for role, name in _PALETTE.items():
        made.setColor(role, theme.color(name))
    for role in _DISABLED:
        made.setColor(QPalette.ColorGroup.Disabled, role, theme.color("text.disabled"))
    return made


def style_sheet(theme: Theme) -> str:
    """What the palette can't say: the roles named at the top of this module."""

    def value(match: re.Match[str]) -> str:
        kind, _, name = match[1].partition(".")
        if kind == "font":
            return f"{theme.font(name).pixelSize()}px"
        if kind == "size":
            # A style sheet's height is that of the content, without the two border lines.
            return f"{theme.size(name) - 2}px"
        if kind == "px":
            return f"{theme.grown(int(name))}px"
        if kind == "icon":
            picture, _, color = name.partition(".")
            return _picture_file(theme, picture, color or "text.secondary")
        return theme.colors[match[1]]

    text = resources.path("styles", "plimsoll.qss").read_text(encoding="utf-8")
    still = _STILL if theme.is_still else ""
    return re.sub(r"@([A-Za-z0-9.-]+)", value, text) + still


@cache
def _pictures(theme: Theme) -> QTemporaryDir:
    """A folder for the few pictures a style sheet can take from a file only."""
    return QTemporaryDir(f"{QDir.tempPath()}/plimsoll-{theme.scheme}-XXXXXX")


@cache
def _picture_file(theme: Theme, name: str, color: str) -> str:
    for ratio, mark in ((1, ""), (2, "@2x")):
        picture = icons.pixmap(name, theme.color(color), theme.grown(_PICTURE), ratio)
        picture.save(_pictures(theme).filePath(f"{name}{mark}.png"))
    return _pictures(theme).filePath(f"{name}.png")
