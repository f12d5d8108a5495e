"""A log read once from its beginning to its end, whatever it holds and however long it is."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from engine.logs.blame import Blame
from engine.logs.buffers import Buffers, device_of, is_host
from engine.logs.excerpt import Excerpt, Kept
from engine.logs.figures import value_of
from engine.logs.lines import LONGEST, blocks, shown
from engine.logs.patterns import Pattern, patterns
from engine.logs.ranks import index_of, rank_of
from engine.logs.reading import Fact, LogReading, Phase, RankReading
from engine.logs.regions import REGION_OF, region_of_buffer
from engine.logs.settings import stated
from engine.units import MIB

if TYPE_CHECKING:
    from typing import BinaryIO

    from engine.budget.model import Region
    from engine.cancel import CancelToken
    from engine.logs.reading import Value

_MOST_RANKS = 1024
_RELEASE = re.compile(r"\+|rc|\.dev")
"""What ends the number of a release: nightly builds are taken for the release they are before."""
_REGIONS = ("weights", "kv_pool", "activations", "graphs")
"""Facts that show that a run got as far as taking memory."""
_MOST_DUMPS = 64
"""Lines of settings that are read in one run."""
_STARTS_OTHERS = ("ollama", "lmstudio", "tgi")
"""Programs whose logs hold the lines of the runtime they start."""
_NOT_SETTINGS = frozenset({"model", "version", "build", "file"})


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
        self._votes: Counter[str] = Counter()
        self._runs = 0
        self._begin()

    def _begin(self) -> None:
        """Forget an earlier run; who printed it is remembered."""
        self._runs += 1
        self._ranks: dict[str, dict[str, Fact]] = {}
        self._whole: dict[str, Fact] = {}
        self._settings: dict[str, Value] = {}
        self._since, self._until = "", ""
        self._phase = Phase.START
        self._buffers = Buffers()
        self._blame = Blame()
        self._dumps = 0

    def take(self, block: str) -> None:
        """Read further lines."""
        likely = [pattern for pattern in patterns() if pattern.needle in block]
        if not likely and self._excerpt.is_full:
            # Most of a server's log: only counted, and its end kept for what may follow.
            self._number += block.count("\n") + 1
            self._excerpt.pass_over(self._number, block)
            return
        for line in block.split("\n"):
            self._number += 1
            hits = [pattern for pattern in likely if pattern.may_be_in(line)]
            self._line(line[:LONGEST], hits)

    def _line(self, line: str, hits: list[Pattern]) -> None:
        region: Region | None = None
        is_understood = fails = False
        rank = rank_of(line) if hits else ""
        for pattern in hits:
            found = list(pattern.matches(line))
            if pattern.regex is not None and not found and not pattern.bare:
                continue
            is_understood = True
            if pattern.starts and any(name in self._known() for name in _REGIONS):
                self._begin()
            fails = bool(self._take(pattern, line, rank, found)) or fails
            region = region or pattern.region or self._region(pattern, found)
        self._understood += is_understood
        self._excerpt.add(Kept(self._number, shown(line), region, is_understood, fails))

    def _known(self) -> set[str]:
        return {name for facts in self._ranks.values() for name in facts} | set(self._whole)

    @staticmethod
    def _region(pattern: Pattern, found: list[re.Match[str]]) -> Region | None:
        if pattern.buffers and found:
            return region_of_buffer(found[0]["kind"])
        names = (name for name, _ in pattern.facts.values())
        return next((REGION_OF[name] for name in names if name in REGION_OF), None)

    def _take(self, pattern: Pattern, line: str, rank: str, found: list[re.Match[str]]) -> bool:
        """Note what ``pattern`` says of ``line``; whether that is a failure."""
        if pattern.runtime:
            self._votes[pattern.runtime] += 1
        self._since = max(self._since, pattern.since, key=_as_numbers)
        self._until = self._until or pattern.until
        if pattern.arguments and self._dumps < _MOST_DUMPS:
            self._dumps += 1
            self._settings |= stated(pattern.runtime, line[line.find(pattern.needle) :])
        facts: dict[str, Fact] = {}
        for match in found:
            self._gather(pattern, match, facts)
            rank = match[pattern.by] if pattern.by else rank
        for name, fact in facts.items():
            self._store(pattern, rank, name, fact)
        if pattern.id == "llama.loaded" and "file" in facts:
            self._buffers.read_file(str(facts["file"].value))
        if pattern.frame and pattern.phase is not None:
            self._blame.frame(pattern.phase, self._number)
        elif pattern.phase is not None:
            self._phase = pattern.phase
        return self._blame.take(pattern, rank, self._number, facts, self._phase)

    def _gather(self, pattern: Pattern, match: re.Match[str], facts: dict[str, Fact]) -> None:
        if pattern.buffers:
            self._take_buffer(match)
        if pattern.breakdown:
            self._take_breakdown(match)
        for group, (name, unit) in pattern.facts.items():
            text = match[group]
            read = value_of(text, unit) if text is not None else None
            if read is None:
                continue
            value, half = read
            known = facts.get(name)
            if known is not None and isinstance(value, int):
                value, half = value + known.size_bytes, half + known.half_bytes
            facts[name] = Fact(name, value, self._number, half)

    def _store(self, pattern: Pattern, rank: str, name: str, fact: Fact) -> None:
        if pattern.whole or isinstance(fact.value, str):
            self._whole[name] = fact
            return
        if rank not in self._ranks and len(self._ranks) >= _MOST_RANKS:
            return
        facts = self._ranks.setdefault(rank, {})
        known = facts.get(name)
        if known is not None and name in pattern.adds:
            size = known.size_bytes + fact.size_bytes
            fact = Fact(name, size, fact.line, known.half_bytes + fact.half_bytes)
        facts[name] = fact

    def _take_buffer(self, match: re.Match[str]) -> None:
        read = value_of(match["mib"], "MiB")
        if read is not None:
            fact = Fact("", read[0], self._number, read[1])
            self._buffers.take(match["comp"], match["dev"], match["kind"], fact)

    def _take_breakdown(self, match: re.Match[str]) -> None:
        """A row of the table in whole MiB: what the buffer lines say to two digits goes before."""
        names = {"total": "total", "free": "free_at_end", "model": "weights", "ctx": "kv_pool"}
        names |= {"comp": "compute"}
        if int(match["un"]) < 0:
            # A projection: free is from before anything was taken.
            names["free"] = "free_at_start"
        else:
            names["un"] = "unaccounted"
        rank = device_of(match["dev"])
        facts = self._ranks.setdefault(rank, {})
        for group, name in names.items():
            facts[name] = Fact(name, int(match[group]) * MIB, self._number, MIB // 2)

    def reading(self) -> LogReading:
        """All of it."""
        for device, name, fact in self._buffers.totals():
            if len(self._ranks) < _MOST_RANKS:
                self._ranks.setdefault(device, {})[name] = fact
        runtime = self._runtime()
        settings = dict(self._settings)
        for name, fact in self._whole.items():
            if name in _NOT_SETTINGS or name.startswith("n_") or name == "max_model_len":
                settings.setdefault(name, fact.value)
        for name in ("gpu_memory_utilization", "max_model_len"):
            fact = next((f[name] for f in self._ranks.values() if name in f), None)
            if fact is not None:
                settings.setdefault(name, fact.value)
        size = settings.get("tensor_parallel_size", 1)
        tensor = size if isinstance(size, int) else 1
        ranks = tuple(
            RankReading(name, index_of(name, tensor, place), facts=facts)
            for place, (name, facts) in enumerate(
                # The computer's own memory is no rank: it comes last.
                sorted(self._ranks.items(), key=lambda item: is_host(item[0]))
            )
        )
        version = str(settings.pop("version", ""))
        return LogReading(
            runtime=runtime,
            version=_version(runtime, version, str(settings.pop("build", ""))),
            since="" if version else self._since,
            until="" if version else self._until,
            line_count=self._number,
            understood=self._understood,
            lines=self._excerpt.lines(),
            ranks=ranks,
            whole=self._whole,
            settings=settings,
            phase=self._phase,
            failure=self._blame.failure(),
            runs=self._runs,
        )

    def _runtime(self) -> str:
        """Who printed most of what was understood; a program that starts another goes before."""
        for name in _STARTS_OTHERS:
            if name in self._votes:
                return name
        return self._votes.most_common(1)[0][0] if self._votes else ""


def _as_numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".")) if release else ()


def _version(runtime: str, version: str, build: str) -> str:
    if runtime == "llama.cpp" and build:
        return f"b{build}"
    return _RELEASE.split(version, maxsplit=1)[0].strip(".")
