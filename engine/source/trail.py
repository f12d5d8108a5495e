"""How far a request came, step by step, for whoever wants to know why there is no answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    """What has to go well, in this order."""

    NAME = "name"
    """The server's name is found; the proxy's, where there is one."""
    PROXY = "proxy"
    """The proxy lets the request through."""
    CONNECT = "connect"
    TLS = "tls"
    ANSWER = "answer"
    """Anything that is HTTP."""
    HUB = "hub"
    """The answer is one that the Hub would give."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A step that went well, and what is to be said of it."""

    step: Step
    words: str
    is_needed: bool = True
    """False where there was nothing to do, as without a proxy."""


class Trail:
    """Written by the thread that asks, read by any other."""

    def __init__(self) -> None:
        self._passed: dict[Step, Passed] = {}

    def tell(self, step: Step, words: str, *, is_needed: bool = True) -> None:
        """``step`` went well. Only the first word on it counts: a redirect walks the way again."""
        self._passed.setdefault(step, Passed(step, words, is_needed))

    @property
    def passed(self) -> tuple[Passed, ...]:
        """What went well so far, in the order of the steps."""
        known = dict(self._passed)
        return tuple(known[step] for step in Step if step in known)

    @property
    def next_step(self) -> Step | None:
        """The first step that hasn't gone well yet."""
        return next((step for step in Step if step not in self._passed), None)
