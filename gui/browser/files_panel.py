"""The files of a repository as a list to pick from, with what is still being read of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QModelIndex, QSize, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.words import tr, tr_count
from gui.browser.delegate import RowDelegate
from gui.browser.row_list import RowList
from gui.browser.rows import ROW_ROLE, Row, RowModel
from gui.kit.controls import ElidedLabel, Hairline, running_text
from gui.kit.format import count
from gui.kit.icons import icon
from gui.kit.messages import sentence

if TYPE_CHECKING:
    from engine.units import UnitSystem
    from gui.browser.repository_files import FilesState, RepositoryFiles
    from gui.kit.theme import Theme

_GAP = 4
_MOST_IN_SIGHT = 6
"""Rows of a panel that stands among other things."""


class FilesPanel(QWidget):
    """One row a file: name, bytes, bits a weight, whether it fits; a click opens it."""

    picked = Signal(object)
    """The ``Row`` of a file."""
    closed = Signal()

    def __init__(
        self, files: RepositoryFiles, theme: Theme, name: str, *, stands_alone: bool
    ) -> None:
        """``stands_alone`` where it takes the place of the list, with a way back."""
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(tr("Files of the repository"))
        self._files = files
        self._theme = theme
        self._stands_alone = stands_alone
        self.back = QPushButton(tr("Back"))
        self.back.setObjectName(f"{name} back")
        self.back.setProperty("role", "flat")
        if not stands_alone:
            # To be shown before it has a parent would make it a window for a moment.
            self.back.hide()
        self.title = ElidedLabel("strong", name=f"{name} title")
        self.words = running_text("secondary")
        self.words.setObjectName(f"{name} words")
        self.act = QPushButton()
        self.act.setObjectName(f"{name} act")
        self.rows = RowModel(self)
        self._delegate = RowDelegate(theme, self)
        self.list = RowList(self.rows, self._delegate)
        self.list.setObjectName(f"{name} list")
        self.list.setAccessibleName(tr("Files of the repository"))
        self._build()
        self.back.clicked.connect(self.closed)
        self.act.clicked.connect(files.act)
        self.list.clicked.connect(self._on_row)
        self.list.entered_row.connect(self._on_row)
        self.list.left.connect(self.closed)
        files.changed.connect(self._on_changed)
        self.set_theme(theme)
        self._on_changed(files.state)

    def _build(self) -> None:
        side = 12 if self._stands_alone else 0
        head = QHBoxLayout()
        head.setContentsMargins(side, 6, side, 6)
        head.setSpacing(8)
        head.addWidget(self.back)
        head.addWidget(self.title, 1)
        line = QHBoxLayout()
        line.setContentsMargins(side, 0, side, 6)
        line.setSpacing(8)
        line.addWidget(self.words, 1)
        line.addWidget(self.act)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addLayout(line)
        column.addWidget(Hairline())
        column.addWidget(self.list, 1)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and sizes of ``theme``."""
        self._theme = theme
        self.title.setFont(theme.font("body.strong"))
        self.words.setFont(theme.font("small"))
        self._delegate.set_theme(theme)
        self.list.set_theme(theme)
        size = theme.grown(14)
        self.back.setIconSize(QSize(size + _GAP, size))
        self.back.setIcon(icon("panel-left-close", theme.color("text.secondary"), size, _GAP))

    def set_look(self, unit: UnitSystem, chosen: str) -> None:
        """Write sizes in ``unit``; mark the file that is in the window."""
        if self.rows.unit is not unit:
            self.rows.set_unit(unit)
        self.rows.set_chosen(chosen)

    @Slot(object)
    def _on_changed(self, state: FilesState) -> None:
        self.rows.set_badges(self._files.badges, self._files.badges)
        self.rows.set_rows(state.rows)
        self.title.set_text(state.repository.name if state.repository else "")
        self.words.setText(_words(state))
        self.words.setAccessibleName(self.words.text())
        self.act.setText(tr("Stop") if state.is_busy else tr("Try again"))
        self.act.setVisible(state.is_busy or state.trouble is not None)
        self.list.setVisible(bool(state.rows) or self._stands_alone)
        if not self._stands_alone:
            height = self.list.verticalHeader().defaultSectionSize()
            self.list.setFixedHeight(height * min(len(state.rows), _MOST_IN_SIGHT) + 1)

    @Slot(QModelIndex)
    def _on_row(self, index: QModelIndex) -> None:
        row = cast("Row | None", index.data(ROW_ROLE))
        if row is not None and not row.beside:
            self.picked.emit(row)


def _words(state: FilesState) -> str:
    if state.trouble is not None:
        return sentence(state.trouble)
    if not state.is_listed:
        return tr("Asking the Hub for its files…")
    if not state.rows:
        return tr("No GGUF files: what it holds is one model, sized as a whole.")
    number = tr_count("{number} file", "{number} files", len(state.rows))
    words = number.format(number=count(len(state.rows)))
    if state.is_busy:
        reading = tr("{files}; reading headers, {read} of {number}")
        return reading.format(files=words, read=count(state.read), number=count(state.to_read))
    if state.read < state.to_read:
        stopped = tr("{files}; {read} of {number} headers read, the others when they are opened")
        return stopped.format(files=words, read=count(state.read), number=count(state.to_read))
    return words
