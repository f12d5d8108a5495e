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

    def begin(self, method: str, host: str, path: str, proxy: str) -> Asked:
        """Note a request that is about to be sent. The query is cut off ``path`` here."""
        plain = printable(path.partition("?")[0], _LONGEST)
        with self._lock:
            self._total += 1
            self._version += 1
            made = Asked(
                self._total, datetime.now(UTC), method, printable(host, _LONGEST), plain, proxy
            )
            self._asked.append(made)
            return made

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
            f"{one.at:%Y-%m-%d %H:%M:%S}", one.method, one.host, one.path,
            "" if one.status is None else str(one.status), str(one.received_bytes),
            "" if one.duration_s is None else f"{one.duration_s:.3f}", one.proxy, one.trouble,
        ))
        for one in asked
    ]  # fmt: skip
    return "\n".join([head, *lines]) + "\n"


ACTIVITY: Final = Activity()
"""This session's."""
