"""The garbage collector, on the GUI thread alone and out of the window's way.

Python collects on whichever thread asks for memory. On a worker that could free the Python half
of a widget, and with it the widget, which Qt allows on the GUI thread only. So the automatic
rounds are off, and a timer makes them where they belong.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_LOOK_MS = 1000
_YOUNG = 20_000
"""New objects that are worth a round. An edit leaves a few hundred, nearly all freed at once."""
_FULL_EVERY = 20


class Collector(QObject):
    """Collects while it lives; automatic rounds return with ``close``."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rounds = 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._look)
        self._timer.start(_LOOK_MS)
        gc.disable()

    def settle(self) -> None:
        """Take what is there now out of every later round: it lives as long as the program.

        A full round over the classes of all libraries and the models of the catalogue takes
        tens of milliseconds, in which the window stands still.
        """
        gc.freeze()

    def close(self) -> None:
        """Leave collecting to Python again."""
        self._timer.stop()
        gc.enable()

    def _look(self) -> None:
        if gc.get_count()[0] < _YOUNG:
            return
        self._rounds += 1
        gc.collect(1 if self._rounds % _FULL_EVERY else 2)
