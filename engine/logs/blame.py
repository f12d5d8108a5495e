"""Which line tells of the failure, and what the run was doing then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.logs.reading import Failure, Phase

if TYPE_CHECKING:
    from engine.budget.model import Region
    from engine.logs.patterns import Pattern
    from engine.logs.reading import Fact

_TRACEBACK = 400
"""Lines within which frames belong to the failure that follows them."""
_NEAR = 40
"""Lines after a failure in which more is said of it."""
_INNERMOST = (Phase.CAPTURE, Phase.SAMPLER, Phase.POOL, Phase.LOAD, Phase.PREFILL)
"""What a traceback is of, where it holds frames of several: capturing runs the model as well."""
_SAYS_LITTLE = ("killed", "killed_in_container", "killed_by_signal", "runner_died")
"""Failures that another line explains, and each the next one."""
_NAMES_A_BUFFER = "llama_alloc"
"""What was being allocated, it says in a line of its own after the one that says that it failed."""
_MORE = frozenset(
    {"process", "process_of_others", "torch_allocated", "unallocated", "private_pools"}
)


class Blame:
    """The failures of one run, the first that stops it before all others."""

    def __init__(self) -> None:
        self._frames: dict[Phase, int] = {}
        self._found: list[Failure] = []

    def frame(self, phase: Phase, line: int) -> None:
        """A frame of a traceback."""
        self._frames[phase] = line

    def refine(self, phase: Phase, line: int) -> None:
        """A line that tells what was being done when it failed just before."""
        if self._found and line - self._found[-1].line <= _NEAR:
            self._found[-1] = replace(self._found[-1], phase=phase)

    def forgive(self) -> None:
        """What stopped it stops it no longer: it was tried again, with success."""
        self._found = [failure for failure in self._found if failure.is_soft]

    def take(
        self, pattern: Pattern, rank: str, line: int, facts: dict[str, Fact], phase: Phase
    ) -> bool:
        """Note a line; whether it tells of a failure."""
        last = self._found[-1] if self._found else None
        near = last is not None and line - last.line <= _NEAR and last.rank == rank
        if not pattern.fails:
            if last is not None and near and _MORE.intersection(facts):
                self._found[-1] = _with(last, last.region, facts)
            return False
        if last is not None and near and not last.is_soft and _explains(pattern, last):
            self._found[-1] = _with(last, last.region or pattern.region, facts)
        elif len(self._found) < _NEAR:
            doing = self._doing(line, phase)
            found = Failure(
                pattern.fails, line, rank, doing, pattern.region, pattern.soft, facts=dict(facts)
            )
            self._found.append(found)
        return not pattern.soft

    def _doing(self, line: int, phase: Phase) -> Phase:
        seen = [p for p in _INNERMOST if line - self._frames.get(p, -_TRACEBACK * 2) <= _TRACEBACK]
        return seen[0] if seen else phase

    def failure(self) -> Failure | None:
        """The one to explain: what stops a run before what slows it, what says more before less."""
        order = sorted(self._found, key=lambda f: (f.is_soft, _little(f.code), f.line))
        return order[0] if order else None


def _little(code: str) -> int:
    return _SAYS_LITTLE.index(code) + 1 if code in _SAYS_LITTLE else 0


def _explains(pattern: Pattern, failure: Failure) -> bool:
    """Whether a further line that fails is of the same failure."""
    names_it = pattern.fails == _NAMES_A_BUFFER and failure.code in _OF_A_BUFFER
    return failure.code == pattern.fails or (names_it and failure.region is None)


_OF_A_BUFFER = frozenset({"working_set", "device_alloc", "host_out"})


def _with(failure: Failure, region: Region | None, facts: dict[str, Fact]) -> Failure:
    """``failure`` with what a further line says; what the first said stays."""
    return replace(failure, region=region, facts=facts | dict(failure.facts))
