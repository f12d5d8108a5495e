"""A quick walk through every room, for a build that has just been made."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

if TYPE_CHECKING:
    from gui.app import App

_LIMIT_MS = 60_000
_LOOK_MS = 50
PASSED = "smoke: every room opened, a model sized, a report written"


class Smoke(QObject):
    """Waits for each thing to be there, then goes on; a watchdog ends what hangs."""

    def __init__(self, app: App) -> None:
        super().__init__()
        self._app = app
        self.status = 1
        self._folder = tempfile.TemporaryDirectory(prefix="plimsoll-smoke-")
        self._steps = (
            ("the worked example", self._has_answer, self._open_tabs),
            ("the tabs", self._tabs_are_seen, self._edit),
            ("the answer to an edit", self._is_settled, self._look_elsewhere),
            ("the plan for another device", self._is_settled, self._write),
            ("the first sample", self._has_sample, self._finish),
        )
        self._at = 0
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(self._on_look)
        self._watchdog = QTimer(self)
        self._watchdog.setSingleShot(True)
        self._watchdog.setInterval(_LIMIT_MS)
        self._watchdog.timeout.connect(self._on_overdue)
        app.faults.happened.connect(self._on_fault)

    def begin(self) -> None:
        """Start walking, once the event loop runs."""
        self._watchdog.start()
        self._timer.start()

    def _on_look(self) -> None:
        _name, is_ready, go_on = self._steps[self._at]
        if is_ready():
            self._at += 1
            go_on()

    def _has_answer(self) -> bool:
        return self._app.model.state.fit is not None and self._app.model.is_settled

    def _is_settled(self) -> bool:
        return self._app.model.is_settled

    def _tabs_are_seen(self) -> bool:
        page = self._app.view.tabs.stack.currentWidget()
        return page is not None and page is not self._app.view.regions and page.isVisible()

    def _has_sample(self) -> bool:
        return bool(self._app.watch.recorded)

    def _open_tabs(self) -> None:
        self._app.window.show_browser()
        for index in range(self._app.view.tabs.tabs.count()):
            self._app.view.tabs.open(index)

    def _edit(self) -> None:
        self._app.model.scale_context(1)

    def _look_elsewhere(self) -> None:
        self._app.model.choose_device("RTX 4090")

    def _write(self) -> None:
        path = Path(self._folder.name) / "smoke.pdf"
        self._app.filing.write_report(path)
        if not path.read_bytes().startswith(b"%PDF"):
            self._leave("the report is no PDF")

    def _finish(self) -> None:
        self.status = 0
        self._leave(PASSED)

    def _on_fault(self, error: object) -> None:
        self.status = 1
        self._leave(f"a fault: {error!r}")

    def _on_overdue(self) -> None:
        name = self._steps[min(self._at, len(self._steps) - 1)][0]
        self._leave(f"{name} did not appear within {_LIMIT_MS // 1000} s")

    def _leave(self, words: str) -> None:
        self._timer.stop()
        self._watchdog.stop()
        self._folder.cleanup()
        stream = sys.stdout if self.status == 0 else sys.stderr
        stream.write(f"{words}\n")
        stream.flush()
        self._app.window.close()
