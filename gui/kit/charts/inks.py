"""What a region is filled with: colour and hatch, as lines, so that screen and paper agree.

Hatches are drawn as lines clipped to the rectangle. Qt's brush patterns don't scale with the
screen, and a texture would put a bitmap into the PDF.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from engine.budget.model import Region
from gui.kit.theme import tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from gui.kit.theme import Theme

_IDS = {
    Region.WEIGHTS: "weights",
    Region.KV_CACHE: "kv",
    Region.RECURRENT_STATE: "state",
    Region.ACTIVATIONS: "activations",
    Region.CUDA_GRAPHS: "graphs",
    Region.RUNTIME: "runtime",
    Region.ALLOCATOR: "slack",
    Region.HEADROOM: "headroom",
    Region.FOREIGN: "foreign",
}
_TILE = 8.0
_STROKE = 1.2
_DOT = 2.0


def color_name(region: Region) -> str:
    """The token of the region's colour."""
    return f"region.{_IDS[region]}"


@dataclass(frozen=True, slots=True)
class Ink:
    """A ground and a hatch over it."""

    ground: QColor
    line: QColor
    hatch: str
    """One of the tokens' hatch ids; ``solid`` for none."""


@cache
def ink(theme: Theme, region: Region, *, is_spare: bool = False, patterns: bool = False) -> Ink:
    """The fill of a region.

    Args:
        theme: the scheme; the contrast schemes hatch every region, others where asked to.
        region: which.
        is_spare: the part of a pool that the plan doesn't need.
        patterns: hatch every region, in the ground's colour, for print without colour.
    """
    color = theme.color(color_name(region))
    base = theme.color("surface.base")
    if is_spare:
        return Ink(theme.color("region.kv.reserved"), color, "fdiag")
    if region is Region.HEADROOM:
        return Ink(theme.color("region.headroom.fill"), color, "bdiag")
    hatch = _hatches()[region]
    if theme.is_contrast and region not in {Region.WEIGHTS, Region.KV_CACHE}:
        return Ink(base, color, hatch)
    if region is Region.RECURRENT_STATE:
        return Ink(color, base, "dots")
    # In print weights and cache are of one grey: what is needed of the pool has the hatch of the
    # spare part there, light on dark. On the screen the two largest stay plain.
    if patterns or (theme.patterns and region is not Region.KV_CACHE):
        return Ink(color, theme.mixed(color_name(region), 0.45), hatch)
    return Ink(color, base, "solid")


def reserve_ink(theme: Theme) -> Ink:
    """The fill of what the driver or the system keeps."""
    return Ink(theme.color("region.reserve"), theme.color("text.tertiary"), "dots")


def over_ink(theme: Theme) -> Ink:
    """The fill of the part above the load line."""
    return Ink(theme.color("over.soft"), theme.mixed("over", 0.45, "over.soft"), "diagcross")


def strain_ink(theme: Theme, *, is_spill: bool) -> Ink:
    """The fill of a time in which a device's work spilled, or the computer's memory ran short."""
    name, hatch = ("over", "bdiag-dense") if is_spill else ("tight", "vertical")
    return Ink(theme.color(f"{name}.soft"), theme.color(name), hatch)


@cache
def _hatches() -> dict[Region, str]:
    contrast = {entry["id"]: entry["hatch.contrast"] for entry in tokens()["region"]}
    return {region: contrast[name] for region, name in _IDS.items()}


def fill(painter: QPainter, rect: QRectF, with_ink: Ink) -> None:
    """Fill ``rect``; lines and dots are cut at its edges."""
    if rect.isEmpty():
        return
    painter.fillRect(rect, with_ink.ground)
    if with_ink.hatch == "solid":
        return
    painter.save()
    if with_ink.hatch == "dots":
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        for dot in _dots(rect):
            painter.fillRect(dot, with_ink.line)
    else:
        lines(painter, rect, with_ink.line, with_ink.hatch)
    painter.restore()


def lines(painter: QPainter, rect: QRectF, color: QColor, hatch: str) -> None:
    """The lines of a hatch alone."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    pen = QPen(color, _STROKE)
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    painter.setPen(pen)
    painter.drawLines(_LINES[hatch](rect))


def swatch(painter: QPainter, rect: QRectF, region: Region, theme: Theme) -> None:
    """The small square that stands for a region in tables and legends."""
    painter.save()
    fill(painter, rect, ink(theme, region, patterns=theme.is_paper))
    if region is Region.HEADROOM or theme.is_contrast:
        painter.setPen(QPen(theme.color(color_name(region)), 1))
        painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))
    painter.restore()


def _dots(rect: QRectF) -> list[QRectF]:
    made: list[QRectF] = []
    half = _TILE / 2
    row, y = 0, rect.top() + 1
    while y < rect.bottom():
        x = rect.left() + 1 + (half if row % 2 else 0)
        while x < rect.right():
            made.append(QRectF(x, y, _DOT, _DOT).intersected(rect))
            x += _TILE
        y += half
        row += 1
    return made


def _falling(rect: QRectF, step: float = _TILE) -> list[QLineF]:
    return [_mirrored(line, rect) for line in _rising(rect, step)]


def _rising(rect: QRectF, step: float = _TILE) -> list[QLineF]:
    """Lines that rise to the right at 45 degrees, each cut at the rectangle's edges."""
    made: list[QLineF] = []
    offset = step / 2
    while offset < rect.width() + rect.height():
        # The line x - left + y - top = offset.
        x1 = max(0.0, offset - rect.height())
        x2 = min(offset, rect.width())
        made.append(
            QLineF(
                rect.left() + x1,
                rect.top() + offset - x1,
                rect.left() + x2,
                rect.top() + offset - x2,
            )
        )
        offset += step
    return made


def _mirrored(line: QLineF, rect: QRectF) -> QLineF:
    across = rect.left() + rect.right()
    return QLineF(across - line.x1(), line.y1(), across - line.x2(), line.y2())


def _across(rect: QRectF, step: float = _TILE / 2) -> list[QLineF]:
    made: list[QLineF] = []
    y = rect.top() + step / 2
    while y < rect.bottom():
        made.append(QLineF(rect.left(), y, rect.right(), y))
        y += step
    return made


def _upright(rect: QRectF, step: float = _TILE / 2) -> list[QLineF]:
    made: list[QLineF] = []
    x = rect.left() + step / 2
    while x < rect.right():
        made.append(QLineF(x, rect.top(), x, rect.bottom()))
        x += step
    return made


_LINES: dict[str, Callable[[QRectF], list[QLineF]]] = {
    "fdiag": _falling,
    "bdiag": _rising,
    "bdiag-dense": lambda rect: _rising(rect, _TILE / 2),
    "horizontal": _across,
    "vertical": _upright,
    "cross": lambda rect: _across(rect, _TILE) + _upright(rect, _TILE),
    "diagcross": lambda rect: _rising(rect) + _falling(rect),
}


def rounded_swatch(painter: QPainter, place: QRectF, region: Region, theme: Theme) -> None:
    """A region's colour and hatch in a small square."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    rounded = QPainterPath()
    rounded.addRoundedRect(place, 2, 2)
    painter.setClipPath(rounded)
    swatch(painter, place, region, theme)
    painter.restore()
