"""Attention whose output is gated, by one number a head or by one an element.

Source:
    transformers 5.24.0, ``afmoe``, ``beam``, ``laguna``, ``muse_glimmer``, ``muse_spark`` and
    ``step3p7``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.build import layer_kinds
from engine.architecture.families import attention, feed, patterns
from engine.architecture.families.base import (
    DENSE,
    FULL,
    SLIDING,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    Prediction,
    matrix,
    norm,
    vector,
)
from engine.architecture.families.dense import AB, nextn
from engine.architecture.families.sparse import times_shared
from engine.architecture.spec import ModuleClass, MoeSpec, Sharding, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import OuterRule
    from engine.config.facts import Facts

_A, _ROUTER = ModuleClass.ATTENTION, ModuleClass.ROUTER
_SANDWICH = (
    "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)  # fmt: skip


def _gate(facts: Facts, name: str, rows: int) -> list[Tensor]:
    return matrix(f"self_attn.{name}", _A, (rows, facts.integer("hidden_size")), Sharding.COLUMN)


def _element_gate(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    rows = facts.integer("num_attention_heads") * facts.integer("head_dim")
    return _gate(facts, "gate_proj", rows)


def _stated_gate(facts: Facts, heads: int) -> list[Tensor]:
    """One number a head unless ``gating`` says otherwise; a gate there is in any case."""
    per_head = facts.raw("gating") in (None, True, "per-head")
    return _gate(facts, "g_proj", heads if per_head else heads * facts.integer("head_dim"))


def _correction(name: str) -> OuterRule:
    """The learned correction of the experts' scores, where it is a parameter and no buffer."""

    def tensors(facts: Facts, _family: Family) -> list[Tensor]:
        width = facts.integer("num_experts")
        return [vector(name, _ROUTER, width, Sharding.REPLICATED)]

    return tensors


AFMOE = Family(
    q_bias=AB, o_bias=AB, qk_norm="head",
    norms=(
        "input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm",
    ),
    pattern=patterns.every(4, "global_attn_every_n_layers"), layer_extra=_element_gate,
    feed_pattern=patterns.dense_first("num_dense_layers"),
    moe=Moe(
        router="mlp.router.gate", shared="mlp.shared_experts",
        shared_width=times_shared("num_shared_experts"), further=_correction("mlp.expert_bias"),
    ),
)  # fmt: skip


def _beam_gate(facts: Facts, family: Family, mixer: str, fed: str) -> list[Tensor]:
    heads = facts.integer("num_attention_heads")
    bias = vector("self_attn.gate_bias", _A, heads, Sharding.COLUMN)
    return [*_element_gate(facts, family, mixer, fed), bias]


BEAM = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", norms=_SANDWICH, layer_extra=_beam_gate,
    pattern=patterns.every(6, last=True), feed_pattern=patterns.dense_first("num_dense_layers", 3),
    moe=Moe(),
)  # fmt: skip
MUSE_GLIMMER = Family(
    q_bias=AB, o_bias=AB, norms=_SANDWICH, layer_extra=_element_gate, pattern=patterns.full_last(4)
)


def _spark_extra(facts: Facts, family: Family, mixer: str, fed: str) -> list[Tensor]:
    """Both residual streams are gated too."""
    found = _element_gate(facts, family, mixer, fed)
    for name in ("post_attention_residual_gate", "post_feedforward_residual_gate"):
        found.append(Tensor(f"{name}.gate", ModuleClass.OTHER, (facts.integer("hidden_size"),)))
    return found


def _spark_sparse(facts: Facts, family: Family, _kind: str) -> Fed:
    """Experts in a space of their own, between two projections that all share."""
    hidden, inner = facts.integer("hidden_size"), facts.integer("moe_hidden_size")
    experts, width = facts.integer("num_local_experts"), facts.integer("moe_intermediate_size")
    whole = Sharding.REPLICATED
    tensors = [
        *matrix("mlp.gate", _ROUTER, (experts, hidden), whole),
        *matrix("mlp.pre_expert_proj", ModuleClass.MLP, (inner, hidden), whole),
        *norm("mlp.pre_expert_norm", inner),
        *feed.expert_tensors(facts, Moe(), family, (experts, inner, width)),
        *norm("mlp.experts.post_expert_norm", inner),
        *matrix("mlp.post_expert_proj", ModuleClass.MLP, (hidden, inner), whole),
    ]
    return Fed(tensors, 0, MoeSpec(experts, facts.integer("num_experts_per_tok"), width))


# The norm behind attention has no weight.
MUSE_SPARK = replace(
    MUSE_GLIMMER,
    norms=("input_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"),
    layer_extra=_spark_extra,
    feeds={SPARSE: _spark_sparse},
    feed_pattern=patterns.dense_first("first_k_dense_replace"),
)


def _laguna_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Each layer has a number of heads of its own: it stands behind the kind."""
    layers = facts.integer("num_hidden_layers")
    heads = facts.integers("num_attention_heads_per_layer", low=1)
    if heads is None:
        heads = (facts.integer("num_attention_heads"),) * layers
    facts.settle("num_attention_heads")
    if len(heads) != layers:
        wanted = tr("one entry for each of the {layers} layers is needed").format(layers=layers)
        raise facts.bad("num_attention_heads_per_layer", heads, wanted)
    kinds = layer_kinds(facts, LAGUNA, layers)
    mixers = [f"{kind} {count}" for kind, count in zip(kinds, heads, strict=True)]
    feeds = patterns.dense_first("first_k_dense_replace", 1)(facts, layers)
    return tuple(zip(mixers, feeds, strict=True))


def _laguna_attention(facts: Facts, family: Family, kind: str) -> Mixed:
    name, _, count = kind.partition(" ")
    heads = int(count)

    def own(_facts: Facts, _kind: str) -> int:
        return heads

    mixed = attention.gqa(facts, replace(family, heads=own), name)
    mixed.tensors.extend(_stated_gate(facts, heads))
    return mixed


LAGUNA = Family(
    kinds=_laguna_kinds, pattern=patterns.full_unless_stated, attention=_laguna_attention,
    q_bias=AB, o_bias=AB, qk_norm="head",
    moe=Moe(
        shared="mlp.shared_experts",
        shared_width=lambda f: f.count("shared_expert_intermediate_size"),
        further=_correction("mlp.gate.e_score_correction_bias"),
    ),
)  # fmt: skip


def _step_heads(facts: Facts, kind: str) -> int:
    """Heads of a kind of layer; the class writes those of sliding layers out layer by layer."""
    heads = facts.integer("num_attention_heads")
    if kind != SLIDING:
        return heads
    written = facts.sub("per_layer_config")
    if written is not None:
        facts.settle("num_sliding_attention_heads", "attention_other_setting")
        layers = [layer for key in written.stated if (layer := written.sub(key))]
        return layers[0].integer("num_attention_heads", heads) if layers else heads
    other = facts.sub("attention_other_setting")
    if other:
        return other.integer("num_attention_heads", heads)
    return facts.integer("num_sliding_attention_heads", heads)


def _step_gate(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    return _stated_gate(facts, _step_heads(facts, mixer))


def _step_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """The published lists run on over the prediction blocks: cut to the layers."""
    stated = facts.words("layer_types")
    facts.settle("num_sliding_attention_heads", "attention_other_setting")
    full = patterns.full_unless_stated(facts, layers)
    if stated is None:
        return full
    if len(stated) < layers:
        raise facts.bad(
            "layer_types",
            stated,
            tr("one entry for each of the {layers} is needed").format(layers=layers),
        )
    return stated[:layers]


def _step_named(facts: Facts) -> set[int] | None:
    named = facts.raw("moe_layers_enum")
    if isinstance(named, list):
        return set(facts.integers("moe_layers_enum") or ())
    if not isinstance(named, str):
        return None
    parts = [part.strip() for part in named.split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 6 for part in parts):
        raise facts.bad("moe_layers_enum", named, tr("layer numbers are needed"))
    return {int(part) for part in parts}


def _step_feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    stated = facts.words("mlp_layer_types")
    if stated and len(stated) >= layers and set(stated) <= {DENSE, SPARSE}:
        return tuple(stated[:layers])
    sparse = _step_named(facts)
    if sparse is None:
        sparse = set(range(facts.integer("first_k_dense_replace", 3, 0), layers))
    return tuple(SPARSE if i in sparse else DENSE for i in range(layers))


def _step_prediction(facts: Facts, blocks: int) -> tuple[tuple[str, str], ...]:
    """The published lists run on over the blocks, which slide and are dense."""
    layers = facts.integer("num_hidden_layers")
    mixers, feeds = facts.words("layer_types") or (), facts.words("mlp_layer_types") or ()
    slides = SLIDING if facts.has("sliding_window") else FULL
    return tuple(
        (
            FULL if mixers[i : i + 1] == (FULL,) else slides,
            SPARSE if feeds[i : i + 1] == (SPARSE,) or i in (_step_named(facts) or ()) else DENSE,
        )
        for i in range(layers, layers + blocks)
    )


STEP3P5 = Family(
    harmless=("num_local_experts",), heads=_step_heads, q_bias=AB, o_bias=AB, qk_norm="head",
    pattern=_step_pattern,
    reads_layer_types=False, feed_pattern=_step_feeds, layer_extra=_step_gate,
    kv_heads=lambda f, _k: f.integer("num_attention_groups", f.integer("num_key_value_heads", 8)),
    mlp_bias="mlp_bias", mtp=nextn,
    prediction=Prediction(kinds=_step_prediction, join=Sharding.REPLICATED, own_head=True),
    moe=Moe(
        experts="n_routed_experts", container="moe", fused=True, router="moe.gate",
        shared="share_expert", shared_width=lambda f: f.integer("share_expert_dim"),
    ),
)  # fmt: skip

FAMILIES = {
    "afmoe": AFMOE, "beam": BEAM, "laguna": LAGUNA, "muse_glimmer_text": MUSE_GLIMMER,
    "muse_spark_text": MUSE_SPARK, "step3p5": STEP3P5,
}  # fmt: skip
