"""A model as llama.cpp sees it: blocks, widths and the bytes of its tensors.

Read from a GGUF header (``from_gguf``) or worked out from an architecture (``from_spec``).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.spec import Doubt
    from engine.runtimes.llama_cpp.weights import Weights


class CacheKind(StrEnum):
    """Which KV cache a block writes to."""

    FULL = "full"
    SLIDING = "swa"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Block:
    """One layer's sequence state. Widths and states in elements."""

    cache: CacheKind
    k_width: int = 0
    v_width: int = 0
    """0 under MLA, where keys and values are one vector."""
    conv_state: int = 0
    recurrent_state: int = 0
    entries: tuple[tuple[int, int], ...] = ()
    """Compressed entries beside the window: tokens of one, and its elements."""

    @property
    def is_recurrent(self) -> bool:
        """Whether it keeps a state of constant size."""
        return self.conv_state > 0 or self.recurrent_state > 0


@dataclass(frozen=True, slots=True)
class Moe:
    """Experts, as far as the compute buffer asks."""

    num_experts: int
    num_experts_per_tok: int
    width: int
    """Feed-forward width of one expert."""


@dataclass(frozen=True, slots=True)
class Mla:
    """Latent attention widths."""

    kv_rank: int
    rope: int
    nope: int
    has_q_rank: bool
    value: int = 0
    """Width of one head's values."""


@dataclass(frozen=True, slots=True)
class Ssm:
    """State-space widths; ``kind`` is ``mamba2``, ``gated_delta_net`` or ``shortconv``."""

    kind: str
    inner: int = 0
    state: int = 0
    groups: int = 0
    dt_rank: int = 0

    @property
    def conv_width(self) -> int:
        """Channels of the short convolution."""
        return self.inner + 2 * self.groups * self.state


@dataclass(frozen=True, eq=False)
class Shape:
    """Everything the buffer rules ask of a model."""

    architecture: str
    blocks: tuple[Block, ...]
    blocks_in_file: int
    """Prediction (NextN) blocks included; they are stored but not loaded."""
    n_embd: int
    n_vocab: int
    n_head: int
    """Largest over the layers."""
    head_dim: int
    head_dim_swa: int
    dense_width: int
    """Feed-forward width of the dense layers; 0 where there are none."""
    is_gated: bool
    moe: Moe | None
    mla: Mla | None
    ssm: Ssm | None
    window: int
    per_layer_embedding: int
    context_length: int
    weights: Weights
    file_type: str
    joined: int = 0
    """Width of a head's rotary part, where it is turned apart and then joined to the rest."""
    doubts: tuple[Doubt, ...] = ()
    """Why the buffers are only bounds."""
    is_read: bool = False
    """Whether the tensors come from a file's own table."""

    @property
    def num_layers(self) -> int:
        """Layers that run."""
        return len(self.blocks)

    @cached_property
    def is_hybrid(self) -> bool:
        """Whether any layer keeps a recurrent state."""
        return any(b.is_recurrent for b in self.kinds)

    @cached_property
    def is_encoder(self) -> bool:
        """Whether no layer keeps anything of a sequence: it yields embeddings and has no head."""
        return all(b.cache is CacheKind.NONE and not b.is_recurrent for b in self.kinds)

    @cached_property
    def keeps_entries(self) -> bool:
        """Whether some layers keep compressed entries: every slot has its own caches then."""
        return any(b.entries for b in self.kinds)

    @cached_property
    def whole_heads(self) -> Shape:
        """The model with the keys and values of every head cached, as before latents were."""
        if self.mla is None:
            return self
        key = self.mla.nope + self.mla.rope
        k_width, v_width = self.n_head * key, self.n_head * self.mla.value
        blocks = tuple(
            block if block.cache is CacheKind.NONE
            else replace(block, k_width=k_width, v_width=v_width)
            for block in self.blocks
        )  # fmt: skip
        return replace(
            self, blocks=blocks, mla=None, head_dim=key, head_dim_swa=key, joined=self.mla.rope
        )

    @cached_property
    def kind_counts(self) -> Mapping[Block, int]:
        """The different blocks with how often each occurs."""
        return Counter(self.blocks)

    @cached_property
    def kinds(self) -> tuple[Block, ...]:
        """The different blocks."""
        return tuple(self.kind_counts)

    @cached_property
    def block_kinds(self) -> tuple[int, ...]:
        """Which of ``kinds`` each block is."""
        numbers = {kind: number for number, kind in enumerate(self.kinds)}
        return tuple(numbers[block] for block in self.blocks)

    @cached_property
    def widest_value(self) -> int:
        """Widest V of all layers."""
        return max((b.v_width for b in self.kinds), default=0)

    def widths(self, kind: CacheKind) -> tuple[int, int] | None:
        """Widest (K, V) among the layers of one cache; None where it has no layer."""
        return self._widths[kind]

    @cached_property
    def _widths(self) -> dict[CacheKind, tuple[int, int] | None]:
        return {
            kind: max(((b.k_width, b.v_width) for b in self.kinds if b.cache is kind), default=None)
            for kind in CacheKind
        }
