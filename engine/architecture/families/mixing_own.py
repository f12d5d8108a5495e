"""Decoders with code of their own that subtract, gate or mix attention, or name it anew.

Source:
    Motif-Technologies/Motif-2.6B, pfnet/plamo-2-1b (vLLM ``plamo2.py``), fla-hub/transformer-1.3B
    and hugohrban/progen2-small: their modelling files and published totals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, patterns
from engine.architecture.families.base import (
    FULL,
    LINEAR,
    Family,
    Mixed,
    Names,
    matrix,
    norm,
    state_doubt,
    vector,
)
from engine.architecture.families.dense import LLAMA
from engine.architecture.families.kimi_linear import delta_attention
from engine.architecture.families.mixers import convolution
from engine.architecture.families.sparse import DEEPSEEK_MOE
from engine.architecture.spec import ModuleClass, Sharding, StateSpec
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt, Tensor
    from engine.config.facts import Facts

_A, _COLUMN, _ROW = ModuleClass.ATTENTION, Sharding.COLUMN, Sharding.ROW


def _differential(facts: Facts, _family: Family, _mixer: str, _feed: str) -> list[Tensor]:
    """Four vectors that weigh the two maps, a norm of their difference, a learned activation."""
    hidden, heads = facts.integer("hidden_size"), facts.integer("num_attention_heads")
    width = facts.integer("head_dim", hidden // heads)
    whole, mlp = Sharding.REPLICATED, ModuleClass.MLP
    found = [
        vector(f"self_attn.lambda_{name}", _A, width, whole) for name in ("q1", "k1", "q2", "k2")
    ]
    found += norm("self_attn.subln", 2 * width)
    if facts.word("hidden_act", "poly_norm") == "poly_norm":
        found += [
            vector("mlp.act_fn.weight", mlp, 3, whole),
            vector("mlp.act_fn.bias", mlp, 1, whole),
        ]
    return found


MOTIF = replace(
    LLAMA, layer_extra=_differential, tied=True, pattern=patterns.after_max_window_layers
)


def _fla_width(facts: Facts) -> int:
    """Two thirds of ``hidden_ratio`` times the width, rounded up to a multiple of 256."""
    ratio = facts.integer("hidden_ratio", 4)
    usual = -(-int(facts.integer("hidden_size") * ratio * 2 / 3) // 256) * 256
    return facts.integer("intermediate_size", usual)


def _fla_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    return (patterns.SLIDING if facts.count("window_size") else FULL,) * layers


def _fla_window(facts: Facts, _kind: str) -> int:
    return facts.integer("window_size")


FLA_TRANSFORMER = replace(
    LLAMA, q_bias="qkv_bias", o_bias=False, qk_norm="head", qk_norm_if="qk_norm", width=_fla_width,
    pattern=_fla_pattern, window=_fla_window,
    harmless=(
        "elementwise_affine", "fuse_cross_entropy", "fuse_linear_cross_entropy", "fuse_norm",
        "fuse_swiglu",
    ),
)  # fmt: skip


def _plamo_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """One layer in ``mamba_step`` attends: the middle one, or the last where there are few."""
    step = facts.integer("mamba_step", 2, low=2)
    if not facts.flag("mamba_enabled", default=True):
        return (FULL,) * layers
    if layers <= step // 2:
        return (*((LINEAR,) * (layers - 1)), FULL)
    return tuple(FULL if i % step == step // 2 else LINEAR for i in range(layers))


def _plamo_widths(facts: Facts, _kind: str) -> tuple[int, int]:
    width = facts.integer("hidden_size_per_head", 128)
    return width, width


def _plamo_attention(facts: Facts, family: Family, kind: str) -> Mixed:
    """Grouped-query attention with a norm of its own for every head of queries and keys."""
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    spec = mixed.attention
    assert spec is not None  # noqa: S101 - gqa always has one
    tensors = [
        *mixed.tensors,
        vector("mixer.q_weight", _A, spec.num_attention_heads * spec.head_dim, _COLUMN),
        vector("mixer.k_weight", _A, spec.num_key_value_heads * spec.head_dim, Sharding.KV_HEADS),
    ]
    return replace(mixed, tensors=tensors)


def _plamo_mamba(facts: Facts, _family: Family, _kind: str) -> Mixed:
    hidden, heads = facts.integer("hidden_size"), facts.integer("mamba_num_heads")
    width, states = facts.integer("hidden_size_per_head", 128), facts.integer("mamba_d_state", 64)
    kernel, inner, rank = facts.integer("mamba_d_conv", 4), heads * width, max(64, hidden // 16)
    path = "mixer."
    tensors = [
        *matrix(path + "in_proj", _A, (2 * inner, hidden), _COLUMN),
        *convolution(path + "conv1d", inner, kernel, bias=False),
        *matrix(path + "bcdt_proj", _A, (rank + 2 * states, inner), _ROW),
        *matrix(path + "dt_proj", _A, (heads, rank), _COLUMN),
        *(vector(path + name, _A, heads, _COLUMN) for name in ("dt_bias", "A_log", "D")),
        *norm(path + "dt_norm_weight", rank),
        *norm(path + "B_norm_weight", states),
        *norm(path + "C_norm_weight", states),
        *matrix(path + "out_proj", _A, (hidden, inner), _ROW),
    ]
    elements = inner * states
    state = StateSpec("mamba2", inner, kernel, elements, heads, "float32", keeps_kernel=False)
    return Mixed(tensors, state=state)


def _plamo_doubts(facts: Facts) -> list[Doubt]:
    if not facts.count("attention_window_size"):
        return []
    return state_doubt(tr("its attention looks back over a window of tokens: counted in full"))


PLAMO2 = Family(
    names=Names(attention="mixer", fused="qkv_proj", gate="gate_up_proj"), gate_up_fused=True,
    attention=_plamo_attention, mixers={LINEAR: _plamo_mamba}, head_dim=_plamo_widths,
    norms=("pre_mixer_norm", "post_mixer_norm", "pre_mlp_norm", "post_mlp_norm"),
    pattern=_plamo_pattern, reads_layer_types=False, tied=True, doubts=_plamo_doubts,
    harmless=("mamba_chunk_size", "full_attention_idx", "linear_type"),
)  # fmt: skip


def _solar_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """The layers that are listed attend, else the first of every ``gqa_interval`` + 1."""
    full = facts.integers("gqa_layers")
    period = facts.integer("gqa_interval", 3) + 1
    if full is None:
        return tuple(LINEAR if i % period else FULL for i in range(layers))
    if any(index >= layers for index in full):
        raise facts.bad(
            "gqa_layers", full, tr("there are only {layers} layers").format(layers=layers)
        )
    return tuple(FULL if i in full else LINEAR for i in range(layers))


def _solar_delta(facts: Facts, family: Family, _kind: str) -> Mixed:
    inner = facts.sub("linear_attn_config") or facts.empty("linear_attn_config")
    heads = inner.integer("num_heads", facts.integer("num_attention_heads"))
    width = inner.integer("head_dim", facts.integer("head_dim", 128))
    if inner.integer("num_kv_heads", heads) != heads:
        raise inner.bad(
            "num_kv_heads", inner.raw("num_kv_heads"), tr("{heads} are needed").format(heads=heads)
        )
    low_rank = "" if facts.flag("kda_use_full_proj") else "fg"
    kernel = inner.integer("short_conv_kernel_size", 4)
    return delta_attention(facts, family, heads, width, kernel, low_rank=low_rank)


def _solar_attention(facts: Facts, family: Family, kind: str) -> Mixed:
    """Grouped-query attention whose output a gate of the same width scales."""
    mixed = attention.gqa(facts, replace(family, attention=None), kind)
    if not facts.flag("use_gqa_gate", default=True):
        return mixed
    spec = mixed.attention
    assert spec is not None  # noqa: S101 - gqa always has one
    shape = (spec.num_attention_heads * spec.head_dim, facts.integer("hidden_size"))
    bias = facts.flag("use_gqa_gate_bias")
    gate = matrix("self_attn.g_proj", _A, shape, _COLUMN, bias=bias)
    return replace(mixed, tensors=[*mixed.tensors, *gate])


def _corrections(facts: Facts, _family: Family) -> list[Tensor]:
    name = "mlp.gate.e_score_correction_bias"
    experts = facts.integer("n_routed_experts")
    return [vector(name, ModuleClass.ROUTER, experts, Sharding.REPLICATED)]


# upstage/Solar-Open2-250B: 250,287,810,304.
SOLAR_OPEN2 = Family(
    attention=_solar_attention, pattern=_solar_pattern, mixers={LINEAR: _solar_delta},
    q_bias="attention_bias", qk_norm="head", qk_norm_if="use_qk_norm",
    feed_pattern=patterns.dense_first("first_k_dense_replace"),
    moe=replace(DEEPSEEK_MOE, further=_corrections), tied=False,
)  # fmt: skip

FAMILIES = {
    "Motif": MOTIF, "plamo2": PLAMO2, "solar_open2": SOLAR_OPEN2, "transformer": FLA_TRANSFORMER,
}  # fmt: skip
