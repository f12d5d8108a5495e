"""Figures in doubt as estimates: the range ends at the bound, never at a guessed share of it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from engine.architecture.spec import Direction
from engine.evidence import Basis, Estimate, exactly
from engine.words import tr


def counted(
    size_bytes: int,
    direction: Direction | None,
    basis: Basis,
    source: str,
    formula: str = "",
    label: str = "",
) -> Estimate:
    """``size_bytes`` as an estimate.

    Args:
        size_bytes: what was counted.
        direction: which way it is in doubt. What is counted at its most may be as little as
            nothing; of what is not counted in full, at least this is held.
        basis: where the figure comes from when it is not in doubt.
        source: the rule or file it rests on.
        formula: the calculation with its inputs.
        label: its name as a part of a sum.
    """
    if direction is None:
        return exactly(size_bytes, basis, source, formula, label)
    low = size_bytes if direction is Direction.LOWER else 0
    return Estimate(low, size_bytes, size_bytes, Basis.BOUND, source, formula, label)


def as_bound(estimate: Estimate, direction: Direction | None) -> Estimate:
    """``estimate``, marked as a bound where something about it is in doubt."""
    return estimate if direction is None else replace(estimate, basis=Basis.BOUND)


def least(size_bytes: int, direction: Direction | None) -> int | None:
    """``size_bytes`` as the least that the architecture needs; None where it may need less."""
    return size_bytes if direction in (None, Direction.LOWER) else None


@cache
def no_state(direction: Direction | None) -> tuple[Estimate, str]:
    """Nothing kept for a sequence, and the words for it; at least nothing where it isn't known."""
    if direction is Direction.LOWER:
        note = tr("Not known, so not counted")
        return counted(0, direction, Basis.BOUND, note), note
    note = tr("This model keeps none")
    return exactly(0, Basis.EXACT, note), note
