"""The status line: what is sampled, which device, the Hub, the balance, and the unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QStatusBar, QWidget
from typing_extensions import override

from engine.units import UnitSystem
from engine.words import tr
from gui.kit.controls import ElidedLabel, Segments
from gui.kit.icons import pixmap

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gui.kit.theme import Theme


_GAP = 20


class StatusItem(QWidget):
    """An icon and a few words."""

    def __init__(self, name: str, picture: str, ink: str = "text.secondary") -> None:
        super().__init__()
        self.setObjectName(name)
        self._ink = ink
        self._picture = picture
        self._theme: Theme | None = None
        self._mark = QLabel()
        self.words = ElidedLabel("small", name=f"{name} words")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self._mark)
        row.addWidget(self.words, 1)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.hide()

    def tell(self, text: str, tooltip: str = "", picture: str = "") -> None:
        """Show ``text``."""
        self.words.set_text(text, tooltip)
        self.setVisible(bool(text))
        if picture and picture != self._picture:
            self._picture = picture
            self._paint_mark()

    def show_words(self, *, shown: bool) -> None:
        """Show icon and words, or the icon alone with the words in its tooltip."""
        self.words.setVisible(shown)
        self.setToolTip("" if shown else self.words.full_text)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self._paint_mark()

    def _paint_mark(self) -> None:
        if self._theme is not None:
            color = self._theme.color(self._ink)
            size = self._theme.grown(15)
            self._mark.setFixedWidth(size + 1)
            self._mark.setPixmap(pixmap(self._picture, color, size, self.devicePixelRatioF()))


class StatusLine(QStatusBar):
    """Items from the left, the balance and the unit at the right."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizeGripEnabled(False)
        self.sampling = StatusItem("sampling", "activity")
        self.pressure = StatusItem("memory pressure", "triangle-alert", "tight")
        self.device = StatusItem("device state", "cpu")
        self.hub = StatusItem("hub state", "cloud")
        self.balance = ElidedLabel("small", name="balance", keeps_whole=True)
        self.unit = Segments("unit", (("GiB", UnitSystem.BINARY), ("GB", UnitSystem.DECIMAL)))
        self.unit.setToolTip(tr("GiB: powers of 1,024. GB: powers of 1,000. Changes every number."))
        self.view = Segments("view", ((tr("Simple"), True), (tr("Full"), False)))
        self.view.setToolTip(
            tr("Simple: model, machine, context and users. Full: every setting. The same numbers.")
        )
        body = QWidget()
        row = QHBoxLayout(body)
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(_GAP)
        for item in (self.sampling, self.pressure, self.device, self.hub):
            row.addWidget(item)
        row.addStretch(1)
        row.addWidget(self.balance)
        row.addWidget(self.view)
        row.addWidget(self.unit)
        # The line takes what room there is, and never makes the window wider.
        body.setMinimumWidth(1)
        self.addWidget(body, 1)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        for item in (self.sampling, self.pressure, self.device, self.hub):
            item.set_theme(theme)
        metrics = QFontMetrics(theme.font("small.strong.num"))
        for choice in (self.view, self.unit):
            choice.setProperty("size", "small")
            widest = max(metrics.horizontalAdvance(button.text()) for button in choice.buttons)
            width = max(theme.grown(44), widest + 20)
            for button in choice.buttons:
                button.setFixedSize(width, theme.size("hit.min"))
        self.setFixedHeight(theme.size("status"))

    @override
    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), 28)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.make_room()

    def make_room(self) -> None:
        """Leave words away, the least needed first, until the numbers have room.

        With very large text the choice of the view goes next, which the menu has too, and then
        the balance, which the picture shows.
        """
        items = (self.hub, self.device, self.sampling, self.pressure)
        left = self.width() - self.unit.width() - self.view.sizeHint().width()
        left -= self.balance.sizeHint().width() + 6 * _GAP
        left -= sum(i.words.sizeHint().width() + 22 + _GAP for i in items if i.words.full_text)
        for item in items:
            item.show_words(shown=left >= 0)
            if left < 0:
                left += item.words.sizeHint().width()
        self.view.setVisible(left >= 0)
        if left < 0:
            left += self.view.sizeHint().width()
        self.balance.setVisible(left >= 0)
