"""Estimates: a number of bytes, how far it may be off, and why we believe it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable


class Basis(StrEnum):
    """Where a figure comes from (design, section 1)."""

    READ = "read"
    EXACT = "exact"
    SETTING = "setting"
    MEASURED = "measured"
    LEARNED = "learned"
    FITTED = "fitted"
    ASSUMED = "assumed"
    BOUND = "bound"

    @property
    def word(self) -> str:
        """The word a person reads."""
        return tr(_WORDS[self])


_WORDS = {
    Basis.READ: tr_later("Read"),
    Basis.EXACT: tr_later("Exact"),
    Basis.SETTING: tr_later("Setting"),
    Basis.MEASURED: tr_later("Measured"),
    Basis.LEARNED: tr_later("Learned"),
    Basis.FITTED: tr_later("Fitted"),
    Basis.ASSUMED: tr_later("Assumed"),
    Basis.BOUND: tr_later("Bound"),
}
_BY_WEAKNESS = tuple(Basis)
_WEAKNESS = {basis: rank for rank, basis in enumerate(Basis)}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes with a range.

    ``formula`` is the calculation with the inputs filled in; ``source`` is the paper, the
    runtime's file and version, the measured record or the header it rests on. A sum keeps
    its ``parts`` (their ``label`` says what each is).
    """

    low_bytes: int
    likely_bytes: int
    high_bytes: int
    basis: Basis
    source: str
    formula: str = ""
    label: str = ""
    parts: tuple[Estimate, ...] = ()

    def __post_init__(self) -> None:
        if not self.low_bytes <= self.likely_bytes <= self.high_bytes:
            message = (
                f"range out of order: {self.low_bytes}, {self.likely_bytes}, {self.high_bytes}"
            )
            raise ValueError(message)

    @property
    def is_point(self) -> bool:
        """Whether low, likely and high are one number."""
        return self.low_bytes == self.high_bytes

    def named(self, label: str) -> Estimate:
        """The same estimate under ``label``."""
        # Not dataclasses.replace: this runs for every region of every budget.
        return Estimate(
            self.low_bytes,
            self.likely_bytes,
            self.high_bytes,
            self.basis,
            self.source,
            self.formula,
            label,
            self.parts,
        )


def exactly(
    size_bytes: int, basis: Basis, source: str, formula: str = "", label: str = ""
) -> Estimate:
    """An estimate without a range."""
    return Estimate(size_bytes, size_bytes, size_bytes, basis, source, formula, label)


def total(parts: Iterable[Estimate], source: str = "", formula: str = "") -> Estimate:
    """The sum of ``parts``; its basis is the weakest among those that hold bytes."""
    # One pass: this runs several times in every budget.
    kept = tuple(parts)
    low = likely = high = 0
    weakest, weakest_empty = -1, 0
    for part in kept:
        low += part.low_bytes
        likely += part.likely_bytes
        high += part.high_bytes
        weakness = _WEAKNESS[part.basis]
        if part.high_bytes:
            weakest = max(weakest, weakness)
        else:
            weakest_empty = max(weakest_empty, weakness)
    if not kept:
        weakest = _WEAKNESS[Basis.EXACT]
    return Estimate(
        low,
        likely,
        high,
        _BY_WEAKNESS[weakest if weakest >= 0 else weakest_empty],
        source or "; ".join(dict.fromkeys([p.source for p in kept if p.source])),
        formula or " + ".join([p.label for p in kept if p.label]),
        parts=kept,
    )
