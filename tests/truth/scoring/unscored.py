"""Printed figures that are not compared with one of ours, each with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.truth.scoring.scores import Missed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.truth.scoring.records import Record
    from tests.truth.scoring.scores import Score

_PARTS = {
    "kv_keys": "kv_pool",
    "kv_values": "kv_pool",
    "kv_pool_full": "kv_pool",
    "kv_pool_sliding": "kv_pool",
    "state_conv": "states",
    "state_ssm": "states",
    "state_slots": "states",
    "kv_tokens_sliding": "kv_tokens",
    "max_concurrency": "concurrency",
    "kv_tokens": "tokens",
    "buffers": "printed ",
    "breakdown": "",
    "weights": "printed ",
    "overhead": "card",
    "unavailable": "",
    "unaccounted": "",
    "outside": "",
}
"""Printed figure -> start of the score that it is a part of, where that is not its own name."""
_REASONS = {
    "kv_pool": "the card is not named",
    "graphs": "captured since 0.20, when the budget holds an estimate in its place",
    "graphs_estimated": "an estimate that a release before 0.20 does not charge",
    "kv_tokens": "no pool is printed to count from",
    "kv_blocks": "no pool is printed to count from",
    "max_concurrency": "no pool is printed to count from",
    "states": "states of a start whose pool cannot be worked out",
    "draft_weights": "weights of a draft model are counted with its target's",
    "free_before_load": "an input of the plan, and not a figure of it",
    "free_after_load": "an input of the plan, and not a figure of it",
    "free_after_pool": "an input of the plan, and not a figure of it",
}
_OTHER = "a figure that no region of ours stands for"

_OF = {
    "concurrency from scratch": "max_concurrency",
    "tokens from scratch": "kv_tokens",
    "need of one request": "need",
}
"""Score -> the printed figure that it is compared with, where the name does not begin with it."""


def left_out(record: Record) -> Iterator[Missed]:
    """Every printed figure of ``record`` that its reading leaves out."""
    for figure, reason in record.left_out.items():
        printed = _OF.get(figure, figure.removesuffix(" from a known pool"))
        if printed in record.printed or figure.startswith("printed "):
            yield Missed(record.id, record.runtime, figure, reason)


def unscored(record: Record, scores: Iterable[Score | Missed]) -> Iterator[Missed]:
    """Every printed figure of ``record`` without a score, in the order of the record."""
    named = [*(score.figure for score in scores), *record.left_out]
    seen: set[str] = set()
    for figure in record.printed:
        part = _PARTS.get(figure, figure)
        if any(name.startswith((figure, part)) for name in named) or part in seen:
            continue
        seen.add(part)
        reason = _REASONS.get(figure) or _REASONS.get(part) or _OTHER
        yield Missed(record.id, record.runtime, figure, reason)
