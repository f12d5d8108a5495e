"""Mamba and its hybrids: Bamba, Granite 4, Falcon-H1, Jamba."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families import attention
from engine.architecture.families.base import (
    DENSE,
    FULL,
    LINEAR,
    NONE,
    RENAMED,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    Names,
)
from engine.architecture.families.dense import AB
from engine.architecture.families.feed import mlp_tensors, sparse
from engine.architecture.families.mixers import MambaTwo, bamba, mamba1
from engine.architecture.spec import ModuleClass

if TYPE_CHECKING:
    from engine.config.facts import Facts

_BOTH = "attention and mamba"


def _bamba_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    named = facts.words("layers_block_type") or facts.words("layer_types")
    if named and len(named) == layers:
        return tuple(RENAMED.get(kind, kind) for kind in named)
    attending = set(facts.integers("attn_layer_indices") or ())
    return tuple(FULL if i in attending else LINEAR for i in range(layers))


_FEED_FORWARD = Names(mlp="feed_forward", final_norm="model.final_layernorm")
BAMBA = Family(
    names=_FEED_FORWARD, q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", reads_layer_types=False,
    pattern=_bamba_pattern, mixers={LINEAR: bamba}, norms=("input_layernorm", "pre_ff_layernorm"),
)  # fmt: skip


def _granite_feed(facts: Facts, family: Family, kind: str) -> Fed:
    """The shared MLP that every layer has, and the experts where the model has them."""
    if facts.count("num_local_experts"):
        return sparse(facts, family, kind)
    width = facts.integer("shared_intermediate_size")
    module = ModuleClass.SHARED_EXPERTS
    return Fed(mlp_tensors(facts, family, width, "shared_mlp", module), width)


GRANITE_HYBRID = Family(
    names=Names(gate="input_linear", down="output_linear"), gate_up_fused=True, q_bias=AB,
    o_bias=AB,
    reads_layer_types=False, pattern=_bamba_pattern, mixers={LINEAR: bamba},
    feeds={DENSE: _granite_feed},
    moe=Moe(
        experts="num_local_experts", width="intermediate_size", fused=True,
        container="block_sparse_moe.experts", router="block_sparse_moe.router.layer",
        shared="shared_mlp", shared_width=lambda f: f.count("shared_intermediate_size"),
    ),
)  # fmt: skip


def _both(facts: Facts, family: Family, kind: str) -> Mixed:
    """Falcon-H1: attention and Mamba-2 read the same input in every layer."""
    attending = attention.gqa(facts, family, FULL)
    recurrent = bamba(facts, family, kind)
    return Mixed([*attending.tensors, *recurrent.tensors], attending.attention, recurrent.state)


FALCON_H1 = Family(
    names=_FEED_FORWARD, q_bias=AB, o_bias=AB, mlp_bias="mlp_bias", reads_layer_types=False,
    pattern=lambda _f, layers: (_BOTH,) * layers, mixers={_BOTH: _both},
    norms=("input_layernorm", "pre_ff_layernorm"),
)  # fmt: skip


def _jamba_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    period, offset = facts.integer("attn_layer_period", 8), facts.integer("attn_layer_offset", 4, 0)
    return tuple(FULL if i % period == offset else LINEAR for i in range(layers))


def _jamba_feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    period = facts.integer("expert_layer_period", 2)
    offset = facts.integer("expert_layer_offset", 1, 0)
    several = facts.count("num_experts") > 1
    return tuple(SPARSE if several and i % period == offset else DENSE for i in range(layers))


JAMBA = Family(
    names=_FEED_FORWARD, reads_layer_types=False, pattern=_jamba_pattern, mixers={LINEAR: mamba1},
    feed_pattern=_jamba_feeds, norms=("input_layernorm", "pre_ff_layernorm"),
    moe=Moe(
        experts="num_experts", width="intermediate_size", container="feed_forward.experts",
        router="feed_forward.router",
    ),
)  # fmt: skip


def _only_mamba(facts: Facts) -> tuple[tuple[str, str], ...]:
    return ((LINEAR, NONE),) * facts.integer("num_hidden_layers")


_BACKBONE = Names(embedding="backbone.embeddings", final_norm="backbone.norm_f")
MAMBA = Family(
    harmless=("d_inner", "d_model", "ssm_cfg"),
    names=_BACKBONE,
    kinds=_only_mamba,
    mixers={LINEAR: mamba1},
    norms=("norm",),
    tied=True,
)


def _mamba2(facts: Facts, _family: Family, _kind: str) -> Mixed:
    hidden = facts.integer("hidden_size")
    bias = facts.flag("use_bias")
    sizes = MambaTwo(
        heads=facts.integer("num_heads"), width=facts.integer("head_dim"),
        groups=facts.integer("n_groups"), states=facts.integer("state_size"),
        kernel=facts.integer("conv_kernel", 4), inner=facts.integer("expand", 2) * hidden,
        in_bias=bias, out_bias=bias, conv_bias=facts.flag("use_conv_bias", default=True),
    )  # fmt: skip
    return sizes.block("mixer.", hidden)


MAMBA2 = Family(names=_BACKBONE, kinds=_only_mamba, mixers={LINEAR: _mamba2}, norms=("norm",))

FAMILIES = {
    "bamba": BAMBA,
    "granitemoehybrid": GRANITE_HYBRID,
    "falcon_h1": FALCON_H1,
    "jamba": JAMBA,
    "mamba": MAMBA,
    "falcon_mamba": MAMBA,
    "mamba2": MAMBA2,
}
