"""Qwen4-Exp: a gated delta net beside indexed attention, residual streams, n-gram embeddings.

Source:
    transformers 5.24.0, ``qwen4_exp/modeling_qwen4_exp.py``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import isqrt
from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import (
    FULL,
    LINEAR,
    SPARSE,
    Family,
    Mixed,
    Names,
    matrix,
    norm,
)
from engine.architecture.families.dense import AB
from engine.architecture.families.mixers import gated_delta_net
from engine.architecture.families.sparse import QWEN2_MOE
from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _MLP, _OTHER = ModuleClass.ATTENTION, ModuleClass.MLP, ModuleClass.OTHER
_WHOLE = Sharding.REPLICATED
_INDEXED = "indexed_attention"
_FIRST = ", first"
_NAMES = {"full_attention": _INDEXED, "attention": _INDEXED, "qwen_sparse_attention": _INDEXED}
_AXES = 3
"""Positions of a token: time, height, width."""
_MOST_HEADS, _MOST_ROWS = 1024, 2**28
"""Prime numbers are searched for no more heads, and for no larger tables."""


def _pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    stated = facts.words("layer_types")
    if stated is None:
        period = facts.integer("full_attention_interval", 4)
        return tuple(LINEAR if (i + 1) % period else _INDEXED for i in range(layers))
    kinds = tuple(_NAMES.get(kind, kind) for kind in stated)
    if len(kinds) != layers or not set(kinds) <= {LINEAR, _INDEXED}:
        wanted = tr("linear or indexed attention for each of the {layers} layers is needed").format(
            layers=layers
        )
        raise facts.bad("layer_types", kinds, wanted)
    return kinds


def _kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """The first indexed layer keeps the positions for all; layers with n-grams are told apart."""
    kinds = list(_pattern(facts, facts.integer("num_hidden_layers")))
    if _INDEXED in kinds:
        kinds[kinds.index(_INDEXED)] += _FIRST
    for order, number in enumerate(sorted(set(facts.integers("ple_layer_ids", 1) or ()))):
        if number > len(kinds) or kinds[number - 1] != LINEAR:
            wanted = tr("each has to be the number of a recurrent layer, counted from 1")
            raise facts.bad("ple_layer_ids", number, wanted)
        kinds[number - 1] = f"{LINEAR}/{order}"
    return tuple((kind, SPARSE) for kind in kinds)


def _mixer(facts: Facts, family: Family, kind: str) -> Mixed:
    if not kind.startswith(_INDEXED):
        mixed = gated_delta_net(facts, family, LINEAR)
        _, _, order = kind.partition("/")
        return _with_ngrams(facts, mixed, int(order)) if order else mixed
    mixed = attention.gqa(facts, family, FULL)
    assert mixed.attention is not None  # noqa: S101 - gqa always has one
    hidden, width = facts.integer("hidden_size"), facts.integer("indexer_head_dim")
    heads = facts.integer("indexer_n_heads") + facts.integer("indexer_kv_heads")
    facts.settle("indexer_budget", "indexer_compress_ratio")
    path = "self_attn.indexer."
    tensors = [
        *mixed.tensors,
        *matrix(path + "index_qk_proj", _A, (heads * width, hidden), _WHOLE),
        *norm(path + "q_layernorm", width),
        *norm(path + "k_layernorm", width),
    ]
    axes = _AXES if kind.endswith(_FIRST) else 0
    keeps = replace(mixed.attention, index_head_dim=width, index_positions=axes)
    return Mixed(tensors, keeps)


def _with_ngrams(facts: Facts, mixed: Mixed, order: int) -> Mixed:
    """A layer that mixes in embeddings of the last tokens' hashes, convolved."""
    hidden, streams = facts.integer("hidden_size"), facts.integer("hc_count")
    wide, width = streams * hidden, facts.integer("ple_embed_dim", hidden)
    size, kernel = facts.integer("ngram_size", low=2), facts.integer("ple_conv_kernel_size")
    heads = (size - 1) * facts.integer("heads_per_ngram")
    if width % heads:
        raise facts.bad(
            "ple_embed_dim",
            width,
            tr("a multiple of the {heads} hashing heads is needed").format(heads=heads),
        )
    path = "ple."
    rows = _ngram_rows(facts, heads, order)
    tensors = [
        *mixed.tensors,
        Tensor(path + "ple_embedding.ngram_embedding.weight", _OTHER, (rows, width // heads)),
        *matrix(path + "key_proj", _OTHER, (wide, width), _WHOLE),
        *matrix(path + "value_proj", _OTHER, (hidden, width), _WHOLE),
        *norm(path + "norm_key", wide),
        *norm(path + "norm_query", wide),
        *norm(path + "norm_conv", wide),
        Tensor(path + "conv1d.weight", _OTHER, (wide, 1, kernel)),
    ]
    assert mixed.state is not None  # noqa: S101 - the delta net has one
    kept = wide * (kernel - 1) * size
    return Mixed(tensors, state=replace(mixed.state, further_elements=kept, integers=size - 1))


def _ngram_rows(facts: Facts, heads: int, order: int) -> int:
    """Rows of one layer's table: a prime number for each hashing head, all different, padded."""
    base = facts.integer("ngram_vocab_size_base")
    step = facts.integer("make_ngram_vocab_size_divisible_by")
    if base > _MOST_ROWS or heads * (order + 1) > _MOST_HEADS:
        raise facts.bad("ngram_vocab_size_base", base, tr("smaller or fewer tables are plausible"))
    return -(-sum(_primes(base - 1, heads, order)) // step) * step


@lru_cache(maxsize=256)
def _primes(start: int, count: int, order: int) -> tuple[int, ...]:
    """The next ``count`` primes: after ``start``, or after those of the order below."""
    number = _primes(start, count, order - 1)[-1] if order else start
    found: list[int] = []
    while len(found) < count:
        number += 1
        if _is_prime(number):
            found.append(number)
    return tuple(found)


def _is_prime(number: int) -> bool:
    if number < 4 or number % 2 == 0:
        return number in (2, 3)
    return all(number % divisor for divisor in range(3, isqrt(number) + 1, 2))


def _mixing(facts: Facts, path: str, module: ModuleClass) -> list[Tensor]:
    """How the residual streams become one input."""
    wide, rank = (
        facts.integer("hc_count") * facts.integer("hidden_size"),
        facts.integer("hc_lowrank"),
    )
    return [
        *norm(path + "hc_norm", wide),
        *matrix(path + "input_mix_weight_down", module, (rank, wide), _WHOLE),
        *matrix(path + "input_mix_weight_up", module, (wide, rank), _WHOLE),
    ]


def _connections(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    streams = facts.integer("hc_count")
    shape = (streams, streams * facts.integer("hidden_size"))
    tensors: list[Tensor] = []
    for name, module in (("attn_hyper_connection.", _A), ("mlp_hyper_connection.", _MLP)):
        tensors += _mixing(facts, name, module)
        tensors += matrix(name + "block_inject_weight", module, shape, _WHOLE)
    return tensors


def _last_mixing(facts: Facts, _family: Family) -> list[Tensor]:
    facts.settle("number_of_conv_states", "split_ngram_parts")
    # They shape the table only where a layer has one.
    facts.settle("ple_embed_dim", "ple_conv_kernel_size", "ngram_size", "heads_per_ngram")
    facts.settle("ngram_vocab_size_base", "make_ngram_vocab_size_divisible_by")
    return _mixing(facts, "model.hyper_connection_mixer.", _OTHER)


QWEN4_EXP = Family(
    names=Names(final_norm=""),
    q_bias=AB, o_bias=AB, qk_norm="head", q_gate=True, kinds=_kinds, attention=_mixer,
    feed_pattern=patterns.all_sparse, moe=QWEN2_MOE.moe, norms=(), layer_extra=_connections,
    positions=_last_mixing,
)  # fmt: skip

FAMILIES = {"qwen4_exp_text": QWEN4_EXP}
