"""Gemma 4: global layers with their own heads, layers that share keys and values, per-layer inputs.

Source:
    transformers 5.24.0, ``gemma4``, ``gemma4_unified``, their assistants and ``diffusion_gemma``.
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
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_WHOLE = Sharding.REPLICATED
SHARED = ", shared"
_WIDE, _WIDE_SPARSE = "wide", "wide and sparse"
_DIFFUSION = "diffusion_gemma_text"
_GLOBAL_HEAD_DIM = 512


def _types(facts: Facts) -> list[str]:
    layers = facts.integer("num_hidden_layers")
    stated = facts.words("layer_types")
    if stated is None:
        found = [SLIDING if (i + 1) % 6 else FULL for i in range(layers)]
    else:
        found = [RENAMED.get(kind, kind) for kind in stated]
    if len(found) != layers or not set(found) <= {FULL, SLIDING}:
        raise facts.bad(
            "layer_types",
            found,
            tr("full or sliding for each of the {layers} is needed").format(layers=layers),
        )
    found[-1] = FULL
    return found


def _heads(facts: Facts, types: list[str]) -> list[tuple[int, int]]:
    """Head width and KV heads of each layer.

    ``per_layer_config`` is how the class writes them out; it then holds for all layers.
    """
    own = facts.integer("head_dim"), facts.integer("num_key_value_heads")
    found = [own] * len(types)
    stated = facts.sub("per_layer_config")
    if stated is not None:
        facts.settle("global_head_dim", "num_global_key_value_heads")
        for key in stated.stated:
            inner, index = stated.sub(key), int(key) if key.isascii() and key.isdigit() else -1
            if inner is None or not 0 <= index < len(types):
                raise facts.bad(
                    "per_layer_config",
                    key,
                    tr("a layer below {types} is needed").format(types=len(types)),
                )
            found[index] = (
                inner.integer("head_dim", own[0]),
                inner.integer("num_key_value_heads", own[1]),
            )
        return found
    width, heads = facts.integer("global_head_dim", _GLOBAL_HEAD_DIM), own[1]
    if _shares_values(facts):
        heads = facts.integer("num_global_key_value_heads", heads)
    return [(width, heads) if kind == FULL else own for kind in types]


def _shares_values(facts: Facts) -> bool:
    """Whether the value of a global layer is its key: always so in DiffusionGemma."""
    return facts.model_type == _DIFFUSION or facts.flag("attention_k_eq_v")


def _kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """The last ``num_kv_shared_layers`` read an earlier layer's cache; some have a wide MLP."""
    shares = facts.model_type != _DIFFUSION
    return _with_shared(facts, facts.count("num_kv_shared_layers") if shares else 0)


def _with_shared(facts: Facts, shared: int) -> tuple[tuple[str, str], ...]:
    types = _types(facts)
    own = len(types) - shared
    # All may read another model's cache; a layer of this one needs one of its kind that keeps it.
    if own and (own < 0 or set(types[:own]) != set(types)):
        wanted = tr(
            "each kind of the {types} layers needs one that keeps what the others read"
        ).format(types=len(types))
        raise facts.bad("num_kv_shared_layers", shared, wanted)
    wide = facts.flag("use_double_wide_mlp")
    sparse = facts.model_type == _DIFFUSION or facts.flag("enable_moe_block")
    feed_kind = SPARSE if sparse else DENSE
    kinds: list[tuple[str, str]] = []
    for index, (kind, heads) in enumerate(zip(types, _heads(facts, types), strict=True)):
        marked = f"{kind}/{heads[0]}/{heads[1]}"
        reads = index >= own
        fed = feed_kind if not (reads and wide) else _WIDE_SPARSE if sparse else _WIDE
        kinds.append((marked + SHARED if reads else marked, fed))
    return tuple(kinds)


def _window(facts: Facts, kind: str) -> int:
    """The stated window; half of it where every token sees those after it too."""
    window = facts.integer("sliding_window")
    both_ways = facts.word("use_bidirectional_attention") == "all"
    return (window // 2 + 1 if both_ways else window) if kind == SLIDING else 0


def _sized(family: Family, width: int, kv_heads: int) -> Family:
    def widths(_facts: Facts, _kind: str) -> tuple[int, int]:
        return width, width

    def heads(_facts: Facts, _kind: str) -> int:
        return kv_heads

    return replace(family, head_dim=widths, kv_heads=heads)


def attention_rule(facts: Facts, family: Family, kind: str) -> Mixed:
    """Attention that may read another layer's cache, or whose value is its key.

    ``kind`` may state the layer's head width and KV heads: ``full_attention/512/2``.
    """
    base, *heads = kind.removesuffix(SHARED).split("/")
    if heads:
        width, kv_heads = map(int, heads)
        family = _sized(family, width, kv_heads)
    mixed = attention.gqa(facts, family, base)
    if kind.endswith(SHARED):
        own = ("q_proj", "o_proj", "q_norm")
        tensors = [t for t in mixed.tensors if any(name in t.name for name in own)]
        assert mixed.attention is not None  # noqa: S101 - gqa always has one
        return Mixed(tensors, replace(mixed.attention, keeps_cache=False))
    if base == FULL and _shares_values(facts):
        # The value is the key, before its norm and rotation: projected once, cached twice.
        return Mixed([t for t in mixed.tensors if "v_proj" not in t.name], mixed.attention)
    return mixed


def _wide(facts: Facts, family: Family, _kind: str) -> Fed:
    width = 2 * facts.integer("intermediate_size")
    return Fed(feed.mlp_tensors(facts, family, width), width)


def _sparse(facts: Facts, family: Family, kind: str) -> Fed:
    """The dense MLP and the experts work side by side, each with norms of its own."""
    dense = (_wide if kind == _WIDE_SPARSE else feed.dense)(facts, family, kind)
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
    attention=attention_rule, window=_window,
    feeds={_WIDE: _wide, SPARSE: _sparse, _WIDE_SPARSE: _sparse},
    norms=(
        "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
    layer_extra=per_layer, positions=per_layer_outer, tied=True,
)  # fmt: skip


def _assistant_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    return _with_shared(
        facts, facts.count("num_kv_shared_layers") or facts.integer("num_hidden_layers")
    )


ASSISTANT = replace(GEMMA4, kinds=_assistant_kinds, owns_text=True)
"""A draft model: it has no keys and values of its own, unless some of its layers are said to."""

FAMILIES = {
    "gemma4_text": GEMMA4, "gemma4_unified_text": GEMMA4, "diffusion_gemma_text": GEMMA4,
    "gemma4_assistant": ASSISTANT, "gemma4_unified_assistant": ASSISTANT,
}  # fmt: skip
