"""The panel of a verification: how it stands, both counts, and with which Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from engine.words import tr, tr_later
from gui.kit.controls import ElidedLabel, label, running_text
from gui.kit.dialogs import GrowingDialog, closing_row
from gui.kit.progress import ProgressLine
from gui.kit.verdict_parts import VerdictMark
from gui.sizing.verify_table import VerifyTable

if TYPE_CHECKING:
    from gui.kit.theme import Theme
    from gui.sizing.verify_words import Shown

_WIDTH = 640
_PURPOSE = tr_later(
    "The model is built without weights, on PyTorch’s meta device and in a process of its own, "
    "and its parameters are counted. Nothing is downloaded, and no code of the repository is run."
)


class VerifyDialog(GrowingDialog):
    """Opened with ``open()``; never blocks the window."""

    python_chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, _WIDTH)
        self.setObjectName("verify dialog")
        self.setWindowTitle(tr("Verify the parameters"))
        self._theme = theme
        self._shown: Shown | None = None
        self._title = ElidedLabel("title", name="verify title")
        self._state = QWidget()
        self._mark = VerdictMark()
        self.headline = label("", "strong", "verify headline")
        self.detail = running_text("small")
        self.detail.setObjectName("verify detail")
        self.detail.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.python = ElidedLabel("small", Qt.TextElideMode.ElideMiddle, name="verify python")
        self._progress = ProgressLine()
        self.table = VerifyTable()
        self.doubts = running_text("small")
        self.doubts.setObjectName("verify doubts")
        self.choose = QPushButton(tr("Choose Python…"))
        self.choose.setToolTip(tr("Name a Python that has torch and transformers"))
        self.copy = QPushButton()
        self.end = QPushButton()
        self._build()
        self.choose.clicked.connect(self._on_choose)
        self.copy.clicked.connect(self._on_copy)
        self.end.clicked.connect(self.reject)
        self.set_theme(theme)

    def _build(self) -> None:
        purpose = label(tr(_PURPOSE), "small")
        purpose.setWordWrap(True)
        said = QVBoxLayout()
        said.setSpacing(1)
        said.addWidget(self.headline)
        said.addWidget(self.detail)
        said.addWidget(self.python)
        said.addStretch(1)
        self.detail.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        state = QHBoxLayout(self._state)
        state.setContentsMargins(0, 0, 0, 0)
        state.setSpacing(12)
        state.addWidget(self._mark, 0, Qt.AlignmentFlag.AlignTop)
        state.addLayout(said, 1)
        counts = QVBoxLayout()
        counts.setSpacing(0)
        counts.addWidget(self._progress)
        counts.addWidget(self.table, 1)
        for button in (self.choose, self.copy):
            button.setAutoDefault(False)
        self.end.setDefault(True)
        column = QVBoxLayout()
        column.addWidget(self._title)
        column.addWidget(purpose)
        column.addWidget(self._state)
        column.addLayout(counts)
        column.addWidget(self.doubts)
        column.addStretch(1)
        self.lay_out(column, closing_row(self.copy, self.end, first=(self.choose,)))
        self.end.setFocus()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.table.set_theme(theme)
        small = QFontMetrics(theme.font("small"))
        # So that the table stays where it is while the words above it change.
        self._state.setMinimumHeight(self.headline.sizeHint().height() + 2 * (small.height() + 2))
        if self._shown is not None:
            self.show_state(self._shown)

    def show_state(self, shown: Shown) -> None:
        """Show how the verification stands."""
        self._shown = shown
        self._title.set_text(shown.title)
        self._mark.show_mark(self._theme, shown.color, shown.picture)
        self.headline.setText(shown.headline)
        self.detail.setText(shown.detail)
        self.python.set_text(tr("With {python}").format(python=shown.python))
        self.python.setVisible(bool(shown.python))
        self.table.show_rows(shown.rows)
        self.doubts.setText("\n".join(shown.doubts))
        self.doubts.setVisible(bool(shown.doubts))
        self._progress.set_busy(shown.is_busy)
        self.copy.setEnabled(bool(shown.copied))
        self.copy.setText(shown.copy_label)
        self.end.setText(tr("Cancel") if shown.is_busy else tr("Close"))
        self.setAccessibleDescription(f"{shown.headline} {shown.detail}")
        self.take_room()

    def _on_choose(self) -> None:
        dialog = QFileDialog(self, tr("Choose a Python"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        # A virtual environment's Python is a link; what it points to lacks the environment.
        dialog.setOption(QFileDialog.Option.DontResolveSymlinks)
        if self._shown is not None and self._shown.python:
            dialog.selectFile(self._shown.python)
        dialog.fileSelected.connect(self.python_chosen)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_copy(self) -> None:
        if self._shown is not None:
            QGuiApplication.clipboard().setText(self._shown.copied)
