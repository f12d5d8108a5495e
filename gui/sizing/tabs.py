"""The tabs below the picture: a strip that folds, and opens over the picture where it is low."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QMouseEvent, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStackedWidget,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.words import tr
from gui.kit.controls import Ground, Hairline
from gui.kit.icons import icon

if TYPE_CHECKING:
    from gui.kit.theme import Theme


class RoomTabs(QTabBar):
    """Flat tabs with a line under the open one, and a count where there is something to count."""

    pressed_current = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDrawBase(False)
        self.setExpanding(False)
        self.setUsesScrollButtons(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._theme: Theme | None = None
        self._open = True
        self._counts: dict[int, str] = {}

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.setFont(theme.font("body"))
        # Large text may leave no room for all of them side by side.
        self.setUsesScrollButtons(theme.text_scale > 1)
        self.updateGeometry()
        self.update()

    def set_open(self, *, is_open: bool) -> None:
        """Whether the current tab's page is to be seen."""
        self._open = is_open
        self.update()

    def set_count(self, index: int, count: str) -> None:
        """Show ``count`` beside the title."""
        if self._counts.get(index, "") != count:
            self._counts[index] = count
            # Qt asks for a tab's width again only with a new title.
            self.setTabText(index, self.tabText(index))
            self.updateGeometry()

    @override
    def tabSizeHint(self, index: int) -> QSize:
        if self._theme is None:
            return QSize(80, 34)
        strong = QFontMetrics(self._theme.font("body.strong"))
        width = strong.horizontalAdvance(self.tabText(index)) + 24
        if count := self._counts.get(index):
            small = QFontMetrics(self._theme.font("caption.medium"))
            width += small.horizontalAdvance(count) + 8
        return QSize(width, self._theme.size("tabs") - 2)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        before = self.currentIndex()
        super().mousePressEvent(event)
        if self.tabAt(event.position().toPoint()) == before:
            self.pressed_current.emit()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None:
            return
        painter = QPainter(self)
        hovered = self.tabAt(self.mapFromGlobal(self.cursor().pos())) if self.underMouse() else -1
        for index in range(self.count()):
            self._paint_tab(painter, index, hovered=index == hovered)

    def _paint_tab(self, painter: QPainter, index: int, *, hovered: bool) -> None:
        theme = self._theme
        if theme is None:
            return
        place = self.tabRect(index)
        on = index == self.currentIndex() and self._open
        color = "text.primary" if on or hovered else "text.secondary"
        painter.setFont(theme.font("body.strong" if on else "body"))
        painter.setPen(theme.color(color))
        inside = place.adjusted(12, 0, -12, 0)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(inside, flags, self.tabText(index))
        if count := self._counts.get(index):
            painter.setFont(theme.font("caption.medium"))
            painter.setPen(theme.color("text.tertiary"))
            right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(inside, right, count)
        if on:
            line = QRectF(place.left() + 8, place.bottom() - 1, place.width() - 16, 2)
            painter.fillRect(line, self.palette().color(QPalette.ColorRole.Accent))


class TabPanel(QWidget):
    """Strip and pages. ``floats``: the pages lie over what is above instead of beside it."""

    folded_changed = Signal(bool)
    current_changed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tabs = RoomTabs()
        self.tabs.setObjectName("tabs")
        self.tabs.setAccessibleName(tr("Explanations of the picture"))
        self.stack = QStackedWidget()
        self.stack.setObjectName("pages")
        self._edge = Hairline()
        self._edge.hide()
        self.pages = Ground()
        inside = QVBoxLayout(self.pages)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(0)
        inside.addWidget(self._edge)
        inside.addWidget(self.stack, 1)
        self._fold = QToolButton()
        self._fold.setObjectName("fold")
        self._fold.setAutoRaise(True)
        self._fold.clicked.connect(self.toggle)
        self._is_folded = False
        self._floats = False
        self._alone: set[QWidget] = set()
        self._theme: Theme | None = None
        strip = Ground(window=True)
        self._strip_row = QHBoxLayout(strip)
        self._strip_row.setContentsMargins(12, 0, 8, 0)
        self._strip_row.setSpacing(8)
        self._strip_row.addWidget(self.tabs)
        self._strip_row.addStretch(1)
        self._strip_row.addWidget(self._fold)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(Hairline())
        self._column.addWidget(strip)
        self._column.addWidget(Hairline())
        self._column.addWidget(self.pages, 1)
        self.tabs.currentChanged.connect(self._on_current_changed)
        self.tabs.pressed_current.connect(self.toggle)
        self.tabs.tabBarClicked.connect(self._on_clicked)

    @property
    def is_folded(self) -> bool:
        """Whether only the strip is to be seen."""
        return self._is_folded

    @property
    def wants_all(self) -> bool:
        """Whether the open page stands in the picture's place."""
        return not self._is_folded and self.stack.currentWidget() in self._alone

    def add_page(self, title: str, page: QWidget, *, alone: bool = False) -> None:
        """Append a tab. ``alone``: its page is a picture of its own, and takes the other's room."""
        if alone:
            self._alone.add(page)
        self.stack.addWidget(page)
        self.tabs.addTab(title)

    def open_page(self, page: QWidget) -> None:
        """Show ``page``, unfolded."""
        self.open(self.stack.indexOf(page))

    def show_page(self, page: QWidget) -> None:
        """Let ``page`` be the one that is open once the panel is unfolded."""
        self.tabs.setCurrentIndex(self.stack.indexOf(page))

    def set_count(self, page: QWidget, count: str) -> None:
        """Show ``count`` beside the title of ``page``."""
        self.tabs.set_count(self.stack.indexOf(page), count)

    def add_tool(self, tool: QWidget) -> None:
        """Put a control at the right end of the strip."""
        self._strip_row.insertWidget(self._strip_row.count() - 1, tool)

    def open(self, index: int) -> None:
        """Show page ``index``, unfolded."""
        if 0 <= index < self.tabs.count():
            self.tabs.setCurrentIndex(index)
            self.set_folded(folded=False)

    def toggle(self) -> None:
        """Fold or unfold."""
        self.set_folded(folded=not self._is_folded)

    def set_folded(self, *, folded: bool) -> None:
        """Show only the strip, or the page too."""
        if folded == self._is_folded:
            return
        self._is_folded = folded
        self.pages.setVisible(not folded)
        self.tabs.set_open(is_open=not folded)
        self._bound_height()
        self._paint_fold()
        self.folded_changed.emit(self.is_folded)

    def set_floating(self, over: QWidget | None) -> None:
        """Let the pages lie over ``over``'s lower part; None puts them below the strip again."""
        floats = over is not None
        if floats == self._floats:
            return
        self._floats = floats
        self._edge.setVisible(floats)
        if over is not None:
            self._column.removeWidget(self.pages)
            self.pages.setParent(over)
        else:
            self._column.addWidget(self.pages, 1)
        self.pages.setVisible(not self._is_folded)
        self._bound_height()

    def float_at(self, corner: QPoint, size: QSize) -> None:
        """Place floating pages."""
        self.pages.move(corner)
        self.pages.resize(size)
        self.pages.raise_()

    @property
    def strip_height(self) -> int:
        """Height of the strip with its lines."""
        return (self._theme.size("tabs") if self._theme else 36) + 1

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.tabs.set_theme(theme)
        self._bound_height()
        self._paint_fold()

    def _bound_height(self) -> None:
        only_strip = self._is_folded or self._floats
        self.setMaximumHeight(self.strip_height if only_strip else 16_777_215)
        self.setMinimumHeight(self.strip_height if only_strip else self.strip_height + 96)

    def _paint_fold(self) -> None:
        name = tr("Open the tabs") if self._is_folded else tr("Fold the tabs")
        self._fold.setAccessibleName(name)
        self._fold.setToolTip(name)
        if self._theme is not None:
            picture = "chevron-up" if self._is_folded else "chevron-down"
            size = self._theme.grown(16)
            self._fold.setFixedSize(size + 12, size + 12)
            self._fold.setIconSize(QSize(size, size))
            self._fold.setIcon(icon(picture, self._theme.color("text.secondary"), size))

    def _on_current_changed(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        self.current_changed.emit(index)

    def _on_clicked(self, index: int) -> None:
        if index != self.tabs.currentIndex() and self._is_folded:
            self.set_folded(folded=False)
