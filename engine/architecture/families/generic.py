"""An unknown decoder: every layer full attention, one gated MLP or all the experts it states.

Where a config states a value for each layer, the largest stands for all: a bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import DENSE, SPARSE, Family, Moe

if TYPE_CHECKING:
    from engine.config.facts import Facts


def _largest(facts: Facts, key: str, default: int | None = None) -> int:
    if isinstance(facts.raw(key), list):
        return max(facts.integers(key, 1) or (default or 1,))
    return facts.integer(key, default)


def _heads(facts: Facts, _kind: str) -> int:
    # A recurrent model states none: one head as wide as the model keeps as much as many do.
    return _largest(facts, "num_attention_heads", 1)


def _kv_heads(facts: Facts, kind: str) -> int:
    heads = _heads(facts, kind)
    stated = _largest(facts, "num_key_value_heads", heads)
    return stated if heads % stated == 0 else heads


def _width(facts: Facts) -> int:
    return _largest(facts, "intermediate_size", 4 * facts.integer("hidden_size"))


def _expert_width(facts: Facts) -> int:
    if facts.has("moe_intermediate_size"):
        return _largest(facts, "moe_intermediate_size")
    return _width(facts)


def _shared_width(facts: Facts) -> int:
    for key in ("n_shared_experts", "num_shared_experts"):
        shared = facts.raw(key)
        if isinstance(shared, int) and not isinstance(shared, bool):
            return facts.checked(key, shared, 0) * _expert_width(facts)
    return facts.count("shared_expert_intermediate_size")


def _feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    if not facts.has("num_experts") or not _largest(facts, "num_experts"):
        return (DENSE,) * layers
    facts.settle("mlp_layer_types")
    dense = min(facts.count("first_k_dense_replace"), layers)
    return (DENSE,) * dense + (SPARSE,) * (layers - dense)


def _head_dim(facts: Facts, kind: str) -> tuple[int, int]:
    stated = facts.raw("head_dim")
    width = (
        _largest(facts, "head_dim")
        if stated
        else facts.integer("hidden_size") // _heads(facts, kind)
    )
    return max(width, 1), max(width, 1)


GENERIC = Family(
    head_dim=_head_dim,
    reads_layer_types=False, feed_pattern=_feeds, width=_width, heads=_heads, kv_heads=_kv_heads,
    q_bias="attention_bias", o_bias="attention_bias",
    moe=Moe(
        count_rule=lambda f: _largest(f, "num_experts"), shared="mlp.shared_experts",
        shared_width=_shared_width, width_rule=_expert_width,
    ),
)  # fmt: skip
