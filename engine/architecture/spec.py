"""What a model is, independent of any runtime: its parameter tensors and its sequence state.

Everything downstream follows from the tensor inventory: parameter counts are sums of
shapes, stored bytes are shapes through a weight format, a rank's share is a shape through
its sharding. A family therefore only has to say which tensors a layer has and what state
the layer keeps; it never computes bytes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod
from typing import TYPE_CHECKING

from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class ModuleClass(StrEnum):
    """Part of the model a tensor belongs to; sharding, quantisation and offload act per class."""

    EMBEDDING = "embedding"
    LM_HEAD = "lm_head"
    ATTENTION = "attention"
    MLP = "mlp"
    EXPERTS = "experts"
    SHARED_EXPERTS = "shared_experts"
    ROUTER = "router"
    NORM = "norm"
    VISION = "vision"
    AUDIO = "audio"
    MTP = "mtp"
    OTHER = "other"


class Sharding(StrEnum):
    """What tensor parallelism does with a tensor of shape (out, in)."""

    REPLICATED = "replicated"
    COLUMN = "column"
    ROW = "row"
    KV_HEADS = "kv_heads"
    VOCAB = "vocab"
    EXPERT_COLUMN = "expert_column"
    EXPERT_ROW = "expert_row"


@dataclass(frozen=True, slots=True)
class Tensor:
    """One logical parameter tensor, or ``copies`` of the same shape (stacked experts).

    Shapes:
        ``shape``: (out_features, in_features) for a matrix, (n,) for a vector; more axes for
        convolutions. The expert axis is ``copies``, never part of the shape.
    """

    name: str
    module: ModuleClass
    shape: tuple[int, ...]
    copies: int = 1
    sharding: Sharding = Sharding.REPLICATED
    linear: bool = False
    """Whether it is the weight of a linear layer: what weight formats quantise."""
    stored_as: str = ""
    """Format in which the checkpoint stores it, where that is not ``weight_format``."""
    repeats: bool = False
    """Whether the checkpoint stores one of the model's tensors again: loaded, there is one."""
    is_index: bool = False
    """Whether it holds whole numbers that are looked up: bytes, and no parameters."""

    @property
    def elements(self) -> int:
        """Elements over all copies."""
        return prod(self.shape) * self.copies

    @property
    def parameters(self) -> int:
        """Elements over all copies that were learned."""
        return 0 if self.is_index else self.elements


class AttentionKind(StrEnum):
    """How many positions a layer keeps."""

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    LATENT = "latent"
    """MLA: one compressed vector per token in place of keys and values."""
    CROSS = "cross"
    """Over the tokens of an encoder, which its cache holds whatever the answer's length."""


@dataclass(frozen=True, slots=True)
class Compression:
    """Entries that stand for several tokens each, beside the window (DeepSeek-V4)."""

    ratio: int
    """Tokens of one entry."""
    width: int
    """Elements of an entry."""
    index_width: int = 0
    """Elements of an entry's key in the sparse indexer; 0 where there is none."""
    overlaps: bool = False
    """Whether an entry also reads the tokens of the one before (both widths are doubled)."""


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """One attention layer. Head widths in elements, windows in tokens."""

    kind: AttentionKind
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    v_head_dim: int
    window: int = 0
    """Sliding window or chunk length, 0 for full and latent attention. For cross-attention the
    encoder's tokens, 0 where they are as many as the input has."""
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    index_head_dim: int = 0
    """Sparse indexer key width (DeepSeek-V3.2 class); 0 where there is none."""
    index_dtype: str | None = None
    """Dtype of the indexer's keys in transformers; None = the model's own."""
    index_positions: int = 0
    """64-bit positions that transformers keeps beside each of the indexer's keys."""
    keeps_cache: bool = True
    """False where the layer reads another layer's keys and values."""
    keeps_values: bool = True
    """False where the key is the value too and is kept once (DeepSeek-V4)."""
    caches: int = 1
    """Caches of this shape that the layer keeps: two in LongCat-Flash."""
    prefix_tokens: int = 0
    """Learned tokens that are kept in front of every sequence (CPM-Ant)."""
    compression: Compression | None = None


@dataclass(frozen=True, slots=True)
class StateSpec:
    """State of constant size per sequence (Mamba, gated delta net, short convolution)."""

    kind: str
    conv_dim: int
    conv_kernel: int
    """Columns of the convolution; all but one have to be kept for the next token."""
    recurrent_elements: int
    recurrent_heads: int
    state_dtype: str | None = None
    """Dtype of the recurrent part; None = the model's own dtype."""
    conv_dtype: str | None = None
    """Dtype of the convolution part in transformers; None = the model's own dtype."""
    keeps_kernel: bool = True
    """Whether transformers keeps all columns of the convolution, the newest too."""
    groups: int = 0
    """Groups that share states (Mamba-2); vLLM gives every rank one where they don't divide."""
    group_channels: int = 0
    """Channels of the convolution that one group has."""
    further_elements: int = 0
    """Elements of further convolutions, kept whole in the convolution's dtype."""
    integers: int = 0
    """64-bit token ids and counters that transformers keeps beside."""


@dataclass(frozen=True, slots=True)
class MoeSpec:
    """A mixture-of-experts block, as far as its activations need it."""

    num_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    shared_intermediate_size: int = 0


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One decoder layer. Identical layers share one object, so that work is done once per kind."""

    tensors: tuple[Tensor, ...]
    attention: AttentionSpec | None = None
    state: StateSpec | None = None
    moe: MoeSpec | None = None
    intermediate_size: int = 0
    """Width of the dense MLP; 0 where the layer has none."""
    gated_mlp: bool = True
    cross: AttentionSpec | None = None
    """Cross-attention, beside self-attention or in its place."""

    @property
    def parameters(self) -> int:
        """Parameters of the layer."""
        return sum(t.parameters for t in self.tensors)


class Subject(StrEnum):
    """What is not understood."""

    WEIGHTS = "weights"
    SEQUENCE_STATE = "sequence_state"
    ACTIVATIONS = "activations"


class Direction(StrEnum):
    """On which side of the truth a figure in doubt lies."""

    UPPER = "upper"
    """Counted at its most: the truth is this or less."""
    LOWER = "lower"
    """Something that is stored or held is not counted: the truth is this or more."""
    EITHER = "either"
    """Counted by the nearest rule known: the truth may be less or more."""

    @property
    def sign(self) -> str:
        """What stands before the figure."""
        return {"upper": "≤ ", "lower": "≥ "}.get(self.value, "≈ ")

    @property
    def words(self) -> str:
        """The sign in words."""
        return {"upper": tr("at most"), "lower": tr("at least")}.get(self.value, tr("about"))


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a figure is a bound: what is not understood, in one sentence why, and which way."""

    subject: Subject
    reason: str
    direction: Direction
    on_tower: bool = False
    """Whether it concerns the bytes of a tower alone: nothing to a runtime that loads none."""


def direction_of(doubts: Iterable[Doubt], subject: Subject) -> Direction | None:
    """Which way all that is in doubt about ``subject`` goes; None where nothing is."""
    found = {doubt.direction for doubt in doubts if doubt.subject is subject}
    if len(found) > 1:
        return Direction.EITHER
    return next(iter(found), None)


@dataclass(frozen=True, slots=True, eq=False)
class ArchitectureSpec:
    """The model that a config describes. Compared by identity: cheap as a cache key.

    ``outer`` holds what is outside the layers (embeddings, head, final norm, towers);
    ``mtp`` the multi-token-prediction blocks, stored but resident only when they are used,
    and then without the tables that they repeat.
    """

    model_type: str
    layers: tuple[LayerSpec, ...]
    outer: tuple[Tensor, ...]
    mtp: tuple[Tensor, ...]
    hidden_size: int
    vocab_size: int
    max_position_embeddings: int | None
    dtype: str
    """Dtype the config states for the weights: ``bfloat16``, ``float16``, ``float32``."""
    tie_word_embeddings: bool
    weight_format: str
    """Format of the weights as published: ``bf16``, ``fp8-block`` … (engine.formats)."""
    unquantised: tuple[str, ...] = ()
    """Module name patterns that the quantisation leaves alone (``modules_to_not_convert`` …)."""
    kv_cache_dtype: str | None = None
    """KV dtype the checkpoint asks for (``kv_cache_scheme``), if any."""
    kv_scale_bytes: int = 0
    """Stored scales of keys and values, in every layer that has both."""
    doubts: tuple[Doubt, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Config key -> ``stated``, ``class default`` or ``derived``."""
    stated_parameters: Mapping[ModuleClass, int] | None = None
    """Per-class parameter sums known from elsewhere (catalogue), where the tensors are in doubt."""
    root_type: str = ""
    """``model_type`` of the whole config, where the text model has its own (``gemma3``)."""
    mtp_attentions: tuple[AttentionSpec, ...] = ()
    """Self-attention of the prediction blocks that are counted."""
    uncounted_mtp: int = 0
    """Prediction blocks that the config states and whose layout is not known here."""
    draft: str = ""
    """Kind of draft model (``engine.architecture.drafts``); empty for a model of its own."""

    def direction(self, subject: Subject) -> Direction | None:
        """Which way the figures of ``subject`` are in doubt; None where they are not."""
        return direction_of(self.doubts, subject)

    @property
    def num_hidden_layers(self) -> int:
        """Decoder layers."""
        return len(self.layers)

    def layer_groups(self) -> Iterator[tuple[LayerSpec, int]]:
        """Each distinct layer with the number of times it occurs, in order of first occurrence."""
        counts = Counter(id(layer) for layer in self.layers)
        seen: set[int] = set()
        for layer in self.layers:
            if id(layer) not in seen:
                seen.add(id(layer))
                yield layer, counts[id(layer)]

    def parameters_by_class(self) -> dict[ModuleClass, int]:
        """Exact parameters per class, MTP left out (it is not resident by default)."""
        if self.stated_parameters is not None:
            return dict(self.stated_parameters)
        sums: Counter[ModuleClass] = Counter()
        for tensor in self.outer:
            sums[tensor.module] += tensor.parameters
        for layer, count in self.layer_groups():
            for tensor in layer.tensors:
                sums[tensor.module] += tensor.parameters * count
        return dict(sums)

    @property
    def parameters(self) -> int:
        """Parameters of the built model: tied embeddings once, MTP not counted."""
        return sum(self.parameters_by_class().values())

    @property
    def attentions(self) -> tuple[AttentionSpec, ...]:
        """Self-attention of every layer that keeps a KV cache, in layer order."""
        return tuple(
            layer.attention
            for layer in self.layers
            if layer.attention is not None and layer.attention.keeps_cache
        )
