"""How each block of a report is set on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QPen

from engine.report.document import (
    BarsFigure,
    Block,
    Bullets,
    Command,
    Facts,
    Figure,
    Formula,
    Heading,
    MapFigure,
    PageBreak,
    Paragraph,
    Table,
)
from gui.report import figure, lists, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.report.sheet import Sheet

_FACTS_PER_ROW = 4
_FACT_HEIGHT = 47
_KEEP_WITH_HEADING = 60
_BELOW_PARAGRAPH = 4
_LOOK_AHEAD = 3
"""Blocks that a heading may have to keep with it: a sentence, a further heading, a table."""
_ABOVE_HEADING = 16
_ABOVE_PART = 28
_PART_HEIGHT = 44
"""Of a part’s heading with the one that may follow at once."""
_HEADING_HEIGHT = 24
_COMMAND_LINE = 16
_KEEP_ITEMS = 8
"""A list of up to so many lines stays whole."""
_KEEP_ROWS = 11
"""A table of up to so many rows stays whole."""
_KEEP_PART_ROWS = 24
"""So does one of more rows that a whole part begins with."""
_FORMULA_NAME = 126
_FORMULA_VALUE = 100
"""Room for 9,999.99 GiB on one line."""


def place_all(sheet: Sheet, blocks: Sequence[Block]) -> None:
    """Set everything, part by part.

    A part whose beginning has no room on its page lets the next one before it, if that has room
    and no figure, whose number would then come too early. So no page is left half empty.
    """
    parts = _parts(blocks)
    waits = False
    while parts:
        waits = not waits and len(parts) > 1 and _may_wait(sheet, *parts[:2])
        part = parts.pop(1 if waits else 0)
        for number, block in enumerate(part, 1):
            place(sheet, block, part[number : number + _LOOK_AHEAD])


def _parts(blocks: Sequence[Block]) -> list[list[Block]]:
    """The first page, then each part from its heading on."""
    parts: list[list[Block]] = [[]]
    for block in blocks:
        if isinstance(block, Heading) and block.is_part:
            parts.append([])
        parts[-1].append(block)
    return parts


def _may_wait(sheet: Sheet, part: Sequence[Block], following: Sequence[Block]) -> bool:
    has_figure = any(isinstance(b, (Figure, MapFigure, BarsFigure)) for b in following)
    return not has_figure and not _begins_here(sheet, part) and _begins_here(sheet, following)


def _begins_here(sheet: Sheet, part: Sequence[Block]) -> bool:
    """Whether the page has room for the heading of ``part`` and what must stand with it."""
    first = part[0] if part else None
    return not isinstance(first, Heading) or sheet.has_room(_needed(sheet, first, part[1:]))


def place(sheet: Sheet, block: Block, then: Sequence[Block] = ()) -> None:
    """Set ``block`` at the sheet's place; a heading stays with what comes ``then``."""
    match block:
        case Heading():
            _heading(sheet, block, then)
        case Paragraph():
            sheet.paragraph(block.text, sheet.font("small"), table.COLORS[block.tone])
            sheet.y += _BELOW_PARAGRAPH
        case Command() | Bullets():
            lists.place(sheet, block)
        case Facts():
            _facts(sheet, block)
        case Table():
            table.place(sheet, block)
        case Formula():
            _formula(sheet, block)
        case Figure() | MapFigure() | BarsFigure():
            figure.place(sheet, block)
        case PageBreak():
            sheet.next_part()


def _heading(sheet: Sheet, heading: Heading, then: Sequence[Block]) -> None:
    """A heading, which is a bookmark too."""
    part = heading.is_part
    sheet.ensure(_needed(sheet, heading, then))
    sheet.space(_ABOVE_PART if part else _ABOVE_HEADING)
    sheet.mark(heading.text, is_part=part)
    sheet.paragraph(heading.text, sheet.font("title" if part else "body.strong"), "text.primary")
    sheet.y += 6


def _needed(sheet: Sheet, heading: Heading, then: Sequence[Block]) -> float:
    """What a heading takes with all that must stand on its page."""
    most = _KEEP_PART_ROWS if heading.is_part else _KEEP_ROWS
    own = _PART_HEIGHT if heading.is_part else 0
    return own + _ABOVE_HEADING + _HEADING_HEIGHT + _kept(sheet, then[:_LOOK_AHEAD], most)


def _kept(sheet: Sheet, then: Sequence[Block], most_rows: int = _KEEP_ROWS) -> float:
    """What a heading needs of what stands below it: all of a short block, or its beginning."""
    match then[0] if then else None:
        case Heading():
            height = _ABOVE_HEADING + _HEADING_HEIGHT + _kept(sheet, then[1:])
        case Paragraph(text):
            height = sheet.height(text, sheet.font("small"), sheet.width) + _BELOW_PARAGRAPH
            height += _kept(sheet, then[1:])
        case Bullets() as block:
            lines = lists.bullet_lines(sheet, block)
            shown = lines if len(lines) <= _KEEP_ITEMS else lines[:2]
            height = sum(line for _, line in shown)
        case Command() as block:
            height = _COMMAND_LINE * len(lists.command_lines(sheet, block))
        case Table() as block if len(block.rows) <= most_rows:
            height = table.height(sheet, block)
        case Figure() | MapFigure() | BarsFigure() as block:
            height = figure.height(sheet, block)
        case None:
            height = 0.0
        case _:
            height = _KEEP_WITH_HEADING
    return height


def _facts(sheet: Sheet, block: Facts) -> None:
    """A grid with hairlines, names small over their values."""
    sheet.y += 16
    name, value = sheet.font("caption"), sheet.font("body.medium.num")
    width = sheet.width / _FACTS_PER_ROW
    rows = [block.pairs[i : i + _FACTS_PER_ROW] for i in range(0, len(block.pairs), _FACTS_PER_ROW)]
    sheet.ensure(_FACT_HEIGHT * len(rows) + 1)
    sheet.rule(sheet.y)
    for row in rows:
        # A name that needs two lines moves the values of its whole row down.
        named = max(sheet.height(label, name, width - 20) for label, _ in row)
        below = max(sheet.height(text, value, width - 20) for _, text in row)
        height = max(_FACT_HEIGHT, named + below + 13)
        for column, (label, text) in enumerate(row):
            left = sheet.left + column * width + (12 if column else 0)
            rect = QRectF(left, sheet.y + 7, width - 20, named + 1)
            sheet.write(label, name, "text.tertiary", rect)
            rect = QRectF(left, sheet.y + 7 + named, width - 20, below + 1)
            sheet.write(text, value, "text.primary", rect)
            if column:
                x = sheet.left + column * width
                sheet.painter.setPen(QPen(sheet.theme.color("line.hair"), 1))
                sheet.painter.drawLine(QLineF(x, sheet.y, x, sheet.y + height))
        sheet.y += height
        sheet.rule(sheet.y)


def _formula(sheet: Sheet, block: Formula) -> None:
    is_part = block.name.startswith("–")
    name = sheet.font("small" if is_part else "small.strong")
    value, mono, source = (
        sheet.font("small.num"),
        sheet.font("mono", lists.MONO),
        sheet.font("caption"),
    )
    indent = 12.0 if is_part else 0.0
    left = sheet.left + _FORMULA_NAME + _FORMULA_VALUE
    room = sheet.left + sheet.width - left
    first = sheet.height(block.calculation, mono, room) if block.calculation else 0.0
    second = sheet.height(block.source, source, room) if block.source else 0.0
    name_room = _FORMULA_NAME - indent - 6
    height = max(sheet.height(block.name, name, name_room), first + second) + 5
    sheet.ensure(height)
    rect = QRectF(sheet.left + indent, sheet.y + 2, name_room, height)
    sheet.write(block.name, name, "text.primary", rect)
    rect = QRectF(sheet.left + _FORMULA_NAME, sheet.y + 2, _FORMULA_VALUE - 14, height)
    sheet.write(block.value, value, "text.primary", rect, Qt.AlignmentFlag.AlignRight)
    if block.calculation:
        rect = QRectF(left, sheet.y + 2, room, first + 1)
        sheet.write(block.calculation, mono, "text.primary", rect)
    if block.source:
        rect = QRectF(left, sheet.y + 2 + first, room, second + 1)
        sheet.write(block.source, source, "text.tertiary", rect)
    sheet.y += height
    sheet.rule(sheet.y)
