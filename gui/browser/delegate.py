"""Paints one row of the browser: name and badge, owner and facts below."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem
from typing_extensions import override

from gui.browser.rows import (
    BADGE_ROLE,
    CHOSEN_ROLE,
    FAVOURITE_ROLE,
    PLACE_MARKS,
    ROW_ROLE,
    Badge,
    Row,
    RowModel,
)
from gui.kit.badge import paint_badge
from gui.kit.icons import pixmap

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from engine.units import UnitSystem
    from gui.kit.theme import Theme

Index = QModelIndex | QPersistentModelIndex

_SIDE = 12
_STAR = 12
_MARK = 12
_GAP = 8


class RowDelegate(QStyledItemDelegate):
    """Draws from roles only. The badge is never cut; the name is, in its middle."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and sizes of ``theme``."""
        self._theme = theme

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = cast("Row | None", index.data(ROW_ROLE))
        if row is None:
            return
        theme = self._theme
        rect = option.rect  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # public in Qt, absent from the stubs
        state = option.state  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # public in Qt, absent from the stubs
        is_chosen = bool(index.data(CHOSEN_ROLE))
        painter.save()
        painter.setClipRect(rect)
        self._ground(painter, rect, state, is_chosen=is_chosen)
        inner = rect.adjusted(_SIDE, 0, -max(2, _SIDE - _scroll_bar_width(option)), 0)
        badge = cast("Badge | None", index.data(BADGE_ROLE))
        taken = self._badge(painter, inner, badge, cast("RowModel", index.model()))
        is_favourite = bool(index.data(FAVOURITE_ROLE))
        self._name(painter, inner.adjusted(0, 0, -taken, 0), row, starred=is_favourite)
        color = "text.secondary" if is_chosen else "text.tertiary"
        self._facts(painter, inner, row, color, cast("RowModel", index.model()).unit)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(theme.color("line.focus"), theme.size("line.focus")))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(1, 1, -1, -2))
        painter.restore()

    def _ground(
        self, painter: QPainter, rect: QRect, state: QStyle.StateFlag, *, is_chosen: bool
    ) -> None:
        theme = self._theme
        if is_chosen:
            painter.fillRect(rect, theme.color("surface.selected"))
            bar = QRect(rect.left(), rect.top(), theme.size("line.selection.bar"), rect.height())
            painter.fillRect(bar, theme.color("accent"))
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, theme.color("surface.hover"))
        line = QRect(rect.left(), rect.bottom(), rect.width(), 1)
        painter.fillRect(line, theme.color("line.hair"))

    def _badge(self, painter: QPainter, inner: QRect, badge: Badge | None, model: RowModel) -> int:
        """Draw the badge at the right end of the first line; the width it takes."""
        if badge is None:
            return 0
        theme = self._theme
        font = theme.font("small.strong.num")
        text = badge.text(model.unit)
        width = QFontMetrics(font).horizontalAdvance(text)
        height = theme.size("badge")
        top = self._line_top(inner) + (self._line_height("body") - height) // 2
        painter.setFont(font)
        if badge.fit is None:
            place = QRect(inner.right() + 1 - width, top, width, height)
            painter.setPen(theme.color("text.tertiary"))
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter, text)
            return width + _GAP
        corner = QPoint(inner.right() + 1, top)
        return paint_badge(painter, theme, corner, badge.fit, text) + _GAP

    def _name(self, painter: QPainter, place: QRect, row: Row, *, starred: bool) -> None:
        font = self._theme.font("body.medium")
        metrics = QFontMetrics(font)
        painter.setFont(font)
        painter.setPen(self._theme.color("text.primary"))
        line = QRect(place.left(), self._line_top(place), place.width(), self._line_height("body"))
        star = self._theme.grown(_STAR)
        room = place.width() - (star + _GAP if starred else 0)
        shown = metrics.elidedText(row.name, Qt.TextElideMode.ElideMiddle, room)
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, shown)
        if starred:
            left = place.left() + metrics.horizontalAdvance(shown) + _GAP // 2
            spot = QPoint(left, line.center().y() - star // 2)
            ink = self._theme.color("text.tertiary")
            painter.drawPixmap(spot, pixmap("star", ink, star, painter.device().devicePixelRatio()))

    def _facts(
        self, painter: QPainter, place: QRect, row: Row, color: str, unit: UnitSystem
    ) -> None:
        """Owner and facts, and where it is; without room the owner gives way, never a number."""
        font = self._theme.font("small")
        metrics = QFontMetrics(font)
        painter.setFont(font)
        painter.setPen(self._theme.color(color))
        top = self._line_top(place) + self._line_height("body")
        line = QRect(place.left(), top, place.width(), self._line_height("small"))
        place = self._marks(painter, line, row)
        facts = row.facts(unit)
        gap = metrics.horizontalAdvance("  ") if row.owner and facts else 0
        room = place.width() - metrics.horizontalAdvance(facts) - gap
        owner = metrics.elidedText(row.owner, Qt.TextElideMode.ElideMiddle, max(room, 0))
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter, owner)
        left = metrics.horizontalAdvance(owner) + gap
        painter.drawText(line.adjusted(left, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, facts)

    def _marks(self, painter: QPainter, line: QRect, row: Row) -> QRect:
        """Draw where the row is, at the right end of ``line``; what is left of it."""
        ink, size = self._theme.color("text.tertiary"), self._theme.grown(_MARK)
        for where, picture in PLACE_MARKS.items():
            if where in row.places and not row.is_file:
                corner = QPoint(line.right() + 1 - size, line.center().y() + 1 - size // 2)
                ratio = painter.device().devicePixelRatio()
                painter.drawPixmap(corner, pixmap(picture, ink, size, ratio))
                line = line.adjusted(0, 0, -size - _GAP, 0)
        return line

    def _line_height(self, role: str) -> int:
        return round({"body": 20, "small": 16}[role] * self._theme.text_scale)

    def _line_top(self, place: QRect) -> int:
        both = self._line_height("body") + self._line_height("small")
        return place.top() + (place.height() - 1 - both) // 2


def _scroll_bar_width(option: QStyleOptionViewItem) -> int:
    """What the scroll bar takes of the margin, so that badges stay where they are without it."""
    view = option.widget  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]  # public in Qt, absent from the stubs
    return view.width() - view.viewport().width() if isinstance(view, QAbstractItemView) else 0
