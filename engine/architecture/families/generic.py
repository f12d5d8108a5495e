"""An unknown decoder: every layer full attention, one gated MLP or all the experts it states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import patterns
from engine.architecture.families.base import DENSE, Family, Moe
from engine.architecture.families.classic import four_times_hidden

if TYPE_CHECKING:
    from engine.config.facts import Facts


def _expert_width(facts: Facts) -> int:
    return facts.integer("moe_intermediate_size", facts.count("intermediate_size") or None)


def _shared_width(facts: Facts) -> int:
    for key in ("n_shared_experts", "num_shared_experts"):
        shared = facts.raw(key)
        if isinstance(shared, int) and not isinstance(shared, bool):
            return facts.checked(key, shared, 0) * _expert_width(facts)
    return facts.count("shared_expert_intermediate_size")


def _feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    if not facts.has("num_experts"):
        return (DENSE,) * layers
    return patterns.dense_first("first_k_dense_replace")(facts, layers)


GENERIC = Family(
    reads_layer_types=False, feed_pattern=_feeds, width=four_times_hidden, q_bias="attention_bias",
    o_bias="attention_bias", moe=Moe(
        experts="num_experts", shared="mlp.shared_experts", shared_width=_shared_width,
        width_rule=_expert_width,
    ),
)  # fmt: skip
