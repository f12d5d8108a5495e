"""What was read from a log, as values. Bytes are ``int``; every fact knows its line."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.budget.model import Region

Value = int | float | str
_FLASH = {"1": "on", "on": "on", "enabled": "on", "0": "off", "off": "off", "disabled": "off"}
"""llama.cpp's words for whether it uses flash attention; ``auto`` is no choice yet."""


class Phase(StrEnum):
    """What a run is doing, as its lines tell."""

    START = "start"
    LOAD = "load"
    PROJECTOR = "projector"
    PROFILE = "profile"
    PREFILL = "prefill"
    SAMPLER = "sampler"
    POOL = "pool"
    CAPTURE = "capture"
    SERVE = "serve"


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure or word that the log states."""

    name: str
    value: Value
    line: int
    """Line number, from 1."""
    half_bytes: int = 0
    """Half a unit of the last digit printed: how far the figure is rounded."""

    @property
    def size_bytes(self) -> int:
        """The value of a fact that is a size, or a count."""
        return int(self.value)


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it is shown: safe to print, cut where it is long."""

    number: int
    text: str
    region: Region | None = None
    is_understood: bool = False
    fails: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stating:
    """Whatever states facts."""

    facts: Mapping[str, Fact] = field(default_factory=dict["str", "Fact"])

    def bytes_of(self, name: str) -> int | None:
        """The fact ``name``; None where it is not stated."""
        found = self.facts.get(name)
        return None if found is None else found.size_bytes


@dataclass(frozen=True, slots=True)
class RankReading(_Stating):
    """What one process or device states."""

    name: str
    """``TP1``, ``pid 12897``, ``CUDA0``; empty where lines name none."""
    index: int


@dataclass(frozen=True, slots=True)
class Failure(_Stating):
    """The line that tells of a failure, and the figures in it."""

    code: str
    """Key of ``diagnosis``: what is known of failures of this kind."""
    line: int
    rank: str
    phase: Phase
    region: Region | None
    is_soft: bool


@dataclass(frozen=True, slots=True)
class LogReading:
    """All that a log states of its last run."""

    runtime: str
    """Key of the machine contract; empty where no line gives it away."""
    version: str
    since: str
    until: str
    """Where no version is stated: the releases that print such lines."""
    line_count: int
    understood: int
    lines: tuple[Line, ...]
    """The whole log where it is short, else the lines that were understood and some around."""
    ranks: tuple[RankReading, ...]
    whole: Mapping[str, Fact]
    """Facts of the run as a whole."""
    settings: Mapping[str, Value]
    """Keys of the machine contract, as the log states them."""
    phase: Phase
    failure: Failure | None = None
    runs: int = 1
    """How many starts the log holds; the last one is read."""

    @property
    def is_whole(self) -> bool:
        """Whether every line of the log is among ``lines``."""
        return len(self.lines) == self.line_count

    @property
    def kernel(self) -> str:
        """The attention kernel that the run chose, as its log calls it; empty where it does not."""
        if "kernel" in self.whole:
            return str(self.whole["kernel"].value)
        flash = self.whole.get("flash_attn")
        chosen = _FLASH.get(str(flash.value).lower(), "") if flash is not None else ""
        return f"flash-attn {chosen}" if chosen else ""

    def stated(self, name: str) -> Fact | None:
        """The fact ``name`` of the run, or of the first rank that states it."""
        if name in self.whole:
            return self.whole[name]
        return next((rank.facts[name] for rank in self.ranks if name in rank.facts), None)
