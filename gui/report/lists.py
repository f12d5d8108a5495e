"""How lists and command lines are set on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetricsF

from engine.report.document import Bullets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.report.document import Command
    from gui.report.sheet import Sheet

MONO = 10
_BULLET, _BULLET_GAP, _COLUMN_GAP = 14, 3, 24


def place(sheet: Sheet, block: Command | Bullets) -> None:
    """Set a command line or a list."""
    if isinstance(block, Bullets):
        _bullets(sheet, block)
    else:
        _command(sheet, block)


def _command(sheet: Sheet, block: Command) -> None:
    font = sheet.font("mono", MONO)
    for line in command_lines(sheet, block):
        sheet.paragraph(line, font, "text.secondary")
        sheet.y += 2


def command_lines(sheet: Sheet, block: Command) -> list[str]:
    """The command in lines that fit the width, broken between words."""
    metrics = QFontMetricsF(sheet.font("mono", MONO))
    lines: list[str] = []
    for word in block.text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and metrics.horizontalAdvance(longer) <= sheet.width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _columns(sheet: Sheet, items: Sequence[str]) -> int:
    """Three columns where every item fits a line of one, two where it fits two lines."""
    font = sheet.font("caption")
    line = sheet.height("x", font, sheet.width)
    for columns, lines in ((3, 1.5), (2, 2.5)):
        room = _bullet_room(sheet, columns)
        if len(items) >= columns and all(
            sheet.height(item, font, room) < line * lines for item in items
        ):
            return columns
    return 1


def _bullet_room(sheet: Sheet, columns: int) -> float:
    return (sheet.width + _COLUMN_GAP) / columns - _COLUMN_GAP - _BULLET


def bullet_lines(sheet: Sheet, block: Bullets) -> list[tuple[tuple[str, ...], float]]:
    """Items side by side where all are short, else one a line, each line with its height."""
    font, items = sheet.font("caption"), block.items
    columns = _columns(sheet, items)
    room = _bullet_room(sheet, columns)
    rows = -(-len(items) // columns)
    grouped = [items[row::rows] for row in range(rows)]
    return [
        (group, max(sheet.height(item, font, room) for item in group) + _BULLET_GAP)
        for group in grouped
    ]


def _bullets(sheet: Sheet, block: Bullets) -> None:
    """In columns where the items are short."""
    font = sheet.font("caption")
    lines = bullet_lines(sheet, block)
    columns = _columns(sheet, block.items)
    room = _bullet_room(sheet, columns)
    for number, (items, height) in enumerate(lines):
        # The last line is never alone on a page.
        with_last = lines[-1][1] if number == len(lines) - 2 else 0.0
        sheet.ensure(height + with_last)
        for column, item in enumerate(items):
            left = sheet.left + column * (sheet.width + _COLUMN_GAP) / columns
            sheet.write("–", font, "text.tertiary", QRectF(left, sheet.y, _BULLET, height))
            rect = QRectF(left + _BULLET, sheet.y, room, height)
            sheet.write(item, font, "text.secondary", rect)
        sheet.y += height
