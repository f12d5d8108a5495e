"""How each block of a report is set on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPen

from engine.report.document import (
    Align,
    BarsFigure,
    Block,
    Bullets,
    Cell,
    Column,
    Command,
    Facts,
    Figure,
    Formula,
    Heading,
    MapFigure,
    PageBreak,
    Paragraph,
    Table,
    Tone,
)
from gui.kit.charts import inks
from gui.report import figure, lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.report.sheet import Sheet

_FACTS_PER_ROW = 4
_FACT_HEIGHT = 47
_CELL_PAD = 8
_ROW_PAD = 6
_SWATCH = 12
_SWATCH_GAP = 8
_KEEP_WITH_HEADING = 100
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
_COLORS = {
    Tone.NORMAL: "text.primary",
    Tone.STRONG: "text.primary",
    Tone.QUIET: "text.secondary",
}
_LONGEST_WORD = 16
_FORMULA_NAME = 126
_FORMULA_VALUE = 100
"""Room for 9,999.99 GiB on one line."""


def place(sheet: Sheet, block: Block, then: Block | None = None) -> None:
    """Set ``block`` at the sheet's place; a heading stays with what comes ``then``."""
    match block:
        case Heading():
            _heading(sheet, block, then)
        case Paragraph():
            sheet.paragraph(block.text, sheet.font("small"), _COLORS[block.tone])
            sheet.y += 4
        case Command() | Bullets():
            lists.place(sheet, block)
        case Facts():
            _facts(sheet, block)
        case Table():
            _table(sheet, block)
        case Formula():
            _formula(sheet, block)
        case Figure() | MapFigure() | BarsFigure():
            figure.place(sheet, block)
        case PageBreak():
            sheet.next_part()


def _heading(sheet: Sheet, heading: Heading, then: Block | None) -> None:
    """A heading, which is a bookmark too."""
    part = heading.is_part
    most = _KEEP_PART_ROWS if part else _KEEP_ROWS
    sheet.ensure(_kept(sheet, then, most) + (_PART_HEIGHT if part else 0))
    sheet.space(_ABOVE_PART if part else _ABOVE_HEADING)
    sheet.mark(heading.text, is_part=part)
    sheet.paragraph(heading.text, sheet.font("title" if part else "body.strong"), "text.primary")
    sheet.y += 6


def _kept(sheet: Sheet, then: Block | None, most_rows: int) -> float:
    """What a heading needs with the beginning of the block below it, or all of a short one."""
    if isinstance(then, Bullets):
        lines = lists.bullet_lines(sheet, then)
        shown = lines if len(lines) <= _KEEP_ITEMS else lines[:2]
        return _ABOVE_HEADING + _HEADING_HEIGHT + sum(height for _, height in shown)
    if isinstance(then, Command):
        return (
            _ABOVE_HEADING + _HEADING_HEIGHT + _COMMAND_LINE * len(lists.command_lines(sheet, then))
        )
    if isinstance(then, Table) and len(then.rows) <= most_rows:
        rows = (*then.rows, then.total) if then.total else then.rows
        widths = _widths(sheet, then)
        height = sum(_row_height(sheet, then, widths, row) + _ROW_PAD for row in rows)
        header = _HEADING_HEIGHT if then.has_header else 0
        return _ABOVE_HEADING + _HEADING_HEIGHT + header + height
    if isinstance(then, (Figure, MapFigure, BarsFigure)):
        return _ABOVE_HEADING + _HEADING_HEIGHT + figure.height(sheet, then)
    return _KEEP_WITH_HEADING


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


def _table(sheet: Sheet, table: Table) -> None:
    widths = _widths(sheet, table)
    shown = table.columns if table.has_header else ()
    _header(sheet, shown, widths)
    for row in table.rows:
        _row(sheet, table, widths, row)
    if table.total:
        bold = [Cell(c.text, c.value_bytes, c.region, c.tone or Tone.STRONG) for c in table.total]
        if table.columns[-1].align is Align.LEFT:
            bold[-1] = Cell(bold[-1].text, tone=Tone.QUIET)
        _row(sheet, table, widths, bold)


def _widths(sheet: Sheet, table: Table) -> list[float]:
    """Figures take what they need, since they never wrap; words share the rest."""
    metrics = QFontMetricsF(sheet.font("caption.strong.num"))
    rows = (*table.rows, table.total) if table.total else table.rows
    widths: list[float] = []
    least: list[float] = []
    for index, column in enumerate(table.columns):
        texts = [column.title, *(row[index].text for row in rows)]
        widest = max(metrics.horizontalAdvance(text) for text in texts) + 2 * _CELL_PAD
        is_short = column.align is Align.RIGHT or widest < sheet.width * 0.1
        widths.append(widest if is_short else 0.0)
        swatch = max(_indent(row[index]) for row in rows) if rows else 0.0
        least.append(0.0 if is_short else _longest_word(texts, metrics) + swatch + 2 * _CELL_PAD)
    rest = max(0.0, sheet.width - sum(widths))
    if all(widths):
        return [width + rest / len(widths) for width in widths]
    shares = [0.0 if width else c.weight for width, c in zip(widths, table.columns, strict=True)]
    return [w or s for w, s in zip(widths, _shared(rest, shares, least), strict=True)]


def _longest_word(texts: Sequence[str], metrics: QFontMetricsF) -> float:
    """The width of the longest word that has a right to a line; names of files have none."""
    words = {word for text in texts for word in text.split() if len(word) <= _LONGEST_WORD}
    return max((metrics.horizontalAdvance(word) for word in words), default=0.0)


def _shared(rest: float, shares: Sequence[float], least: Sequence[float]) -> list[float]:
    """``rest`` by shares, but to each column no less than its longest word."""
    given = [rest * share / sum(shares) for share in shares]
    short = [max(0.0, want - width) for want, width in zip(least, given, strict=True)]
    spare = [max(0.0, width - want) for want, width in zip(least, given, strict=True)]
    if not sum(short) or sum(spare) < sum(short):
        return given
    taken = sum(short) / sum(spare)
    return [
        width + more - free * taken for width, more, free in zip(given, short, spare, strict=True)
    ]


def _header(sheet: Sheet, columns: Sequence[Column], widths: Sequence[float]) -> None:
    if not columns:
        sheet.rule(sheet.y)
        return
    font = sheet.font("caption")
    height = max(
        sheet.height(column.title, font, width - sum(_pads(index, columns)))
        for index, (column, width) in enumerate(zip(columns, widths, strict=True))
    )
    sheet.ensure(height + 44)
    x = sheet.left
    for index, (column, width) in enumerate(zip(columns, widths, strict=True)):
        rect = _cell_rect(sheet, x, width, height, pads=_pads(index, columns))
        sheet.write(column.title, font, "text.tertiary", rect, _alignment(column))
        x += width
    sheet.y += height + _ROW_PAD + 1
    sheet.rule(sheet.y)


def _row(sheet: Sheet, table: Table, widths: Sequence[float], cells: Sequence[Cell]) -> None:
    columns = table.columns
    fonts = [_font(sheet, cell, column) for cell, column in zip(cells, columns, strict=True)]
    height = _row_height(sheet, table, widths, cells)
    if sheet.ensure(height + _ROW_PAD + 2):
        _header(sheet, columns if table.has_header else (), widths)
    x = sheet.left
    for index, (cell, column, width) in enumerate(zip(cells, columns, widths, strict=True)):
        rect = _cell_rect(sheet, x, width, height, pads=_pads(index, columns))
        if cell.region is not None:
            swatch = QRectF(rect.left(), rect.top() + (14 - _SWATCH) / 2, _SWATCH, _SWATCH)
            inks.swatch(sheet.painter, swatch, cell.region, sheet.theme)
        rect.setLeft(rect.left() + _indent(cell))
        color = _COLORS[cell.tone or column.tone]
        sheet.write(cell.text, fonts[index], color, rect, _alignment(column))
        x += width
    sheet.y += height + _ROW_PAD
    sheet.rule(sheet.y)


def _row_height(
    sheet: Sheet, table: Table, widths: Sequence[float], cells: Sequence[Cell]
) -> float:
    heights = [0.0]
    for index, (cell, column, width) in enumerate(zip(cells, table.columns, widths, strict=True)):
        room = width - sum(_pads(index, table.columns)) - _indent(cell)
        if cell.text:
            heights.append(sheet.height(cell.text, _font(sheet, cell, column), room))
    return max(heights)


def _indent(cell: Cell) -> float:
    return _SWATCH + _SWATCH_GAP if cell.region is not None else 0


def _pads(index: int, columns: Sequence[Column]) -> tuple[float, float]:
    """Left and right of a cell; the outer edges of a table are those of the text."""
    return (_CELL_PAD if index else 0, _CELL_PAD if index < len(columns) - 1 else 0)


def _cell_rect(
    sheet: Sheet, x: float, width: float, height: float, *, pads: tuple[float, float]
) -> QRectF:
    left, right = pads
    return QRectF(x + left, sheet.y + _ROW_PAD / 2, width - left - right, height + 1)


def _alignment(column: Column) -> Qt.AlignmentFlag:
    right = column.align is Align.RIGHT
    return Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft


def _font(sheet: Sheet, cell: Cell, column: Column) -> QFont:
    tone = cell.tone or column.tone
    weight = ".strong" if tone is Tone.STRONG else ""
    numbers = ".num" if column.align is Align.RIGHT else ""
    return sheet.font(f"caption{weight}{numbers}")
