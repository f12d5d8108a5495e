"""Models read off the GUI thread, the newest request only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from engine.architecture.read import read
from engine.source.recall import origin_of
from gui.kit.latest import LatestOnly

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.architecture.model import Model
    from engine.cancel import CancelToken
    from engine.source.hub import HubClient
    from engine.source.origin import Origin
    from engine.source.raw import RawModel
    from gui.kit.tasks import TaskRunner


class ModelLoader(QObject):
    """Turns whatever fetches a ``RawModel`` into a ``Model``."""

    loaded = Signal(object)
    """A ``Model``."""
    failed = Signal(object)
    """The exception."""
    abandoned = Signal()
    """Nothing came of what was asked for last: it failed, or was given up."""
    busy_changed = Signal(bool)

    def __init__(
        self, runner: TaskRunner, parent: QObject | None = None, hub: HubClient | None = None
    ) -> None:
        """``hub``: the Hub whose addresses are understood."""
        super().__init__(parent)
        self._hub = hub
        self._asked: tuple[Callable[[CancelToken], RawModel], str | Path | Origin | None] | None
        self._asked = None
        self._latest = LatestOnly(runner, self)
        self._latest.succeeded.connect(self._on_succeeded)
        self._latest.failed.connect(self.failed)
        self._latest.failed.connect(self.abandoned)
        self._latest.busy_changed.connect(self.busy_changed)

    @property
    def is_busy(self) -> bool:
        """Whether a model is on its way."""
        return self._latest.is_busy

    def load(
        self, fetch: Callable[[CancelToken], RawModel], said: str | Path | Origin | None = None
    ) -> None:
        """Fetch and read a model; an earlier request is given up.

        Args:
            fetch: finds it; runs in a worker.
            said: what the person picked, typed or entered; None where only its name says it.
        """
        self._asked = (fetch, said)
        endpoint = self._hub.endpoint if self._hub is not None else ""

        def job(token: CancelToken) -> Model:
            raw = fetch(token)
            token.raise_if_cancelled()
            origin = origin_of(raw.id if said is None else said, raw, endpoint)
            return replace(read(raw), origin=origin)

        self._latest.submit(job)

    def again(self) -> None:
        """Ask once more for what was asked for last."""
        if self._asked is not None:
            self.load(*self._asked)

    def cancel(self) -> bool:
        """Give up what is on its way. Returns whether there was anything."""
        was_busy = self._latest.is_busy
        self._latest.cancel()
        if was_busy:
            self.abandoned.emit()
        return was_busy

    @Slot(object)
    def _on_succeeded(self, model: object) -> None:
        self.loaded.emit(model)
