"""DeepSeek-V4: compressed keys and values, low-rank query and output, hyper-connections."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import patterns
from engine.architecture.families.base import (
    SLIDING,
    SPARSE,
    Family,
    Mixed,
    Moe,
    Names,
    Prediction,
    matrix,
    norm,
)
from engine.architecture.families.dense import nextn
from engine.architecture.spec import (
    AttentionKind,
    AttentionSpec,
    Compression,
    ModuleClass,
    Sharding,
    Tensor,
)
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_WHOLE = Sharding.REPLICATED
_CSA, _HCA = "compressed_sparse_attention", "heavily_compressed_attention"
_KINDS = {0: SLIDING, 4: _CSA, 128: _HCA}
_RATES = {_CSA: ("compress_rate_csa", 4), _HCA: ("compress_rate_hca", 128)}
"""Kind of layer -> the key that older configs state its rate under, and the class's own rate."""


def _pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """As stated; else two heavily compressed layers, then both kinds in turn."""
    stated = facts.words("layer_types")
    ratios = facts.integers("compress_ratios")
    if stated is not None:
        kinds = stated
    elif ratios is not None:
        kinds = tuple(_KINDS.get(ratio, "") for ratio in ratios)
    else:
        kinds = tuple(_CSA if i > 1 and i % 2 else _HCA for i in range(layers))
    if len(kinds) < layers or not set(kinds) <= set(_KINDS.values()):
        raise facts.bad("compress_ratios", kinds, tr("0, 4 or 128 for each layer is needed"))
    return kinds[:layers]


def _rate(facts: Facts, kind: str) -> int:
    older, own = _RATES[kind]
    if facts.has(older):
        return facts.integer(older)
    rates = facts.sub("compress_rates")
    return rates.integer(kind, own) if rates else own


def _attention(facts: Facts, _family: Family, kind: str) -> Mixed:
    """One shared key/value head, low-rank query and output, and the compressors.

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
    window = facts.integer("sliding_window")
    index, count = facts.integer("index_head_dim"), facts.integer("index_n_heads")
    keeps = AttentionSpec(
        AttentionKind.SLIDING, heads, 1, width, width, window,
        qk_rope_head_dim=facts.integer("qk_rope_head_dim", 64, 0), keeps_values=False,
    )  # fmt: skip
    if kind == SLIDING:
        return Mixed(tensors, keeps)
    rate = _rate(facts, kind)
    if kind == _HCA:
        tensors += _compressor(path + "compressor.", hidden, width, rate)
        entries = Compression(rate, width)
    else:
        tensors += _compressor(path + "compressor.", hidden, width, rate, doubled=True)
        tensors += _compressor(path + "indexer.compressor.", hidden, index, rate, doubled=True)
        tensors += matrix(path + "indexer.wq_b", _A, (count * index, rank), _WHOLE)
        tensors += matrix(path + "indexer.weights_proj", _A, (count, hidden), _WHOLE)
        entries = Compression(rate, width, index, overlaps=True)
    return Mixed(tensors, replace(keeps, kind=AttentionKind.FULL, compression=entries))


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


def _connections(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
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


def _outer(facts: Facts, _family: Family) -> list[Tensor]:
    streams = facts.integer("hc_mult", 4)
    other = ModuleClass.OTHER
    return [
        Tensor("hc_head_fn", other, (streams, streams * facts.integer("hidden_size"))),
        Tensor("hc_head_base", other, (streams,)),
        Tensor("hc_head_scale", other, (1,)),
    ]


def _unused(facts: Facts) -> list[Doubt]:
    # Every layer is sparse, whichever way it routes; the keys are those of one head.
    facts.settle("mlp_layer_types", "num_key_value_heads", "n_shared_experts")
    return []


DEEPSEEK_V4 = Family(
    names=Names(mlp="ffn", gate="w1", up="w3", down="w2"), attention=_attention,
    mixers={_CSA: _attention, _HCA: _attention}, mlp_bias="mlp_bias",
    pattern=_pattern, reads_layer_types=False, feed_pattern=patterns.all_sparse,
    layer_extra=_connections, positions=_outer, norms=("attn_norm", "ffn_norm"),
    moe=Moe(
        experts="n_routed_experts", container="ffn.experts", router="ffn.gate",
        shared="ffn.shared_experts",
        # One shared expert of this width, whatever n_shared_experts says.
        shared_width=lambda f: f.integer("moe_intermediate_size"),
    ),
    mtp=nextn,
    # A block slides, reads no entries of several tokens, and has the head of its streams.
    prediction=Prediction(
        kinds=lambda _f, blocks: ((SLIDING, SPARSE),) * blocks, join=_WHOLE, further=_outer
    ),
    doubts=_unused,
)  # fmt: skip

FAMILIES = {"deepseek_v4": DEEPSEEK_V4, "deepseek_ref": DEEPSEEK_V4}
