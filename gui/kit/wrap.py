"""A row that becomes several where it has no room, as with large text on a small screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget
from typing_extensions import override

if TYPE_CHECKING:
    from PySide6.QtCore import QRect

_BETWEEN_ROWS = 8


class WrapRow(QVBoxLayout):
    """Widgets side by side; those whose least width has no room begin a further row."""

    def __init__(self, parent: QWidget | None = None, *, keeps_widths: bool = False) -> None:
        """With ``keeps_widths`` only what stretches gives way; the others sooner go below it."""
        if parent is None:
            super().__init__()
        else:
            super().__init__(parent)
        self._gap = 8
        self._keeps_widths = keeps_widths
        self._items: list[tuple[QWidget, int, Qt.AlignmentFlag]] = []
        self._rows: list[QHBoxLayout] = []
        self._shared: list[list[QWidget]] = []
        super().setSpacing(_BETWEEN_ROWS)

    def set_gap(self, gap: int) -> None:
        """What lies between two widgets of a row."""
        self._gap = gap
        for row in self._rows:
            row.setSpacing(gap)

    def add(
        self, widget: QWidget, stretch: int = 0, alignment: Qt.AlignmentFlag | None = None
    ) -> None:
        """Append ``widget``."""
        self.insert(len(self._items), widget, stretch, alignment)

    def insert(
        self,
        place: int,
        widget: QWidget,
        stretch: int = 0,
        alignment: Qt.AlignmentFlag | None = None,
    ) -> None:
        """Put ``widget`` before the one at ``place``."""
        self._items.insert(place, (widget, stretch, alignment or Qt.AlignmentFlag(0)))
        self._fill([[one for one, _, _ in self._items]])

    def place_of(self, widget: QWidget) -> int:
        """Where ``widget`` stands among all."""
        return [one for one, _, _ in self._items].index(widget)

    @override
    def setGeometry(self, arg__1: QRect) -> None:
        margins = self.contentsMargins()
        rows = self._share(arg__1.width() - margins.left() - margins.right())
        if rows != self._shared:
            self._fill(rows)
        super().setGeometry(arg__1)

    @override
    def minimumSize(self) -> QSize:
        margins = self.contentsMargins()
        shown = [one for one, _, _ in self._items if not one.isHidden()]
        width = max(map(_least, shown), default=0)
        # That of one row: how many there are depends on the width.
        height = max((one.minimumSizeHint().height() for one in shown), default=0)
        return QSize(width, height).grownBy(margins)

    @override
    def hasHeightForWidth(self) -> bool:
        return True

    @override
    def heightForWidth(self, arg__1: int) -> int:
        margins = self.contentsMargins()
        width = arg__1 - margins.left() - margins.right()
        heights = [self._height(row, width) for row in self._share(width)]
        between = _BETWEEN_ROWS * max(0, len(heights) - 1)
        return sum(heights) + between + margins.top() + margins.bottom()

    @override
    def minimumHeightForWidth(self, arg__1: int) -> int:
        return self.heightForWidth(arg__1)

    def _height(self, row: list[QWidget], width: int) -> int:
        heights = [0]
        for widget, given in self._widths(row, width).items():
            height = max(widget.sizeHint().height(), widget.minimumHeight())
            if widget.hasHeightForWidth():
                height = max(widget.heightForWidth(given), widget.minimumHeight())
            heights.append(height)
        return max(heights)

    def _widths(self, row: list[QWidget], width: int) -> dict[QWidget, int]:
        """What each shown widget of ``row`` gets of ``width``, as Qt's box shares it out.

        Those that stretch begin at their least and divide what the others leave.
        """
        stretches = {widget: stretch for widget, stretch, _ in self._items}
        shown = [one for one in row if not one.isHidden()]
        wishes = {one: _least(one) if stretches[one] else _wish(one) for one in shown}
        spare = width - sum(wishes.values()) - self._gap * max(0, len(shown) - 1)
        whole = sum(stretches[one] for one in shown)
        if spare < 0 or not whole:
            return {one: max(_least(one), wish + min(spare, 0)) for one, wish in wishes.items()}
        return {one: wish + spare * stretches[one] // whole for one, wish in wishes.items()}

    def _share(self, width: int) -> list[list[QWidget]]:
        """The rows for ``width``; what is hidden stays with what stands before it."""
        rows: list[list[QWidget]] = [[]]
        left = width
        for widget, _, _ in self._items:
            wants = 0 if widget.isHidden() else self._wanted(widget, width)
            if wants > left and any(not one.isHidden() for one in rows[-1]):
                rows.append([])
                left = width
            rows[-1].append(widget)
            left -= 0 if widget.isHidden() else wants + self._gap
        return [row for row in rows if any(not one.isHidden() for one in row)] or rows

    def _wanted(self, widget: QWidget, width: int) -> int:
        gives_way = next(stretch for one, stretch, _ in self._items if one is widget)
        if gives_way or not self._keeps_widths:
            return _least(widget)
        return max(_least(widget), min(_wish(widget), width))

    def _fill(self, rows: list[list[QWidget]]) -> None:
        self._shared = rows
        by_widget = {widget: (stretch, where) for widget, stretch, where in self._items}
        while len(self._rows) < len(rows):
            row = QHBoxLayout()
            row.setSpacing(self._gap)
            self._rows.append(row)
            self.addLayout(row)
        for row, widgets in zip(self._rows, [*rows, *[[]] * len(self._rows)], strict=False):
            while row.count():
                row.takeAt(0)
            for widget in widgets:
                stretch, where = by_widget[widget]
                row.addWidget(widget, stretch, where)
            if len(rows) > 1 and not any(by_widget[one][0] or _expands(one) for one in widgets):
                row.addStretch(1)


def _expands(widget: QWidget) -> bool:
    return bool(widget.sizePolicy().expandingDirections() & Qt.Orientation.Horizontal)


def _wish(widget: QWidget) -> int:
    return min(max(widget.sizeHint().width(), widget.minimumWidth()), widget.maximumWidth())


def _least(widget: QWidget) -> int:
    return max(widget.minimumSizeHint().width(), widget.minimumWidth())
