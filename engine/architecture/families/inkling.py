"""Inkling: short convolutions behind keys, values and both blocks, and relative positions.

Source:
    transformers 5.24.0, ``inkling``, ``inkling2`` and ``inkling2_loop``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.architecture.families import patterns
from engine.architecture.families.base import (
    DENSE,
    SPARSE,
    Family,
    Fed,
    Mixed,
    Moe,
    matrix,
    norm,
)
from engine.architecture.families.feed import expert_tensors, mlp_tensors
from engine.architecture.families.mixers import convolution
from engine.architecture.spec import (
    AttentionKind,
    AttentionSpec,
    ModuleClass,
    MoeSpec,
    Sharding,
    StateSpec,
    Tensor,
)
from engine.words import tr

if TYPE_CHECKING:
    from engine.config.facts import Facts

_A, _MLP, _OTHER = ModuleClass.ATTENTION, ModuleClass.MLP, ModuleClass.OTHER
_WHOLE, _COLUMN = Sharding.REPLICATED, Sharding.COLUMN
_FULL, _SLIDING = "hybrid", "hybrid_sliding"
_KINDS = (_FULL, _SLIDING)
_LOOPED, _FIRST = ", looped", ", first"


def _keeps(facts: Facts, kind: str) -> AttentionSpec:
    slides = kind.startswith(_SLIDING)
    prefix = "swa_" if slides else ""
    heads = facts.integer(prefix + "num_attention_heads")
    kv_heads = facts.integer(prefix + "num_key_value_heads")
    if heads % kv_heads:
        wanted = tr("a divisor of {prefix}num_attention_heads ({heads}) is needed").format(
            prefix=prefix, heads=heads
        )
        raise facts.bad(prefix + "num_key_value_heads", kv_heads, wanted)
    width = facts.integer(prefix + "head_dim")
    window = facts.integer("sliding_window_size") if slides else 0
    attention = AttentionKind.SLIDING if slides else AttentionKind.FULL
    return AttentionSpec(attention, heads, kv_heads, width, width, window)


def _state(facts: Facts, spec: AttentionSpec) -> StateSpec:
    """Four convolutions: keys, values, and what either block puts out; computed in 32 bits."""
    pair = spec.num_key_value_heads * (spec.head_dim + spec.v_head_dim)
    channels = pair + 2 * facts.integer("hidden_size")
    kernel = facts.integer("conv_kernel_size")
    return StateSpec("short_conv", channels, kernel, 0, 0, conv_dtype="float32")


def _extent(facts: Facts, spec: AttentionSpec) -> int:
    """Tokens back over which a relative bias is learned."""
    return spec.window or facts.integer("rel_extent")


def _projections(facts: Facts, spec: AttentionSpec, suffix: str) -> list[Tensor]:
    hidden, path = facts.integer("hidden_size"), "self_attn."
    rows, kv_rows = (
        spec.num_attention_heads * spec.head_dim,
        spec.num_key_value_heads * spec.head_dim,
    )
    return [
        *matrix(f"{path}q_proj{suffix}", _A, (rows, hidden), _COLUMN),
        *matrix(f"{path}k_proj{suffix}", _A, (kv_rows, hidden), Sharding.KV_HEADS),
        *matrix(f"{path}v_proj{suffix}", _A, (kv_rows, hidden), Sharding.KV_HEADS),
        *matrix(f"{path}o_proj{suffix}", _A, (hidden, rows), Sharding.ROW),
    ]


def _block_convolutions(facts: Facts) -> list[Tensor]:
    hidden, kernel = facts.integer("hidden_size"), facts.integer("conv_kernel_size")
    return [
        *convolution("attn_sconv.conv1d", hidden, kernel, bias=False),
        *convolution("mlp_sconv.conv1d", hidden, kernel, bias=False),
    ]


def _attention(facts: Facts, _family: Family, kind: str) -> Mixed:
    """Inkling 1: norms of one head, static convolutions, a relative state a head."""
    spec, hidden = _keeps(facts, kind), facts.integer("hidden_size")
    kernel, relative = facts.integer("conv_kernel_size"), facts.integer("d_rel")
    heads, path = spec.num_attention_heads, "self_attn."
    kv_rows = spec.num_key_value_heads * spec.head_dim
    tensors = [
        *_projections(facts, spec, ""),
        *matrix(path + "r_proj", _A, (heads * relative, hidden), _COLUMN),
        *convolution(path + "k_sconv.conv1d", kv_rows, kernel, bias=False),
        *convolution(path + "v_sconv.conv1d", kv_rows, kernel, bias=False),
        *norm(path + "q_norm", spec.head_dim),
        *norm(path + "k_norm", spec.head_dim),
        Tensor(path + "rel_logits_proj.proj", _A, (relative, _extent(facts, spec))),
        *_block_convolutions(facts),
    ]
    return Mixed(tensors, spec, _state(facts, spec))


def _dense(facts: Facts, family: Family, _kind: str) -> Fed:
    width = facts.integer("dense_intermediate_size", facts.integer("intermediate_size"))
    tensors = mlp_tensors(facts, family, width)
    return Fed([*tensors, Tensor("mlp.global_scale", _MLP, (1,))], width)


def _sparse(facts: Facts, family: Family, _kind: str) -> Fed:
    """Routed experts, and shared ones that the router scores beside them.

    Where the dense width has a key of its own, ``intermediate_size`` is an expert's.
    """
    hidden, experts = facts.integer("hidden_size"), facts.integer("n_routed_experts")
    separate = facts.has("dense_intermediate_size")
    width = facts.integer("intermediate_size" if separate else "moe_intermediate_size")
    shared, active = facts.count("n_shared_experts"), facts.integer("num_experts_per_tok")
    facts.settle("moe_intermediate_size")
    router, block = ModuleClass.ROUTER, ModuleClass.SHARED_EXPERTS
    moe = Moe(container="mlp.experts", fused=True)
    tensors = [
        *matrix("mlp.gate", router, (experts + shared, hidden), _WHOLE),
        Tensor("mlp.gate.global_scale", router, (1,)),
        *expert_tensors(facts, moe, family, (experts, hidden, width)),
    ]
    for name, shape, sharding in (
        ("gate_proj", (width, hidden), _COLUMN),
        ("up_proj", (width, hidden), _COLUMN),
        ("down_proj", (hidden, width), Sharding.ROW),
    ):
        if shared:
            path = f"mlp.shared_experts.{name}"
            tensors.append(Tensor(path, block, shape, shared, sharding, linear=True))
    return Fed(tensors, 0, MoeSpec(experts, active, width, shared * width))


def _pattern(facts: Facts, layers: int) -> tuple[str, ...]:
    """``layer_types``, else the layers named as local, else each sixth attends to everything."""
    stated, named = facts.words("layer_types"), facts.integers("local_layer_ids")
    if stated is None:
        local = {i for i in range(layers) if (i + 1) % 6} if named is None else set(named)
        return tuple(_SLIDING if i in local else _FULL for i in range(layers))
    if len(stated) != layers or not set(stated) <= set(_KINDS):
        wanted = tr("hybrid or hybrid_sliding for each of the {layers} layers is needed").format(
            layers=layers
        )
        raise facts.bad("layer_types", stated, wanted)
    return stated


def _feeds(facts: Facts, layers: int) -> tuple[str, ...]:
    first = min(facts.count("dense_mlp_idx"), layers)
    stated = patterns.stated_feeds(facts, layers)
    return stated or (DENSE,) * first + (SPARSE,) * (layers - first)


def _embedding_norm(facts: Facts, _family: Family) -> list[Tensor]:
    facts.settle("unpadded_vocab_size", "log_scaling_n_floor", "number_of_conv_states")
    width = (facts.integer("hidden_size"),)
    return [Tensor("model.embed_tokens.embed_norm.weight", ModuleClass.EMBEDDING, width)]


INKLING = Family(
    attention=_attention, mixers=dict.fromkeys(_KINDS, _attention), reads_layer_types=False,
    pattern=_pattern, feed_pattern=_feeds, feeds={DENSE: _dense, SPARSE: _sparse},
    positions=_embedding_norm, tied=False, reads_tie=False,
)  # fmt: skip


def _loop(facts: Facts) -> tuple[int, int, int, int]:
    """First and last looped layer (exclusive), passes, and the rank of the message gates."""
    inner = facts.sub("loop_config") or facts.empty("loop_config")
    return (
        inner.integer("core_start", facts.integer("loop_layer_index_start")),
        inner.integer("core_end", facts.integer("loop_layer_index_end")),
        inner.integer("num_passes", facts.integer("loop_num_passes")),
        inner.integer("gate_rank", facts.integer("loop_gate_rank")),
    )


def _is_looped(facts: Facts) -> bool:
    return facts.model_type == "inkling2_loop_text"


def _second_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    layers = facts.integer("num_hidden_layers")
    first, last = _loop(facts)[:2] if _is_looped(facts) else (0, 0)
    found: list[tuple[str, str]] = []
    for i, kind in enumerate(_pattern(facts, layers)):
        marked = kind + (_LOOPED if first <= i < last else "") + ("" if i else _FIRST)
        found.append((marked, SPARSE))
    return tuple(found)


def _second_attention(facts: Facts, _family: Family, kind: str) -> Mixed:
    """Inkling 2: gated output, sinks, residuals that attend to earlier blocks.

    Full layers convolve keys and values with weights that each token projects. A looped layer
    keeps a cache for each pass.
    """
    spec, hidden = _keeps(facts, kind), facts.integer("hidden_size")
    kernel, relative = facts.integer("conv_kernel_size"), facts.integer("d_rel")
    heads, kv_heads, width = spec.num_attention_heads, spec.num_key_value_heads, spec.head_dim
    path, bias = "self_attn.", "self_attn.relative_position_bias."
    tensors = [
        *_projections(facts, spec, ".linear"),
        Tensor(path + "q_proj.norm.scale", _A, (heads, width)),
        *matrix(path + "o_proj.gate_proj", _A, (heads * width, hidden), _COLUMN),
        *matrix(path + "sink_proj", _A, (heads, hidden), _COLUMN),
        *matrix(bias + "linear", _A, (heads * relative, hidden), _COLUMN),
        Tensor(bias + "norm.scale", _A, (heads, relative)),
        Tensor(bias + "proj", _A, (relative, _extent(facts, spec))),
        *_block_convolutions(facts),
        Tensor("mlp_input.query", _MLP, (hidden,)),
        *norm("post_attention_layernorm", hidden),
    ]
    full = kind.startswith(_FULL) and not kind.startswith(_SLIDING)
    for side in ("k_proj", "v_proj"):
        place = f"{path}{side}.sconv."
        if full:
            tensors.append(Tensor(place + "static_weight", _A, (kernel, kv_heads * width)))
            tensors += matrix(place + "weight_proj", _A, (kv_heads * kernel, hidden), _COLUMN)
        else:
            tensors += convolution(place + "conv1d", kv_heads * width, kernel, bias=False)
    for name in ("q_input_", "k_input_", "v_input_") if full else ("input_",):
        tensors += norm(name + "layernorm", hidden)
    if not kind.endswith(_FIRST):
        tensors.append(Tensor("attention_input.query", _A, (3 if full else 1, hidden)))
    state = _state(facts, spec)
    if _LOOPED in kind:
        passes, rank = _loop(facts)[2:]
        spec = replace(spec, caches=passes)
        state = replace(state, conv_dim=state.conv_dim * passes)
        for name in ("q", "k", "v", "mlp"):
            gate = f"{name}_message_gate."
            tensors += matrix(gate + "down_proj", _OTHER, (rank, 2 * hidden), _WHOLE)
            tensors += matrix(gate + "forget_gate_proj", _OTHER, (hidden, rank), _WHOLE)
            tensors += matrix(gate + "message_gate_proj", _OTHER, (hidden, rank), _WHOLE)
    return Mixed(tensors, spec, state)


def _second_outer(facts: Facts, family: Family) -> list[Tensor]:
    hidden = facts.integer("hidden_size")
    tensors = [
        *_embedding_norm(facts, family),
        Tensor("model.final_input.query", _OTHER, (hidden,)),
    ]
    if _is_looped(facts):
        first, last = _loop(facts)[:2]
        tensors.append(Tensor("model.message_input.query", _OTHER, (last - first, 4, hidden)))
    return tensors


INKLING2 = Family(
    kinds=_second_kinds, attention=_second_attention, moe=Moe(experts="n_routed_experts"),
    norms=(), positions=_second_outer, head_rows="unpadded_vocab_size", tied=False, reads_tie=False,
)  # fmt: skip

FAMILIES = {
    "inkling_text": INKLING, "inkling2_text": INKLING2, "inkling2_loop_text": INKLING2,
}  # fmt: skip
