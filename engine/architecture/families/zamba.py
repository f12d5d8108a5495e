"""Zamba: Mamba in every layer, and one attention block whose weights several layers share.

Each site of the shared block keeps keys and values of its own.

Source:
    transformers 5.24.0, ``zamba`` and ``zamba2``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.families.base import (
    LINEAR,
    NONE,
    RENAMED,
    Family,
    Mixed,
    Names,
    matrix,
    norm,
)
from engine.architecture.families.feed import mlp_tensors
from engine.architecture.families.mixers import MambaTwo, convolution
from engine.architecture.spec import (
    AttentionKind,
    AttentionSpec,
    ModuleClass,
    Sharding,
    StateSpec,
    Tensor,
)
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.families.base import MixerRule
    from engine.config.facts import Facts

_A, _MLP, _OTHER = ModuleClass.ATTENTION, ModuleClass.MLP, ModuleClass.OTHER
_WHOLE, _COLUMN, _ROW = Sharding.REPLICATED, Sharding.COLUMN, Sharding.ROW
_HYBRID = "hybrid"


def _stated(facts: Facts) -> tuple[str, ...] | None:
    words = facts.words("layers_block_type")
    return None if words is None else tuple(RENAMED.get(word, word) for word in words)


def _placed(facts: Facts, kinds: tuple[str, ...], blocks: int) -> tuple[tuple[str, str], ...]:
    """The first ``blocks`` sites bring a block each, the later ones read them in turn.

    A block has adapters for all its sites: those that ``hybrid_layer_ids`` lists, where a config
    states them too. Without tied embeddings the classes share nothing: every site then has a
    block of its own, with as many adapters.
    """
    layers, listed = facts.integer("num_hidden_layers"), facts.items("hybrid_layer_ids")
    sites = kinds.count(_HYBRID) if listed is None else len(listed)
    if len(kinds) != layers:
        wanted = tr("one entry for each of the {layers} layers is needed, not {kinds}").format(
            layers=layers, kinds=len(kinds)
        )
        raise facts.bad("layers_block_type", kinds, wanted)
    shares = facts.flag("tie_word_embeddings", default=True)
    found: list[tuple[str, str]] = []
    site = 0
    for kind in kinds:
        if kind not in (LINEAR, _HYBRID):
            raise facts.bad("layers_block_type", kind, tr("linear_attention or hybrid is needed"))
        if kind == LINEAR:
            found.append((LINEAR, NONE))
            continue
        brings = site < blocks or not shares
        adapters = len(range(site % blocks, sites, blocks)) if brings else 0
        found.append((f"{_HYBRID}/{adapters}" if brings else _HYBRID, NONE))
        site += 1
    return tuple(found)


def _zamba_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    period, offset = facts.integer("attn_layer_period"), facts.integer("attn_layer_offset", 0, 0)
    rest = range(max(facts.integer("num_hidden_layers") - 3, 0))
    own = (LINEAR, LINEAR, _HYBRID, *(_HYBRID if i % period == offset else LINEAR for i in rest))
    return _placed(facts, _stated(facts) or own, 1)


_ZAMBA2 = (
    (LINEAR,) + ((LINEAR,) * 5 + (_HYBRID,)) * 7 + (LINEAR,) * 4 + (_HYBRID,) + (LINEAR,) * 3
    + (_HYBRID,) + (LINEAR,) * 2
)  # fmt: skip


def _zamba2_kinds(facts: Facts) -> tuple[tuple[str, str], ...]:
    facts.settle("num_query_groups", "kv_channels")
    return _placed(facts, _stated(facts) or _ZAMBA2, facts.integer("num_mem_blocks"))


def _one_mamba(facts: Facts) -> Mixed:
    """Mamba-1 in several heads, each with its own selection."""
    hidden, heads = facts.integer("hidden_size"), facts.integer("n_mamba_heads")
    inner, states = facts.integer("mamba_expand") * hidden, facts.integer("mamba_d_state")
    kernel, stated = facts.integer("mamba_d_conv"), facts.raw("mamba_dt_rank")
    rank = -(-hidden // 16) if stated == "auto" else facts.integer("mamba_dt_rank")
    bias = facts.flag("mamba_proj_bias")
    if inner % heads:
        raise facts.bad(
            "n_mamba_heads",
            heads,
            tr("a divisor of the inner width {inner} is needed").format(inner=inner),
        )
    width = inner // heads
    path = "mamba."
    tensors = [
        *matrix(path + "in_proj", _A, (2 * inner, hidden), _COLUMN, bias=bias),
        *convolution(path + "conv1d", inner, kernel, bias=facts.flag("mamba_conv_bias")),
        Tensor(path + "x_proj_weight", _A, (heads, rank + 2 * states, width)),
        Tensor(path + "dt_proj_weight", _A, (heads, width, rank)),
        Tensor(path + "dt_proj_bias", _A, (heads, width)),
        Tensor(path + "A_log", _A, (heads, width, states)),
        Tensor(path + "D", _A, (heads, width)),
        *matrix(path + "out_proj", _A, (hidden, inner), _ROW, bias=bias),
    ]
    return Mixed(tensors, state=StateSpec("mamba", inner, kernel, inner * states, heads))


def _two_mamba(facts: Facts) -> Mixed:
    heads, hidden = facts.integer("n_mamba_heads"), facts.integer("hidden_size")
    inner, bias = facts.integer("mamba_expand") * hidden, facts.flag("add_bias_linear")
    facts.settle("use_conv_bias", "mamba_headdim")
    sizes = MambaTwo(
        heads=heads, width=facts.integer("mamba_headdim", inner // heads),
        groups=facts.integer("mamba_ngroups"), states=facts.integer("mamba_d_state"),
        kernel=facts.integer("mamba_d_conv"), inner=inner, in_bias=bias, out_bias=bias,
        conv_bias=True,
    )  # fmt: skip
    return sizes.block("mamba.", hidden)


def _keeps(facts: Facts) -> AttentionSpec:
    heads = facts.integer("num_attention_heads")
    kv_heads = facts.integer("num_key_value_heads", heads)
    if heads % kv_heads:
        wanted = tr("a divisor of num_attention_heads ({heads}) is needed").format(heads=heads)
        raise facts.bad("num_key_value_heads", kv_heads, wanted)
    width = facts.integer("attention_head_dim", 2 * facts.integer("hidden_size") // heads)
    return AttentionSpec(AttentionKind.FULL, heads, kv_heads, width, width)


def _shared(facts: Facts, family: Family, spec: AttentionSpec) -> list[Tensor]:
    """The block that all sites share: it reads its input beside the embedding, twice as wide."""
    hidden = facts.integer("hidden_size")
    wide = facts.integer("attention_hidden_size", 2 * hidden)
    path = family.names.attention + "."
    rows, kv_rows = (
        spec.num_attention_heads * spec.head_dim,
        spec.num_key_value_heads * spec.head_dim,
    )
    mlp = facts.integer("intermediate_size", 4 * hidden)
    return [
        *matrix(path + "q_proj", _A, (rows, wide), _COLUMN),
        *matrix(path + "k_proj", _A, (kv_rows, wide), Sharding.KV_HEADS),
        *matrix(path + "v_proj", _A, (kv_rows, wide), Sharding.KV_HEADS),
        *matrix(path + "o_proj", _A, (hidden, rows), _ROW),
        *mlp_tensors(facts, family, mlp),
        *norm("shared.input_layernorm", wide),
        *norm("shared.pre_ff_layernorm", hidden),
    ]


def _adapters(facts: Facts, copies: int) -> list[Tensor]:
    """What each site of Zamba2 has of its own in the shared block: low-rank adapters."""
    hidden, rank = facts.integer("hidden_size"), facts.integer("adapter_rank")
    wide = facts.integer("attention_hidden_size", 2 * hidden)
    sizes = [("gate_up", hidden, 2 * facts.integer("intermediate_size", 4 * hidden), _MLP)]
    if facts.flag("use_shared_attention_adapter"):
        sizes += [(name, wide, wide, _A) for name in "qkv"]
    tensors: list[Tensor] = []
    for name, inner, outer, module in sizes:
        tensors += matrix(f"adapter.{name}.0", module, (rank, inner), _WHOLE, copies=copies)
        tensors += matrix(f"adapter.{name}.1", module, (outer, rank), _WHOLE, copies=copies)
    return tensors


def _mixer(mamba: Callable[[Facts], Mixed], *, adapted: bool) -> MixerRule:
    def mixed(facts: Facts, family: Family, kind: str) -> Mixed:
        recurrent = mamba(facts)
        if kind == LINEAR:
            return recurrent
        spec, hidden = _keeps(facts), facts.integer("hidden_size")
        tensors = [*recurrent.tensors, *matrix("linear", _OTHER, (hidden, hidden), _WHOLE)]
        _, brings, adapters = kind.partition("/")
        if brings:
            tensors += _shared(facts, family, spec)
        if brings and adapted:
            tensors += _adapters(facts, int(adapters))
        return Mixed(tensors, spec, recurrent.state)

    return mixed


_ONE, _TWO = _mixer(_one_mamba, adapted=False), _mixer(_two_mamba, adapted=True)
_PATH = "shared_transformer."
ZAMBA = Family(
    names=Names(
        attention=_PATH + "self_attn", mlp=_PATH + "feed_forward",
        final_norm="model.final_layernorm",
    ),
    kinds=_zamba_kinds, mixers={LINEAR: _ONE}, attention=_ONE,
    norms=("input_layernorm",),
)  # fmt: skip
ZAMBA2 = Family(
    names=Names(
        attention=_PATH + "self_attn", mlp=_PATH + "feed_forward", gate="gate_up_proj",
        final_norm="model.final_layernorm",
    ),
    kinds=_zamba2_kinds, mixers={LINEAR: _TWO}, attention=_TWO,
    norms=("input_layernorm",), gate_up_fused=True, mlp_bias="add_bias_linear",
)  # fmt: skip

FAMILIES = {"zamba": ZAMBA, "zamba2": ZAMBA2}
