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
from engine.architecture.families.dense import AB, nextn
from engine.architecture.families.sparse import DEEPSEEK_MOE, WITH_TABLES
from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.families.base import PatternRule
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_WHOLE = Sharding.REPLICATED


INDEXED = "indexed_attention"
SHARED_INDEX = "indexed_attention, shared index"
"""A layer that reads the tokens which the last one with an indexer has selected."""


def indexer(facts: Facts, rank: int) -> list[Tensor]:
    """The indexer of DeepSeek-V3.2: its query reads a vector of ``rank``."""
    hidden, width = facts.integer("hidden_size"), facts.integer("index_head_dim")
    heads = facts.integer("index_n_heads")
    path = "self_attn.indexer."
    return [
        *matrix(path + "wq_b", _A, (heads * width, rank), _WHOLE),
        *matrix(path + "wk", _A, (width, hidden), _WHOLE),
        *norm(path + "k_norm", width, bias=True),
        *matrix(path + "weights_proj", _A, (heads, hidden), _WHOLE),
    ]


def indexed(facts: Facts, family: Family, kind: str) -> Mixed:
    """Latent attention with the sparse indexer (DeepSeek-V3.2, GLM-5)."""
    mixed = attention.mla(facts, family, kind)
    width, rank = facts.integer("index_head_dim"), facts.integer("q_lora_rank")
    tensors = indexer(facts, rank)
    if kind == SHARED_INDEX or mixed.attention is None:
        return mixed
    return Mixed([*mixed.tensors, *tensors], replace(mixed.attention, index_head_dim=width))


def shares_index(facts: Facts, layers: int, every: PatternRule | None = None) -> tuple[bool, ...]:
    """Which layers reuse the selection of the one before them, as GLM-5.2 states it.

    Args:
        facts: the text config.
        layers: their number.
        every: the types where the config states none, in place of GLM's frequency.

    Raises:
        ConfigError: a list of another length.
    """
    types = facts.words("indexer_types")
    pattern = facts.raw("index_topk_pattern")
    if types is None and pattern is not None and every is None:
        types = tuple(pattern) if isinstance(pattern, str) else facts.words("index_topk_pattern")
    if types is None:
        types = (every or _by_frequency)(facts, layers)
    if len(types) != layers:
        raise facts.bad(
            "indexer_types",
            types,
            tr("one entry for each of the {layers} is needed").format(layers=layers),
        )
    return tuple(entry in ("S", "shared") for entry in types)


def _by_frequency(facts: Facts, layers: int) -> tuple[str, ...]:
    step = max(facts.count("index_topk_freq"), 1)
    offset = facts.integer("index_skip_topk_offset", 2)
    return tuple("shared" if max(i - offset + 1, 0) % step else "full" for i in range(layers))


def _dsa_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    layers = facts.integer("num_hidden_layers")
    facts.settle("layer_types")
    mixers = [SHARED_INDEX if shares else INDEXED for shares in shares_index(facts, layers)]
    return tuple(zip(mixers, patterns.deepseek(facts, layers), strict=True))


def _experts(facts: Facts) -> int:
    """An older key wins over ``n_routed_experts`` where both are stated."""
    stated = facts.stated.get("num_experts") is not None
    facts.settle("num_experts")
    return facts.integer("num_experts" if stated else "n_routed_experts")


INDEXED_MOE = replace(DEEPSEEK_MOE, count_rule=_experts)
DSA = Family(
    harmless=("index_share_for_mtp_iteration",),
    kinds=_dsa_kinds, mixers={INDEXED: indexed, SHARED_INDEX: indexed}, q_bias=AB,
    moe=INDEXED_MOE, mtp=nextn,
)  # fmt: skip

_M3_SPARSE = "minimax_m3_sparse"


_M3_SELECTION = (
    "use_sparse_attention", "sparse_topk_blocks", "sparse_block_size", "sparse_init_block",
    "sparse_local_block", "sparse_score_type", "sparse_disable_index_value",
    "sparse_attention_freq",
)  # fmt: skip
"""How blocks are selected: of no size."""


def _m3_attention(facts: Facts, family: Family, kind: str) -> Mixed:
    """Grouped-query attention with block-sparse selection by its own small index heads."""
    facts.settle("use_gemma_norm")
    mixed = attention.gqa(facts, family, FULL)
    if kind == FULL:
        return mixed
    hidden = facts.integer("hidden_size")
    width, heads = facts.integer("index_head_dim"), facts.integer("index_n_heads")
    sparse = facts.sub("sparse_attention_config")
    if sparse:
        width = sparse.integer("sparse_index_dim", width)
        heads = sparse.integer("sparse_num_index_heads", heads)
        sparse.settle(*_M3_SELECTION)
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
        shared_width=lambda f: f.count("shared_intermediate_size")
        * f.integer("n_shared_experts", 1, 0),
    ),
)  # fmt: skip


FAMILIES = {
    "deepseek_v32": replace(DSA, prediction=WITH_TABLES),
    "glm_moe_dsa": DSA,
    "minimax_m3_vl_text": MINIMAX_M3,
}
