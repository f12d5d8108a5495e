"""The log that is open: read and explained off the GUI thread, the newest one only."""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO

from PySide6.QtCore import QObject, Signal, Slot

from engine.contract.desk import Desk
from engine.contract.run import Run, explain
from engine.errors import UsageError
from engine.logs.read import read
from engine.logs.why import happened
from engine.source import files
from engine.units import UnitSystem
from engine.words import tr
from gui.kit.latest import LatestOnly

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from engine.budget.model import Region
    from engine.cancel import CancelToken
    from gui.kit.tasks import TaskRunner

    Open = Callable[[], AbstractContextManager[BinaryIO]]


@dataclass(frozen=True, slots=True, eq=False)
class LogState:
    """All that the room shows of one log."""

    name: str
    run: Run
    unit: UnitSystem = UnitSystem.BINARY
    rank: int = 0
    """Which of the run's rows are shown."""
    region: Region | None = None
    """The region that is selected, in table and text."""
    object_in: Path | None = None
    """The file, where it begins as a config does."""


class LogViewModel(QObject):
    """Holds the open log, and is the only way to change what is shown of it."""

    changed = Signal(object)
    """The new ``LogState``; None where no log is open."""
    opened = Signal()
    object_found = Signal(object)
    """The ``Path`` of a file that is no log, but may be a config."""
    failed = Signal(object)
    busy_changed = Signal(bool)

    def __init__(self, runner: TaskRunner, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state: LogState | None = None
        self._unit = UnitSystem.BINARY
        self._latest = LatestOnly(runner, self)
        self._latest.succeeded.connect(self._on_read)
        self._latest.failed.connect(self.failed)
        self._latest.busy_changed.connect(self.busy_changed)

    @property
    def is_busy(self) -> bool:
        """Whether a log is being read."""
        return self._latest.is_busy

    def read_file(self, path: Path) -> None:
        """Read the log at ``path``."""
        self._submit(path.name, lambda: _opened(path), path)

    def read_text(self, text: str) -> None:
        """Read a log that was pasted or dropped as text."""
        data = text.encode("utf-8", errors="replace")
        self._submit(tr("Pasted log"), lambda: io.BytesIO(data))

    def predict(self, given: Mapping[str, object]) -> None:
        """Predict the open log's run with what is ``given``: its model, its device."""
        state = self.state
        if state is None:
            return

        def job(token: CancelToken) -> LogState:
            return LogState(state.name, explain(state.run.reading, Desk(token), given))

        self._latest.submit(job)

    def close(self) -> bool:
        """Close the log, or give up reading one. Returns whether there was any."""
        was_open = self.state is not None or self.is_busy
        self._latest.cancel()
        self._publish(None)
        return was_open

    def set_unit(self, unit: UnitSystem) -> None:
        """Write sizes in GiB or GB."""
        self._unit = unit
        if self.state is not None and self.state.unit is not unit:
            self._publish(replace(self.state, unit=unit))

    def show_rank(self, rank: int) -> None:
        """Show the rows of another rank."""
        if self.state is not None:
            self._publish(replace(self.state, rank=rank))

    def select(self, region: Region | None) -> None:
        """Select a region, or none."""
        if self.state is not None and region is not self.state.region:
            self._publish(replace(self.state, region=region))

    def _submit(self, name: str, opened: Open, path: Path | None = None) -> None:
        def job(token: CancelToken) -> LogState:
            with opened() as stream:
                is_object = files.begins_object(stream.read(64))
                stream.seek(0)
                reading = read(stream, token)
            run = explain(reading, Desk(token), {})
            return LogState(name, run, object_in=path if is_object else None)

        self._latest.submit(job)

    @Slot(object)
    def _on_read(self, state: LogState) -> None:
        if not state.run.reading.understood and state.object_in is not None:
            self.object_found.emit(state.object_in)
            return
        if not state.run.reading.understood:
            # What was open before stays.
            words = tr("No line of {name} is known. {known}")
            known = " ".join(happened(None, state.run.reading, self._unit))
            self.failed.emit(UsageError(words.format(name=state.name, known=known)))
            return
        rank = _telling(state.run)
        region = state.run.cause.region if state.run.cause else None
        self._publish(replace(state, unit=self._unit, rank=rank, region=region))
        self.opened.emit()

    def _publish(self, state: LogState | None) -> None:
        if state is not self.state:
            self.state = state
            self.changed.emit(state)


@contextmanager
def _opened(path: Path) -> Generator[BinaryIO]:
    """The file, if it is one: a pipe might never answer."""
    with files.opened(path) as (file, _):
        yield file


def _telling(run: Run) -> int:
    """The rank that failed, else the first one."""
    wanted = run.cause.rank if run.cause else ""
    return next((i for i, rows in enumerate(run.rows) if wanted and rows.name == wanted), 0)
