"""Mixtures of experts that no other type shares: blocks built in a way of their own.

Source:
    transformers 5.24.0, ``dbrx``, ``ernie4_5_vl_moe``, ``jetmoe`` and ``longcat_flash``; for
    Arctic ``modeling_arctic.py`` beside the published checkpoint, whose 478,584,608,768 come out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed, patterns
from engine.architecture.families.base import (
    DENSE,
    FULL,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    Names,
    matrix,
    norm,
    vector,
)
from engine.architecture.families.crossed import whole_heads
from engine.architecture.families.dense import AB
from engine.architecture.families.latent import latent_of
from engine.architecture.families.sparse import MIXTRAL_MOE
from engine.architecture.spec import (
    Direction,
    Doubt,
    ModuleClass,
    MoeSpec,
    Sharding,
    Subject,
    Tensor,
)
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _EXPERTS, _ROUTER = ModuleClass.ATTENTION, ModuleClass.EXPERTS, ModuleClass.ROUTER
_WHOLE = Sharding.REPLICATED


def _part(facts: Facts, key: str) -> Facts:
    return facts.sub(key) or facts.empty(key)


def _dbrx_kv_heads(facts: Facts, _kind: str) -> int:
    facts.settle("num_key_value_heads")
    sizes = _part(facts, "attn_config")
    sizes.settle("clip_qkv", "rope_theta")
    return sizes.integer("kv_n_heads")


def _dbrx_sparse(facts: Facts, family: Family, _kind: str) -> Fed:
    sizes = _part(facts, "ffn_config")
    hidden, experts = facts.integer("hidden_size"), sizes.integer("moe_num_experts")
    field = facts.declared("d_model")
    if field not in (None, hidden):
        # Its class hands that one to the experts before it takes the other name.
        raise facts.bad(
            "hidden_size",
            hidden,
            tr("d_model, by which the experts go, is {field}").format(field=field),
        )
    width, active = sizes.integer("ffn_hidden_size"), sizes.integer("moe_top_k")
    sizes.settle("hidden_size", "ffn_act_fn", "moe_normalize_expert_weights")
    moe = Moe(container="ffn.experts.mlp", names=("w1", "v1", "w2"))
    tensors = matrix("ffn.router.layer", _ROUTER, (experts, hidden), _WHOLE)
    tensors += feed.expert_tensors(facts, moe, family, (experts, hidden, width))
    return Fed(tensors, 0, MoeSpec(experts, active, width))


DBRX = Family(
    names=Names(
        attention="norm_attn_norm.attn", fused="Wqkv", output="out_proj",
        embedding="transformer.wte", final_norm="transformer.norm_f",
    ),
    norms=("norm_attn_norm.norm_1", "norm_attn_norm.norm_2"), kv_heads=_dbrx_kv_heads,
    head_dim=whole_heads,
    feed_pattern=patterns.all_sparse, feeds={SPARSE: _dbrx_sparse},
)  # fmt: skip


def _ernie_vl_sparse(facts: Facts, family: Family, _kind: str) -> Fed:
    """Two sets of experts, one for text and one for images, of widths of their own.

    The shared experts have the width of text.
    """
    hidden, experts = facts.integer("hidden_size"), facts.integer("moe_num_experts")
    widths = facts.integers("moe_intermediate_size", low=1) or (1536, 512)
    if len(widths) != len(_ERNIE_KINDS):
        wanted = tr("a width for text and one for images are needed")
        raise facts.bad("moe_intermediate_size", widths, wanted)
    tensors: list[Tensor] = []
    for name, width in zip(_ERNIE_KINDS, widths, strict=True):
        path = f"mlp.{name}_moe."
        bias = path + "gate.moe_statics.e_score_correction_bias"
        tensors += matrix(path + "gate", _ROUTER, (experts, hidden), _WHOLE)
        tensors.append(vector(bias, _ROUTER, experts, _WHOLE))
        moe = Moe(container=path + "experts")
        tensors += feed.expert_tensors(facts, moe, family, (experts, hidden, width))
    shared = facts.count("moe_num_shared_experts") * widths[0]
    if shared:
        module = ModuleClass.SHARED_EXPERTS
        tensors += feed.mlp_tensors(facts, family, shared, "mlp.shared_experts", module)
    return Fed(tensors, 0, MoeSpec(experts, facts.integer("moe_k"), max(widths), shared))


_ERNIE_KINDS = ("text", "vision")
ERNIE_VL_MOE = Family(
    q_bias="use_bias", o_bias="use_bias", mlp_bias="use_bias", feeds={SPARSE: _ernie_vl_sparse},
    feed_pattern=patterns.dense_first("first_k_dense_replace", 1),
)  # fmt: skip


def _jetmoe_experts(facts: Facts, path: str, rows: int, width: int) -> list[Tensor]:
    """Experts of one input and one output matrix, a router, and a bias on what comes out."""
    hidden, experts = facts.integer("hidden_size"), facts.integer("num_local_experts")
    into, out = Sharding.EXPERT_COLUMN, Sharding.EXPERT_ROW
    name = path + "input_linear.weight"
    back = path + "output_linear.weight"
    return [
        Tensor(name, _EXPERTS, (rows, hidden), experts, into, linear=True),
        Tensor(back, _EXPERTS, (hidden, width), experts, out, linear=True),
        *matrix(path + "router.layer", _ROUTER, (experts, hidden), _WHOLE),
        vector(path + "bias", _EXPERTS, hidden, _WHOLE),
    ]


def _jetmoe_attention(facts: Facts, family: Family, _kind: str) -> Mixed:
    """Query and output are experts; each expert that is chosen has a set of heads of its own."""
    facts.settle("num_attention_heads")
    plain = attention.gqa(facts, family, FULL).attention
    assert plain is not None  # noqa: S101 - gqa always has one
    kept = plain.num_key_value_heads * plain.head_dim
    shape = (2 * kept, facts.integer("hidden_size"))
    tensors = [
        *_jetmoe_experts(facts, "self_attention.experts.", kept, kept),
        *matrix("self_attention.kv_proj", _A, shape, Sharding.KV_HEADS),
    ]
    return Mixed(tensors, plain)


def _jetmoe_sparse(facts: Facts, _family: Family, _kind: str) -> Fed:
    width, experts = facts.integer("intermediate_size"), facts.integer("num_local_experts")
    active = facts.integer("num_experts_per_tok")
    if active > experts:
        raise facts.bad(
            "num_experts_per_tok",
            active,
            tr("there are only {experts} experts").format(experts=experts),
        )
    tensors = _jetmoe_experts(facts, "mlp.", 2 * width, width)
    return Fed(tensors, 0, MoeSpec(experts, active, width))


JETMOE = Family(
    attention=_jetmoe_attention, feed_pattern=patterns.all_sparse, feeds={SPARSE: _jetmoe_sparse},
    heads=lambda f, _k: f.integer("num_key_value_heads") * f.integer("num_experts_per_tok"),
    head_dim=lambda f, _k: (f.integer("kv_channels"), f.integer("kv_channels")), tied=True,
)  # fmt: skip


def _longcat_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    """A layer is a pair of attentions and MLPs; ``num_hidden_layers`` counts the halves."""
    halves = facts.stated.get("num_hidden_layers")
    layers = facts.integer("num_layers") if halves is None else facts.integer("num_hidden_layers")
    return ((FULL, SPARSE),) * (layers if halves is None else max(layers // 2, 1))


def _longcat_attention(facts: Facts, _family: Family, _kind: str) -> Mixed:
    latent = latent_of(facts, bias=facts.says(AB))
    width = facts.integer("qk_head_dim", latent.width)
    if width != latent.width:
        raise facts.bad(
            "qk_head_dim", width, tr("the parts of a head make {width}").format(width=latent.width)
        )
    tensors = [tensor for i in range(2) for tensor in latent.tensors(f"self_attn.{i}.")]
    return Mixed(tensors, replace(latent.spec(), caches=2))


def _longcat_sparse(facts: Facts, family: Family, _kind: str) -> Fed:
    """Two dense MLPs, and experts of which some do nothing.

    The idle ones are chosen as the others are. transformers has rows for them in the experts'
    first matrix.
    """
    hidden, experts = facts.integer("hidden_size"), facts.integer("n_routed_experts")
    width, idle = facts.integer("expert_ffn_hidden_size"), facts.count("zero_expert_num")
    bias = facts.flag("router_bias")
    gate_up, down = "mlp.experts.gate_up_proj", "mlp.experts.down_proj"
    into, out = Sharding.EXPERT_COLUMN, Sharding.EXPERT_ROW
    dense = facts.integer("ffn_hidden_size")
    tensors = [
        *matrix("mlp.router.classifier", _ROUTER, (experts + idle, hidden), _WHOLE, bias=bias),
        Tensor(gate_up, _EXPERTS, (2 * width, hidden), experts + idle, into, linear=True),
        Tensor(down, _EXPERTS, (hidden, width), experts, out, linear=True),
    ]
    for i in range(2):
        tensors += feed.mlp_tensors(facts, family, dense, f"mlps.{i}")
        tensors += norm(f"input_layernorm.{i}", hidden)
        tensors += norm(f"post_attention_layernorm.{i}", hidden)
    return Fed(tensors, dense, MoeSpec(experts, facts.integer("moe_topk"), width))


def _idle_experts(facts: Facts) -> list[Doubt]:
    if not facts.count("zero_expert_num"):
        return []
    reason = tr("its idle experts have rows in transformers, which a checkpoint does not store")
    return [Doubt(Subject.WEIGHTS, reason, Direction.UPPER)]


LONGCAT_FLASH = Family(
    kinds=_longcat_kinds, attention=_longcat_attention, feeds={SPARSE: _longcat_sparse}, norms=(),
    doubts=_idle_experts,
)  # fmt: skip


def _arctic_feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    step = facts.integer("moe_layer_frequency")
    return tuple(DENSE if (i + 1) % step else SPARSE for i in range(layers))


def _arctic_residual(facts: Facts, family: Family, _mixer: str, fed: str) -> list[Tensor]:
    """Beside its experts a layer has a dense MLP as wide as the model, with a norm of its own."""
    if fed != SPARSE or not facts.flag("parallel_attn_mlp_res"):
        return []
    hidden = facts.integer("hidden_size")
    dense = feed.mlp_tensors(facts, family, hidden, "residual_mlp")
    return [*dense, *norm("residual_layernorm", hidden)]


ARCTIC = Family(
    names=Names(mlp="block_sparse_moe.mlp", gate="w1", up="w3", down="w2"),
    pattern=patterns.windowed_if_stated, feed_pattern=_arctic_feeds, moe=MIXTRAL_MOE,
    layer_extra=_arctic_residual,
)  # fmt: skip

FAMILIES = {
    "arctic": ARCTIC,
    "dbrx": DBRX, "ernie4_5_vl_moe_text": ERNIE_VL_MOE, "jetmoe": JETMOE,
    "longcat_flash": LONGCAT_FLASH,
}  # fmt: skip
