"""A model as llama.cpp sees it: blocks, widths and the bytes of its tensors.

Read from a GGUF header (``from_gguf``) or worked out from an architecture (``from_spec``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.formats.gguf import TYPES, row_bytes, tensor_bytes
from engine.units import align_up

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST_ALIGNMENT = 32
CUDA_ALIGNMENT = 128
CUDA_ROW_ELEMENTS = 512
"""CUDA and HIP pad the last row of a quantised tensor to this many elements."""

_REPACKABLE = frozenset({"Q4_0", "Q4_K", "IQ4_NL", "Q2_K", "MXFP4"})
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


class FileTensor(NamedTuple):
    """One tensor of the (real or planned) file; ``shape`` in ggml order."""

    name: str
    ggml_type: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """As stored."""
        return tensor_bytes(self.ggml_type, self.shape)

    @property
    def held(self) -> Held:
        """In a host buffer, or in a CUDA one."""
        return _held_bytes(self.ggml_type, self.shape)


class Held(NamedTuple):
    """Bytes of some tensors, by the kind of buffer they would be in."""

    host: int = 0
    cuda: int = 0

    def on(self, *, cuda: bool) -> int:
        """The bytes in one of the two."""
        return self.cuda if cuda else self.host


@lru_cache(maxsize=65536)
def _held_bytes(ggml_type: str, shape: tuple[int, ...]) -> Held:
    size = tensor_bytes(ggml_type, shape)
    on_cuda = size
    rest = shape[0] % CUDA_ROW_ELEMENTS if shape else 0
    if rest and TYPES[ggml_type].is_quantised:
        on_cuda += row_bytes(ggml_type, CUDA_ROW_ELEMENTS - rest)
    return Held(align_up(size, HOST_ALIGNMENT), align_up(on_cuda, CUDA_ALIGNMENT))


@lru_cache(maxsize=4096)
def _is_expert(suffix: str) -> bool:
    """Whether ``--n-cpu-moe`` moves a tensor of this name."""
    return any(f"ffn_{part}_exps" in suffix for part in ("up", "down", "gate", "gate_up"))


class BlockBytes(NamedTuple):
    """Weight bytes of every block: everything but experts, and experts."""

    rest: tuple[Held, ...]
    experts: tuple[Held, ...]

    def between(self, first: int, last: int, *, cuda: bool, experts: bool) -> int:
        """The sum over blocks ``first`` to ``last - 1``."""
        held = self.experts if experts else self.rest
        return sum([h[cuda] for h in held[first:last]])


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
    def _outside(self) -> tuple[FileTensor, ...]:
        return tuple(t for t in self.tensors if t.name[:4] != "blk.")

    @cached_property
    def is_tied(self) -> bool:
        """Whether the head is the embedding."""
        return all(t.name != "output.weight" for t in self._outside)

    @cached_property
    def is_hybrid(self) -> bool:
        """Whether any layer keeps a recurrent state."""
        return any(b.is_recurrent for b in self.kinds)

    @cached_property
    def kinds(self) -> tuple[Block, ...]:
        """The different blocks."""
        return tuple(dict.fromkeys(self.blocks))

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

    @cached_property
    def embeddings(self) -> Held:
        """Input embeddings, per-layer ones included."""
        return _held(t for t in self._outside if t.name in EMBEDDINGS)

    @cached_property
    def token_embedding(self) -> Held:
        """The token embedding alone: what a tied head copies."""
        return _held(t for t in self._outside if t.name == "token_embd.weight")

    @cached_property
    def rope_factors(self) -> Held:
        """Rotary factors: every device with a layer has a copy."""
        return _held(t for t in self._outside if t.name.startswith("rope_f"))

    @cached_property
    def output(self) -> Held:
        """What is loaded with the output layer; the copy of a tied embedding apart."""
        return _held(
            t for t in self._outside if t.name not in EMBEDDINGS and not t.name.startswith("rope_f")
        )

    @cached_property
    def output_matrix_bytes(self) -> int:
        """The matrix that makes the logits."""
        name = "token_embd.weight" if self.is_tied else "output.weight"
        return sum(t.size_bytes for t in self._outside if t.name == name)

    @cached_property
    def block_bytes(self) -> BlockBytes:
        """Weights of the blocks that run."""
        count = self.num_layers
        sums = [[0] * count for _ in range(4)]
        for name, ggml_type, shape in self.tensors:
            prefix, _, rest = name.partition(".")
            number, _, suffix = rest.partition(".")
            if prefix != "blk" or not number.isdecimal():
                continue
            block = int(number)
            if block < count:
                first = 2 if _is_expert(suffix) else 0
                held = _held_bytes(ggml_type, shape)
                sums[first][block] += held.host
                sums[first + 1][block] += held.cuda
        rest = tuple(Held(*pair) for pair in zip(sums[0], sums[1], strict=True))
        experts = tuple(Held(*pair) for pair in zip(sums[2], sums[3], strict=True))
        return BlockBytes(rest, experts)

    @cached_property
    def largest_down_bytes(self) -> int:
        """The largest down projection, experts together: what op offload copies last."""
        return max((t.size_bytes for t in self.tensors if "ffn_down" in t.name), default=0)

    @cached_property
    def repackable_bytes(self) -> int:
        """Matrices that the CPU backend copies into a layout of its own (AVX2, AVX-512)."""
        return sum(
            t.held.host
            for t in self.tensors
            if t.ggml_type in _REPACKABLE and len(t.shape) > 1 and t.name[:4] == "blk."
        )

    @cached_property
    def size_bytes(self) -> int:
        """All tensors as stored, prediction blocks included."""
        return sum(t.size_bytes for t in self.tensors)


def _held(tensors: Iterable[FileTensor]) -> Held:
    found = [t.held for t in tensors]
    return Held(sum(h.host for h in found), sum(h.cuda for h in found))
