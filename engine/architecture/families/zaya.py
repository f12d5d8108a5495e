"""ZAYA: attention over convolved queries and keys, and routers that read the one before them.

Half of each value comes from the token before, so that a layer keeps one delayed value and the
convolutions' last inputs beside its keys and values.

Source:
    transformers 5.24.0, ``zaya/modeling_zaya.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import feed
from engine.architecture.families.attention import gqa
from engine.architecture.families.base import (
    FULL,
    SLIDING,
    Family,
    Fed,
    Mixed,
    Moe,
    matrix,
    norm,
    vector,
)
from engine.architecture.families.dense import AB
from engine.architecture.families.mixers import convolution
from engine.architecture.spec import ModuleClass, MoeSpec, Sharding, StateSpec, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _ROUTER, _OTHER = ModuleClass.ATTENTION, ModuleClass.ROUTER, ModuleClass.OTHER
_COLUMN, _WHOLE = Sharding.COLUMN, Sharding.REPLICATED
_KINDS = {"hybrid": FULL, "hybrid_sliding": SLIDING}
_FIRST, _LATER = "first router", "later router"


def _kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    layers = facts.integer("num_hidden_layers")
    kinds = facts.words("layer_types")
    kinds = ("hybrid",) * layers if kinds is None else kinds
    if len(kinds) != layers or not set(kinds) <= _KINDS.keys():
        wanted = tr(
            "'hybrid' or 'hybrid_sliding' for each of the {layers} layers is needed"
        ).format(layers=layers)
        raise facts.bad("layer_types", kinds, wanted)
    return tuple((kind, _LATER if i else _FIRST) for i, kind in enumerate(kinds))


def _attention(facts: Facts, family: Family, kind: str) -> Mixed:
    plain = gqa(facts, family, _KINDS[kind]).attention
    assert plain is not None  # noqa: S101 - gqa always has one
    hidden, width = facts.integer("hidden_size"), plain.head_dim
    q_rows, kv_rows = plain.num_attention_heads * width, plain.num_key_value_heads * width
    first, second = facts.integer("cca_time0"), facts.integer("cca_time1")
    bias = facts.says(AB)
    path = "self_attn.qkv_proj."
    half = kv_rows // 2
    tensors = [
        *matrix(path + "q_proj", _A, (q_rows, hidden), _COLUMN, bias=bias),
        *matrix(path + "k_proj", _A, (kv_rows, hidden), Sharding.KV_HEADS, bias=bias),
        *matrix(path + "v_proj_current", _A, (half, hidden), Sharding.KV_HEADS, bias=bias),
        *matrix(path + "v_proj_delayed", _A, (half, hidden), Sharding.KV_HEADS, bias=bias),
        *convolution(path + "conv_qk_depthwise", q_rows + kv_rows, first, bias=True),
        Tensor(f"{path}conv_qk_grouped.weight", _A, (q_rows + kv_rows, width, second), 1, _COLUMN),
        vector(f"{path}conv_qk_grouped.bias", _A, q_rows + kv_rows, _COLUMN),
        vector("self_attn.qk_norm.temp", _A, plain.num_key_value_heads, Sharding.KV_HEADS),
        *matrix("self_attn.o_proj", _A, (hidden, q_rows), Sharding.ROW, bias=bias),
    ]
    # Together the two convolutions look back as one of this many columns does.
    columns = first + second - 1
    state = StateSpec("cca", q_rows + kv_rows, columns, half, 1, keeps_kernel=False)
    return Mixed(tensors, plain, state)


def _sparse(facts: Facts, family: Family, kind: str) -> Fed:
    """A router of three layers, one of whose choices is no expert at all."""
    hidden, inner = facts.integer("hidden_size"), facts.integer("router_hidden_size")
    experts, width = facts.integer("num_experts"), facts.integer("moe_intermediate_size")
    path = "mlp.gate."
    tensors = [
        *matrix(path + "down_proj", _ROUTER, (inner, hidden), _WHOLE, bias=True),
        *norm(path + "router_mlp.norm", inner),
        *matrix(path + "router_mlp.fc1", _ROUTER, (inner, inner), _WHOLE, bias=True),
        *matrix(path + "router_mlp.fc2", _ROUTER, (inner, inner), _WHOLE, bias=True),
        *matrix(path + "router_mlp.out_proj", _ROUTER, (experts + 1, inner), _WHOLE),
        *feed.expert_tensors(facts, Moe(), family, (experts, hidden, width)),
    ]
    if kind == _LATER:
        tensors.append(vector(path + "router_states_scale", _ROUTER, inner, _WHOLE))
    return Fed(tensors, 0, MoeSpec(experts, facts.integer("num_experts_per_tok"), width))


def _residual_scales(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    return [
        vector(f"{block}_residual_scale.{stream}_{part}", _OTHER, hidden, _WHOLE)
        for block in ("post_attention", "post_mlp")
        for stream in ("hidden_states", "residual")
        for part in ("scale", "bias")
    ]


def _input_scale(facts: Facts, _family: Family) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    names = ("input_hidden_states_scale", "input_hidden_states_bias")
    return [vector(f"model.{name}", _OTHER, hidden, _WHOLE) for name in names]


ZAYA = Family(
    kinds=_kinds, mixers={"hybrid": _attention, "hybrid_sliding": _attention}, feed=_sparse,
    layer_extra=_residual_scales, positions=_input_scale, head_bias="lm_head_bias", tied=True,
)  # fmt: skip

FAMILIES = {"zaya": ZAYA}
