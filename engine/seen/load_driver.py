"""A bounded load for a runtime of this computer, so that its peaks can be seen.

Speaks ``/v1/completions`` as OpenAI defined it, which vLLM, SGLang, llama-server, Ollama, LM
Studio, TGI, MLX and TensorRT-LLM all serve, and reads the answer as a stream: the first piece tells
when the prompt was through, and a request that is given up ends as a reader does who leaves.
"""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING, Any, Final, cast

from engine.cancel import CancelToken, JobCancelledError
from engine.errors import EndpointError, UsageError
from engine.telemetry import wire
from engine.telemetry.snapshot import Missing
from engine.text import printable
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.telemetry.address import Address

LIMITS: Final = {
    "prompt_tokens": (1, 1_048_576),
    "output_tokens": (1, 32_768),
    "requests": (1, 1_000),
    "concurrency": (1, 128),
    "give_up_every": (0, 1_000),
    "pause_s": (0, 60),
    "limit_s": (1, 3_600),
}
"""Least and most of each setting of a ``Load``."""
_MOST_FAILURES = 3
"""So many in a row end the load: what refuses three refuses the rest."""
_LONGEST_LINE = 2**20
_TICK_S = 0.05
_WORDS = tuple(
    re.findall(
        r"\w+",
        "the of and to in is that for it as was with be by on not he his but at are this have from "
        "or had an they which one you were all her she there would their we him been has when who "
        "will no more if out so up said what its about than into them can only other time new some "
        "could these two may first then do any like my now over such our man me even most made",
    )
)
"""Short and common, so that each is one token nearly everywhere."""
_NOT_COUNTED = Missing(tr_later("the runtime doesn’t say how many it counted"))
_NEVER = Missing(tr_later("no piece of the answer came"))


@dataclass(frozen=True, slots=True)
class Load:
    """What is sent.

    Raises:
        UsageError: a value is outside its ``LIMITS``; ``field`` names it.
    """

    prompt_tokens: int = 512
    """Wanted; what the runtime counted stands in each ``Request``."""
    output_tokens: int = 128
    requests: int = 8
    concurrency: int = 1
    """Requests at a time."""
    in_bursts: bool = False
    """Whether ``concurrency`` requests begin together and the next after all of them ended; else a
    new one begins as soon as one ends."""
    pause_s: float = 0.0
    """Between bursts."""
    give_up_every: int = 0
    """Each so-many-th request is given up after its first token; 0 for none."""
    limit_s: float = 120.0
    """After which everything ends."""

    def __post_init__(self) -> None:
        for name, (least, most) in LIMITS.items():
            if not least <= getattr(self, name) <= most:
                message = tr("{name} has to be from {least} to {most}.")
                raise UsageError(
                    message.format(name=name, least=grouped(least), most=grouped(most)), field=name
                )


class Outcome(StrEnum):
    """How a request ended."""

    DONE = "done"
    GIVEN_UP = "given up"
    """By us after its first token, as the load says."""
    STOPPED = "stopped"
    """With the whole load: its time was over, or its user ended it."""
    FAILED = "failed"


class Ended(StrEnum):
    """Why the whole load is over."""

    ALL_SENT = "all sent"
    TIME = "time"
    BY_USER = "by user"
    FAILURES = "failures"


@dataclass(frozen=True, slots=True)
class Request:
    """One request and what came of it."""

    number: int
    """Counted from 1."""
    began_s: float
    """Since the load's beginning."""
    took_s: float
    first_token_s: float | Missing
    """From its beginning to the first piece of the answer."""
    prompt_tokens: int | Missing
    output_tokens: int | Missing
    """As the runtime counted them; of a request that did not end, the pieces that came."""
    outcome: Outcome
    why: str = ""
    """Of a failure, in one sentence."""


@dataclass(frozen=True, slots=True)
class Driven:
    """A load that is over."""

    load: Load
    requests: tuple[Request, ...]
    """Those that began, by number."""
    took_s: float
    ended: Ended

    def count(self, outcome: Outcome) -> int:
        """How many requests ended like that."""
        return sum(request.outcome is outcome for request in self.requests)


class LoadDriver:
    """Sends one ``Load``. Nothing is sent before ``run``, and nothing after it returns."""

    def __init__(self, address: Address, model: str, load: Load, key: str = "") -> None:
        """Take what is to be sent.

        Args:
            address: a runtime of this computer.
            model: as the runtime calls it (``/v1/models``).
            load: how much.
            key: the runtime's API key; empty for none.

        Raises:
            UsageError: ``address`` is not on this computer.
        """
        if not address.is_loopback:
            message = tr("A load is sent to this computer alone, and {address} is elsewhere.")
            raise UsageError(message.format(address=address), field="address")
        self._address = address
        self._model = model
        self._load = load
        self._key = key
        self._stop = CancelToken()
        self._lock = threading.Lock()
        self._numbers: Iterator[int] = iter(range(1, load.requests + 1))
        self._done: list[Request] = []
        self._failures = 0
        self._words_per_token = 1.0
        self._began = self._until = 0.0

    def run(self, token: CancelToken, progress: Callable[[Request], None] | None = None) -> Driven:
        """Send the load and wait for its end, at most ``limit_s`` and a moment.

        Args:
            token: ends everything that goes on; what was measured until then is returned.
            progress: told each request as it ends, on a thread of the driver.
        """
        self._began = time.monotonic()
        self._until = self._began + self._load.limit_s
        while self._may_begin(token):
            threads = [
                threading.Thread(target=self._work, args=(progress,), daemon=True)
                for _ in range(self._load.concurrency)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(_TICK_S)
                    self._pass_on(token)
            if not self._load.in_bursts or len(self._done) >= self._load.requests:
                break
            self._rest(token)
        self._pass_on(token)
        took_s = time.monotonic() - self._began
        found = tuple(sorted(self._done, key=lambda request: request.number))
        return Driven(self._load, found, took_s, self._ended(token))

    def _ended(self, token: CancelToken) -> Ended:
        if token.cancelled:
            return Ended.BY_USER
        if self._failures >= _MOST_FAILURES:
            return Ended.FAILURES
        is_whole = len(self._done) >= self._load.requests
        is_cut = any(request.outcome is Outcome.STOPPED for request in self._done)
        return Ended.ALL_SENT if is_whole and not is_cut else Ended.TIME

    def _pass_on(self, token: CancelToken) -> None:
        if token.cancelled or time.monotonic() >= self._until:
            self._stop.cancel()

    def _may_begin(self, token: CancelToken) -> bool:
        self._pass_on(token)
        return not self._stop.cancelled and self._failures < _MOST_FAILURES

    def _rest(self, token: CancelToken) -> None:
        until = time.monotonic() + self._load.pause_s
        while time.monotonic() < until and self._may_begin(token):
            time.sleep(_TICK_S)

    def _work(self, progress: Callable[[Request], None] | None) -> None:
        """Send requests one after the other; one alone where they go in bursts."""
        while self._may_begin(self._stop):
            with self._lock:
                number = next(self._numbers, None)
            if number is None:
                return
            request = self._sent(number)
            with self._lock:
                self._done.append(request)
                failed = request.outcome is Outcome.FAILED
                self._failures = self._failures + 1 if failed else 0
            if progress is not None:
                progress(request)
            if self._load.in_bursts:
                return

    def _sent(self, number: int) -> Request:
        began = time.monotonic()
        heard = _Heard()
        why = ""
        try:
            outcome = self._ask(number, heard)
        except JobCancelledError:
            outcome = Outcome.STOPPED
        except EndpointError as error:
            is_over = time.monotonic() >= self._until
            outcome = Outcome.STOPPED if is_over else Outcome.FAILED
            why = "" if is_over else error.message
        ended = time.monotonic()
        if heard.prompt_tokens and heard.words:
            self._words_per_token = heard.words / heard.prompt_tokens
        return Request(
            number=number,
            began_s=began - self._began,
            took_s=ended - began,
            first_token_s=_NEVER if heard.first_at is None else heard.first_at - began,
            prompt_tokens=heard.prompt_tokens or _NOT_COUNTED,
            output_tokens=heard.output_tokens or heard.pieces or _NEVER,
            outcome=outcome,
            why=why,
        )

    def _ask(self, number: int, heard: _Heard) -> Outcome:
        every = self._load.give_up_every
        gives_up = bool(every) and number % every == 0
        heard.words = max(round(self._load.prompt_tokens * self._words_per_token), 1)
        body = json.dumps(self._question(number, heard.words)).encode()
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        asking = wire.Asking(self._stop, limit_s=self._load.limit_s)
        path = f"{self._address.folder}/v1/completions"
        with (
            wire.noted(self._address, "POST", path) as note,
            wire.connected(self._address, asking, self._until) as connection,
        ):
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            note.status = answer.status
            if answer.status != 200:
                raise EndpointError(_refusal(self._address, answer.status, answer.read(4096)))
            while line := answer.readline(_LONGEST_LINE):
                note.received_bytes += len(line)
                if heard.take(line) and gives_up:
                    return Outcome.GIVEN_UP
        if heard.first_at is None:
            message = tr("{address} ended its answer without a word.")
            raise EndpointError(message.format(address=self._address))
        return Outcome.DONE

    def _question(self, number: int, words: int) -> dict[str, Any]:
        """Every prompt begins otherwise, so that no prefix cache hides its cost."""
        chance = Random(number)  # noqa: S311 - no secret, and the same for each load
        return {
            "model": self._model,
            "prompt": " ".join(chance.choices(_WORDS, k=words)),
            "max_tokens": self._load.output_tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }


class _Heard:
    """What one streamed answer has told so far."""

    def __init__(self) -> None:
        self.words = 0
        """Of the prompt."""
        self.first_at: float | None = None
        self.pieces = 0
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None

    def take(self, line: bytes) -> bool:
        """Take one line. Returns whether it brought a piece of the answer."""
        if not line.startswith(b"data:"):
            return False
        try:
            said: object = json.loads(line[5:])
        except (ValueError, RecursionError):
            return False
        if not isinstance(said, dict):
            return False
        fields = cast("dict[str, object]", said)
        error = fields.get("error")
        if error:
            message = tr("The runtime ended its answer with an error: {error}.")
            raise EndpointError(message.format(error=printable(_words_of(error), 200)))
        usage = fields.get("usage")
        if isinstance(usage, dict):
            counts = cast("dict[str, object]", usage)
            self.prompt_tokens = _count(counts.get("prompt_tokens"))
            self.output_tokens = _count(counts.get("completion_tokens"))
        if not fields.get("choices"):
            return False
        self.pieces += 1
        if self.first_at is None:
            self.first_at = time.monotonic()
        return True


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _words_of(error: object) -> str:
    if isinstance(error, dict):
        said = cast("dict[str, object]", error)
        return str(said.get("message", said))
    return str(error)


def _refusal(address: Address, status: int, body: bytes) -> str:
    """Why there is no answer, in the runtime's own words where it gave any."""
    if status in {401, 403}:
        return tr("{address} wants a key.").format(address=address)
    try:
        said: object = json.loads(body)
    except (ValueError, RecursionError):
        said = body.decode("utf-8", errors="replace")
    if isinstance(said, dict):
        fields = cast("dict[str, object]", said)
        said = _words_of(fields.get("error") or fields.get("message") or fields)
    message = tr("{address} refused the request ({status}): {why}.")
    why = printable(str(said), 200).rstrip(".")
    return message.format(address=address, status=status, why=why)
