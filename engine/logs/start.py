"""What the lines of one start of a runtime state, taken one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.logs.blame import Blame
from engine.logs.buffers import Buffers, device_of, is_host
from engine.logs.figures import value_of
from engine.logs.metrics import Pages, known
from engine.logs.ranks import index_of
from engine.logs.reading import Fact, Phase, RankReading
from engine.logs.settings import stated
from engine.units import MIB

if TYPE_CHECKING:
    import re

    from engine.logs.patterns import Pattern
    from engine.logs.reading import Failure, Value

_MOST_RANKS = 1024
_MOST_DUMPS = 64
"""Lines of settings that are read in one run."""
_REGIONS = frozenset({"weights", "kv_pool", "activations", "graphs"})
"""Facts that show that a run got as far as taking memory."""
_MAY_BE_LESS_THAN_NOTHING = frozenset({"kv_pool"})
_STAYS = ("version", "device_name", "host_total")
"""Facts of the program and its computer, not of one start."""
_NOT_SETTINGS = frozenset({"model", "version", "build", "file"})


class Start:
    """One start, and the run that follows it."""

    def __init__(self) -> None:
        self.whole: dict[str, Fact] = {}
        self.phase = Phase.START
        self._ranks: dict[str, dict[str, Fact]] = {}
        self._settings: dict[str, Value] = {}
        self._buffers = Buffers()
        self._blame = Blame()
        self._pages = Pages()
        self._dumps = 0
        self._windows: dict[str, tuple[str, str]] = {}

    @classmethod
    def following(cls, earlier: Start) -> Start:
        """A further start of the same program: its release and its devices are as they were."""
        start = cls()
        start.whole = {name: earlier.whole[name] for name in _STAYS if name in earlier.whole}
        for rank, facts in earlier._ranks.items():
            if "total" in facts and not is_host(rank):
                start._ranks[rank] = {"total": facts["total"]}
        return start

    @property
    def takes_memory(self) -> bool:
        """Whether it got as far as that."""
        known_facts = {name for facts in self._ranks.values() for name in facts} | set(self.whole)
        return self._buffers.is_known or not known_facts.isdisjoint(_REGIONS)

    @property
    def is_over(self) -> bool:
        """Whether a further start is another run: this one took memory, or failed before that."""
        failure = self.failure
        return self.takes_memory or (failure is not None and not failure.is_soft)

    @property
    def failure(self) -> Failure | None:
        """What stopped it, or slowed it."""
        return self._blame.failure()

    def take(
        self, pattern: Pattern, line: str, number: int, rank: str, found: list[re.Match[str]]
    ) -> bool:
        """Note what ``pattern`` says of ``line``; whether that is a failure."""
        self._take_window(pattern.runtime, pattern.since, pattern.until)
        if pattern.arguments and self._dumps < _MOST_DUMPS:
            self._dumps += 1
            self._settings |= stated(pattern.runtime, line[line.find(pattern.needle) :])
        facts: dict[str, Fact] = {}
        for match in found:
            self._gather(pattern, match, number, facts)
            if pattern.by and match[pattern.by]:
                rank = f"{pattern.stem}{match[pattern.by]}"
        for name, fact in facts.items():
            self._store(rank, name, fact, is_whole=pattern.whole, adds=name in pattern.adds)
        if pattern.id == "llama.loaded" and "file" in facts:
            self._buffers.read_file(str(facts["file"].value))
        if pattern.refines and pattern.phase is not None:
            self._blame.refine(pattern.phase, number)
        if pattern.up:
            self._blame.forgive()
        if pattern.frame and pattern.phase is not None:
            self._blame.frame(pattern.phase, number)
        elif pattern.phase is not None:
            self.phase = pattern.phase
        return self._blame.take(pattern, rank, number, facts, self.phase)

    def window(self, runtime: str) -> tuple[str, str]:
        """Releases of ``runtime`` between which its lines are printed; empty for no bound."""
        return self._windows.get(runtime, ("", ""))

    def _take_window(self, runtime: str, since: str, until: str) -> None:
        first, last = self.window(runtime)
        self._windows[runtime] = max(first, since, key=_as_numbers), last or until

    def _gather(
        self, pattern: Pattern, match: re.Match[str], number: int, facts: dict[str, Fact]
    ) -> None:
        if pattern.metrics:
            self._take_metric(pattern.runtime, match, number)
        if pattern.buffers:
            self._take_buffer(match, number)
        if pattern.breakdown:
            self._take_breakdown(match, number)
        for group, (name, unit) in pattern.facts.items():
            text = match[group]
            read = value_of(text, unit) if text is not None else None
            if read is None:
                continue
            value, half = read
            if isinstance(value, int) and value < 0 and name not in _MAY_BE_LESS_THAN_NOTHING:
                continue  # Memory came back while it was measured: what was asked is not known.
            before = facts.get(name)
            if before is not None and isinstance(value, int):
                value, half = value + before.size_bytes, half + before.half_bytes
            facts[name] = Fact(name, value, number, half)

    def _store(
        self, rank: str, name: str, fact: Fact, *, is_whole: bool, adds: bool = False
    ) -> None:
        if is_whole or isinstance(fact.value, str):
            self.whole[name] = fact
            return
        if rank not in self._ranks and len(self._ranks) >= _MOST_RANKS:
            return
        facts = self._ranks.setdefault(rank, {})
        before = facts.get(name)
        if before is not None and adds:
            size = before.size_bytes + fact.size_bytes
            fact = Fact(name, size, fact.line, before.half_bytes + fact.half_bytes)
        facts[name] = fact

    def _take_metric(self, runtime: str, match: re.Match[str], number: int) -> None:
        metric = known(match["name"])
        if metric is not None:
            self._take_window(runtime, metric.since, metric.until)
        for said in self._pages.take(match, number):
            self._store(said.rank, said.fact.name, said.fact, is_whole=said.is_whole)

    def _take_buffer(self, match: re.Match[str], number: int) -> None:
        read = value_of(match["mib"], "MiB")
        if read is not None and isinstance(read[0], int) and read[0] >= 0:
            fact = Fact("", read[0], number, read[1])
            self._buffers.take(match["comp"], match["dev"], match["kind"], fact)

    def _take_breakdown(self, match: re.Match[str], number: int) -> None:
        """A row of the table in whole MiB: what the buffer lines say to two digits goes before."""
        names = {"total": "total", "free": "free_at_end", "model": "weights", "ctx": "kv_pool"}
        names |= {"comp": "compute"}
        row = {group: text for group, text in match.groupdict().items() if text is not None}
        if int(row.get("un", "0")) < 0:
            # A projection: free is from before anything was taken.
            names["free"] = "free_at_start"
        elif "un" in row:
            names["un"] = "unaccounted"
        for group, name in names.items():
            if group in row:
                fact = Fact(name, int(row[group]) * MIB, number, MIB // 2)
                self._store(device_of(row["dev"]), name, fact, is_whole=False)

    def ranks(self) -> tuple[RankReading, ...]:
        """What each process or device states; the computer's own memory last, which is no rank."""
        for device, name, fact in self._buffers.totals():
            self._store(device, name, fact, is_whole=False)
        size = self.settings().get("tensor_parallel_size", 1)
        tensor = size if isinstance(size, int) else 1
        ordered = sorted(self._ranks.items(), key=lambda item: is_host(item[0]))
        return tuple(
            RankReading(name, index_of(name, tensor, place), facts=facts)
            for place, (name, facts) in enumerate(ordered)
        )

    def settings(self) -> dict[str, Value]:
        """What it states of itself, by the keys of the machine contract."""
        found = dict(self._settings)
        for name, fact in self.whole.items():
            if name in _NOT_SETTINGS or name.startswith("n_") or name in _ALSO:
                found.setdefault(name, fact.value)
        for name in _ALSO:
            fact = next((f[name] for f in self._ranks.values() if name in f), None)
            if fact is not None:
                found.setdefault(name, fact.value)
        return found


_ALSO = ("gpu_memory_utilization", "max_model_len")
"""Settings that lines state among figures."""


def _as_numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".")) if release else ()
