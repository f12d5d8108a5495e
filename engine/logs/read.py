"""A log read once from its beginning to its end, whatever it holds and however long it is."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from engine.logs.broken import Broken, hits_in
from engine.logs.excerpt import Excerpt, Kept
from engine.logs.lines import LONGEST, blocks, shown, with_points
from engine.logs.metrics import known
from engine.logs.needles import Needles
from engine.logs.ranks import rank_of
from engine.logs.reading import LogReading
from engine.logs.regions import REGION_OF, region_of_buffer
from engine.logs.start import Start

if TYPE_CHECKING:
    from typing import BinaryIO

    from engine.budget.model import Region
    from engine.cancel import CancelToken
    from engine.logs.patterns import Pattern

_RELEASE = re.compile(r"\+|rc|\.dev")
"""What ends the number of a release: nightly builds are taken for the release they are before."""
_ECHOES = (
    "Received request ",
    "Generated response ",
    "ReqInput(",
    "log_server_r: ",
    "Parsing chat message: ",
    "Parsing input with format ",
    "Parsed message: ",
    "data stream, to_send: ",
    "http: streamed chunk: ",
    'prompt="',
)
"""Lines that repeat what somebody asked a model or what it said, whatever that is about."""
_STARTS_OTHERS = ("ollama", "lmstudio", "tgi", "koboldcpp", "ik_llama.cpp")
"""Programs whose logs hold the lines of the runtime they start, or of the one they come from."""
_WITHIN_OTHERS = "transformers"


def read(stream: BinaryIO, token: CancelToken) -> LogReading:
    """What the log in ``stream`` states of its last run.

    No line is an error: what is not understood is passed over.

    Raises:
        JobCancelledError: asked to stop.
        OSError: the log cannot be read.
    """
    scan = _Scan()
    for block in blocks(stream, token):
        scan.take(block)
    return scan.reading()


class _Scan:
    """Everything seen so far."""

    def __init__(self) -> None:
        self._number = 0
        self._understood = 0
        self._excerpt = Excerpt()
        self._needles = Needles()
        self._broken = Broken()
        self._votes: Counter[str] = Counter()
        self._starts = 1
        self._start, self._before = Start(), Start()

    def take(self, block: str) -> None:
        """Read further lines."""
        for line, hits in self._needles.hits(block):
            self._number += 1
            if whole := self._broken.add(line):
                self._note(whole, hits_in(whole))
            if hits or not self._excerpt.is_full:
                self._line(line[:LONGEST], hits)
            else:
                # Most of a server's log: only counted, and its end kept for what may follow.
                self._excerpt.pass_over(self._number, line)

    def _line(self, line: str, hits: list[Pattern]) -> None:
        region, is_understood, fails = self._note(line, hits)
        self._broken.begin(line, hits)
        self._understood += is_understood
        self._excerpt.add(Kept(self._number, shown(line), region, is_understood, fails))

    def _note(self, line: str, hits: list[Pattern]) -> tuple[Region | None, bool, bool]:
        """What ``line`` says: its region, whether it is understood, and whether it fails."""
        region: Region | None = None
        is_understood = fails = False
        if not hits or any(mark in line for mark in _ECHOES):
            return region, is_understood, fails
        line = with_points(line)
        rank = rank_of(line)
        for pattern in hits:
            found = list(pattern.matches(line))
            if pattern.metrics:
                found = [match for match in found if known(match["name"]) is not None]
            if pattern.regex is not None and not found and not pattern.bare:
                continue
            is_understood = True
            if pattern.starts and self._start.is_over:
                # Who printed it is remembered, and the run before, in case this one never was.
                self._starts += 1
                self._before, self._start = self._start, Start.following(self._start)
            if pattern.runtime:
                self._votes[pattern.runtime] += 1
            fails = self._start.take(pattern, line, self._number, rank, found) or fails
            region = region or pattern.region or self._region(pattern, found)
        return region, is_understood, fails

    @staticmethod
    def _region(pattern: Pattern, found: list[re.Match[str]]) -> Region | None:
        if pattern.buffers and found:
            return region_of_buffer(found[0]["kind"])
        names = [name for name, _ in pattern.facts.values()]
        if pattern.metrics:
            metrics = (known(match["name"]) for match in found)
            names = [name for metric in metrics if metric is not None for name in metric.names]
        return next((REGION_OF[name] for name in names if name in REGION_OF), None)

    def reading(self) -> LogReading:
        """All of it."""
        start = self._start
        if not start.takes_memory and start.failure is None and self._before.failure is not None:
            # Started again and cut off there: what is to be explained is why.
            start = self._before
        runtime = self._runtime()
        settings = start.settings()
        version = str(settings.pop("version", ""))
        since, until = start.window(runtime)
        return LogReading(
            runtime=runtime,
            version=_version(runtime, version, str(settings.pop("build", ""))),
            since="" if version else since,
            until="" if version else until,
            line_count=self._number,
            understood=self._understood,
            lines=self._excerpt.lines(),
            ranks=start.ranks(),
            whole=start.whole,
            settings=settings,
            phase=start.phase,
            failure=start.failure,
            runs=self._starts,
        )

    def _runtime(self) -> str:
        """Who printed most of what was understood; a program that starts another goes before."""
        for name in _STARTS_OTHERS:
            if name in self._votes:
                return name
        # Servers run Transformers too, and a traceback names it more often than them.
        named = [name for name, _ in self._votes.most_common() if name != _WITHIN_OTHERS]
        return named[0] if named else (_WITHIN_OTHERS if self._votes else "")


def _version(runtime: str, version: str, build: str) -> str:
    if runtime == "llama.cpp" and build:
        return f"b{build}"
    return _RELEASE.split(version, maxsplit=1)[0].strip(".")
