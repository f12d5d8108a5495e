"""A sheet of paper and the pen on it: where the text has got to, and when a page is full."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from PySide6.QtCore import QMarginsF, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QPageLayout,
    QPageSize,
    QPainter,
    QPdfWriter,
    QPen,
    QRawFont,
    QTextLayout,
    QTextOption,
)

from engine.report import words
from engine.words import tr
from gui.kit import icons
from gui.report.outline import Mark

if TYPE_CHECKING:
    from PySide6.QtCore import QIODevice

    from engine.report.document import ReportDocument
    from gui.kit.theme import Theme

PAGES = {"A4": QPageSize.PageSizeId.A4, "Letter": QPageSize.PageSizeId.Letter}
_DPI = 96
"""At 96 dots an inch a pixel of the screen's painters is a pixel here, and curves stay curves."""
_SIDE = 56
_HEAD = 75
_TOP = 90
_FOOT = 56
_FOOT_TEXT = 36
_HARDLY = 0.4
_ABOVE_MARK = 12
_KEPT = 40
"""Left free under what fills the first page."""
_BEGUN = 26
"""The space above a heading, which falls away where it begins a page, and a little more."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What came of writing a document once, by which it is written anew."""

    pages: int = 1
    room: float = 0.0
    """What the first page had left at its end; below 0 what stood on the next for want of room."""
    lack: float = 0.0
    """Of that, what the first block that had to go to the next page wanted."""


class Sheet:
    """Writes down the pages of one document; ``y`` is where the next block goes."""

    def __init__(
        self, device: QIODevice, document: ReportDocument, page: str, theme: Theme, draft: Draft
    ) -> None:
        self._writer = QPdfWriter(device)
        self._writer.setResolution(_DPI)
        self._writer.setPageLayout(
            QPageLayout(QPageSize(PAGES[page]), QPageLayout.Orientation.Portrait, QMarginsF())
        )
        self._writer.setTitle(document.title)
        self._writer.setCreator(f"Plimsoll {document.version}".strip())
        if hasattr(self._writer, "setAuthor"):
            self._writer.setAuthor("Plimsoll")
        self.theme = theme
        self._document = document
        self.draft = draft
        """What an earlier writing showed."""
        self._left = 0.0
        """Of the first page, at its end."""
        self._room = 0.0
        self._lack = 0.0
        self.width = float(self._writer.width() - 2 * _SIDE)
        self.left = float(_SIDE)
        self.bottom = float(self._writer.height() - _FOOT - 12)
        self.painter = QPainter(self._writer)
        self.page = 1
        self.marks: list[Mark] = []
        self.y = float(_TOP)
        self._furnish()

    def finish(self) -> Draft:
        """Close the document; returns what came of it."""
        self.painter.end()
        return Draft(self.page, self._room, self._lack)

    def new_page(self) -> None:
        """Go on at the top of a new page."""
        if self.page == 1:
            self._left = self.bottom - self.y
        self._writer.newPage()
        self.page += 1
        self.y = float(_TOP)
        self._furnish()

    def mark(self, title: str, *, is_part: bool) -> None:
        """Remember this place for a bookmark."""
        points = 72 / _DPI
        top = (self._writer.height() - self.y + _ABOVE_MARK) * points
        self.marks.append(Mark(title, self.page - 1, top, is_part))

    def next_part(self) -> None:
        """Begin a new page, unless this one has hardly begun."""
        if self.page == 1:
            self._room = max(0.0, self.bottom - self.y - _KEPT)
        elif not self._room:
            self._room = self._left - (self.y - _TOP) - _BEGUN
        if self.y > _TOP + (self.bottom - _TOP) * _HARDLY:
            self.new_page()

    def space(self, height: float) -> None:
        """Leave room, but not at the top of a page."""
        if self.y > _TOP:
            self.y += height

    def has_room(self, height: float) -> bool:
        """Whether ``height`` has room on this page, or would have none on any."""
        return self.y + height <= self.bottom or self.y <= _TOP

    def ensure(self, height: float) -> bool:
        """Begin a new page if ``height`` has no room on this one; returns whether it did."""
        if self.has_room(height):
            return False
        if self.page == 1:
            self._lack = self.y + height - self.bottom
        self.new_page()
        return True

    def font(self, role: str, pixels: int | None = None) -> QFont:
        """A font of the theme, at will in another size."""
        font = self.theme.font(role)
        if pixels is not None:
            font.setPixelSize(pixels)
        return font

    def height(self, text: str, font: QFont, width: float) -> float:
        """How high ``text`` is when wrapped to ``width``."""
        self.painter.setFont(font)
        box = QRectF(0, 0, width, 10_000)
        return self.painter.boundingRect(
            box, shown(text, font), _option(Qt.AlignmentFlag.AlignLeft)
        ).height()

    def write(
        self,
        text: str,
        font: QFont,
        color: str,
        rect: QRectF,
        align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    ) -> None:
        """``text`` wrapped in ``rect``; a name too long for a line breaks where it must."""
        self.painter.setFont(font)
        self.painter.setPen(self.theme.color(color))
        self.painter.drawText(rect, shown(text, font), _option(align))

    def paragraph(self, text: str, font: QFont, color: str, width: float | None = None) -> None:
        """``text`` at ``y``, which moves below it; goes on a new page if it has no room."""
        room = self.width if width is None else width
        height = self.height(text, font, room)
        self.ensure(height)
        self.write(text, font, color, QRectF(self.left, self.y, room, height + 1))
        self.y += height

    def rule(self, y: float, color: str = "line.hair", width: float = 1) -> None:
        """A line from margin to margin."""
        self.painter.setPen(QPen(self.theme.color(color), width))
        self.painter.drawLine(QPointF(self.left, y), QPointF(self.left + self.width, y))

    def _furnish(self) -> None:
        """Head and foot."""
        strong, small = self.font("body.strong"), self.font("small")
        ink = self.theme.color("text.primary")
        self._mark(QRectF(self.left, _HEAD - 32, 25, 25), ink)
        line = QRectF(self.left, _HEAD - 31, self.width, 22)
        middle = Qt.AlignmentFlag.AlignVCenter
        self.write("Plimsoll", strong, "text.primary", line.adjusted(36, 0, 0, 0), middle)
        right = Qt.AlignmentFlag.AlignRight | middle
        day = words.day(self._document.on)
        date = tr("Memory sizing report, {day}").format(day=day)
        self.write(date, small, "text.tertiary", line, right)
        self.rule(_HEAD, "text.primary", 2)
        bottom = float(self._writer.height())
        self.rule(bottom - _FOOT)
        foot = QRectF(self.left, bottom - _FOOT + 6, self.width, _FOOT_TEXT - 8)
        font = self.font("caption")
        number = tr("{page} of {count}").format(page=self.page, count=self.draft.pages)
        room = QFontMetricsF(font).horizontalAdvance(number) + 16
        self.write(number, font, "text.tertiary", foot, Qt.AlignmentFlag.AlignRight)
        self.write(self._document.footer, font, "text.tertiary", foot.adjusted(0, 0, -room, 0))

    def _mark(self, rect: QRectF, ink: QColor) -> None:
        """The plain mark, as lines."""
        icons.draw(self.painter, "mark", ink, rect)


@cache
def _option(align: Qt.AlignmentFlag) -> QTextOption:
    option = QTextOption(align)
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    return option


def shown(text: str, font: QFont) -> str:
    """``text`` with every character that no font here can draw replaced by its number.

    In a PDF a missing glyph leaves nothing at all, not even a box.
    """
    if text.isascii():
        return text
    return "".join(
        c if c.isascii() or _is_drawn(c, font.family()) else f"[U+{ord(c):04X}]" for c in text
    )


@cache
def _is_drawn(character: str, family: str) -> bool:
    font = QFont(family)
    font.setPixelSize(12)
    if QRawFont.fromFont(font).supportsCharacter(ord(character)):
        return True
    layout = QTextLayout(character, font)
    layout.beginLayout()
    layout.createLine()
    layout.endLayout()
    runs = layout.glyphRuns()
    # Inter is asked once more, then every font that the system offers in its place.
    return any(run.rawFont().supportsCharacter(ord(character)) for run in runs)
