"""Decoders that run some of their layers several times, with a cache for each pass.

Source:
    transformers 5.24.0, ``dory/configuration_dory.py``, ``dory/modeling_dory.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed
from engine.architecture.families.base import (
    DENSE,
    FULL,
    SLIDING,
    Family,
    Fed,
    Mixed,
    matrix,
    vector,
)
from engine.architecture.heads import is_bare
from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _COLUMN = ModuleClass.ATTENTION, Sharding.COLUMN
_LOOPED = "looped "
"""In front of the kind of attention of a layer that is run several times."""
_BLOCK = "mlp"
"""Entry of ``layer_types`` where attention and MLP are listed apart: each pair is one layer."""


def _counts(facts: Facts) -> tuple[tuple[str, ...], int, int]:
    """The kinds of attention, and the first and the last looped layer (exclusive)."""
    layers = facts.integer("num_hidden_layers")
    first, last = facts.integer("n_input_layers", low=0), facts.integer("n_output_layers", 8, low=0)
    looped = facts.optional("n_recurrent_layers")
    kinds = facts.words("layer_types")
    if kinds is not None and _BLOCK in kinds:
        kinds, layers, first, last = kinds[::2], layers // 2, first // 2, last // 2
        looped = None if looped is None else looped // 2
    if kinds is None:
        kinds = tuple(FULL if (i + 1) % 4 == 0 else SLIDING for i in range(layers))
    if len(kinds) != layers or not set(kinds) <= {FULL, SLIDING}:
        raise facts.bad(
            "layer_types",
            kinds,
            tr("full or sliding for each of {layers} is needed").format(layers=layers),
        )
    if looped is not None and first + looped + last != layers:
        wanted = tr("with the layers before and after it has to make up all {layers}").format(
            layers=layers
        )
        raise facts.bad("n_recurrent_layers", looped, wanted)
    return kinds, first, layers - last


def _kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    kinds, first, last = _counts(facts)
    return tuple(
        (_LOOPED + kind if first <= i < last else kind, DENSE) for i, kind in enumerate(kinds)
    )


def _mix(facts: Facts, family: Family, kind: str) -> Mixed:
    own = replace(family, attention=None)
    mixed = attention.gqa(facts, own, kind.removeprefix(_LOOPED))
    spec = mixed.attention
    assert spec is not None  # noqa: S101 - gqa always has one
    loops = facts.integer("n_recurrent_loops")
    shares = facts.word("recurrent_kv_cache_mode", "per_loop") == "last_loop"
    if kind.startswith(_LOOPED) and not shares:
        spec = replace(spec, caches=loops)
    rows = spec.num_attention_heads * spec.head_dim
    tensors = [
        *mixed.tensors,
        *matrix("self_attn.gate_proj", _A, (rows, facts.integer("hidden_size")), _COLUMN),
        vector("self_attn.sqk", _A, rows, _COLUMN),
        vector("self_attn.s_gate", _A, rows, _COLUMN),
    ]
    return replace(mixed, tensors=tensors, attention=spec)


def _feed(facts: Facts, family: Family, kind: str) -> Fed:
    fed = feed.dense(facts, family, kind)
    width = fed.intermediate_size
    scales = [
        vector(f"mlp.{name}", ModuleClass.MLP, width, _COLUMN) for name in ("suv_gate", "suv_up")
    ]
    return replace(fed, tensors=[*fed.tensors, *scales])


def _rates(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    hidden, other, whole = facts.integer("hidden_size"), ModuleClass.OTHER, Sharding.REPLICATED
    return [vector(name, other, hidden, whole) for name in ("lambda_1", "lambda_2")]


def _scale(facts: Facts, _family: Family) -> list[Tensor]:
    if is_bare(facts):
        return []
    rows = facts.integer("vocab_size")
    return [vector("lm_head.logit_scale", ModuleClass.LM_HEAD, rows, Sharding.VOCAB)]


DORY = Family(
    q_bias="attention_bias", o_bias="attention_bias", mlp_bias="mlp_bias", norm_weight=False,
    kinds=_kinds, attention=_mix, feeds={DENSE: _feed}, layer_extra=_rates, positions=_scale,
    tied=False,
)  # fmt: skip

FAMILIES = {"dory": DORY}
