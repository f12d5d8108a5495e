"""Every request of this session: what was asked of whom, and what came back.

Nothing else of this program opens a connection, so this is all that was sent. Neither the query
of an address nor any header is kept, since there a secret may stand.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from engine.text import printable
from engine.words import tr, tr_later

KEPT: Final = 1000
_LONGEST = 300

PROMISE: Final = tr_later(
    "Plimsoll sent nothing else. There is no telemetry, and nothing is sent before you ask."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    number: int
    """Counted from 1 over the whole session."""
    at: datetime
    method: str
    host: str
    """With its port, where that isn't the usual one."""
    path: str
    proxy: str = ""
    """Through which it went; empty for none."""
    status: int | None = None
    received_bytes: int = 0
    """Of the answer's body."""
    duration_s: float | None = None
    """Until the answer's end; None while it goes on."""
    trouble: str = ""
    """Why there was no answer, or not a whole one."""
    times: int = 1
    """How often just this was asked, where one entry stands for all; the rest tells of the last."""


class Activity:
    """The last ``KEPT`` requests, oldest first. Shared by all threads."""

    def __init__(self, kept: int = KEPT) -> None:
        self._lock = threading.Lock()
        self._asked: deque[Asked] = deque(maxlen=kept)
        self._total = 0
        self._version = 0

    @property
    def version(self) -> int:
        """Another number after every change."""
        return self._version

    @property
    def total(self) -> int:
        """Requests of this session, those no longer kept included."""
        return self._total

    @property
    def all(self) -> tuple[Asked, ...]:
        """What is kept."""
        with self._lock:
            return tuple(self._asked)

    def begin(
        self, method: str, host: str, path: str, proxy: str, *, repeats: bool = False
    ) -> Asked:
        """Note a request that is about to be sent. The query is cut off ``path`` here.

        Args:
            method: of the request.
            host: with its port, where that isn't the usual one.
            path: what is asked there.
            proxy: through which it goes; empty for none.
            repeats: whether it is one of many: then a single entry, the latest, stands for all.
        """
        plain = printable(path.partition("?")[0], _LONGEST)
        host = printable(host, _LONGEST)
        with self._lock:
            self._total += 1
            self._version += 1
            times = 1 + (self._taken(method, host, plain) if repeats else 0)
            made = Asked(self._total, datetime.now(UTC), method, host, plain, proxy, times=times)
            self._asked.append(made)
            return made

    def _taken(self, method: str, host: str, path: str) -> int:
        """How often this was asked, its entry taken out of the list."""
        for asked in self._asked:
            is_over = asked.duration_s is not None
            if is_over and (asked.method, asked.host, asked.path) == (method, host, path):
                self._asked.remove(asked)
                return asked.times
        return 0

    def end(self, asked: Asked) -> None:
        """Note what became of it; the newer word on the same request replaces the older."""
        with self._lock:
            for place in range(len(self._asked) - 1, -1, -1):
                if self._asked[place].number == asked.number:
                    self._asked[place] = asked
                    self._version += 1
                    return


def text(asked: tuple[Asked, ...]) -> str:
    """The list as lines with tabs between the columns, to be pasted; times are UTC."""
    head = tr("time (UTC)\tmethod\thost\tpath\tstatus\tbytes\tseconds\tproxy\ttrouble")
    lines = [
        "\t".join((
            f"{one.at:%Y-%m-%d %H:%M:%S}", one.method, one.host, one.path + _often(one),
            "" if one.status is None else str(one.status), str(one.received_bytes),
            "" if one.duration_s is None else f"{one.duration_s:.3f}", one.proxy, one.trouble,
        ))
        for one in asked
    ]  # fmt: skip
    return "\n".join([head, *lines]) + "\n"


def _often(asked: Asked) -> str:
    return f" × {asked.times}" if asked.times > 1 else ""


ACTIVITY: Final = Activity()
"""This session's."""
