"""One look at one address: what is asked, and what of the answers can be read."""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from engine.errors import EndpointError, TelemetryError
from engine.telemetry import prometheus_text, wire
from engine.telemetry.snapshot import Missing
from engine.words import tr

if TYPE_CHECKING:
    from engine.telemetry.address import Address
    from engine.telemetry.prometheus_text import Page

_LOADING = 503
_REFUSALS = frozenset({401, 403})
_PATIENCE = 4
"""Questions' worth of time that one address may take at a look, however many are answered."""


class KeyWantedError(EndpointError):
    """The runtime wants an API key, or another one."""


class Asker:
    """Asks each path once; an endpoint that is not there is as normal as one that is.

    After a question that was not answered in time nothing more is asked, nor after several that
    were answered late: a busy runtime is left alone until the next look, and holds up no other.
    """

    def __init__(self, address: Address, asking: wire.Asking, key: str = "") -> None:
        self.address = address
        self._asking = asking
        self._key = key
        self._answers: dict[str, wire.Answer] = {}
        self._trouble: EndpointError | None = None
        self._until_s = monotonic() + _PATIENCE * asking.limit_s

    @property
    def has_answered(self) -> bool:
        """Whether anything came back at all."""
        return bool(self._answers)

    def is_loading(self) -> bool:
        """Whether ``/health`` answers that a model is being loaded, as llama-server words it."""
        if not self._reaches("/health"):
            return False
        answer = self._answer("/health")
        return answer.status == _LOADING and b"oading model" in answer.body

    def fields(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The JSON object that ``path`` answers; empty where it answers none."""
        found = self.json(path, body)
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def json(self, path: str, body: dict[str, Any] | None = None) -> object:
        """The JSON that ``path`` answers; None where it answers none.

        Raises:
            KeyWantedError: the runtime wants a key.
            JobCancelledError: the token was cancelled.
        """
        if not self._reaches(path, body):
            return None
        answer = self._answer(path, body)
        if answer.status != 200:
            return None
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            return None

    def metrics(self, path: str = "/metrics") -> Page | Missing:
        """The metrics page at ``path``, or why there is none.

        Raises:
            KeyWantedError: the runtime wants a key.
            JobCancelledError: the token was cancelled.
        """
        if not self._reaches(path):
            return Missing(tr("the runtime has not answered in time"))
        answer = self._answer(path)
        if answer.status != 200:
            words = tr("the runtime has no {path} (it answers {status})")
            return Missing(words.format(path=path, status=answer.status))
        try:
            page = prometheus_text.parsed(answer.text)
        except TelemetryError as error:
            return Missing(error.message.rstrip("."))
        if not page.samples:
            return Missing(tr("its metrics page is empty"))
        return page

    def trouble(self) -> str:
        """Why nothing more is asked, in a sentence; empty where all was answered."""
        return self._trouble.message if self._trouble else ""

    def _reaches(self, path: str, body: dict[str, Any] | None = None) -> bool:
        if _name(path, body) in self._answers:
            return True
        if self._trouble is None and monotonic() > self._until_s:
            words = tr("{address} answers too slowly to be asked more than this.")
            self._trouble = EndpointError(words.format(address=self.address))
        if self._trouble is not None:
            return False
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = wire.ask(self.address, path, self._asking, key=self._key, body=data)
        except EndpointError as error:
            self._trouble = error
            return False
        if answer.status in _REFUSALS:
            words = tr("{address} wants a key.")
            if self._key:
                words = tr("{address} refuses the key it was given.")
            raise KeyWantedError(words.format(address=self.address), field="key")
        self._answers[_name(path, body)] = answer
        return True

    def _answer(self, path: str, body: dict[str, Any] | None = None) -> wire.Answer:
        return self._answers[_name(path, body)]


def _name(path: str, body: dict[str, Any] | None) -> str:
    return path if body is None else f"{path} {json.dumps(body)}"
