"""Gemma 4: global layers with their own heads, layers that share keys and values, per-layer inputs.

Source:
    transformers 5.24.0, ``gemma4/modeling_gemma4.py`` and ``configuration_gemma4.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed
from engine.architecture.families.base import (
    DENSE,
    FULL,
    RENAMED,
    SLIDING,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    matrix,
    norm,
)  # fmt: skip
from engine.architecture.spec import ModuleClass, MoeSpec, Sharding, Tensor

if TYPE_CHECKING:
    from engine.config.facts import Facts

_WHOLE = Sharding.REPLICATED
SHARED = ", shared"
_WIDE = "wide"
_GLOBAL_HEAD_DIM = 512


def _types(facts: Facts) -> list[str]:
    layers = facts.integer("num_hidden_layers")
    stated = facts.words("layer_types")
    if stated is None:
        found = [SLIDING if (i + 1) % 6 else FULL for i in range(layers)]
    else:
        found = [RENAMED.get(kind, kind) for kind in stated]
    if len(found) != layers or not set(found) <= {FULL, SLIDING}:
        raise facts.bad("layer_types", found, f"full or sliding for each of the {layers} is needed")
    found[-1] = FULL
    return found


def _kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """The last ``num_kv_shared_layers`` read an earlier layer's cache; some have a wide MLP."""
    types = _types(facts)
    shared = min(facts.count("num_kv_shared_layers"), len(types))
    wide = facts.flag("use_double_wide_mlp")
    feed_kind = SPARSE if facts.flag("enable_moe_block") else DENSE
    kinds: list[tuple[str, str]] = []
    for index, kind in enumerate(types):
        if shared and index >= len(types) - shared:
            kinds.append((kind + SHARED, _WIDE if wide else feed_kind))
        else:
            kinds.append((kind, feed_kind))
    return tuple(kinds)


def _widths(facts: Facts, kind: str) -> tuple[int, int]:
    if kind == FULL:
        width = facts.integer("global_head_dim", _GLOBAL_HEAD_DIM)
    else:
        width = facts.integer("head_dim")
    return width, width


def _kv_heads(facts: Facts, kind: str) -> int:
    heads = facts.integer("num_key_value_heads", facts.integer("num_attention_heads"))
    if kind == FULL and facts.flag("attention_k_eq_v"):
        return facts.integer("num_global_key_value_heads", heads)
    return heads


def attention_rule(facts: Facts, family: Family, kind: str) -> Mixed:
    """Attention that may read another layer's cache, or whose value is its key."""
    if kind.endswith(SHARED):
        mixed = attention.gqa(facts, family, kind.removesuffix(SHARED))
        own = ("q_proj", "o_proj", "q_norm")
        tensors = [t for t in mixed.tensors if any(name in t.name for name in own)]
        assert mixed.attention is not None  # noqa: S101 - gqa always has one
        return Mixed(tensors, replace(mixed.attention, keeps_cache=False))
    if kind == FULL and facts.flag("attention_k_eq_v"):
        mixed = attention.gqa(facts, family, kind)
        # The value is the key, before its norm and rotation: projected once, cached twice.
        return Mixed([t for t in mixed.tensors if "v_proj" not in t.name], mixed.attention)
    return attention.gqa(facts, family, kind)


def _wide(facts: Facts, family: Family, _kind: str) -> Fed:
    width = 2 * facts.integer("intermediate_size")
    return Fed(feed.mlp_tensors(facts, family, width), width)


def _sparse(facts: Facts, family: Family, kind: str) -> Fed:
    """The dense MLP and the experts work side by side, each with norms of its own."""
    dense = feed.dense(facts, family, kind)
    hidden, experts = facts.integer("hidden_size"), facts.integer("num_experts")
    width = facts.integer("moe_intermediate_size")
    active = facts.integer("top_k_experts")
    moe = Moe(container="experts", fused=True)
    router = ModuleClass.ROUTER
    tensors = [
        *dense.tensors,
        *matrix("router.proj", router, (experts, hidden), _WHOLE),
        Tensor("router.scale", router, (hidden,)),
        Tensor("router.per_expert_scale", router, (experts,)),
        *feed.expert_tensors(facts, moe, family, (experts, hidden, width)),
        *norm("post_feedforward_layernorm_1", hidden),
        *norm("post_feedforward_layernorm_2", hidden),
        *norm("pre_feedforward_layernorm_2", hidden),
    ]
    return Fed(tensors, dense.intermediate_size, MoeSpec(experts, active, width))


def per_layer(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """A layer's own input from the per-layer embedding."""
    width = facts.count("hidden_size_per_layer_input")
    if not width:
        return []
    hidden = facts.integer("hidden_size")
    other = ModuleClass.OTHER
    return [
        *matrix("per_layer_input_gate", other, (width, hidden), _WHOLE),
        *matrix("per_layer_projection", other, (hidden, width), _WHOLE),
        *norm("post_per_layer_input_norm", hidden),
    ]


def per_layer_outer(facts: Facts, _family: Family) -> list[Tensor]:
    """The per-layer embedding: one small table for all layers together."""
    width = facts.count("hidden_size_per_layer_input")
    if not width:
        return []
    total = width * facts.integer("num_hidden_layers")
    vocab = facts.integer("vocab_size_per_layer_input", facts.integer("vocab_size"))
    hidden = facts.integer("hidden_size")
    embedding = ModuleClass.EMBEDDING
    return [
        Tensor("model.embed_tokens_per_layer.weight", embedding, (vocab, total), 1, Sharding.VOCAB),
        *matrix("model.per_layer_model_projection", ModuleClass.OTHER, (total, hidden), _WHOLE),
        *norm("model.per_layer_projection_norm", width),
    ]


GEMMA4 = Family(
    q_bias="attention_bias", o_bias="attention_bias", qk_norm="head", kinds=_kinds,
    attention=attention_rule,
    mixers={FULL + SHARED: attention_rule, SLIDING + SHARED: attention_rule},
    feeds={_WIDE: _wide, SPARSE: _sparse}, head_dim=_widths, kv_heads=_kv_heads,
    norms=(
        "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
    layer_extra=per_layer, positions=per_layer_outer, tied=True,
)  # fmt: skip

FAMILIES = {"gemma4_text": GEMMA4}
