"""Dense decoders of the Llama kind that add a few tensors of their own to a layer.

Source:
    transformers 5.24.0, the modelling file of each type.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed, patterns
from engine.architecture.families.base import (
    DENSE,
    FULL,
    NONE,
    Family,
    Mixed,
    Names,
    Prediction,
    matrix,
    norm,
    vector,
)
from engine.architecture.families.classic import own_heads
from engine.architecture.families.crossed import whole_heads
from engine.architecture.families.dense import AB, GLM4, GRANITE, LLAMA, nextn
from engine.architecture.heads import head_of, labels_of
from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _MLP, _TOP = ModuleClass.ATTENTION, ModuleClass.MLP, ModuleClass.OTHER
_WHOLE = Sharding.REPLICATED
_TWO_LAYERS = Names(up="fc1", down="fc2")


def _xielu(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """The two learned numbers of Apertus' activation."""
    if facts.word("hidden_act", "xielu") != "xielu":
        return []
    return [vector(f"mlp.act_fn.alpha_{sign}", _MLP, 1, _WHOLE) for sign in "pn"]


APERTUS = Family(
    q_bias=AB, o_bias=AB, gated=False, qk_norm="head", layer_extra=_xielu,
    norms=("attention_layernorm", "feedforward_layernorm"),
)  # fmt: skip
# The head can be cut down to the words of the text.
APERTUS_TEXT = replace(APERTUS, head_rows="output_vocab_size")


def _sub_norms(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    return [
        *norm("self_attn.attn_sub_norm", facts.integer("hidden_size")),
        *norm("mlp.ffn_sub_norm", facts.integer("intermediate_size")),
    ]


BITNET = Family(q_bias=AB, o_bias=AB, layer_extra=_sub_norms)


def _differential(facts: Facts, family: Family, kind: str) -> Mixed:
    """Two attentions, one taken from the other by a learned share.

    Raises:
        ConfigError: the heads of keys and values cannot be halved.
    """
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    kv_heads = mixed.attention.num_key_value_heads
    if kv_heads % 2:
        raise facts.bad("num_key_value_heads", kv_heads, tr("an even number is needed"))
    shares = [
        vector(f"self_attn.lambda_{name}", _A, mixed.attention.head_dim, _WHOLE)
        for name in ("q1", "k1", "q2", "k2")
    ]
    return replace(mixed, tensors=[*mixed.tensors, *shares])


DIFFLLAMA = Family(attention=_differential, q_bias=AB, o_bias=AB)


def _doge_extra(facts: Facts, family: Family, mixer: str, _feed: str) -> list[Tensor]:
    """Weights of the residuals, the dynamic mask, and the experts of one hidden unit each."""
    heads, kv_heads = attention.head_counts(facts, family, mixer)
    width, _ = attention.head_widths(facts, family, mixer, heads)
    hidden = facts.integer("hidden_size")
    bias, shape = facts.says(AB), (kv_heads, kv_heads * width)
    tensors = [
        vector("input_residual", _TOP, hidden, _WHOLE),
        vector("post_attention_residual", _TOP, hidden, _WHOLE),
        vector("self_attn.A", _A, kv_heads, _WHOLE),
        *matrix("self_attn.dt_proj", _A, shape, _WHOLE, bias=bias),
    ]
    experts = facts.integer("num_experts")
    facts.settle("num_experts_per_tok", "keep_window_size")
    if facts.flag("is_moe"):
        keys, router = (2 * isqrt(experts), hidden), ModuleClass.ROUTER
        tensors += [
            *matrix("mlp.router_gate", router, keys, _WHOLE),
            Tensor("mlp.down_embed.weight", ModuleClass.EXPERTS, (experts, hidden)),
            Tensor("mlp.up_embed.weight", ModuleClass.EXPERTS, (experts, hidden)),
        ]
    return tensors


DOGE = Family(
    q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", qk_norm="head", layer_extra=_doge_extra,
    pattern=patterns.windowed_if_stated, reads_layer_types=False,
)  # fmt: skip
GRANITE_SWA = replace(GRANITE, sinks=True, pattern=patterns.full_first(4))


def _peri_norms(facts: Facts) -> tuple[str, ...]:
    further = ("post_norm1", "post_norm2") if facts.flag("use_post_norm", default=True) else ()
    return ("input_layernorm", "post_attention_layernorm", *further)


HYPERCLOVAX = replace(LLAMA, norm_rule=_peri_norms)
NANOCHAT = Family(names=_TWO_LAYERS, q_bias=AB, o_bias=AB, gated=False, norm_weight=False)
COSMOS3_EDGE = Family(names=_TWO_LAYERS, q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", gated=False)
GLM_OCR = replace(GLM4, q_bias=False, mtp=nextn, prediction=Prediction(repeats_tables=True))

_REUSED = "further cycle"


def _cycles(facts: Facts) -> tuple[tuple[str, str], ...]:
    """A slow and a fast stack of layers, run in cycles; each run keeps a cache of its own.

    Raises:
        ConfigError: a count is missing or absurd.
    """
    layers = facts.integer("num_hidden_layers")
    stack = facts.integer("num_layers_per_stack", layers)
    slow, fast = facts.integer("H_cycles"), facts.integer("L_cycles")
    facts.settle("L_bp_cycles")
    runs = facts.checked("num_hidden_layers", stack * slow * (fast + 1), 1)
    return ((FULL, DENSE),) * (2 * stack) + ((_REUSED, NONE),) * (runs - 2 * stack)


def _without_weights(facts: Facts, family: Family, kind: str) -> Mixed:
    return Mixed([], attention.gqa(facts, family, kind).attention)


def _first_state(facts: Facts, _family: Family) -> list[Tensor]:
    return [vector("model.z_L_init", _TOP, facts.integer("hidden_size"), _WHOLE)]


HRM_TEXT = Family(
    kinds=_cycles, mixers={_REUSED: _without_weights}, q_bias=AB, o_bias=AB, q_gate=True,
    mlp_bias="mlp_bias", norm_weight=False, positions=_first_state,
    kv_heads=lambda facts, _kind: facts.integer("num_attention_heads"),
)  # fmt: skip

_FIRST = "first"


def _modern_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    return patterns.full_first(facts.integer("global_attn_every_n_layers", 3))(facts, layers)


def _modern_window(facts: Facts, _kind: str) -> int:
    """``local_attention`` counts both sides, a decoder sees one; a saved config has both keys."""
    half = facts.integer("local_attention", low=2) // 2
    return facts.integer("sliding_window") if facts.stated.get("sliding_window") else half


def _modern_extra(facts: Facts, _family: Family, _mixer: str, feed: str) -> list[Tensor]:
    """The norms of a layer; the first attends to what the embedding's norm yields."""
    hidden, bias = facts.integer("hidden_size"), facts.flag("norm_bias")
    names = ("mlp_norm",) if feed == _FIRST else ("attn_norm", "mlp_norm")
    return [tensor for name in names for tensor in norm(name, hidden, bias=bias)]


def _modern_outer(facts: Facts, _family: Family) -> list[Tensor]:
    hidden, bias = facts.integer("hidden_size"), facts.flag("norm_bias")
    tensors = norm("model.embeddings.norm", hidden, bias=bias)
    module, own_bias = ModuleClass.LM_HEAD, facts.flag("classifier_bias")
    kind = head_of(facts.stated)
    if kind == "none":
        return tensors
    if kind == "score" and own_bias:
        tensors.append(vector("score.bias", module, labels_of(facts), _WHOLE))
    tensors += matrix("lm_head.dense", module, (hidden, hidden), _WHOLE, bias=own_bias)
    return tensors + norm("lm_head.norm", hidden, bias=bias)


MODERNBERT_DECODER = Family(
    names=Names(
        attention="attn", output="Wo", gate="Wi", down="Wo", embedding="model.embeddings.tok",
        final_norm="model.final_norm",
    ),
    q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", gate_up_fused=True, norms=(), norm_bias="norm_bias",
    pattern=_modern_pattern, window=_modern_window,
    feed_pattern=lambda _facts, layers: (_FIRST, *(DENSE,) * (layers - 1)),
    feeds={_FIRST: feed.dense}, layer_extra=_modern_extra, positions=_modern_outer,
    head_bias="decoder_bias", head_dim=whole_heads, kv_heads=own_heads,
)  # fmt: skip

FAMILIES = {
    "apertus": APERTUS, "apertus1p5_text": APERTUS_TEXT, "bitnet": BITNET, "diffllama": DIFFLLAMA,
    "doge": DOGE, "granite_swa": GRANITE_SWA, "hyperclovax": HYPERCLOVAX, "nanochat": NANOCHAT,
    "cosmos3_edge_text": COSMOS3_EDGE, "glm_ocr_text": GLM_OCR, "hrm_text": HRM_TEXT,
    "modernbert-decoder": MODERNBERT_DECODER,
}  # fmt: skip
