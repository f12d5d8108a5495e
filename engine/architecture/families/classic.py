"""Older decoders: layer norms with bias, plain MLPs, learned or ALiBi positions, fused queries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import patterns
from engine.architecture.families.base import Family, Names, matrix, norm
from engine.architecture.families.crossed import reading, reading_doubts, whole_heads
from engine.architecture.heads import first_class
from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import OuterRule
    from engine.config.facts import Facts

_E = ModuleClass.EMBEDDING


def four_times_hidden(facts: Facts) -> int:
    """The stated MLP width, else four times the hidden size."""
    return facts.integer("intermediate_size", 4 * facts.integer("hidden_size"))


def inner_or_four_times(facts: Facts) -> int:
    """``n_inner``, else four times the hidden size: what GPT-2's class and those after it read."""
    return facts.integer("n_inner", 4 * facts.integer("hidden_size"))


def ffn_dim(facts: Facts) -> int:
    """The MLP's width under the name that fairseq gave it."""
    return facts.integer("ffn_dim")


def _positions(name: str) -> OuterRule:
    def tensors(facts: Facts, _family: Family) -> list[Tensor]:
        rows = facts.integer("max_position_embeddings")
        return [Tensor(f"{name}.weight", _E, (rows, facts.integer("hidden_size")))]

    return tensors


_GPT2_NAMES = Names(
    attention="attn", fused="c_attn", output="c_proj", up="c_fc", down="c_proj",
    embedding="transformer.wte", final_norm="transformer.ln_f",
)  # fmt: skip


def own_heads(facts: Facts, _kind: str) -> int:
    """Every query head has keys and values of its own."""
    return facts.integer("num_attention_heads")


def _bigcode_heads(facts: Facts, _kind: str) -> int:
    return 1 if facts.flag("multi_query", default=True) else facts.integer("num_attention_heads")


_GPT2_READING = replace(_GPT2_NAMES, attention="crossattention", query="q_attn", fused="")


def gpt2_doubts(facts: Facts) -> list[Doubt]:
    """``DoubleHeadsModel`` has a second head, which chooses; others may read an encoder."""
    if "DoubleHeads" not in first_class(facts.stated):
        return reading_doubts(facts)
    reason = tr("the two heads of a DoubleHeadsModel are not counted")
    return [Doubt(Subject.WEIGHTS, reason, Direction.LOWER)]


GPT2 = Family(
    attention=reading(_GPT2_READING, "ln_cross_attn"), head_dim=whole_heads,
    doubts=gpt2_doubts,
    names=_GPT2_NAMES, q_bias=True, o_bias=True, mlp_bias=True, gated=False, norms=("ln_1", "ln_2"),
    norm_bias=True, width=inner_or_four_times, tied=True, kv_heads=own_heads,
    positions=_positions("transformer.wpe"),
)  # fmt: skip
GPT_BIGCODE = replace(GPT2, kv_heads=_bigcode_heads)


def _all_kept(facts: Facts, layers: int) -> tuple[str, ...]:
    """Local layers see a window, and yet keep every token."""
    facts.settle("attention_types", "attention_layers", "window_size")
    return patterns.all_full(facts, layers)


GPT_NEO = Family(
    head_dim=whole_heads, kv_heads=own_heads,
    names=Names(
        attention="attn.attention", output="out_proj", up="c_fc", down="c_proj",
        embedding="transformer.wte", final_norm="transformer.ln_f",
    ),
    o_bias=True, mlp_bias=True, gated=False, norms=("ln_1", "ln_2"), norm_bias=True, tied=True,
    width=four_times_hidden, positions=_positions("transformer.wpe"), pattern=_all_kept,
)  # fmt: skip
_GPTJ = Names(
    attention="attn", output="out_proj", up="fc_in", down="fc_out", embedding="transformer.wte",
    final_norm="transformer.ln_f",
)  # fmt: skip
GPTJ = Family(
    head_dim=whole_heads, kv_heads=own_heads,
    names=_GPTJ, mlp_bias=True, gated=False, norms=("ln_1",), norm_bias=True, head_bias=True,
    width=inner_or_four_times,
)  # fmt: skip
CODEGEN = Family(
    head_dim=whole_heads, kv_heads=own_heads,
    names=Names(
        attention="attn", fused="qkv_proj", output="out_proj", up="fc_in", down="fc_out",
        embedding="transformer.wte", final_norm="transformer.ln_f",
    ),
    mlp_bias=True, gated=False, norms=("ln_1",), norm_bias=True, head_bias=True,
    width=inner_or_four_times,
)  # fmt: skip
GPT_NEOX = Family(
    head_dim=whole_heads, kv_heads=own_heads,
    names=Names(
        attention="attention", fused="query_key_value", output="dense", up="dense_h_to_4h",
        down="dense_4h_to_h", embedding="gpt_neox.embed_in", final_norm="gpt_neox.final_layer_norm",
    ),
    q_bias="attention_bias", o_bias="attention_bias", mlp_bias=True, gated=False, norm_bias=True,
)  # fmt: skip


def _bloom_positions(facts: Facts, _family: Family) -> list[Tensor]:
    return norm("word_embeddings_layernorm", facts.integer("hidden_size"), bias=True)


BLOOM = Family(
    head_dim=whole_heads, kv_heads=own_heads,
    names=Names(
        attention="self_attention", fused="query_key_value", output="dense", up="dense_h_to_4h",
        down="dense_4h_to_h", embedding="word_embeddings", final_norm="ln_f",
    ),
    q_bias=True, o_bias=True, mlp_bias=True, gated=False, norm_bias=True, tied=True,
    width=lambda f: 4 * f.integer("hidden_size"), positions=_bloom_positions,
)  # fmt: skip


def _mpt_own_code(facts: Facts) -> bool:
    """Whether MosaicML's own class builds it: transformers' reads no width, bias or KV heads."""
    return first_class(facts.stated).startswith("MPT")


def _mpt_heads(facts: Facts, _kind: str) -> int:
    own = facts.sub("attn_config")
    heads = facts.integer("num_attention_heads")
    if own:
        own.settle("alibi_bias_max", "clip_qkv", "qk_ln", "softmax_scale")
    return own.integer("kv_n_heads", heads) if own and _mpt_own_code(facts) else heads


def _mpt_width(facts: Facts) -> int:
    ratio = facts.integer("expansion_ratio", 4)
    return (ratio if _mpt_own_code(facts) else 4) * facts.integer("hidden_size")


def _mpt_doubts(facts: Facts) -> list[Doubt]:
    own = facts.sub("attn_config")
    biased = not facts.flag("no_bias", default=True)
    if not _mpt_own_code(facts) or not (biased or (own and own.flag("qk_ln"))):
        return []
    reason = tr("what no_bias false or qk_ln adds in MosaicML's class is not counted")
    return [Doubt(Subject.WEIGHTS, reason, Direction.LOWER)]


MPT = Family(
    head_dim=whole_heads,
    names=Names(
        attention="attn", fused="Wqkv", output="out_proj", mlp="ffn", embedding="transformer.wte",
        final_norm="transformer.norm_f",
    ),
    kv_heads=_mpt_heads, gated=False, norms=("norm_1", "norm_2"), tied=True, width=_mpt_width,
    doubts=_mpt_doubts,
)  # fmt: skip


def _falcon_kv(facts: Facts, _kind: str) -> int:
    """New architecture: ``num_kv_heads``; else one head (multi-query) or as many as queries."""
    heads = facts.integer("num_attention_heads")
    new = facts.flag("new_decoder_architecture")
    if new:
        return facts.integer("num_kv_heads", heads)
    facts.settle("num_kv_heads")
    return 1 if facts.flag("multi_query", default=True) else heads


def _falcon_norms(facts: Facts) -> tuple[str, ...]:
    new = facts.flag("new_decoder_architecture")
    if not facts.flag("parallel_attn", default=True):
        facts.settle("num_ln_in_parallel_attn")
        return ("input_layernorm", "post_attention_layernorm")
    count = facts.integer("num_ln_in_parallel_attn", 2 if new else 1)
    return ("ln_attn", "ln_mlp") if count == 2 else ("input_layernorm",)


FALCON = Family(
    head_dim=whole_heads,
    names=Names(
        attention="self_attention", fused="query_key_value", output="dense", up="dense_h_to_4h",
        down="dense_4h_to_h", embedding="transformer.word_embeddings",
        final_norm="transformer.ln_f",
    ),
    kv_heads=_falcon_kv, q_bias="bias", o_bias="bias", mlp_bias="bias", gated=False,
    norm_rule=_falcon_norms, norm_bias=True, width=four_times_hidden, tied=True,
)  # fmt: skip


def _opt_outer(facts: Facts, _family: Family) -> list[Tensor]:
    """Positions with OPT's offset of two, and the projections of its smallest sizes."""
    hidden = facts.integer("hidden_size")
    width = facts.integer("word_embed_proj_dim", hidden)
    rows = facts.integer("max_position_embeddings") + 2
    tensors = [Tensor("model.decoder.embed_positions.weight", _E, (rows, hidden))]
    if width != hidden:
        other = ModuleClass.OTHER
        tensors += [
            *matrix("model.decoder.project_in", other, (hidden, width), Sharding.REPLICATED),
            *matrix("model.decoder.project_out", other, (width, hidden), Sharding.REPLICATED),
        ]
    if (
        facts.flag("do_layer_norm_before", default=True)
        and not facts.flag("_remove_final_layer_norm")
        and _opt_norms(facts)
    ):
        tensors += norm("model.decoder.final_layer_norm", hidden, bias=True)
    return tensors


def _opt_norms(facts: Facts) -> tuple[str, ...]:
    """None have weights where they are not ``elementwise_affine``."""
    if not facts.flag("layer_norm_elementwise_affine", default=True):
        return ()
    return ("self_attn_layer_norm", "final_layer_norm")


OPT = Family(
    head_dim=whole_heads, kv_heads=own_heads,
    names=Names(
        output="out_proj", mlp="layer", up="fc1", down="fc2", final_norm="",
        embedding="model.decoder.embed_tokens",
    ),
    q_bias="enable_bias", o_bias="enable_bias", mlp_bias="enable_bias", gated=False, norm_bias=True,
    norm_rule=_opt_norms, width=ffn_dim, embedding_width="word_embed_proj_dim",
    positions=_opt_outer, tied=True,
)  # fmt: skip
_XGLM_NAMES = Names(
    output="out_proj", mlp="layer", up="fc1", down="fc2", final_norm="model.layer_norm"
)
XGLM = Family(
    attention=reading(replace(_XGLM_NAMES, attention="encoder_attn"), "encoder_attn_layer_norm"),
    head_dim=whole_heads, kv_heads=own_heads, names=_XGLM_NAMES, width=ffn_dim,
    doubts=reading_doubts,
    q_bias=True, o_bias=True, mlp_bias=True, gated=False, norm_bias=True, tied=True,
    norms=("self_attn_layer_norm", "final_layer_norm"),
)  # fmt: skip
PERSIMMON = Family(
    head_dim=whole_heads, kv_heads=own_heads,
    names=Names(
        fused="query_key_value", output="dense", up="dense_h_to_4h", down="dense_4h_to_h",
        query_norm="q_layernorm", key_norm="k_layernorm", final_norm="model.final_layernorm",
    ),
    q_bias=True, o_bias=True, mlp_bias=True, gated=False, norm_bias=True, qk_norm="head",
    qk_norm_if="qk_layernorm", qk_norm_bias=True,
)  # fmt: skip

# Remote-code families of 2023: Llama-like blocks under other names.
BAICHUAN = Family(names=Names(fused="W_pack"))
INTERNLM2 = Family(
    names=Names(
        attention="attention", fused="wqkv", output="wo", mlp="feed_forward", gate="w1", up="w3",
        down="w2", embedding="model.tok_embeddings",
    ),
    q_bias="bias", o_bias="bias", norms=("attention_norm", "ffn_norm"),
)  # fmt: skip


def _half_stated(facts: Facts) -> int:
    """Qwen 1 states the width of gate and up together."""
    return facts.integer("intermediate_size") // 2


QWEN = Family(
    names=Names(
        attention="attn", fused="c_attn", output="c_proj", gate="w1", up="w2", down="c_proj",
        embedding="transformer.wte", final_norm="transformer.ln_f",
    ),
    q_bias=True, norms=("ln_1", "ln_2"), kv_heads=own_heads,
    width=_half_stated,
)  # fmt: skip


def _chatglm_kv(facts: Facts, _kind: str) -> int:
    if facts.flag("multi_query_attention"):
        return facts.integer("multi_query_group_num")
    return facts.integer("num_attention_heads")


def _chatglm_doubts(facts: Facts) -> list[Doubt]:
    usual = [facts.flag(key, default=True) for key in ("rmsnorm", "post_layer_norm")]
    if all(usual):
        return []
    reason = tr("other norms than ChatGLM was published with are counted as those")
    return [Doubt(Subject.WEIGHTS, reason, Direction.EITHER)]


CHATGLM = Family(
    harmless=("apply_query_key_layer_scaling", "post_layer_norm", "bias_dropout_fusion"),
    names=Names(
        attention="self_attention", fused="query_key_value", output="dense", gate="dense_h_to_4h",
        down="dense_4h_to_h", embedding="transformer.embedding.word_embeddings",
        final_norm="transformer.encoder.final_layernorm",
    ),
    kv_heads=_chatglm_kv, q_bias="add_qkv_bias", o_bias="add_bias_linear",
    mlp_bias="add_bias_linear", gate_up_fused=True, bare_is_headless=False, doubts=_chatglm_doubts,
)  # fmt: skip
EXAONE3 = Family(
    names=Names(
        attention="attn.attention", output="out_proj", gate="c_fc_0", up="c_fc_1", down="c_proj",
        embedding="transformer.wte", final_norm="transformer.ln_f",
    ),
    norms=("ln_1", "ln_2"), q_bias="attention_bias", o_bias="attention_bias", mlp_bias="mlp_bias",
)  # fmt: skip

FAMILIES = {
    "gpt2": GPT2, "gpt_bigcode": GPT_BIGCODE, "gpt_neo": GPT_NEO, "gptj": GPTJ, "codegen": CODEGEN,
    "gpt_neox": GPT_NEOX, "bloom": BLOOM, "mpt": MPT, "falcon": FALCON, "opt": OPT, "xglm": XGLM,
    "persimmon": PERSIMMON, "baichuan": BAICHUAN, "internlm2": INTERNLM2, "qwen": QWEN,
    "exaone": EXAONE3,
}  # fmt: skip
