"""A small window that stays in front: each device with its load line, and the plan's verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from engine.words import tr
from gui.kit.controls import ElidedLabel, Ground, label
from gui.kit.icons import pixmap

if TYPE_CHECKING:
    from PySide6.QtGui import QCloseEvent, QMouseEvent

    from gui.kit.theme import Theme

_BAR, _PICTURE, _LEAST = 10, 15, 250
MOST_DEVICES = 8


@dataclass(frozen=True, slots=True)
class Load:
    """One device as it is now."""

    name: str
    words: str
    """``20.1 used, 3.5 free, GiB``; or why there is no figure."""
    used_share: float | None
    """Of the whole device; None where it is not known."""
    line_share: float
    """Where the load line stands."""
    is_over: bool
    """Whether more is used than the load line allows."""


@dataclass(frozen=True, slots=True)
class Glance:
    """All that the window shows."""

    loads: tuple[Load, ...]
    headline: str
    """The plan's verdict; empty without a plan."""
    color: str
    icon: str
    age: str = ""
    """How old the figures are, where no sample comes."""


class LoadBar(QWidget):
    """What is used of a device, and its load line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme | None = None
        self._load: Load | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_load(self, load: Load, theme: Theme) -> None:
        """Show ``load``."""
        self._load, self._theme = load, theme
        self.setFixedHeight(theme.grown(_BAR) + 4)
        self.setAccessibleName(load.name)
        self.setAccessibleDescription(load.words)
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._theme is None or self._load is None:
            return
        painter, theme, load = QPainter(self), self._theme, self._load
        trough = QRectF(self.rect()).adjusted(0.5, 2.5, -0.5, -2.5)
        painter.fillRect(trough, theme.color("surface.window"))
        if load.used_share is not None:
            full = QRectF(trough)
            full.setWidth(trough.width() * min(load.used_share, 1.0))
            painter.fillRect(full, theme.color("over" if load.is_over else "chart.measured"))
        painter.setPen(QPen(theme.color("line.control.edge"), 1))
        painter.drawRect(trough)
        x = trough.left() + trough.width() * load.line_share
        painter.setPen(QPen(theme.color("chart.loadline"), theme.sizes["line.chart.measured"]))
        painter.drawLine(QLineF(x, 0, x, self.height()))


class _Row(QWidget):
    """A device: its name and figures over its bar."""

    def __init__(self) -> None:
        super().__init__()
        self.name = ElidedLabel("strong", name="device")
        self.words = ElidedLabel("small", name="figures", keeps_whole=True)
        self.bar = LoadBar()
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self.name, 1)
        head.addWidget(self.words)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(head)
        column.addWidget(self.bar)


class CompactWindow(Ground):
    """Shows a ``Glance``; a double click asks for the whole window."""

    window_wanted = Signal()
    closed = Signal()
    """By its user."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(window=False)
        self.setObjectName("compact view")
        self.setWindowFlags(Qt.WindowType.Window | Qt.WindowType.WindowStaysOnTopHint)
        self.setWindowTitle(tr("Plimsoll, compact"))
        self._theme = theme
        self._glance: Glance | None = None
        self._rows: list[_Row] = []
        self._mark = QLabel()
        self.headline = label("", "plain", "headline")
        self.headline.setWordWrap(True)
        self.age = label("", "small", "age")
        self._devices = QVBoxLayout()
        self._devices.setSpacing(8)
        said = QHBoxLayout()
        said.setSpacing(8)
        said.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        said.addWidget(self.headline, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        column.addLayout(self._devices)
        column.addLayout(said)
        column.addWidget(self.age)
        column.addStretch(1)

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """Name and figures of each device shown."""
        shown = (row for row in self._rows if not row.isHidden())
        return tuple((row.name.full_text, row.words.full_text) for row in shown)

    def show_glance(self, glance: Glance) -> None:
        """Show ``glance``."""
        if glance == self._glance:
            return
        self._glance = glance
        while len(self._rows) < len(glance.loads):
            row = _Row()
            self._rows.append(row)
            self._devices.addWidget(row)
        for index, row in enumerate(self._rows):
            row.setVisible(index < len(glance.loads))
            if index < len(glance.loads):
                load = glance.loads[index]
                row.name.set_text(load.name)
                row.words.set_text(load.words)
                row.bar.show_load(load, self._theme)
        self.headline.setText(glance.headline)
        self.headline.setVisible(bool(glance.headline))
        self._mark.setVisible(bool(glance.headline))
        size = self._theme.grown(_PICTURE)
        ratio = self.devicePixelRatioF()
        self._mark.setPixmap(pixmap(glance.icon, self._theme.color(glance.color), size, ratio))
        self.age.setText(glance.age)
        self.age.setVisible(bool(glance.age))

    def set_theme(self, theme: Theme) -> None:
        """Take colours and text size of ``theme``."""
        self._theme = theme
        glance, self._glance = self._glance, None
        if glance is not None:
            self.show_glance(glance)
        self.adjustSize()

    @override
    def sizeHint(self) -> QSize:
        return super().sizeHint().expandedTo(QSize(self._theme.grown(_LEAST), 0))

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.window_wanted.emit()

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        self.closed.emit()
        super().closeEvent(event)
