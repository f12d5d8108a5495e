"""What was read of a model of the Hub when it was opened, put into its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.source.reference import one_spelling
from gui.browser import sources
from gui.kit.latest import LatestOnly

if TYPE_CHECKING:
    from engine.source.raw import RawModel
    from gui.browser.rows import Row
    from gui.kit.tasks import TaskRunner


class Learning(QObject):
    """Keeps what rows read, and makes better rows of it off the GUI thread."""

    learned = Signal(object)
    """The ``Row`` with what its files said."""

    def __init__(self, runner: TaskRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._read: dict[str, RawModel] = {}
        self._latest = LatestOnly(runner, self)
        self._latest.succeeded.connect(self.learned)

    @property
    def is_busy(self) -> bool:
        """Whether a row is being made."""
        return self._latest.is_busy

    def remembering(self, row: Row) -> Row:
        """``row``, of which is kept what it reads."""
        return sources.remembering(row, self._read)

    def learn(self, name: str, row: Row | None) -> None:
        """Make ``row`` better by what was read of the model ``name``, where less is known of it.

        Args:
            name: a model, or ``repository:file``; what was read of it is handed out once.
            row: of the model, or of the repository; None where there is none.
        """
        key = one_spelling(name)
        raw = self._read.pop(key, None) or self._read.pop(key.partition(":")[0], None)
        if raw is not None and row is not None and row.model is None:
            self._latest.submit(lambda _token: sources.learned(row, raw))
