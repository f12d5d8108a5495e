"""The browser's own small widgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QActionGroup, QFontMetrics, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QLineEdit,
    QMenu,
    QSizePolicy,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from engine.words import tr, tr_later
from gui.browser.listing import Sort
from gui.browser.rows import Source
from gui.kit.controls import LineField, Segments
from gui.kit.format import count
from gui.kit.icons import icon
from gui.kit.shortcuts import leave_to_window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QKeyEvent

    from gui.browser.listing import Wanted
    from gui.kit.theme import Theme

SOURCES = {
    Source.ALL: tr_later("All"),
    Source.HUB: tr_later("Hub"),
    Source.LOCAL: tr_later("This computer"),
    Source.OWN: tr_later("Favourites, and what was opened last"),
}
_TIPS = {
    Source.ALL: tr_later("The catalogue, this computer, favourites, and what the Hub answers"),
    Source.HUB: tr_later("Only what the Hub answers to the words you type"),
    Source.LOCAL: tr_later("Only what lies on this computer"),
    Source.OWN: tr_later("Favourites, and what was opened last"),
}
_BESIDE_HINT = 60
"""Room that the magnifying glass and the gaps take beside the hint and the shortcut."""
MAX_TYPED = 1_000_000
"""A config.json may be pasted; nothing else comes near."""


class SearchField(LineField):
    """Takes words, a link, ``org/repo:quant``, a path, or a pasted config."""

    left_downwards = Signal()
    """The down arrow was pressed: on to the list."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("search")
        self.show_sending("")
        self.setAccessibleName(tr("Find a model"))
        self.setMaxLength(MAX_TYPED)
        self.setStyleSheet("QLineEdit { padding-left: 1px; }")
        # Drops go to the window, which takes whole files; here they would become text.
        self.setAcceptDrops(False)
        self._theme: Theme | None = None
        self._keys = ""
        self._glass = QAction(self)
        self.addAction(self._glass, QLineEdit.ActionPosition.LeadingPosition)
        self._cross = QAction(tr("Clear"), self)
        self._cross.triggered.connect(self.clear)
        self._cross.setVisible(False)
        self.addAction(self._cross, QLineEdit.ActionPosition.TrailingPosition)
        self.textChanged.connect(self._on_text)

    def set_keys(self, text: str) -> None:
        """Show beside the hint which keys lead here."""
        self._keys = text
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self._glass.setIcon(icon("search", theme.color("text.tertiary")))
        self._cross.setIcon(icon("x", theme.color("text.tertiary")))

    def show_sending(self, host: str) -> None:
        """Say where typed words go; empty while they stay here."""
        if host:
            hint = tr("Name (sent to the Hub), link or path")
            tip = tr("Words you type here are sent to {host} when you pause; nothing else is.")
        else:
            hint = tr("Name, link, path or config")
            tip = tr("What you type stays here until you press Enter or pick the Hub.")
        self.setPlaceholderText(hint)
        self.setToolTip(tip.format(host=host))
        self.setAccessibleDescription(tip.format(host=host))

    def _on_text(self, text: str) -> None:
        self._cross.setVisible(bool(text))
        self.place_buttons()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.text() or self._theme is None:
            return
        font = self._theme.font("caption")
        room = self.width() - self.fontMetrics().horizontalAdvance(self.placeholderText())
        if room < _BESIDE_HINT + QFontMetrics(font).horizontalAdvance(self._keys):
            return
        painter = QPainter(self)
        painter.setFont(font)
        painter.setPen(self._theme.color("text.tertiary"))
        place = QRect(self.rect()).adjusted(9, 0, -9, 0)
        side = Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(place, side, self._keys)

    @override
    def event(self, event: QEvent) -> bool:
        return leave_to_window(event, self) or super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down:
            self.left_downwards.emit()
            event.accept()
            return
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
            event.accept()
            return
        super().keyPressEvent(event)


class OrderButton(QToolButton):
    """Names the order of the rows and offers the others; the same again turns it round."""

    picked = Signal(object)
    """A ``Sort``."""

    def __init__(self, name: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAutoRaise(True)
        self._tip = tip
        self.setToolTip(tip)
        self._orders = QMenu(self)
        group = QActionGroup(self._orders)
        for order in Sort:
            action = QAction(tr(order.value), self._orders)
            action.setCheckable(True)
            action.setData(order.value)
            group.addAction(action)
            self._orders.addAction(action)
        group.triggered.connect(self._on_order)
        self.clicked.connect(self._on_clicked)

    def show_order(self, wanted: Wanted, *, is_sorted: bool) -> None:
        """Name the order in force; its arrow only where it holds to the end of the list."""
        words = tr("descending") if wanted.descending else tr("ascending")
        if not is_sorted:
            words = tr("what came later is below; choose the order again to sort it in")
        arrow = f" {wanted.arrow}" if is_sorted else ""
        self.setText(f"{tr(wanted.sort.value)}{arrow}")
        self.setToolTip(self._tip if is_sorted else f"{self._tip}: {words}")
        self.setAccessibleName(f"{self._tip}: {tr(wanted.sort.value)}, {words}")
        for action in self._orders.actions():
            action.setChecked(action.data() == wanted.sort.value)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self.setFont(theme.font("caption"))
        self.setMinimumHeight(theme.size("hit.min"))
        color = theme.colors["text.secondary"]
        self.setStyleSheet(f"QToolButton {{ color: {color}; border: none; }}")

    def _on_clicked(self) -> None:
        corner = QPoint(self.width() - self._orders.sizeHint().width(), self.height() + 2)
        self._orders.popup(self.mapToGlobal(corner))

    def _on_order(self, action: QAction) -> None:
        self.picked.emit(Sort(str(action.data())))


class SourceChoice(Segments):
    """Narrows the one list: all, the Hub, this computer, and what one keeps, the last as a star."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        choices = tuple((tr(words), source) for source, words in SOURCES.items())
        super().__init__(name, choices, parent)
        for button, source in zip(self.buttons, SOURCES, strict=True):
            button.setToolTip(tr(_TIPS[source]))
        star = self.buttons[-1]
        star.setText("")
        star.setAccessibleName(tr(SOURCES[Source.OWN]))
        star.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        for button in self.buttons:
            button.setFont(theme.font("small"))
        size = theme.grown(14)
        self.buttons[-1].setIconSize(QSize(size, size))
        self.buttons[-1].setMinimumWidth(theme.size("hit.min"))
        self.buttons[-1].setIcon(icon("star", theme.color("text.secondary"), size))

    def show_source(self, source: Source, counts: Mapping[Source, int]) -> None:
        """Mark ``source``; say how many models there are, where that is known."""
        self.set_current(source)
        for button, (one, words) in zip(self.buttons[:-1], SOURCES.items(), strict=False):
            number = counts.get(one)
            button.setText(tr(words) if number is None else f"{tr(words)} {count(number)}")
