"""The files of one repository on the Hub: their sizes at once, then their headers one by one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Signal, Slot

from engine.source.reference import is_hub_name
from gui.browser import sources
from gui.browser.badges import BadgeQueue
from gui.browser.columns import Columns
from gui.browser.filters import ALL
from gui.browser.listing import Wanted
from gui.kit.latest import LatestOnly

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.source.hub import HubClient
    from gui.browser.arranged import Arranged
    from gui.browser.rows import Badge, Row
    from gui.kit.tasks import TaskRunner

_AS_LISTED = Wanted(ALL)
"""Smallest first, projectors last: a file has no downloads of its own to be sorted by."""


@dataclass(frozen=True, slots=True, eq=False)
class FilesState:
    """What is known of the files."""

    repository: Row | None = None
    """None where no files are asked for."""
    rows: Arranged = field(default_factory=lambda: Columns(()).arranged("", _AS_LISTED))
    is_listed: bool = False
    read: int = 0
    """Headers that were read, and how many there are to read."""
    to_read: int = 0
    is_busy: bool = False
    trouble: BaseException | None = None


class RepositoryFiles(QObject):
    """Lists when it is asked to; whatever is asked for next ends what is going on."""

    changed = Signal(object)
    """The new ``FilesState``."""

    def __init__(self, runner: TaskRunner, hub: HubClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state = FilesState()
        self.badges: dict[str, Badge] = {}
        self._hub = hub
        self._plan: tuple[Deployment, Machine] | None = None
        self._columns = Columns(())
        self._waiting: list[Row] = []
        self._listing = LatestOnly(runner, self)
        self._listing.succeeded.connect(self._on_listed)
        self._listing.failed.connect(self._on_failed)
        self._reading = LatestOnly(runner, self)
        self._reading.succeeded.connect(self._on_read)
        self._reading.failed.connect(self._on_failed)
        self._queue = BadgeQueue(self)
        self._queue.ready.connect(self._on_badges)

    @staticmethod
    def may_have(row: Row) -> bool:
        """Whether ``row`` is a repository whose files could be listed."""
        return is_hub_name(row.key) and "/" in row.key and row.weight_format in {"", "GGUF"}

    @property
    def is_settled(self) -> bool:
        """Whether nothing is still being read or worked out."""
        return not (self._listing.is_busy or self._reading.is_busy or self._queue.is_busy)

    def show(self, repository: Row) -> None:
        """Ask the Hub for the files of ``repository``."""
        self.stop()
        self._columns, self.badges = Columns(()), {}
        self.state = FilesState(repository)
        self._listing.submit(partial(sources.list_files, self._hub, repository.key))
        self._publish()

    def act(self) -> None:
        """Stop what is going on; else ask again."""
        if self.state.is_busy:
            self.stop()
        elif self.state.repository is not None:
            self.show(self.state.repository)

    def stop(self) -> None:
        """Read no further headers; what was read stays."""
        self._waiting = []
        self._listing.cancel()
        self._reading.cancel()
        self._publish()

    def close(self) -> None:
        """Show the files no longer."""
        self.stop()
        self.state = FilesState()
        self._publish()

    def set_plan(self, deployment: Deployment, machine: Machine) -> None:
        """Judge the files by another plan."""
        self._plan = (deployment, machine)
        self._queue.start(self._with_header(self._columns.rows), deployment, machine)

    @staticmethod
    def _with_header(rows: tuple[Row, ...]) -> list[Row]:
        return [row for row in rows if row.model is not None]

    @Slot(object)
    def _on_listed(self, found: object) -> None:
        rows = cast("tuple[Row, ...]", found)
        self._columns = Columns(rows)
        self._columns.answer(row.key for row in rows)
        self._waiting = [row for row in rows if not row.beside]
        self.state = replace(self.state, is_listed=True, to_read=len(self._waiting))
        self._read_next()

    def _read_next(self) -> None:
        if self._waiting:
            self._reading.submit(partial(sources.file_read, self._waiting.pop(0)))
        self._publish()

    @Slot(object)
    def _on_read(self, row: Row) -> None:
        self._columns.replace(row)
        self.state = replace(self.state, read=self.state.read + 1)
        if self._queue.is_busy:
            self._queue.add((row,))
        elif self._plan is not None:
            self._queue.start((row,), *self._plan)
        self._read_next()

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        self._waiting = []
        self.state = replace(self.state, trouble=error)
        self._publish()

    @Slot(object)
    def _on_badges(self, made: Mapping[str, Badge]) -> None:
        self.badges.update(made)
        self._publish()

    def _publish(self) -> None:
        self.state = replace(
            self.state,
            rows=self._columns.arranged("", _AS_LISTED),
            is_busy=self._listing.is_busy or self._reading.is_busy,
        )
        self.changed.emit(self.state)
