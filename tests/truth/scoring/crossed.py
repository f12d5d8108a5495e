"""Fits scored on records that they have not seen: refitted without a group at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.truth.scoring.scores import Score


def crossed(scores: Sequence[Score]) -> Iterator[str]:
    """Lines of the table."""
    yield f"In sample: {len(scores):,} figures are scored with constants that were fitted to them."
