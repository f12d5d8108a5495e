"""Beside what runs, or instead of it: the plan that takes a program's place."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.errors import DeviceError
from engine.words import tr
from gui.kit.format import size
from gui.kit.notices import Notice

if TYPE_CHECKING:
    from engine.devices.device import Machine
    from engine.units import UnitSystem
    from gui.app import App
    from gui.live.present import Row
    from gui.sizing.view_model import State
    from gui.watch import Watch

_log = logging.getLogger("plimsoll.gui")


class Replacing(QObject):
    """Counts the memory of chosen programs as free, and says so as long as it does."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._rows: dict[int, Row] = {}
        self._watched: object = None
        """What was watched when they were chosen: a recording, or a computer."""
        self._unit: UnitSystem | None = None
        self.notice = Notice("instead", "monitor-check", "accent")
        self.notice.add_button(tr("Beside it again")).clicked.connect(self.end)
        self.notice.closed.connect(self.end)
        app.view.add_notice(self.notice)
        app.themes.changed.connect(self.notice.set_theme)
        self.notice.set_theme(app.themes.current)
        app.holds.instead_wanted.connect(self._on_wanted)
        app.model.changed.connect(self._on_state_changed)

    def machine(self) -> Machine:
        """The watched computer, with the memory of the chosen programs free while they run."""
        watch = self._app.watch
        if self._rows and _source(watch) == self._watched:
            try:
                return watch.machine(frozenset(self._rows))
            except DeviceError:
                _log.info("a program whose place the plan takes has ended")
        self._forget()
        return watch.machine()

    @Slot()
    def end(self) -> None:
        """Plan beside everything that runs again."""
        if self._rows:
            self._forget()
            self._app.model.set_here(self._app.watch.machine())

    @Slot(object)
    def _on_wanted(self, row: Row) -> None:
        wanted = {**self._rows, row.pid: row}
        try:
            here = self._app.watch.machine(frozenset(wanted))
        except DeviceError as error:
            self._app.trouble.report(error)
            return
        self._rows, self._watched = wanted, _source(self._app.watch)
        self._app.model.choose_device(None)
        self._app.model.set_here(here)
        self._tell()

    def _tell(self) -> None:
        self._unit = self._app.model.state.unit
        held = sum(r.size_bytes or 0 for r in self._rows.values())
        names = ", ".join(f"{r.label} ({r.pid})" for r in self._rows.values())
        self.notice.tell(
            tr("Planned instead of {names}").format(names=names),
            tr("Its {size} count as free. Nothing is stopped: that is yours to do.").format(
                size=size(held, self._unit)
            ),
        )

    @Slot(object)
    def _on_state_changed(self, state: State) -> None:
        if self._rows and state.unit is not self._unit:
            self._tell()

    def _forget(self) -> None:
        if self._rows:
            self._rows = {}
            self.notice.dismiss()


def _source(watch: Watch) -> object:
    return watch.replay or watch.elsewhere
