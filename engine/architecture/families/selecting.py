"""Attention that selects which tokens to read: sparse indexers beside full caches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import (
    FULL,
    Family,
    Mixed,
    Moe,
    matrix,
    norm,
)
from engine.architecture.families.dense import AB
from engine.architecture.families.sparse import DEEPSEEK, nextn
from engine.architecture.spec import ModuleClass, Sharding

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_WHOLE = Sharding.REPLICATED


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
    feed_pattern=patterns.deepseek,
    width=lambda f: f.integer("dense_intermediate_size"), moe=Moe(
        experts="num_local_experts", width="intermediate_size",
        container="block_sparse_moe.experts", router="block_sparse_moe.gate",
        names=("w1", "w3", "w2"), shared="block_sparse_moe.shared_experts",
        shared_width=lambda f: f.integer("shared_intermediate_size")
        * f.integer("n_shared_experts", 1, 0),
    ),
)  # fmt: skip


FAMILIES = {
    "deepseek_v32": DSA,
    "glm_moe_dsa": DSA,
    "minimax_m3_vl_text": MINIMAX_M3,
}
