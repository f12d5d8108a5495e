"""The model as a control of the simple view: its name, and a click to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget
from typing_extensions import override

from engine.words import tr
from gui.kit.theme import text_scale

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

_FRAME = 28
_LEAST = 110


class ModelButton(QPushButton):
    """Shows as much of the name as has room, cut in the middle, where names are alike least."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = ""
        self.setObjectName("model button")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def show_model(self, name: str) -> None:
        """Show ``name``; empty for none."""
        self._name = name or tr("Pick a model")
        self.setToolTip(tr("{model}: pick another").format(model=name) if name else "")
        self._elide()
        self.updateGeometry()

    @override
    def sizeHint(self) -> QSize:
        width = self.fontMetrics().horizontalAdvance(self._name) + _FRAME
        return QSize(width, super().sizeHint().height())

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(round(_LEAST * text_scale()), super().minimumSizeHint().height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        room = self.width() - _FRAME + 2
        mode = Qt.TextElideMode.ElideMiddle
        self.setText(self.fontMetrics().elidedText(self._name, mode, room))
