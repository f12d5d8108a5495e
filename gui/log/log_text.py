"""The log's text: numbered, with an edge in the colour of what each line states."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
    QTextOption,
)
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget
from typing_extensions import override

from engine.words import grouped, tr
from gui.kit.charts import inks

if TYPE_CHECKING:
    from PySide6.QtGui import QKeyEvent, QResizeEvent, QTextBlock

    from engine.budget.model import Region
    from engine.logs.reading import Line
    from gui.kit.theme import Theme

_EDGE = 3
_BESIDE = 12
_ABOVE = 6


class _Margin(QWidget):
    """Edges and line numbers."""

    def __init__(self, text: LogText) -> None:
        super().__init__(text)
        self._text = text

    @override
    def sizeHint(self) -> QSize:
        return QSize(self._text.margin_width, 0)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        self._text.paint_margin(event)


class LogText(QPlainTextEdit):
    """Read only; the line under the cursor is the one that is selected."""

    line_selected = Signal(object)
    """The ``Line`` that was clicked, or reached with the keyboard."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("log text")
        self.setAccessibleName(tr("Text of the log"))
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setUndoRedoEnabled(False)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setTabChangesFocus(True)
        self._lines: tuple[Line, ...] = ()
        self._numbers: list[int] = []
        self._theme: Theme | None = None
        self._region: Region | None = None
        self._margin = _Margin(self)
        self.updateRequest.connect(self._on_update_requested)

    def set_theme(self, theme: Theme) -> None:
        """Take colours and fonts of ``theme``."""
        self._theme = theme
        self.setFont(theme.font("mono"))
        # Under a style sheet the document may keep the size it was made with.
        self.document().setDefaultFont(theme.font("mono"))
        self._write()

    def show_lines(self, lines: tuple[Line, ...]) -> None:
        """Show another log."""
        self._lines = lines
        self._numbers = [line.number for line in lines]
        self._write()

    def go_to(self, number: int) -> None:
        """Bring line ``number`` to sight, and the cursor on it."""
        place = bisect_left(self._numbers, number)
        if place >= len(self._numbers):
            return
        cursor = QTextCursor(self.document().findBlockByNumber(place))
        self.setTextCursor(cursor)
        self.centerCursor()

    def mark(self, region: Region | None) -> None:
        """Set off the lines of ``region``."""
        self._region = region
        self._mark()

    @property
    def margin_width(self) -> int:
        """Of edges and numbers."""
        last = self._numbers[-1] if self._numbers else 1
        widest = QFontMetrics(self.font()).horizontalAdvance(grouped(max(last, 10)))
        return _EDGE + 9 + widest + _BESIDE

    def _write(self) -> None:
        """Put the text in, each line in its colours. Cheaper than a highlighter, which rests."""
        theme = self._theme
        if theme is None:
            return
        place = self.textCursor().blockNumber()
        self.setViewportMargins(self.margin_width, _ABOVE, 0, _ABOVE)
        formats = {
            known: _format(theme, "text.primary" if known else "text.secondary")
            for known in (True, False)
        }
        plain, failed = QTextBlockFormat(), QTextBlockFormat()
        failed.setBackground(theme.color("over.soft"))
        self.clear()
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        for at, line in enumerate(self._lines):
            if at:
                cursor.insertBlock()
            cursor.setBlockFormat(failed if line.fails else plain)
            cursor.insertText(line.text, formats[line.is_understood])
        cursor.endEditBlock()
        self.setTextCursor(QTextCursor(self.document().findBlockByNumber(max(0, place))))
        self._mark()
        self._place_margin()

    def _mark(self) -> None:
        if self._theme is None:
            return
        marks: list[QTextEdit.ExtraSelection] = []
        ground = self._theme.color("surface.selected")
        for at, line in enumerate(self._lines):
            if self._region is None or line.region is not self._region or line.fails:
                continue
            mark = QTextEdit.ExtraSelection()
            mark.cursor = QTextCursor(self.document().findBlockByNumber(at))  # pyright: ignore[reportAttributeAccessIssue]  # the stubs leave out the fields
            mark.cursor.movePosition(  # pyright: ignore[reportAttributeAccessIssue]
                QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor
            )
            mark.format = QTextCharFormat()  # pyright: ignore[reportAttributeAccessIssue]
            mark.format.setBackground(ground)  # pyright: ignore[reportAttributeAccessIssue]
            mark.format.setProperty(  # pyright: ignore[reportAttributeAccessIssue]
                QTextFormat.Property.FullWidthSelection,
                True,  # noqa: FBT003 - Qt's own way
            )
            marks.append(mark)
        self.setExtraSelections(marks)
        self._margin.update()

    @override
    def mouseReleaseEvent(self, e: QMouseEvent) -> None:
        super().mouseReleaseEvent(e)
        self._tell()

    @override
    def keyReleaseEvent(self, e: QKeyEvent) -> None:
        super().keyReleaseEvent(e)
        if e.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self._tell()

    def _tell(self) -> None:
        place = self.textCursor().blockNumber()
        if 0 <= place < len(self._lines) and not self.textCursor().hasSelection():
            self.line_selected.emit(self._lines[place])

    @override
    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self._place_margin()

    def _place_margin(self) -> None:
        self.setViewportMargins(self.margin_width, _ABOVE, 0, _ABOVE)
        inside = self.contentsRect()
        self._margin.setGeometry(
            QRect(inside.left(), inside.top(), self.margin_width, inside.height())
        )

    def _on_update_requested(self, rect: QRect, scrolled: int) -> None:
        if scrolled:
            self._margin.scroll(0, scrolled)
        else:
            self._margin.update(0, rect.y() + _ABOVE, self._margin.width(), rect.height())

    def paint_margin(self, event: QPaintEvent) -> None:
        """Paint edge and number of every line in sight."""
        theme = self._theme
        if theme is None:
            return
        painter = QPainter(self._margin)
        painter.fillRect(event.rect(), theme.color("surface.base"))
        painter.setFont(theme.font("mono"))
        block: QTextBlock = self.firstVisibleBlock()
        offset = self.contentOffset().y() + self.viewport().y() - self.contentsRect().y()
        while block.isValid():
            box = self.blockBoundingGeometry(block).translated(0, offset)
            if box.top() > event.rect().bottom():
                break
            place = block.blockNumber()
            if place < len(self._lines) and box.bottom() >= event.rect().top():
                self._paint_line(painter, self._lines[place], box.toAlignedRect(), theme)
            block = block.next()

    def _paint_line(self, painter: QPainter, line: Line, box: QRect, theme: Theme) -> None:
        width = self._margin.width()
        if line.fails:
            painter.fillRect(0, box.top(), width, box.height(), theme.color("over.soft"))
        elif self._region is not None and line.region is self._region:
            painter.fillRect(0, box.top(), width, box.height(), theme.color("surface.selected"))
        name = "over" if line.fails else inks.color_name(line.region) if line.region else ""
        if name:
            painter.fillRect(0, box.top(), _EDGE, box.height(), theme.color(name))
        painter.setPen(theme.color("text.tertiary"))
        height = QFontMetrics(painter.font()).height()
        place = QRect(0, box.top(), width - _BESIDE, height)
        align = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(place, align, grouped(line.number))


def _format(theme: Theme, color: str) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(theme.color(color))
    return made
