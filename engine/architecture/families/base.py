"""What a family is: data about how its layers differ from a plain Llama, and a few rules.

A family never computes bytes or totals. It says which tensors a layer has (names and shapes as
in the published checkpoints, relative to the layer), how each is sharded, and what state the
layer keeps. ``engine.architecture.build`` assembles the model from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, ModuleClass, Sharding, Subject, Tensor

if TYPE_CHECKING:
    from engine.architecture.spec import AttentionSpec, MoeSpec, StateSpec
    from engine.config.facts import Facts

FULL = "full_attention"
SLIDING = "sliding_attention"
CHUNKED = "chunked_attention"
LINEAR = "linear_attention"
NONE = "none"
DENSE = "dense"
SPARSE = "sparse"

RENAMED = {
    "attention": FULL,
    "mamba": LINEAR,
    "deepseek_sparse_attention": "indexed_attention",
}
"""Layer kinds of older configs -> their present names."""
KINDS = frozenset({
    *RENAMED, FULL, SLIDING, CHUNKED, LINEAR, DENSE, SPARSE, "compressed_sparse_attention", "conv",
    "heavily_compressed_attention", "hybrid", "hybrid_sliding", "indexed_attention",
    "minimax_m3_sparse", "mlp", "moe", "qwen_sparse_attention", "reference_sliding_attention",
    "window_attention",
})  # fmt: skip
"""All kinds that classes of transformers 5.24.0 have, by old names and new."""

Flag = bool | str
"""A constant, or the config key that decides (``!key`` for its opposite)."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """What a token mixer contributes to a layer."""

    tensors: list[Tensor]
    attention: AttentionSpec | None = None
    state: StateSpec | None = None
    cross: AttentionSpec | None = None


@dataclass(frozen=True, slots=True)
class Fed:
    """What a feed-forward block contributes to a layer."""

    tensors: list[Tensor]
    intermediate_size: int = 0
    moe: MoeSpec | None = None


MixerRule = Callable[["Facts", "Family", str], Mixed]
FeedRule = Callable[["Facts", "Family", str], Fed]
PatternRule = Callable[["Facts", int], "tuple[str, ...]"]
OuterRule = Callable[["Facts", "Family"], "list[Tensor]"]
DoubtRule = Callable[["Facts"], "list[Doubt]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names of modules, where a family's checkpoints differ from Llama's."""

    attention: str = "self_attn"
    query: str = "q_proj"
    key: str = "k_proj"
    value: str = "v_proj"
    output: str = "o_proj"
    query_norm: str = "q_norm"
    key_norm: str = "k_norm"
    fused: str = ""
    """One matrix for query, key and value: its name; emitted as three tensors of that name."""
    mlp: str = "mlp"
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"
    embedding: str = "model.embed_tokens"
    final_norm: str = "model.norm"
    positions: str = "model.embed_positions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe:
    """A mixture-of-experts block. Fields name config keys where values differ per model."""

    experts: str = "num_experts"
    count_rule: Callable[[Facts], int] | None = None
    """Number of experts where it is not the value of one key."""
    active: str = "num_experts_per_tok"
    width: str = "moe_intermediate_size"
    width_rule: Callable[[Facts], int] | None = None
    """Width of an expert where it is not the value of one key."""
    container: str = "mlp.experts"
    router: str = "mlp.gate"
    router_bias: Flag = False
    fused: bool = False
    """Whether gate and up are one stored tensor."""
    expert_bias: Flag = False
    gated: bool = True
    names: tuple[str, str, str] | None = None
    """Gate, up and down of one expert, where not as in the dense MLP."""
    shared: str = ""
    """Name of the shared expert's module; empty where there is none."""
    shared_width: Callable[[Facts], int] | None = None
    """Width of the shared expert(s); 0 where the model has none."""
    shared_gate: str = ""
    """Name of the gate of the shared expert, if any."""
    further: Callable[[Facts, Family], list[Tensor]] | None = None
    """Further tensors of the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a multi-token-prediction block has. The default is DeepSeek's without its tables.

    A block joins the next token's embedding to the hidden state (two norms, one projection of
    2 H to H), runs decoder layers and ends with a norm.
    """

    kinds: Callable[[Facts, int], tuple[tuple[str, str], ...]] | None = None
    """Mixer and feed-forward kind of the decoder layers of all blocks, given the number of
    blocks; None = one each, like the model's last."""
    joins_once: bool = False
    """Whether all blocks share one projection and its norms."""
    join: Sharding | None = None
    """How the projection is cut where it is quantised like the layers; None = stored plain."""
    repeats_tables: bool = False
    """Whether each block stores the model's embedding and head again."""
    own_head: bool = False
    """Whether each block has an output head of its own."""
    further: Callable[[Facts, Family], list[Tensor]] | None = None
    """Further tensors of each block."""


def _all_full(_facts: Facts, layers: int) -> tuple[str, ...]:
    return (FULL,) * layers


def _all_dense(_facts: Facts, layers: int) -> tuple[str, ...]:
    return (DENSE,) * layers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """How models of one or more ``model_type`` are built. The defaults are Llama's."""

    names: Names = Names()
    attention: MixerRule | None = None
    """Full, sliding and chunked attention where it is not plain grouped-query attention."""
    mixers: Mapping[str, MixerRule] = field(default_factory=dict[str, MixerRule])
    """Mixers of layer kinds other than full, sliding and chunked attention."""
    feeds: Mapping[str, FeedRule] = field(default_factory=dict[str, FeedRule])
    """Feed-forward rules other than the plain dense and sparse ones."""
    feed: FeedRule | None = None
    """Feed-forward blocks of kinds that are neither dense nor sparse nor in ``feeds``."""
    pattern: PatternRule = _all_full
    """Token mixer of each layer where the config has no ``layer_types``."""
    reads_layer_types: bool = True
    kinds: Callable[[Facts], tuple[tuple[str, str], ...]] | None = None
    """Mixer and feed-forward kind of every layer, where the two are not independent."""
    feed_pattern: PatternRule = _all_dense
    kv_heads: Callable[[Facts, str], int] | None = None
    head_dim: Callable[[Facts, str], tuple[int, int]] | None = None
    """Key and value head widths of a kind of layer, where not ``head_dim`` or H / heads."""
    heads: Callable[[Facts, str], int] | None = None
    q_bias: Flag = False
    o_bias: Flag = False
    qk_norm: str = ""
    """``head``: norms of one head's width; ``full``: of the whole projection's width."""
    qk_norm_if: Flag = True
    qk_norm_bias: bool = False
    q_gate: Flag = False
    """Whether the query projection also yields an output gate (twice the width)."""
    sinks: Flag = False
    gated: Flag = True
    mlp_bias: Flag = False
    gate_up_fused: bool = False
    width: Callable[[Facts], int] | None = None
    """Width of the dense MLP, where not ``intermediate_size``."""
    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    norm_rule: Callable[[Facts], tuple[str, ...]] | None = None
    norm_bias: Flag = False
    norm_weight: bool = True
    moe: Moe | None = None
    embedding_width: str = "hidden_size"
    embedding_extra: int | str = 0
    """Rows of the embedding beyond the vocabulary, which the head does not have, or their key."""
    positions: OuterRule | None = None
    """Learned position embeddings and other tensors outside the layers."""
    head_rows: str = ""
    """Key of the words that the head can yield, where they may be fewer than it reads."""
    head_bias: Flag = False
    has_head: bool = True
    bare_is_headless: bool = True
    """Whether an ``architectures`` entry such as ``MistralModel`` means a model without head."""
    tied: bool | None = None
    """Whether embedding and head are one where neither config nor class says."""
    reads_tie: bool = True
    """False where ``tied`` holds whatever the config says (T5)."""
    by_class: Callable[[Facts], Family] | None = None
    """The family in the form that the stated class builds, where its classes differ in layers."""
    owns_text: bool = False
    """Whether it is a root's own: its class builds its text model unlike that model's type."""
    layer_extra: Callable[[Facts, Family, str, str], list[Tensor]] | None = None
    """Further tensors of each layer, given its mixer and feed-forward kind."""
    mtp: Callable[[Facts], int] | None = None
    """Number of multi-token-prediction blocks stored with the model; None where no published
    total or class shows what a block has."""
    prediction: Prediction = Prediction()
    harmless: tuple[str, ...] = ()
    """Keys of its configs that no class of transformers has, and that change nothing here."""
    doubts: DoubtRule | None = None
    window: Callable[[Facts, str], int] | None = None


def matrix(
    name: str,
    module: ModuleClass,
    shape: tuple[int, int],
    sharding: Sharding,
    *,
    bias: bool = False,
    copies: int = 1,
) -> list[Tensor]:
    """A linear layer: its weight and, where it has one, its bias.

    The bias of a row-parallel layer is added once, so it is kept whole on every rank.
    """
    found = [Tensor(f"{name}.weight", module, shape, copies, sharding, linear=True)]
    if bias:
        own = _BIAS_SHARDING.get(sharding, sharding)
        found.append(Tensor(f"{name}.bias", module, (shape[0],), copies, own))
    return found


_BIAS_SHARDING = {Sharding.ROW: Sharding.REPLICATED, Sharding.EXPERT_ROW: Sharding.REPLICATED}


def norm(name: str, width: int, *, bias: bool = False) -> list[Tensor]:
    """A norm's weight and, for LayerNorm, its bias."""
    found = [Tensor(f"{name}.weight", ModuleClass.NORM, (width,))]
    if bias:
        found.append(Tensor(f"{name}.bias", ModuleClass.NORM, (width,)))
    return found


def state_doubt(reason: str, direction: Direction = Direction.UPPER) -> list[Doubt]:
    """The one doubt of a family whose sequence state is bounded for ``reason``."""
    return [Doubt(Subject.SEQUENCE_STATE, reason, direction)]


def vector(name: str, module: ModuleClass, width: int, sharding: Sharding) -> Tensor:
    """A vector that is no norm and no bias of a linear layer."""
    return Tensor(name, module, (width,), 1, sharding)
