"""The part of the pane that lists the files of a repository, once that is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.words import tr
from gui.browser.files_panel import FilesPanel
from gui.kit.controls import Hairline, label

if TYPE_CHECKING:
    from gui.browser.repository_files import RepositoryFiles
    from gui.browser.rows import Row
    from gui.kit.theme import Theme


class FilesBlock(QWidget):
    """Hidden for what has no files of its own to choose from."""

    def __init__(self, files: RepositoryFiles, theme: Theme) -> None:
        super().__init__()
        self._files = files
        self._row: Row | None = None
        self._title = label(tr("Files"), "strong")
        self.list_files = QPushButton(tr("List its files"))
        self.list_files.setObjectName("list its files")
        self.list_files.setToolTip(tr("Asks the Hub for their sizes, then reads their headers"))
        self.panel = FilesPanel(files, theme, "detail files", stands_alone=False)
        line = QHBoxLayout()
        line.addWidget(self._title, 1)
        line.addWidget(self.list_files)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 16)
        column.setSpacing(4)
        column.addWidget(Hairline())
        column.addSpacing(8)
        column.addLayout(line)
        column.addWidget(self.panel)
        self.list_files.clicked.connect(self._on_list_files)
        files.changed.connect(self._show)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours and fonts of ``theme``."""
        self._title.setFont(theme.font("body.strong"))
        self.panel.set_theme(theme)

    def show_row(self, row: Row | None) -> None:
        """Offer the files of ``row``; those of another are not read on."""
        listed = self._files.state.repository
        if listed is not None and row is not None and row.key != listed.key:
            self._files.close()
        self._row = row
        self._show()

    def _show(self) -> None:
        self.setVisible(self._row is not None and self._files.may_have(self._row))
        is_listed = self._files.state.repository is not None
        self.list_files.setVisible(not is_listed)
        self.panel.setVisible(is_listed)

    def _on_list_files(self) -> None:
        if self._row is not None:
            self._files.show(self._row)
