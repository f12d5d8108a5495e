"""Gemma 3n: several residual streams, low-rank side blocks, and layers that share their cache.

Source:
    transformers 5.24.0, ``gemma3n/modeling_gemma3n.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import FULL, SLIDING, Family, Fed, matrix, norm
from engine.architecture.families.feed import mlp_tensors
from engine.architecture.families.gemma4 import (
    SHARED,
    attention_rule,
    per_layer,
    per_layer_outer,
)
from engine.architecture.spec import ModuleClass, Sharding, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_WHOLE = Sharding.REPLICATED
_OTHER = ModuleClass.OTHER


def _kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """Attention and MLP width of each layer; the last ones read an earlier layer's cache."""
    layers = facts.integer("num_hidden_layers")
    types = facts.words("layer_types")
    if types is None:
        types = tuple(SLIDING if (i + 1) % 5 else FULL for i in range(layers))
    several = isinstance(facts.raw("intermediate_size"), list | tuple)
    widths = facts.integers("intermediate_size", 1) if several else None
    if widths is None:
        widths = (facts.integer("intermediate_size"),) * layers
    if len(types) != layers or not set(types) <= {FULL, SLIDING}:
        raise facts.bad(
            "layer_types",
            types,
            tr("full or sliding for each of the {layers} is needed").format(layers=layers),
        )
    if len(widths) != layers:
        wanted = tr("one entry for each of the {layers} layers is needed").format(layers=layers)
        raise facts.bad("intermediate_size", widths, wanted)
    shared = facts.count("num_kv_shared_layers")
    own = max(layers - shared, 0)
    if set(types[:own]) != set(types):
        wanted = tr(
            "each kind of the {layers} layers needs one that keeps what the others read"
        ).format(layers=layers)
        raise facts.bad("num_kv_shared_layers", shared, wanted)
    return tuple(
        (kind if i < own else kind + SHARED, str(width))
        for i, (kind, width) in enumerate(zip(types, widths, strict=True))
    )


def _feed(facts: Facts, family: Family, kind: str) -> Fed:
    return Fed(mlp_tensors(facts, family, int(kind)), int(kind))


def _extra(facts: Facts, family: Family, mixer: str, feed: str) -> list[Tensor]:
    hidden, rank = facts.integer("hidden_size"), facts.integer("laurel_rank")
    streams = facts.integer("altup_num_inputs", 4)
    router = ModuleClass.ROUTER
    tensors = [
        *matrix("laurel.linear_left", _OTHER, (rank, hidden), _WHOLE),
        *matrix("laurel.linear_right", _OTHER, (hidden, rank), _WHOLE),
        *norm("laurel.post_laurel_norm", hidden),
        *matrix("altup.correction_coefs", _OTHER, (streams, streams), _WHOLE),
        *matrix("altup.prediction_coefs", _OTHER, (streams * streams, streams), _WHOLE),
        *matrix("altup.modality_router", router, (streams, hidden), _WHOLE),
        Tensor("altup.router_norm.weight", router, (hidden,)),
        # There also where altup_correct_scale says that it is not used.
        Tensor("altup.correct_output_scale", _OTHER, (hidden,)),
    ]
    return tensors + per_layer(facts, family, mixer, feed)


def _outer(facts: Facts, family: Family) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    others = facts.integer("altup_num_inputs", 4) - 1
    shape = (hidden, hidden)
    return [
        *per_layer_outer(facts, family),
        Tensor("model.altup_projections.*.weight", _OTHER, shape, others, _WHOLE, linear=True),
        Tensor(
            "model.altup_unembed_projections.*.weight", _OTHER, shape, others, _WHOLE, linear=True
        ),
    ]


GEMMA3N = Family(
    q_bias="attention_bias", o_bias="attention_bias", qk_norm="head", kinds=_kinds, feed=_feed,
    attention=attention_rule,
    mixers={FULL + SHARED: attention_rule, SLIDING + SHARED: attention_rule},
    norms=(
        "input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
    layer_extra=_extra, positions=_outer, tied=True,
)  # fmt: skip

FAMILIES = {"gemma3n_text": GEMMA3N}
