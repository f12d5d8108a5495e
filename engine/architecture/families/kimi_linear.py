"""Kimi Delta Attention beside latent attention: Kimi Linear, Kimi K3 and Ling 2.5.

Source:
    transformers 5.24.0, ``kimi_linear`` and ``bailing_hybrid``. Kimi K3 is ``kimi_linear`` with
    keys of its own: its tensors are those of the published checkpoint's headers, which add up to
    the total that the Hub publishes, 2,779,931,837,184.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import attention, feed, patterns
from engine.architecture.families.base import (
    FULL,
    LINEAR,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    matrix,
    norm,
    vector,
)
from engine.architecture.families.dense import AB, nextn
from engine.architecture.families.mixers import convolution
from engine.architecture.families.sparse import times_shared
from engine.architecture.spec import ModuleClass, Sharding, StateSpec, Tensor
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A = ModuleClass.ATTENTION
_WHOLE, _COLUMN = Sharding.REPLICATED, Sharding.COLUMN


def delta_attention(
    facts: Facts,
    family: Family,
    heads: int,
    width: int,
    kernel: int,
    *,
    low_rank: str,
) -> Mixed:
    """Queries, keys and values of ``heads`` × ``width`` each, convolved; a decay per channel.

    ``low_rank``: which of decay (``f``) and output gate (``g``) go through ``width`` elements.
    """
    hidden, total = facts.integer("hidden_size"), heads * width
    path = family.names.attention + "."
    # K3's checkpoint pads the decays of its 96 heads to the width of a head.
    decays = max(heads, width) if low_rank == "f" else heads
    tensors = [
        *matrix(path + "q_proj", _A, (total, hidden), _COLUMN),
        *matrix(path + "k_proj", _A, (total, hidden), _COLUMN),
        *matrix(path + "v_proj", _A, (total, hidden), _COLUMN),
        *convolution(path + "conv1d", 3 * total, kernel, bias=False),
        vector(path + "A_log", _A, decays, _COLUMN),
        vector(path + "dt_bias", _A, total, _COLUMN),
        *matrix(path + "b_proj", _A, (heads, hidden), _COLUMN),
        *norm(path + "o_norm", width),
        *matrix(path + "o_proj", _A, (hidden, total), Sharding.ROW),
    ]
    for gate in ("f", "g"):
        if gate in low_rank:
            tensors += matrix(f"{path}{gate}_a_proj", _A, (width, hidden), _WHOLE)
            tensors += matrix(f"{path}{gate}_b_proj", _A, (total, width), _COLUMN)
        else:
            tensors += matrix(f"{path}{gate}_proj", _A, (total, hidden), _COLUMN)
    # vLLM keeps the recurrent part in 32 bits too.
    state = StateSpec("kda", 3 * total, kernel, total * width, heads, "float32")
    return Mixed(tensors, state=state)


def _kimi_delta(facts: Facts, family: Family, _kind: str) -> Mixed:
    """Sizes as in the checkpoint's ``linear_attn_config``, which wins over the flat keys."""
    inner = facts.sub("linear_attn_config") or facts.empty("linear_attn_config")
    heads = inner.integer("num_heads", facts.integer("linear_num_heads"))
    width = inner.integer("head_dim", facts.integer("linear_head_dim"))
    return delta_attention(
        facts,
        family,
        heads,
        width,
        inner.integer("short_conv_kernel_size", facts.integer("linear_conv_kernel_dim")),
        low_rank="f" if inner.flag("use_full_rank_gate") else "fg",
    )


def _bailing_delta(facts: Facts, family: Family, _kind: str) -> Mixed:
    facts.settle("kda_lower_bound")
    return delta_attention(
        facts,
        family,
        facts.integer("linear_num_heads", facts.integer("num_attention_heads")),
        facts.integer("linear_head_dim", facts.integer("head_dim")),
        facts.integer("linear_conv_kernel_dim", facts.integer("short_conv_kernel_size")),
        low_rank="",
    )


def _kimi_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """The checkpoint counts its layers from 1; else each fourth from the fifth on attends."""
    inner = facts.sub("linear_attn_config")
    full = inner.integers("full_attn_layers") if inner else None
    linear = inner.integers("kda_layers") if inner else None
    if full is None or linear is None:
        return tuple(FULL if i and i % 4 == 0 else LINEAR for i in range(layers))
    if sorted([*full, *linear]) != list(range(1, layers + 1)):
        wanted = tr("each of the layers 1 to {layers} is needed in one of the two lists").format(
            layers=layers
        )
        raise facts.bad("linear_attn_config", full, wanted)
    return tuple(FULL if i + 1 in full else LINEAR for i in range(layers))


def _dense_first(facts: Facts, layers: int) -> tuple[str, ...]:
    # Among which experts a token chooses, not how many there are.
    facts.settle("num_expert_group", "topk_group", "moe_renormalize")
    first = min(facts.integer("first_k_dense_replace", 1, 0), layers)
    stated = patterns.stated_feeds(facts, layers)
    return stated or (patterns.DENSE,) * first + (patterns.SPARSE,) * (layers - first)


def _bailing_pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    group = facts.integer("layer_group_size")
    return tuple(LINEAR if (i + 1) % group else FULL for i in range(layers))


def _head_gates(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    """Ling gates each head of its latent attention."""
    if mixer != FULL:
        return []
    shape = (facts.integer("num_attention_heads"), facts.integer("hidden_size"))
    return matrix("self_attn.g_proj", _A, shape, _COLUMN)


def _latent_sparse(facts: Facts, family: Family, kind: str) -> Fed:
    """Kimi K3's routed experts work in a space of their own, between projections all share."""
    inner = facts.count("routed_expert_hidden_size")
    fed = feed.sparse(facts, family, kind)
    if not inner:
        return fed
    hidden = facts.integer("hidden_size")
    experts, width = facts.integer("num_experts"), facts.integer("moe_intermediate_size")
    kept = [tensor for tensor in fed.tensors if tensor.module is not ModuleClass.EXPERTS]
    mlp = ModuleClass.MLP
    return replace(
        fed,
        tensors=[
            *kept,
            *feed.expert_tensors(facts, _MOE, family, (experts, inner, width)),
            vector("mlp.gate.e_score_correction_bias", ModuleClass.ROUTER, experts, _WHOLE),
            # The checkpoint stores both whole, though its quantisation does not list them.
            Tensor("mlp.routed_expert_down_proj.weight", mlp, (inner, hidden)),
            Tensor("mlp.routed_expert_up_proj.weight", mlp, (hidden, inner)),
            *(norm("mlp.routed_expert_norm", inner) if facts.flag("latent_moe_use_norm") else ()),
        ],
    )


def _kimi_extra(facts: Facts, _family: Family, mixer: str, _feed: str) -> list[Tensor]:
    """K3 gates each element of its latent attention, and reads earlier blocks' residuals."""
    facts.settle("mla_use_nope", "activation_situ_beta", "activation_situ_linear_beta")
    hidden, tensors = facts.integer("hidden_size"), list[Tensor]()
    if mixer == FULL and facts.flag("mla_use_output_gate"):
        rows = facts.integer("num_attention_heads") * facts.integer("v_head_dim")
        tensors += matrix("self_attn.g_proj", _A, (rows, hidden), _COLUMN)
    if facts.count("attn_res_block_size"):
        tensors += _residual("self_attention_res", hidden, _A)
        tensors += _residual("mlp_res", hidden, ModuleClass.MLP)
    return tensors


def _residual(name: str, hidden: int, module: ModuleClass) -> list[Tensor]:
    """What weighs the residuals of earlier blocks: a norm and one row of scores."""
    return [*norm(f"{name}_norm", hidden), Tensor(f"{name}_proj.weight", module, (1, hidden))]


def _last_residual(facts: Facts, _family: Family) -> list[Tensor]:
    if not facts.count("attn_res_block_size"):
        return []
    hidden = facts.integer("hidden_size")
    return _residual("model.output_attn_res", hidden, ModuleClass.OTHER)


_MOE = Moe(
    experts="num_experts", fused=True, shared="mlp.shared_experts",
    shared_width=times_shared("num_shared_experts"),
)  # fmt: skip
KIMI_LINEAR = Family(
    attention=attention.mla, q_bias=AB, pattern=_kimi_pattern, mixers={LINEAR: _kimi_delta},
    feeds={SPARSE: _latent_sparse}, feed_pattern=_dense_first, moe=_MOE,
    layer_extra=_kimi_extra, positions=_last_residual, tied=False, reads_tie=False,
)  # fmt: skip
BAILING_HYBRID = Family(
    attention=attention.mla, q_bias=AB, pattern=_bailing_pattern, mixers={LINEAR: _bailing_delta},
    feed_pattern=_dense_first, moe=_MOE, layer_extra=_head_gates, mtp=nextn, tied=False,
    reads_tie=False,
)  # fmt: skip

FAMILIES = {"kimi_linear": KIMI_LINEAR, "bailing_hybrid": BAILING_HYBRID}
