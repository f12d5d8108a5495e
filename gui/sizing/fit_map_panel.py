"""What stands beside the fit map: the plan point in figures, the colours, the other limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget
from typing_extensions import override

from engine.words import tr
from gui.kit.charts import inks
from gui.kit.charts.fit_painter import unknown_ink
from gui.kit.controls import ElidedLabel, Ground, Hairline, label, running_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gui.kit.theme import Theme
    from gui.sizing.fit_map_words import Row

WIDTH = 266
_SWATCH = (20, 13)


class _Swatch(QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.setFixedSize(*_SWATCH)
        self._row: Row | None = None
        self._theme: Theme | None = None

    def show_row(self, row: Row, theme: Theme) -> None:
        self._row, self._theme = row, theme
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._row is None or self._theme is None:
            return
        painter, rect = QPainter(self), QRectF(self.rect())
        if self._row.region is not None:
            inks.swatch(painter, rect, self._row.region, self._theme)
        elif self._row.color == "chart.loadline":
            rect = QRectF(0, self.height() // 2 - 1, self.width(), 2)
            painter.fillRect(rect, self._theme.color(self._row.color))
        elif self._row.color == "unknown":
            inks.fill(painter, rect, unknown_ink(self._theme))
        else:
            painter.fillRect(rect, self._theme.color(self._row.color))


class RowView(QWidget):
    """One name with its figure, and a swatch where it has a colour."""

    def __init__(self) -> None:
        super().__init__()
        self._swatch = _Swatch()
        self.name = label("", "small")
        self.value = ElidedLabel("small", name="value", keeps_whole=True)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 3, 0, 3)
        row.setSpacing(8)
        row.addWidget(self._swatch)
        row.addWidget(self.name)
        row.addStretch(1)
        row.addWidget(self.value)

    def show_row(self, row: Row, theme: Theme) -> None:
        """Show ``row``."""
        self._swatch.setVisible(bool(row.color or row.region))
        self._swatch.show_row(row, theme)
        self.name.setText(row.name)
        self.value.setVisible(bool(row.value))
        self.value.setFont(theme.font("small.strong.num" if row.is_strong else "small.num"))
        self.value.set_text(row.value, row.tooltip)
        self.setAccessibleName(f"{row.name}: {row.value}" if row.value else row.name)


class Rows(QWidget):
    """Rows under each other, with hairlines between where they are figures."""

    def __init__(self, name: str, *, ruled: bool) -> None:
        super().__init__()
        self.setObjectName(name)
        self._ruled = ruled
        self._views: list[RowView] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)

    @property
    def texts(self) -> list[str]:
        """What is to be read, row by row."""
        return [view.accessibleName() for view in self._views if not view.isHidden()]

    def show_rows(self, rows: Sequence[Row], theme: Theme) -> None:
        """Show ``rows``; the widgets are kept from edit to edit."""
        while len(self._views) < len(rows):
            if self._ruled and self._views:
                self._column.addWidget(Hairline())
            view = RowView()
            self._views.append(view)
            self._column.addWidget(view)
        for index, view in enumerate(self._views):
            shown = index < len(rows)
            view.setVisible(shown)
            if self._ruled and index:
                item = self._column.itemAt(2 * index - 1)
                line = item.widget() if item else None
                if line is not None:
                    line.setVisible(shown)
            if shown:
                view.show_row(rows[index], theme)


class FitMapPanel(QScrollArea):
    """The column at the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("plan point")
        self.setAccessibleName(tr("At the plan point"))
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.figures = Rows("figures", ruled=True)
        self.colors = Rows("margins", ruled=False)
        self.margin_title = label(tr("Margin"), "strong")
        self.alternative = QCheckBox()
        self.alternative.setObjectName("alternative limit")
        self.reason = running_text("small")
        self.reason.setObjectName("why unknown")
        self.hint = running_text("caption")
        body = Ground()
        column = QVBoxLayout(body)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(0)
        column.addWidget(label(tr("At the plan point"), "strong"))
        column.addSpacing(4)
        column.addWidget(self.figures)
        column.addWidget(self.reason)
        column.addSpacing(10)
        column.addWidget(self.margin_title)
        column.addSpacing(2)
        column.addWidget(self.colors)
        column.addSpacing(8)
        column.addWidget(self.alternative)
        column.addSpacing(6)
        column.addWidget(self.hint)
        column.addStretch(1)
        self.setWidget(body)
