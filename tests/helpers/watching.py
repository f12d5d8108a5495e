"""A thread that samples this computer's memory and asks a llama-server what it does."""

from __future__ import annotations

import re
import threading
import time
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING

from engine.overlay.overlay import Follower, Overlay
from engine.overlay.state import Stated
from engine.telemetry.adapters.host import HostAdapter
from engine.telemetry.snapshot import TelemetrySnapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from engine.budget.model import Budget

_GAUGE = re.compile(r"^llamacpp:(\w+) ([0-9.e+]+)$", re.MULTILINE)
_PATIENCE_S = 120


class Watching:
    """Follows ``budget`` on this computer while the block lasts."""

    def __init__(self, budget: Budget, every_s: float = 0.1) -> None:
        self.port = 0
        """Of the server, once it is known; before, nothing is asked."""
        self._budget = budget
        self._every_s = every_s
        self._follower = Follower()
        self._follower.follow(budget)
        self._ended = threading.Event()
        self._new = threading.Condition()
        self._overlay: Overlay | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def until(self, holds: Callable[[Overlay], bool]) -> Overlay:
        """Wait for a sample after which ``holds``."""
        with self._new:
            found = self._new.wait_for(
                lambda: self._overlay is not None and holds(self._overlay), _PATIENCE_S
            )
            assert found, self._overlay
            assert self._overlay is not None
            return self._overlay

    def _watch(self) -> None:
        adapter = HostAdapter()
        state: Stated | None = None
        while not self._ended.wait(self._every_s):
            devices = adapter.sample()
            state = _asked(self.port) if self.port else None
            now = TelemetrySnapshot(time.monotonic(), time.time(), devices)
            with self._new:
                self._follower.add(now, state)
                self._overlay = self._follower.overlay(self._budget)
                self._new.notify_all()


def _asked(port: int) -> Stated | None:
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    if answer.status != 200:
        return Stated(is_loaded=False)
    gauges = {name: round(float(value)) for name, value in _GAUGE.findall(text)}
    return Stated(
        is_loaded=True,
        requests_running=gauges.get("requests_processing"),
        prompt_tokens=gauges.get("prompt_tokens_total"),
        generated_tokens=gauges.get("tokens_predicted_total"),
    )
