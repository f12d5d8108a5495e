"""Small buttons in the picture's corner: how much time it shows, hold, and all else one can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QWidget

from engine.words import tr, tr_later
from gui.kit.charts.time_view import SPANS_S
from gui.kit.icons import icon

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

    from gui.kit.charts.picture import MemoryPicture
    from gui.kit.theme import Theme

_PICTURE, _SIDE = 14, 24
_UNITS = ((3600, tr_later("{time} h")), (60, tr_later("{time} min")), (1, tr_later("{time} s")))


def span_words(seconds: float) -> str:
    """``2 min``, ``4 h``; ``2.4 min`` where the wheel stopped in between."""
    factor, words = next(pair for pair in _UNITS if seconds >= pair[0])
    return tr(words).format(time=f"{seconds / factor:.3g}")


class ChartTools(QWidget):
    """Stands in the corner of ``picture`` while that has a measured part."""

    def __init__(
        self, picture: MemoryPicture, shorter: QAction, longer: QAction, hold: QAction
    ) -> None:
        super().__init__(picture)
        self.setObjectName("chart tools")
        self._chart = picture
        self._theme: Theme | None = None
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        self._buttons: list[tuple[QToolButton, str]] = []
        self.longer = self._tool("minus", longer)
        self.span = QToolButton()
        self.span.setAutoRaise(True)
        self.span.setObjectName("time shown")
        self.span.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.span.setMenu(self.spans_menu(self.span))
        self._row.addWidget(self.span)
        self.shorter = self._tool("plus", shorter)
        self.hold = self._tool("pause", hold)
        self.more = self._tool("more")
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setAccessibleName(tr("More about the chart"))
        self.more.setToolTip(tr("More about the chart"))
        picture.view_changed.connect(self.refresh)
        picture.held.connect(self.refresh)
        picture.measured_changed.connect(self.refresh)
        picture.resized.connect(self.place)
        self.refresh()

    def _tool(self, picture: str, action: QAction | None = None) -> QToolButton:
        button = QToolButton()
        button.setAutoRaise(True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        if action is not None:
            words = action.text().replace("&", "")
            button.setAccessibleName(words)
            button.setToolTip(action.toolTip())
            button.clicked.connect(action.trigger)
        self._buttons.append((button, picture))
        self._row.addWidget(button)
        return button

    def spans_menu(self, parent: QWidget) -> QMenu:
        """A menu of the usual spans."""
        menu = QMenu(tr("Time &shown"), parent)
        for span in SPANS_S:
            menu.addAction(span_words(span)).triggered.connect(
                lambda _=False, span=span: self._chart.set_window_seconds(span)
            )
        return menu

    def refresh(self) -> None:
        """Show what the picture shows."""
        words = span_words(self._chart.span_s)
        self.span.setText(words)
        said = tr("The chart shows {time}").format(time=words)
        self.span.setToolTip(said)
        self.span.setAccessibleName(said)
        self.longer.setEnabled(self._chart.span_s < SPANS_S[-1])
        self.shorter.setEnabled(self._chart.span_s > SPANS_S[0])
        self._buttons[2] = (self.hold, "play" if self._chart.is_held else "pause")
        self.set_theme(self._theme)
        self.setVisible(self._chart.has_time)
        self.place()

    def place(self) -> None:
        """Stand in the lower left corner, under the labels."""
        self.adjustSize()
        self.move(12, self._chart.height() - self.height() - 1)

    def set_theme(self, theme: Theme | None) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        if theme is None:
            return
        side, size = theme.grown(_SIDE), theme.grown(_PICTURE)
        self.span.setFont(theme.font("caption.num"))
        self.span.setFixedHeight(side)
        for button, picture in self._buttons:
            button.setFixedSize(side, side)
            button.setIconSize(QSize(size, size))
            name = "text.secondary" if button.isEnabled() else "text.disabled"
            button.setIcon(icon(picture, theme.color(name), size))
