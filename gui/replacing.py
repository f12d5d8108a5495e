"""Beside what runs, or instead of it: the plan that takes a program's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from engine.errors import DeviceError
from engine.words import tr
from gui.kit.format import size
from gui.kit.notices import Notice

if TYPE_CHECKING:
    from gui.app import App
    from gui.live.present import Row


class Replacing(QObject):
    """Counts the memory of chosen programs as free, and says so as long as it does."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._rows: dict[int, Row] = {}
        self.notice = Notice("instead", "monitor-check", "accent")
        self.notice.add_button(tr("Beside it again")).clicked.connect(self.end)
        self.notice.closed.connect(self.end)
        app.view.add_notice(self.notice)
        app.themes.changed.connect(self.notice.set_theme)
        self.notice.set_theme(app.themes.current)
        app.holds.instead_wanted.connect(self._on_wanted)

    @Slot(object)
    def _on_wanted(self, row: Row) -> None:
        wanted = {**self._rows, row.pid: row}
        try:
            here = self._app.watch.machine(frozenset(wanted))
        except DeviceError as error:
            self._app.trouble.report(error)
            return
        self._rows = wanted
        self._app.model.choose_device(None)
        self._app.model.set_here(here)
        held = sum(r.size_bytes or 0 for r in wanted.values())
        names = ", ".join(f"{r.label} ({r.pid})" for r in wanted.values())
        unit = self._app.model.state.unit
        self.notice.tell(
            tr("Planned instead of {names}").format(names=names),
            tr("Its {size} count as free. Nothing is stopped: that is yours to do.").format(
                size=size(held, unit)
            ),
        )

    @Slot()
    def end(self) -> None:
        """Plan beside everything that runs again."""
        if self._rows:
            self._rows = {}
            self.notice.dismiss()
            self._app.model.set_here(self._app.watch.machine())
