"""Decoders that mix attention with recurrent, convolutional or cross-attending layers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed, patterns
from engine.architecture.families.base import (
    DENSE,
    FULL,
    LINEAR,
    NONE,
    SLIDING,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    Names,
    Prediction,
    matrix,
    norm,
    state_doubt,
)
from engine.architecture.families.dense import AB, nextn
from engine.architecture.families.mixers import (
    DeltaNet,
    gated_delta_net,
    mamba2,
    short_convolution,
)
from engine.architecture.families.sparse import MIXTRAL_MOE, QWEN2_MOE
from engine.architecture.spec import (
    AttentionKind,
    Direction,
    ModuleClass,
    MoeSpec,
    Sharding,
    StateSpec,
    Tensor,
)
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_WHOLE = Sharding.REPLICATED


def _every_fourth_full(facts: Facts, layers: int) -> tuple[str, ...]:
    step = facts.integer("full_attention_interval", 4)
    return tuple(LINEAR if (i + 1) % step else FULL for i in range(layers))


def _qwen_mtp(facts: Facts) -> int:
    return facts.count("mtp_num_hidden_layers")


def _next_mtp(facts: Facts) -> int:
    """One where none is stated, as published: vLLM builds it (``models/qwen3_next_mtp.py``)."""
    stated = facts.has("num_nextn_predict_layers")
    return facts.count("num_nextn_predict_layers") if stated else 1


_QWEN_PREDICTION = Prediction(joins_once=True, join=Sharding.COLUMN)


QWEN3_NEXT = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", q_gate=True, pattern=_every_fourth_full,
    mixers={LINEAR: gated_delta_net}, feed_pattern=patterns.sparse_steps, moe=QWEN2_MOE.moe,
    mtp=_next_mtp, prediction=_QWEN_PREDICTION,
)  # fmt: skip
QWEN3_5 = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", q_gate=True, pattern=_every_fourth_full,
    mixers={LINEAR: gated_delta_net}, mtp=_qwen_mtp, prediction=_QWEN_PREDICTION,
)  # fmt: skip
QWEN3_5_MOE = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", q_gate=True, pattern=_every_fourth_full,
    mixers={LINEAR: gated_delta_net}, feed_pattern=patterns.all_sparse, moe=QWEN2_MOE.moe,
    mtp=_qwen_mtp, prediction=_QWEN_PREDICTION,
)  # fmt: skip


def _lfm2_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    full = facts.integers("full_attn_idxs")
    attending = set(range(layers)) if full is None else set(full)
    return tuple(FULL if i in attending else "conv" for i in range(layers))


def _lfm2_width(facts: Facts) -> int:
    """The MLP width, adjusted as the class does: two thirds, times a factor, rounded up."""
    width = facts.integer("block_ff_dim", facts.integer("intermediate_size"))
    if not facts.flag("block_auto_adjust_ff_dim"):
        return width
    width = 2 * width // 3
    factor = facts.raw("block_ffn_dim_multiplier")
    if isinstance(factor, int | float) and not isinstance(factor, bool) and 0 < factor < 64:
        width = int(factor * width)
    multiple = facts.integer("block_multiple_of", 1)
    return multiple * -(-width // multiple)


LFM2 = Family(
    names=Names(
        output="out_proj", query_norm="q_layernorm", key_norm="k_layernorm", mlp="feed_forward",
        gate="w1", up="w3", down="w2", final_norm="model.embedding_norm",
    ),
    qk_norm="head", norms=("operator_norm", "ffn_norm"), pattern=_lfm2_pattern,
    mixers={"conv": short_convolution}, width=_lfm2_width, tied=True,
)  # fmt: skip
LFM2_MOE = Family(
    names=LFM2.names, qk_norm="head", norms=LFM2.norms, pattern=_lfm2_pattern,
    mixers=LFM2.mixers, tied=True, feed_pattern=patterns.dense_first("num_dense_layers"),
    moe=Moe(
        experts="num_experts", container="feed_forward.experts", router="feed_forward.gate",
        names=("w1", "w3", "w2"),
    ),
)  # fmt: skip


def _lfm3_pattern(_facts: Facts, layers: int) -> tuple[str, ...]:
    def kind(i: int) -> str:
        if i % 4 == 2:
            return FULL
        return SLIDING if i % 4 == 0 and i else "conv"

    return tuple(kind(i) for i in range(layers))


def _lfm3_norms(facts: Facts) -> tuple[str, ...]:
    after = ("post_operator_norm", "post_ffn_norm") if facts.flag("use_sandwich_norm") else ()
    return (*LFM2.norms, *after)


def _lfm3_gate(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    if mixer == "conv" or not facts.flag("use_attention_gate"):
        return []
    shape = (facts.integer("num_attention_heads"), facts.integer("hidden_size"))
    return matrix("self_attn.g_proj", _A, shape, Sharding.COLUMN)


LFM3 = Family(
    names=replace(LFM2.names, output="o_proj", query_norm="q_norm", key_norm="k_norm"),
    q_bias=AB, o_bias=AB, qk_norm="head", norm_rule=_lfm3_norms, pattern=_lfm3_pattern,
    mixers=LFM2.mixers, layer_extra=_lfm3_gate,
)  # fmt: skip


def _olmo_pattern(_facts: Facts, layers: int) -> tuple[str, ...]:
    found = [LINEAR if i % 4 != 3 else FULL for i in range(layers)]
    if FULL not in found:
        found[-1] = FULL
    return tuple(found)


_OLMO_START = ("a_log_min", "a_log_max", "dt_min", "dt_max", "dt_init_floor")
"""Between which values training starts."""


def _olmo_delta_net(facts: Facts, _family: Family, _kind: str) -> Mixed:
    """OLMo's gated delta net: sizes that follow from the attention's where they are not stated."""
    heads, hidden = facts.integer("num_attention_heads"), facts.integer("hidden_size")
    k_heads = facts.integer("linear_num_key_heads", heads)
    facts.settle(*(f"linear_{key}" for key in _OLMO_START))
    k_width = facts.integer("linear_key_head_dim", int(0.75 * hidden / k_heads))
    sizes = DeltaNet(
        k_heads=k_heads, v_heads=facts.integer("linear_num_value_heads", heads), k_width=k_width,
        v_width=facts.integer("linear_value_head_dim", 2 * k_width),
        kernel=facts.integer("linear_conv_kernel_dim"),
    )  # fmt: skip
    keys, values, v_heads = sizes.keys, sizes.values, sizes.v_heads
    inputs = [
        ("q_proj", keys), ("k_proj", keys), ("v_proj", values), ("g_proj", values),
        ("a_proj", v_heads), ("b_proj", v_heads),
    ]  # fmt: skip
    return sizes.block(hidden, inputs, ("o_norm", "o_proj"))


def _olmo_norms(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    """Before both blocks in recurrent layers, after both in the others."""
    other = "input_layernorm" if mixer == LINEAR else "post_feedforward_layernorm"
    hidden = facts.integer("hidden_size")
    return [*norm(other, hidden), *norm("post_attention_layernorm", hidden)]


OLMO_HYBRID = Family(
    q_bias=AB, o_bias=AB, qk_norm="full", pattern=_olmo_pattern, mixers={LINEAR: _olmo_delta_net},
    norms=(), layer_extra=_olmo_norms,
)  # fmt: skip


def _lightning(facts: Facts, _family: Family, _kind: str) -> Mixed:
    """MiniMax's lightning attention: one matrix a head, in the model's dtype.

    Source:
        transformers 5.24.0, ``minimax/modeling_minimax.py :: MiniMaxLightningAttention``.
    """
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    width = facts.integer("head_dim", hidden // heads)
    total, path = heads * width, "self_attn."
    tensors = [
        *matrix(path + "qkv_proj", _A, (3 * total, hidden), Sharding.COLUMN),
        *matrix(path + "output_gate", _A, (total, hidden), Sharding.COLUMN),
        *matrix(path + "out_proj", _A, (hidden, total), Sharding.ROW),
        *norm(path + "norm", total),
    ]
    return Mixed(tensors, state=StateSpec("lightning", 0, 0, total * width, heads))


def _minimax_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """``attn_type_list`` of the first releases, where 1 attends; else every other layer."""
    facts.settle("postnorm")
    stated = facts.integers("attn_type_list")
    if stated is None:
        return tuple(LINEAR if i % 2 else FULL for i in range(layers))
    if len(stated) != layers:
        wanted = tr("one entry for each of the {layers} layers is needed").format(layers=layers)
        raise facts.bad("attn_type_list", stated, wanted)
    return tuple(FULL if kind else LINEAR for kind in stated)


MINIMAX = Family(
    pattern=_minimax_pattern,
    mixers={LINEAR: _lightning}, feed_pattern=patterns.all_sparse, moe=MIXTRAL_MOE,
)  # fmt: skip

_NEMOTRON = {"M": (LINEAR, NONE), "*": (FULL, NONE), "E": (NONE, SPARSE), "-": (NONE, DENSE)}
_NEMOTRON_WORDS = {
    "mamba": "M", "linear_attention": "M", "attention": "*", "full_attention": "*", "moe": "E",
    "mlp": "-",
}  # fmt: skip


def _nemotron_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """One block a layer: a list of words, ``hybrid_override_pattern``, or the class's own four."""
    key = "layers_block_type" if facts.has("layers_block_type") else "layer_types"
    words, pattern = facts.words(key), facts.word("hybrid_override_pattern")
    if words:
        codes = [_NEMOTRON_WORDS.get(word, word) for word in words]
    else:
        key, codes = "hybrid_override_pattern", list(pattern or "ME*-")
    facts.raw("num_hidden_layers")
    if not set(codes) <= set(_NEMOTRON):
        raise facts.bad(key, "".join(codes), tr("only M, *, E and - are known"))
    facts.checked("num_hidden_layers", len(codes), 1)
    # Shared experts are one MLP of a stated width; the window is kept by no layer.
    facts.settle("n_shared_experts", "sliding_window", "mamba_proj_bias", "expand")
    return tuple(_NEMOTRON[code] for code in codes)


def _nemotron_prediction(facts: Facts, blocks: int) -> tuple[tuple[str, str], ...]:
    """One block each of attention and experts, where nothing else is stated."""
    words, pattern = facts.words("mtp_layers_block_type"), facts.word("mtp_hybrid_override_pattern")
    codes = [_NEMOTRON_WORDS.get(word, word) for word in words] if words else list(pattern or "*E")
    if not set(codes) <= set(_NEMOTRON):
        raise facts.bad("mtp_layers_block_type", "".join(codes), tr("only M, *, E and - are known"))
    return tuple(_NEMOTRON[code] for code in codes) * blocks


def _nemotron_sparse(facts: Facts, family: Family, _kind: str) -> Fed:
    """Plain (not gated) experts, in a latent space where ``moe_latent_size`` says so."""
    hidden = facts.integer("hidden_size")
    experts, width = facts.integer("n_routed_experts"), facts.integer("moe_intermediate_size")
    latent = facts.count("moe_latent_size")
    moe = Moe(container="mixer.experts", gated=False)
    tensors = matrix("mixer.gate", ModuleClass.ROUTER, (experts, hidden), _WHOLE)
    tensors += feed.expert_tensors(facts, moe, family, (experts, latent or hidden, width))
    shared = facts.integer("moe_shared_expert_intermediate_size")
    module = ModuleClass.SHARED_EXPERTS
    tensors += feed.mlp_tensors(facts, family, shared, "mixer.shared_experts", module)
    if latent:
        mlp = ModuleClass.MLP
        bias = facts.flag("mlp_bias")
        tensors += matrix("mixer.fc1_latent_proj", mlp, (latent, hidden), _WHOLE, bias=bias)
        tensors += matrix("mixer.fc2_latent_proj", mlp, (hidden, latent), _WHOLE, bias=bias)
    return Fed(tensors, 0, MoeSpec(experts, facts.integer("num_experts_per_tok"), width, shared))


NEMOTRON_H = Family(
    names=Names(
        attention="mixer", mlp="mixer", embedding="backbone.embeddings",
        final_norm="backbone.norm_f",
    ),
    kinds=_nemotron_kinds, mixers={LINEAR: mamba2}, feeds={SPARSE: _nemotron_sparse}, gated=False,
    mlp_bias="mlp_bias", norms=("norm",), tied=False, reads_tie=False, mtp=nextn,
    prediction=Prediction(kinds=_nemotron_prediction, join=Sharding.COLUMN),
)  # fmt: skip


_CROSS = "cross_attention"
_IMAGE_TOKENS = 4 * 1601
"""Four tiles of 40 × 40 patches and one more, as in every published Llama 3.2 Vision."""
_CROSSING = (3, 8, 13, 18, 23, 28, 33, 38)


def _crossing(facts: Facts) -> set[int]:
    named = facts.integers("cross_attention_layers")
    return set(_CROSSING if named is None else named)


def _mllama_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    crossing = _crossing(facts)
    return tuple(_CROSS if i in crossing else FULL for i in range(layers))


def _cross_attention(facts: Facts, family: Family, _kind: str) -> Mixed:
    mixed = attention.gqa(facts, replace(family, qk_norm="head"), FULL)
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    keeps = replace(mixed.attention, kind=AttentionKind.CROSS, window=_IMAGE_TOKENS)
    return Mixed(mixed.tensors, cross=keeps)


def _cross_gates(_facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    if mixer != _CROSS:
        return []
    mlp = ModuleClass.MLP
    return [Tensor("cross_attn_attn_gate", _A, (1,)), Tensor("cross_attn_mlp_gate", mlp, (1,))]


def _mllama_doubts(facts: Facts) -> list[Doubt]:
    if min(_crossing(facts), default=0) >= facts.integer("num_hidden_layers"):
        return []
    reason = tr("its cross-attention layers keep 6,404 tokens an image: counted for one image")
    return state_doubt(reason, Direction.EITHER)


MLLAMA = Family(
    pattern=_mllama_pattern, mixers={_CROSS: _cross_attention}, layer_extra=_cross_gates,
    embedding_extra=8, doubts=_mllama_doubts, tied=False, reads_tie=False,
)  # fmt: skip

FAMILIES = {
    "mllama_text_model": MLLAMA, "qwen3_next": QWEN3_NEXT, "qwen3_5_text": QWEN3_5,
    "qwen3_5_moe_text": QWEN3_5_MOE, "lfm2": LFM2, "lfm2_moe": LFM2_MOE, "nemotron_h": NEMOTRON_H,
    "lfm3": LFM3, "minimax": MINIMAX, "olmo_hybrid": OLMO_HYBRID,
}  # fmt: skip
