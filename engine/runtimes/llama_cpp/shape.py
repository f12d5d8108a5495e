"""A model as llama.cpp sees it: blocks, widths and the bytes of its tensors.

Read from a GGUF header (``from_gguf``) or worked out from an architecture (``from_spec``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from engine.formats.gguf import TYPES, row_bytes, tensor_bytes
from engine.units import align_up

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST_ALIGNMENT = 32
CUDA_ALIGNMENT = 128
CUDA_ROW_ELEMENTS = 512
"""CUDA and HIP pad the last row of a quantised tensor to this many elements."""

EMBEDDINGS = frozenset({"token_embd.weight", "per_layer_token_embd.weight"})
"""Input tensors: always on the host."""


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


@dataclass(frozen=True, slots=True)
class FileTensor:
    """One tensor of the (real or planned) file; ``shape`` in ggml order."""

    name: str
    ggml_type: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """As stored."""
        return tensor_bytes(self.ggml_type, self.shape)

    @property
    def block(self) -> int | None:
        """Block it belongs to; None outside the blocks."""
        return int(self.name.split(".")[1]) if self.name.startswith("blk.") else None

    @property
    def is_expert(self) -> bool:
        """Whether ``--n-cpu-moe`` moves it."""
        return any(f"ffn_{part}_exps" in self.name for part in ("up", "down", "gate", "gate_up"))

    @property
    def host_bytes(self) -> int:
        """In a host buffer."""
        return align_up(self.size_bytes, HOST_ALIGNMENT)

    @property
    def cuda_bytes(self) -> int:
        """In a CUDA or HIP buffer: the last row padded, and the tensor aligned."""
        size = self.size_bytes
        rest = self.shape[0] % CUDA_ROW_ELEMENTS if self.shape else 0
        if rest and TYPES[self.ggml_type].is_quantised:
            size += row_bytes(self.ggml_type, CUDA_ROW_ELEMENTS - rest)
        return align_up(size, CUDA_ALIGNMENT)


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes of some tensors, by the kind of buffer they would be in."""

    host: int = 0
    cuda: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(self.host + other.host, self.cuda + other.cuda)

    def on(self, *, cuda: bool) -> int:
        """The bytes in one of the two."""
        return self.cuda if cuda else self.host


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
    tensors: tuple[FileTensor, ...]
    file_type: str
    doubts: tuple[str, ...] = ()
    """Reasons why the buffers are only bounds."""
    is_read: bool = False
    """Whether the tensors come from a file's own table."""

    @property
    def num_layers(self) -> int:
        """Layers that run."""
        return len(self.blocks)

    @cached_property
    def is_tied(self) -> bool:
        """Whether the head is the embedding."""
        return all(t.name != "output.weight" for t in self.tensors)

    @cached_property
    def is_hybrid(self) -> bool:
        """Whether any layer keeps a recurrent state."""
        return any(b.is_recurrent for b in self.blocks)

    @cached_property
    def widest_value(self) -> int:
        """Widest V of all layers."""
        return max((b.v_width for b in self.blocks), default=0)

    def widths(self, kind: CacheKind) -> tuple[int, int] | None:
        """Widest (K, V) among the layers of one cache; None where it has no layer."""
        found = [(b.k_width, b.v_width) for b in self.blocks if b.cache is kind]
        return max(found) if found else None

    @cached_property
    def embeddings(self) -> Held:
        """Input embeddings, per-layer ones included."""
        return _held(t for t in self.tensors if t.name in EMBEDDINGS)

    @cached_property
    def token_embedding(self) -> Held:
        """The token embedding alone: what a tied head copies."""
        return _held(t for t in self.tensors if t.name == "token_embd.weight")

    @cached_property
    def rope_factors(self) -> Held:
        """Rotary factors: every device with a layer has a copy."""
        return _held(t for t in self.tensors if t.name.startswith("rope_f"))

    @cached_property
    def output(self) -> Held:
        """What is loaded with the output layer; the copy of a tied embedding apart."""
        return _held(
            t
            for t in self.tensors
            if t.block is None and t.name not in EMBEDDINGS and not t.name.startswith("rope_f")
        )

    @cached_property
    def output_matrix_bytes(self) -> int:
        """The matrix that makes the logits."""
        name = "token_embd.weight" if self.is_tied else "output.weight"
        return sum(t.size_bytes for t in self.tensors if t.name == name)

    @cached_property
    def _per_block(self) -> tuple[tuple[Held, Held], ...]:
        rest = [Held()] * self.num_layers
        experts = [Held()] * self.num_layers
        for tensor in self.tensors:
            block = tensor.block
            if block is not None and block < self.num_layers:
                target = experts if tensor.is_expert else rest
                target[block] += Held(tensor.host_bytes, tensor.cuda_bytes)
        return tuple(zip(rest, experts, strict=True))

    def block_bytes(self, index: int) -> tuple[Held, Held]:
        """(everything but experts, experts) of one block."""
        return self._per_block[index]

    @cached_property
    def largest_down_bytes(self) -> int:
        """The largest down projection, experts together: what op offload copies last."""
        return max((t.size_bytes for t in self.tensors if "ffn_down" in t.name), default=0)

    @cached_property
    def size_bytes(self) -> int:
        """All tensors as stored, prediction blocks included."""
        return sum(t.size_bytes for t in self.tensors)


def _held(tensors: Iterable[FileTensor]) -> Held:
    total = Held()
    for tensor in tensors:
        total += Held(tensor.host_bytes, tensor.cuda_bytes)
    return total
