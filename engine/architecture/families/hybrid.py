"""Decoders that mix attention with recurrent or sparse layers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed, patterns
from engine.architecture.families.base import (
    DENSE,
    FULL,
    LINEAR,
    NONE,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    Names,
    matrix,
    norm,
)  # fmt: skip
from engine.architecture.families.dense import AB
from engine.architecture.families.mixers import gated_delta_net, mamba2, short_convolution
from engine.architecture.families.sparse import (
    DEEPSEEK,
    QWEN2_MOE,
    by_frequency,
    nextn,
)  # fmt: skip
from engine.architecture.spec import (
    AttentionKind,
    AttentionSpec,
    Doubt,
    ModuleClass,
    MoeSpec,
    Sharding,
    Subject,
    Tensor,
)  # fmt: skip

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_WHOLE = Sharding.REPLICATED


def _state_doubt(reason: str) -> list[Doubt]:
    return [Doubt(Subject.SEQUENCE_STATE, reason)]


def _every_fourth_full(facts: Facts, layers: int) -> tuple[str, ...]:
    step = facts.integer("full_attention_interval", 4)
    return tuple(LINEAR if (i + 1) % step else FULL for i in range(layers))


def _qwen_mtp(facts: Facts) -> int:
    return facts.count("mtp_num_hidden_layers")


QWEN3_NEXT = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", q_gate=True, pattern=_every_fourth_full,
    mixers={LINEAR: gated_delta_net}, feed_pattern=patterns.sparse_steps, moe=QWEN2_MOE.moe,
    mtp=_qwen_mtp,
)  # fmt: skip
QWEN3_5 = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", q_gate=True, pattern=_every_fourth_full,
    mixers={LINEAR: gated_delta_net}, mtp=_qwen_mtp,
)  # fmt: skip
QWEN3_5_MOE = Family(
    q_bias=AB, o_bias=AB, qk_norm="head", q_gate=True, pattern=_every_fourth_full,
    mixers={LINEAR: gated_delta_net}, feed_pattern=patterns.all_sparse, moe=QWEN2_MOE.moe,
    mtp=_qwen_mtp,
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

_NEMOTRON = {"M": (LINEAR, NONE), "*": (FULL, NONE), "E": (NONE, SPARSE), "-": (NONE, DENSE)}
_NEMOTRON_WORDS = {
    "mamba": "M", "linear_attention": "M", "attention": "*", "full_attention": "*", "moe": "E",
    "mlp": "-",
}  # fmt: skip


def _nemotron_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """One block a layer: ``hybrid_override_pattern`` or a list of words."""
    pattern = facts.word("hybrid_override_pattern")
    if pattern:
        key, codes = "hybrid_override_pattern", list(pattern)
    else:
        key = "layers_block_type" if facts.has("layers_block_type") else "layer_types"
        words = facts.words(key)
        if not words:
            raise facts.bad("hybrid_override_pattern", None, "the pattern of layers is needed")
        codes = [_NEMOTRON_WORDS.get(word, word) for word in words]
    facts.raw("num_hidden_layers")
    if not set(codes) <= set(_NEMOTRON):
        raise facts.bad(key, "".join(codes), "only M, *, E and - are known")
    facts.checked("num_hidden_layers", len(codes), 1)
    return tuple(_NEMOTRON[code] for code in codes)


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
        tensors += matrix("mixer.fc1_latent_proj", mlp, (latent, hidden), _WHOLE)
        tensors += matrix("mixer.fc2_latent_proj", mlp, (hidden, latent), _WHOLE)
    return Fed(tensors, 0, MoeSpec(experts, facts.integer("num_experts_per_tok"), width, shared))


NEMOTRON_H = Family(
    names=Names(
        attention="mixer", mlp="mixer", embedding="backbone.embeddings",
        final_norm="backbone.norm_f",
    ),
    kinds=_nemotron_kinds, mixers={LINEAR: mamba2}, feeds={SPARSE: _nemotron_sparse}, gated=False,
    mlp_bias="mlp_bias", norms=("norm",),
)  # fmt: skip


def _indexed(facts: Facts, family: Family, kind: str) -> Mixed:
    """Latent attention with the sparse indexer (DeepSeek-V3.2, GLM-5)."""
    mixed = attention.mla(facts, family, kind)
    hidden, width = facts.integer("hidden_size"), facts.integer("index_head_dim")
    heads, rank = facts.integer("index_n_heads"), facts.integer("q_lora_rank")
    if kind == _SHARED_INDEX:
        return mixed
    path = "self_attn.indexer."
    mixed.tensors.extend(
        (
            *matrix(path + "wq_b", _A, (heads * width, rank), _WHOLE),
            *matrix(path + "wk", _A, (width, hidden), _WHOLE),
            *norm(path + "k_norm", width, bias=True),
            *matrix(path + "weights_proj", _A, (heads, hidden), _WHOLE),
        )
    )
    assert mixed.attention is not None  # noqa: S101 - mla always has one
    return replace(mixed, attention=replace(mixed.attention, index_head_dim=width))


_INDEXED = "indexed_attention"
_SHARED_INDEX = "indexed_attention, shared index"


def _dsa_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """GLM-5.2 lets some layers reuse the selection of the one before them."""
    layers = facts.integer("num_hidden_layers")
    facts.settle("layer_types", "num_experts")
    types = facts.words("indexer_types")
    pattern = facts.raw("index_topk_pattern")
    if types is None and isinstance(pattern, str):
        types = tuple("shared" if c == "S" else "full" for c in pattern)
    if types is None:
        step = max(facts.count("index_topk_freq"), 1)
        offset = facts.integer("index_skip_topk_offset", 2)
        types = tuple("shared" if max(i - offset + 1, 0) % step else "full" for i in range(layers))
    if len(types) != layers:
        raise facts.bad("indexer_types", types, f"one entry for each of the {layers} is needed")
    mixers = [_SHARED_INDEX if t == "shared" else _INDEXED for t in types]
    return tuple(zip(mixers, patterns.deepseek(facts, layers), strict=True))


DSA = Family(
    kinds=_dsa_kinds, mixers={_INDEXED: _indexed, _SHARED_INDEX: _indexed}, q_bias=AB,
    moe=DEEPSEEK.moe, mtp=nextn,
)  # fmt: skip

_M3_SPARSE = "minimax_m3_sparse"


def _m3_attention(facts: Facts, family: Family, kind: str) -> Mixed:
    """Grouped-query attention with block-sparse selection by its own small index heads."""
    mixed = attention.gqa(facts, family, FULL)
    if kind == FULL:
        return mixed
    hidden = facts.integer("hidden_size")
    sparse = facts.sub("sparse_attention_config") or facts
    stated = sparse is not facts
    width = sparse.integer("sparse_index_dim" if stated else "index_head_dim")
    heads = sparse.integer("sparse_num_index_heads" if stated else "index_n_heads")
    path = "self_attn.indexer."
    mixed.tensors.extend(
        (
            *matrix(path + "q_proj", _A, (heads * width, hidden), _WHOLE),
            *matrix(path + "k_proj", _A, (width, hidden), _WHOLE),
            *norm(path + "q_norm", width),
            *norm(path + "k_norm", width),
        )
    )
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    return replace(mixed, attention=replace(mixed.attention, index_head_dim=width))


def _m3_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    sparse = facts.sub("sparse_attention_config")
    frequency = sparse.integers("sparse_attention_freq") if sparse else None
    if frequency is None or len(frequency) != layers:
        return (FULL,) * layers
    return tuple(_M3_SPARSE if f else FULL for f in frequency)


MINIMAX_M3 = Family(
    qk_norm="head", pattern=_m3_pattern, mixers={_M3_SPARSE: _m3_attention},
    feed_pattern=by_frequency("moe_layer_freq", patterns.all_sparse),
    width=lambda f: f.integer("dense_intermediate_size"), moe=Moe(
        experts="num_local_experts", width="intermediate_size",
        container="block_sparse_moe.experts", router="block_sparse_moe.gate",
        names=("w1", "w3", "w2"), shared="block_sparse_moe.shared_experts",
        shared_width=lambda f: f.integer("shared_intermediate_size") * f.count("n_shared_experts"),
    ),
    doubts=lambda _f: _state_doubt(
        "its sparse layers select by block: the selection's own keys are counted at full length"
    ),
)  # fmt: skip


def _step_heads(facts: Facts, kind: str) -> int:
    heads = facts.integer("num_attention_heads")
    if kind != patterns.SLIDING:
        return heads
    other = facts.sub("attention_other_setting")
    if other:
        return other.integer("num_attention_heads", heads)
    return facts.integer("num_sliding_attention_heads", heads)


def _step_gate(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    rows = _step_heads(facts, mixer)
    return matrix("self_attn.g_proj", _A, (rows, facts.integer("hidden_size")), Sharding.COLUMN)


def _step_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """The published lists run on over the prediction blocks: cut to the layers."""
    stated = facts.words("layer_types")
    return tuple(stated[:layers]) if stated and len(stated) >= layers else (FULL,) * layers


def _step_feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    named = facts.raw("moe_layers_enum")
    if isinstance(named, str):
        parts = [part.strip() for part in named.split(",") if part.strip()]
        if not all(part.isdecimal() and len(part) < 6 for part in parts):
            raise facts.bad("moe_layers_enum", named, "layer numbers are needed")
        sparse = {int(part) for part in parts}
    else:
        sparse = set(range(facts.integer("first_k_dense_replace", 3, 0), layers))
    return tuple(SPARSE if i in sparse else DENSE for i in range(layers))


STEP3P5 = Family(
    heads=_step_heads, qk_norm="head", pattern=_step_pattern, reads_layer_types=False,
    kv_heads=lambda f, _k: f.integer("num_attention_groups", f.integer("num_key_value_heads", 8)),
    feed_pattern=_step_feeds, layer_extra=_step_gate, mlp_bias="mlp_bias", mtp=nextn,
    moe=Moe(
        experts="num_local_experts", container="moe", fused=True, router="moe.gate",
        shared="share_expert", shared_width=lambda f: f.integer("share_expert_dim"),
    ),
)  # fmt: skip

_V4_RATIOS = {0: "sliding_attention", 4: "compressed_sparse", 128: "heavily_compressed"}
_V4_WORDS = {
    "sliding_attention": "sliding_attention",
    "compressed_sparse_attention": "compressed_sparse",
    "heavily_compressed_attention": "heavily_compressed",
}


def _v4_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    stated = facts.words("layer_types")
    if stated:
        kinds = tuple(_V4_WORDS.get(word, word) for word in stated)
    else:
        ratios = facts.integers("compress_ratios") or ()
        kinds = tuple(_V4_RATIOS.get(ratio, "") for ratio in ratios)
    if len(kinds) < layers or not set(kinds) <= set(_V4_RATIOS.values()):
        raise facts.bad("compress_ratios", kinds, "0, 4 or 128 for each layer is needed")
    return kinds[:layers]


def _v4_attention(facts: Facts, _family: Family, kind: str) -> Mixed:
    """DeepSeek-V4: one shared key/value head, low-rank query and output, and the compressors.

    Source:
        transformers 5.24.0, ``deepseek_v4/modeling_deepseek_v4.py``.
    """
    hidden, width = facts.integer("hidden_size"), facts.integer("head_dim")
    heads, rank = facts.integer("num_attention_heads"), facts.integer("q_lora_rank")
    groups, o_rank = facts.integer("o_groups"), facts.integer("o_lora_rank")
    path = "attn."
    tensors = [
        *matrix(path + "wq_a", _A, (rank, hidden), _WHOLE),
        *norm(path + "q_norm", rank),
        *matrix(path + "wq_b", _A, (heads * width, rank), Sharding.COLUMN),
        *matrix(path + "wkv", _A, (width, hidden), _WHOLE),
        *norm(path + "kv_norm", width),
        *matrix(path + "wo_a", _A, (groups * o_rank, heads * width // groups), Sharding.COLUMN),
        *matrix(path + "wo_b", _A, (hidden, groups * o_rank), Sharding.ROW),
        Tensor(path + "attn_sink", _A, (heads,), 1, Sharding.COLUMN),
    ]
    if kind == "heavily_compressed":
        tensors += _compressor(path + "compressor.", hidden, width, 128)
    elif kind == "compressed_sparse":
        index, count = facts.integer("index_head_dim"), facts.integer("index_n_heads")
        tensors += _compressor(path + "compressor.", hidden, width, 4, doubled=True)
        tensors += _compressor(path + "indexer.compressor.", hidden, index, 4, doubled=True)
        tensors += matrix(path + "indexer.wq_b", _A, (count * index, rank), _WHOLE)
        tensors += matrix(path + "indexer.weights_proj", _A, (count, hidden), _WHOLE)
    window = facts.integer("sliding_window", 128)
    if kind == "sliding_attention":
        return Mixed(tensors, AttentionSpec(AttentionKind.SLIDING, heads, 1, width, width, window))
    return Mixed(tensors, AttentionSpec(AttentionKind.FULL, heads, 1, width, width))


def _compressor(
    path: str, hidden: int, width: int, rate: int, *, doubled: bool = False
) -> list[Tensor]:
    rows = 2 * width if doubled else width
    return [
        *matrix(path + "wkv", _A, (rows, hidden), _WHOLE),
        *matrix(path + "wgate", _A, (rows, hidden), _WHOLE),
        Tensor(path + "ape", _A, (rate, rows)),
        *norm(path + "norm", width),
    ]


def _v4_connections(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """Hyper-connections: mixing weights of the residual streams, around both blocks."""
    streams = facts.integer("hc_mult", 4)
    rows = 2 * streams + streams * streams
    wide = streams * facts.integer("hidden_size")
    found: list[Tensor] = []
    for name, module in (("hc_attn", _A), ("hc_ffn", ModuleClass.MLP)):
        found += [
            Tensor(f"{name}_fn", module, (rows, wide)),
            Tensor(f"{name}_base", module, (rows,)),
            Tensor(f"{name}_scale", module, (3,)),
        ]
    return found


def _v4_outer(facts: Facts, _family: Family) -> list[Tensor]:
    streams = facts.integer("hc_mult", 4)
    other = ModuleClass.OTHER
    return [
        Tensor("hc_head_fn", other, (streams, streams * facts.integer("hidden_size"))),
        Tensor("hc_head_base", other, (streams,)),
        Tensor("hc_head_scale", other, (1,)),
    ]


DEEPSEEK_V4 = Family(
    names=Names(mlp="ffn", gate="w1", up="w3", down="w2"), attention=_v4_attention,
    mixers={"compressed_sparse": _v4_attention, "heavily_compressed": _v4_attention},
    pattern=_v4_pattern, reads_layer_types=False, feed_pattern=patterns.all_sparse,
    layer_extra=_v4_connections, positions=_v4_outer, norms=("attn_norm", "ffn_norm"),
    moe=Moe(
        experts="n_routed_experts", container="ffn.experts", router="ffn.gate",
        shared="ffn.shared_experts",
        shared_width=lambda f: f.count("n_shared_experts") * f.integer("moe_intermediate_size"),
    ),
    mtp=nextn,
    doubts=lambda _f: _state_doubt(
        "its compressed layers keep one entry for 4 or 128 tokens: counted at full length"
    ),
)  # fmt: skip

FAMILIES = {
    "qwen3_next": QWEN3_NEXT, "qwen3_5_text": QWEN3_5, "qwen3_5_moe_text": QWEN3_5_MOE,
    "lfm2": LFM2, "lfm2_moe": LFM2_MOE, "nemotron_h": NEMOTRON_H, "deepseek_v32": DSA,
    "glm_moe_dsa": DSA, "minimax_m3_vl_text": MINIMAX_M3, "step3p5": STEP3P5,
    "deepseek_v4": DEEPSEEK_V4, "deepseek_ref": DEEPSEEK_V4,
}  # fmt: skip
