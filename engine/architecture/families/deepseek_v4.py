"""DeepSeek-V4: compressed keys and values, low-rank query and output, hyper-connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import patterns
from engine.architecture.families.base import Family, Mixed, Moe, Names, matrix, norm, state_doubt
from engine.architecture.families.sparse import nextn
from engine.architecture.spec import AttentionKind, AttentionSpec, ModuleClass, Sharding, Tensor

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_WHOLE = Sharding.REPLICATED
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


def _v4_doubts(facts: Facts) -> list[Doubt]:
    # Every layer is sparse, and what its rate would save is the doubt itself.
    facts.settle("mlp_layer_types", "compress_rates")
    reason = "its compressed layers keep one entry for 4 or 128 tokens: counted at full length"
    return state_doubt(reason)


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
    doubts=_v4_doubts,
)  # fmt: skip

FAMILIES = {"deepseek_v4": DEEPSEEK_V4, "deepseek_ref": DEEPSEEK_V4}
