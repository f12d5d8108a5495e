"""Decoders with a mixture of experts (attention as in the dense ones, or latent)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import (
    DENSE,
    FULL,
    SPARSE,
    Family,
    Moe,
    Names,
    Prediction,
    norm,
    vector,
)
from engine.architecture.families.dense import AB, nextn
from engine.architecture.spec import ModuleClass, Sharding
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.spec import Doubt, Tensor
    from engine.config.facts import Facts


def times_shared(
    count_key: str, width_key: str = "moe_intermediate_size"
) -> Callable[[Facts], int]:
    """Width of the shared experts as one MLP: their number times the width of one."""

    def width(facts: Facts) -> int:
        shared = facts.count(count_key)
        return shared * facts.integer(width_key) if shared else 0

    return width


MIXTRAL_MOE = Moe(
    experts="num_local_experts", width="intermediate_size", names=("w1", "w3", "w2"),
    container="block_sparse_moe.experts", router="block_sparse_moe.gate",
)  # fmt: skip
MIXTRAL = Family(
    pattern=patterns.windowed_if_stated, feed_pattern=patterns.all_sparse, moe=MIXTRAL_MOE
)
PHIMOE = Family(
    q_bias=AB, o_bias=AB, norm_bias=True, head_bias="lm_head_bias", moe=MIXTRAL_MOE,
    pattern=patterns.windowed_if_stated, feed_pattern=patterns.all_sparse,
)  # fmt: skip
MINIMAX_M2 = Family(
    harmless=("mlp_intermediate_size", "num_mtp_modules", "use_mtp"),
    qk_norm="full", feed_pattern=patterns.all_sparse, moe=MIXTRAL_MOE,
)  # fmt: skip
QWEN2_MOE = Family(
    q_bias="qkv_bias", pattern=patterns.every_second_below_max, feed_pattern=patterns.sparse_steps,
    moe=Moe(
        shared="mlp.shared_expert", shared_gate="mlp.shared_expert_gate",
        shared_width=lambda f: f.count("shared_expert_intermediate_size"),
    ),
)  # fmt: skip
QWEN3_MOE = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", pattern=patterns.windowed_if_used,
    feed_pattern=patterns.sparse_steps, moe=Moe(experts="num_local_experts"),
)  # fmt: skip
# Their classes have no switch: a window that is stated holds for every layer's cache.
QWEN3_MOE_TEXT = replace(QWEN3_MOE, pattern=patterns.windowed_if_stated)
GPT_OSS = Family(
    q_bias=AB, o_bias=AB, sinks=True, pattern=patterns.every(2), feed_pattern=patterns.all_sparse,
    moe=Moe(
        experts="num_local_experts", width="intermediate_size", router="mlp.router",
        router_bias=True, fused=True, expert_bias=True,
    ),
)  # fmt: skip
DEEPSEEK_MOE = Moe(
    experts="n_routed_experts", shared="mlp.shared_experts",
    shared_width=times_shared("n_shared_experts"),
)  # fmt: skip
DEEPSEEK = Family(
    attention=attention.mla, q_bias=AB, feed_pattern=patterns.deepseek, moe=DEEPSEEK_MOE
)
WITH_TABLES = Prediction(repeats_tables=True)
DEEPSEEK_V3 = replace(DEEPSEEK, mtp=nextn, prediction=WITH_TABLES)
DEEPSEEK_V2 = replace(DEEPSEEK, mlp_bias="mlp_bias")
# Their classes have the attention of DeepSeek, and no experts whatever a config states.
MINICPM3 = replace(DEEPSEEK_V2, feed_pattern=patterns.all_dense, moe=None)
YOUTU = replace(DEEPSEEK, feed_pattern=patterns.all_dense, moe=None)
# The first layer is dense even where nothing says so.
GLM4_MOE_LITE = replace(DEEPSEEK_V3, feed_pattern=patterns.dense_then(1))


def _post_mlp_norm(facts: Facts, _family: Family) -> list[Tensor]:
    return norm("mlp.post_mlp_layernorm", facts.integer("hidden_size"))


AXK1 = replace(
    DEEPSEEK, feed_pattern=patterns.dense_then(1),
    moe=replace(DEEPSEEK_MOE, further=_post_mlp_norm),
)  # fmt: skip
GLM4_MOE = Family(
    q_bias=AB, qk_norm="head", qk_norm_if="use_qk_norm", feed_pattern=patterns.deepseek,
    moe=DEEPSEEK_MOE, mtp=nextn, prediction=WITH_TABLES,
)  # fmt: skip
GLM4V_MOE = replace(GLM4_MOE, mtp=None)


def _correction_is_no_parameter(facts: Facts) -> list[Doubt]:
    facts.settle("moe_router_enable_expert_bias")
    return []


SARVAM_MOE = replace(GLM4V_MOE, doubts=_correction_is_no_parameter)
SOLAR_OPEN = Family(
    q_bias=AB, qk_norm="head", qk_norm_if="use_qk_norm", feed_pattern=patterns.all_sparse,
    moe=DEEPSEEK_MOE,
)  # fmt: skip
DOTS1 = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", pattern=patterns.from_max_window_layers,
    feed_pattern=patterns.deepseek, moe=DEEPSEEK_MOE,
)  # fmt: skip


def _bailing_shared(facts: Facts) -> int:
    # The width stated beside is that of one expert; layers slide in no published model.
    facts.settle("moe_shared_expert_intermediate_size", "max_window_layers")
    return times_shared("num_shared_experts")(facts)


def _bailing_bias(facts: Facts, _family: Family) -> list[Tensor]:
    if not facts.flag("moe_router_enable_expert_bias"):
        return []
    experts = facts.integer("num_experts")
    return [vector("mlp.gate.expert_bias", ModuleClass.ROUTER, experts, Sharding.REPLICATED)]


# Ling and Ring, whose second version normalises queries and keys and corrects its routers: the
# published totals of Ling-mini-2.0 (16,255,643,392) and Ling-1T (999,705,328,640) come out.
BAILING_MOE = Family(
    harmless=("norm_head",),
    names=Names(
        attention="attention", fused="query_key_value", output="dense",
        embedding="model.word_embeddings", query_norm="query_layernorm",
        key_norm="key_layernorm",
    ),
    q_bias="use_qkv_bias", o_bias="use_bias", qk_norm="head", qk_norm_if="use_qk_norm",
    feed_pattern=patterns.dense_first("first_k_dense_replace"),
    moe=Moe(
        experts="num_experts", shared="mlp.shared_experts",
        shared_width=_bailing_shared, further=_bailing_bias,
    ),
)  # fmt: skip
# The first DeepSeek mixture, whose attention is Llama's: 16,375,728,128 comes out for the 16B.
DEEPSEEK_V1 = Family(q_bias=AB, o_bias=AB, feed_pattern=patterns.deepseek, moe=DEEPSEEK_MOE)


def _olmoe_widths(facts: Facts, _kind: str) -> tuple[int, int]:
    """Its norms are as wide as the heads that share the hidden size out: others cannot run."""
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    width = facts.integer("head_dim", hidden // heads)
    if hidden % heads:
        raise facts.bad(
            "hidden_size",
            hidden,
            tr("a multiple of num_attention_heads ({heads}) is needed").format(heads=heads),
        )
    if width != hidden // heads:
        raise facts.bad(
            "head_dim",
            width,
            tr("hidden_size / heads ({hidden}) is needed").format(hidden=hidden // heads),
        )
    return width, width


OLMOE = Family(
    q_bias=AB, o_bias=AB, qk_norm="full", head_dim=_olmoe_widths, feed_pattern=patterns.all_sparse,
    moe=Moe(width="intermediate_size"),
)  # fmt: skip
FLEX_OLMO = Family(
    q_bias=AB, o_bias=AB, qk_norm="full", feed_pattern=patterns.all_sparse,
    norms=("post_attention_layernorm", "post_feedforward_layernorm"),
    moe=Moe(width="intermediate_size"),
)  # fmt: skip
GRANITE_MOE = Family(
    q_bias=AB, o_bias=AB, feed_pattern=patterns.all_sparse,
    moe=Moe(
        experts="num_local_experts", width="intermediate_size", fused=True,
        container="block_sparse_moe.experts", router="block_sparse_moe.router.layer",
        shared="shared_mlp", shared_width=lambda f: f.count("shared_intermediate_size"),
    ),
)  # fmt: skip
GRANITE_MOE_SWA = replace(GRANITE_MOE, sinks=True, pattern=patterns.full_first(4))


def _ernie_feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    step = facts.integer("moe_layer_interval", 1)
    first = facts.count("moe_layer_start_index")
    stated = facts.raw("moe_layer_end_index")
    last = layers - 1 if stated in (None, -1) else facts.count("moe_layer_end_index")
    return tuple(
        SPARSE if (i + 1) % step == 0 and first <= i <= last else DENSE for i in range(layers)
    )


def _ernie_bias(facts: Facts, _family: Family) -> list[Tensor]:
    name = "mlp.moe_statics.e_score_correction_bias"
    width = facts.integer("moe_num_experts")
    return [vector(name, ModuleClass.ROUTER, width, Sharding.REPLICATED)]


ERNIE_MOE = Family(
    q_bias="use_bias", o_bias="use_bias", mlp_bias="use_bias", head_bias="use_bias",
    feed_pattern=_ernie_feeds,
    moe=Moe(
        experts="moe_num_experts", active="moe_k", shared="mlp.shared_experts",
        shared_width=times_shared("moe_num_shared_experts"), further=_ernie_bias,
    ),
)  # fmt: skip


def _of_all(facts: Facts, key: str, otherwise: int) -> int:
    """The number ``key``, or the one that a list of it repeats for every layer.

    A list of different numbers is left unread, and so is doubted.
    """
    if not isinstance(facts.stated.get(key), list):
        return facts.integer(key, otherwise)
    entries = set(facts.integers(key, low=1) or ())
    if len(entries) == 1:
        return entries.pop()
    facts.asked.discard(key)
    return otherwise


def _hunyuan_width(facts: Facts) -> int:
    facts.settle("anyres_pooling_size", "org_vocab_size")
    if not facts.flag("use_cla"):
        facts.settle("cla_share_factor")
    return _of_all(facts, "moe_intermediate_size", facts.integer("intermediate_size"))


def _hunyuan_shared(facts: Facts) -> int:
    return facts.integer("intermediate_size") * _of_all(facts, "num_shared_expert", 1)


HUNYUAN_MOE = Family(
    harmless=("dense_list",),
    names=Names(query_norm="query_layernorm", key_norm="key_layernorm"),
    q_bias=AB, o_bias=AB, qk_norm="head",
    feed_pattern=patterns.dense_first("moe_layer_num_skipped"),
    moe=Moe(
        active="moe_topk", width_rule=_hunyuan_width, router="mlp.gate.wg",
        shared="mlp.shared_mlp", shared_width=_hunyuan_shared,
    ),
)  # fmt: skip
EXAONE_MOE = Family(
    mtp=nextn,
    prediction=Prediction(
        kinds=lambda _f, blocks: ((FULL, DENSE),) * blocks, joins_once=True, join=Sharding.COLUMN
    ),
    qk_norm="head", norms=("input_layernorm", "post_attention_layernorm"),
    pattern=patterns.every(4, "sliding_window_pattern", needs_window=True),
    feed_pattern=patterns.dense_first("first_k_dense_replace"),
    moe=Moe(
        experts="num_experts", shared="mlp.shared_experts",
        shared_width=times_shared("num_shared_experts"),
    ),
)  # fmt: skip
LLAMA4 = Family(
    names=Names(mlp="feed_forward"), q_bias=AB, o_bias=AB, pattern=patterns.unroped_are_full,
    feed_pattern=patterns.interleaved_moe, width=lambda f: f.integer("intermediate_size_mlp"),
    moe=Moe(
        experts="num_local_experts", width="intermediate_size", fused=True,
        container="feed_forward.experts", router="feed_forward.router",
        shared="feed_forward.shared_expert", shared_width=lambda f: f.integer("intermediate_size"),
    ),
)  # fmt: skip


def _mimo_heads(facts: Facts, kind: str) -> int:
    key = "swa_num_attention_heads" if kind == patterns.SLIDING else "num_attention_heads"
    return facts.integer(key, facts.integer("num_attention_heads"))


def _mimo_kv_heads(facts: Facts, kind: str) -> int:
    """The class doubles them where the window slides; published configs say their number."""
    heads = _mimo_heads(facts, kind)
    kv_heads = facts.integer("num_key_value_heads", heads)
    if kind != patterns.SLIDING:
        return kv_heads
    own = facts.integer("swa_num_key_value_heads", 2 * kv_heads)
    if heads % own:
        wanted = tr(
            "sliding layers have {own} of them, which must divide their {heads} heads"
        ).format(own=own, heads=heads)
        raise facts.bad("num_key_value_heads", kv_heads, wanted)
    return own


def _mimo_widths(facts: Facts, kind: str) -> tuple[int, int]:
    width, v_width = facts.integer("head_dim"), facts.integer("v_head_dim")
    if kind == patterns.SLIDING:
        return facts.integer("swa_head_dim", width), facts.integer("swa_v_head_dim", v_width)
    return width, v_width


def _mimo_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    stated = facts.integers("hybrid_layer_pattern")
    if stated and len(stated) == layers:
        return tuple(patterns.SLIDING if s else patterns.FULL for s in stated)
    return tuple(
        patterns.FULL if i == 0 or (i + 1) % 6 == 0 else patterns.SLIDING for i in range(layers)
    )


def _mimo_window(facts: Facts, _kind: str) -> int:
    """``sliding_window_size`` leaves out the token that looks back."""
    before, window = facts.count("sliding_window_size"), facts.count("sliding_window")
    return before + 1 if before else facts.checked("sliding_window", window, 1)


def _mimo_sinks(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    key = (
        "add_swa_attention_sink_bias"
        if mixer == patterns.SLIDING
        else "add_full_attention_sink_bias"
    )
    if not facts.flag(key, default=mixer == patterns.SLIDING):
        return []
    heads = _mimo_heads(facts, mixer)
    return [vector("self_attn.sinks", ModuleClass.ATTENTION, heads, Sharding.COLUMN)]


MIMO_V2 = Family(
    q_bias=AB, heads=_mimo_heads, kv_heads=_mimo_kv_heads, head_dim=_mimo_widths,
    pattern=_mimo_pattern, feed_pattern=patterns.dense_then(1),
    layer_extra=_mimo_sinks, moe=Moe(experts="n_routed_experts"),
    window=_mimo_window,
)  # fmt: skip


def _cohere2_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """The dense layers in front have a period of their own."""
    dense = min(facts.integer("first_k_dense_replace", 0, 0), layers)
    key = "prefix_dense_sliding_window_pattern"
    before = patterns.every(1, key)(facts, dense) if dense else ()
    return before + patterns.every(4, "sliding_window_pattern")(facts, layers - dense)


COHERE2_MOE = Family(
    q_bias=AB, o_bias=AB, norms=("input_layernorm",), pattern=_cohere2_pattern, tied=True,
    feed_pattern=patterns.dense_first("first_k_dense_replace"),
    width=lambda f: f.integer("prefix_dense_intermediate_size", f.integer("intermediate_size")),
    moe=Moe(
        width="intermediate_size", shared="mlp.shared_experts",
        shared_width=times_shared("num_shared_experts", "intermediate_size"),
    ),
)  # fmt: skip


def _hy_v3_shared(facts: Facts) -> int:
    """Without shared experts the class builds one of the dense width."""
    return times_shared("num_shared_experts")(facts) or facts.integer("intermediate_size")


HY_V3 = Family(
    q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", qk_norm="head",
    feed_pattern=patterns.dense_first("first_k_dense_replace", 1),
    moe=Moe(shared="mlp.shared_experts", shared_width=_hy_v3_shared), mtp=nextn,
)  # fmt: skip
KOLIBRI1 = Family(
    qk_norm="head", pattern=patterns.every(5), feed_pattern=patterns.all_sparse,
    norms=(
        "input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm",
        "post_mlp_layernorm",
    ),
    moe=Moe(
        experts="num_local_experts", shared="mlp.shared_experts",
        shared_width=lambda f: f.count("shared_expert_intermediate_size"),
    ),
)  # fmt: skip

FAMILIES = {
    "mixtral": MIXTRAL, "phimoe": PHIMOE, "minimax_m2": MINIMAX_M2, "qwen2_moe": QWEN2_MOE,
    "qwen3_moe": QWEN3_MOE, "qwen3_vl_moe_text": QWEN3_MOE_TEXT,
    "qwen3_omni_moe_text": QWEN3_MOE_TEXT, "gpt_oss": GPT_OSS, "deepseek_v2": DEEPSEEK_V2,
    "deepseek_v3": DEEPSEEK_V3, "kimi_k2": DEEPSEEK_V3, "mistral4": DEEPSEEK,
    "sarvam_mla": DEEPSEEK, "axk1": AXK1,
    "glm4_moe_lite": GLM4_MOE_LITE, "glm4_moe": GLM4_MOE, "glm4v_moe_text": GLM4V_MOE,
    "sarvam_moe": SARVAM_MOE,
    "solar_open": SOLAR_OPEN, "bailing_moe": BAILING_MOE, "deepseek": DEEPSEEK_V1, "dots1": DOTS1,
    "olmoe": OLMOE, "flex_olmo": FLEX_OLMO, "granitemoe": GRANITE_MOE,
    "granitemoeshared": GRANITE_MOE, "ernie4_5_moe": ERNIE_MOE, "hunyuan_v1_moe": HUNYUAN_MOE,
    "exaone_moe": EXAONE_MOE, "llama4_text": LLAMA4, "mimo_v2_flash": MIMO_V2,
    "minicpm3": MINICPM3, "youtu": YOUTU, "granitemoe_swa": GRANITE_MOE_SWA,
    "cohere2_moe": COHERE2_MOE, "hy_v3": HY_V3, "kolibri1": KOLIBRI1,
}  # fmt: skip
