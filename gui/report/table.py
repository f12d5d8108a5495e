"""How a table is set on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF

from engine.report.document import Align, Cell, Column, Table, Tone
from gui.kit.charts import inks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.report.sheet import Sheet

COLORS = {
    Tone.NORMAL: "text.primary",
    Tone.STRONG: "text.primary",
    Tone.QUIET: "text.secondary",
}
_CELL_PAD = 8
_ROW_PAD = 6
_HEADER = 24
_SWATCH = 12
_SWATCH_GAP = 8
_LONGEST_WORD = 16
_SHORT, _NAME = 0.1, 0.22
"""Of the width: what takes no more is not wrapped; the second beside a column of sentences."""


def height(sheet: Sheet, table: Table) -> float:
    """About how high ``table`` is as a whole."""
    rows = (*table.rows, table.total) if table.total else table.rows
    widths = _widths(sheet, table)
    rows_height = sum(_row_height(sheet, table, widths, row) + _ROW_PAD for row in rows)
    return rows_height + (_HEADER if table.has_header else 0)


def place(sheet: Sheet, table: Table) -> None:
    """Set ``table`` at the sheet's place, its heading again on each page."""
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
    fonts = [QFontMetricsF(sheet.font(f"caption.strong{each}")) for each in ("", ".num")]
    rows = (*table.rows, table.total) if table.total else table.rows
    wanted: list[float] = []
    least: list[float] = []
    for index, column in enumerate(table.columns):
        texts = [column.title, *(row[index].text for row in rows)]
        around = max((_indent(row[index]) for row in rows), default=0.0) + 2 * _CELL_PAD
        wanted.append(max(_advance(text, fonts) for text in texts) + around)
        least.append(_longest_word(texts, fonts) + around)
    words = [w for w, c in zip(wanted, table.columns, strict=True) if c.align is Align.LEFT]
    # Names keep to one line where there are sentences that can make room for them.
    short = sheet.width * (_NAME if max(words, default=0.0) > sheet.width * _NAME else _SHORT)
    widths = [
        want if column.align is Align.RIGHT or want < short else 0.0
        for want, column in zip(wanted, table.columns, strict=True)
    ]
    rest = max(0.0, sheet.width - sum(widths))
    if all(widths):
        return [width + rest / len(widths) for width in widths]
    shares = [0.0 if width else c.weight for width, c in zip(widths, table.columns, strict=True)]
    least = [0.0 if width else want for width, want in zip(widths, least, strict=True)]
    return [w or s for w, s in zip(widths, _shared(rest, shares, least), strict=True)]


def _advance(text: str, fonts: Sequence[QFontMetricsF]) -> float:
    """The width of ``text`` in the widest of the fonts; a hair more, since paper rounds anew."""
    return max(metrics.horizontalAdvance(text) for metrics in fonts) + 1


def _longest_word(texts: Sequence[str], fonts: Sequence[QFontMetricsF]) -> float:
    """The width of the longest word that has a right to a line; names of files have none."""
    words = {word for text in texts for word in text.split() if len(word) <= _LONGEST_WORD}
    return max((_advance(word, fonts) for word in words), default=0.0)


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
        color = COLORS[cell.tone or column.tone]
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
