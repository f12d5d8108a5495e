"""What a job grants its requests: how long, how far, through what, and in whose name."""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import HubOfflineError
from engine.source.reach import Reach
from engine.source.way_errors import SlowError
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from collections.abc import Generator

    from engine.cancel import CancelToken
    from engine.source.trail import Step, Trail

_WHOLE_REQUEST = 6
"""A request may take so many time limits altogether, however fast it goes on."""
_LEAST_BYTES = 1024
"""What has to come within each time limit: a server that drips is as good as silent."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a job grants its requests."""

    token: CancelToken
    timeout_s: float
    offline: bool
    endpoint: str
    """Where a token may be sent to: scheme, host and port."""
    bearer: str | None = field(default=None, repr=False)
    """The token. It is put in here and nowhere else, so that it goes to ``endpoint`` alone."""
    reach: Reach = field(default_factory=Reach)
    trail: Trail | None = None
    """Told how far a request came."""

    def tell(self, step: Step, words: str, *, is_needed: bool = True) -> None:
        """``step`` went well."""
        if self.trail is not None:
            self.trail.tell(step, words, is_needed=is_needed)


_POLICY: ContextVar[Policy | None] = ContextVar("hub_policy", default=None)


class Clock:
    """When the request in hand has to have brought something, and when to be done."""

    def __init__(self, timeout_s: float) -> None:
        self._limit_s = timeout_s
        now = time.monotonic()
        self._done_at = now + _WHOLE_REQUEST * timeout_s
        self._next_at = now + timeout_s
        self._brought: int | None = None

    def took(self, size_bytes: int) -> None:
        """Bytes came. The first, and each ``_LEAST_BYTES`` after it, begin a new time limit."""
        brought = self._brought
        self._brought = 0 if brought is None else brought + size_bytes
        if brought is None or self._brought >= _LEAST_BYTES:
            self._brought = 0
            self._next_at = time.monotonic() + self._limit_s

    def left_s(self) -> float:
        """Seconds until a limit is reached.

        Raises:
            SlowError: one is reached.
        """
        now = time.monotonic()
        left = min(self._next_at, self._done_at) - now
        if left > 0:
            return left
        if now >= self._done_at:
            why = tr("it was not done after {whole_request} s").format(
                whole_request=figures(format(_WHOLE_REQUEST * self._limit_s, "g"))
            )
        elif self._brought is None:
            why = tr("nothing came for {limit_s} s").format(
                limit_s=figures(format(self._limit_s, "g"))
            )
        else:
            why = tr("fewer than {least_bytes} bytes came in {limit_s} s").format(
                least_bytes=grouped(_LEAST_BYTES), limit_s=figures(format(self._limit_s, "g"))
            )
        raise SlowError(why)


CLOCK: ContextVar[Clock] = ContextVar("hub_clock")


@contextmanager
def policy_in_force(policy: Policy) -> Generator[None]:
    """Apply ``policy`` to every request of this thread in the block."""
    kept = _POLICY.set(policy)
    try:
        yield
    finally:
        _POLICY.reset(kept)


def policy_here() -> Policy:
    """The policy in force on this thread.

    Raises:
        HubOfflineError: there is none.
    """
    policy = _POLICY.get()
    if policy is None:
        raise HubOfflineError(tr("Nobody asked for the network, so nothing was sent."))
    return policy
