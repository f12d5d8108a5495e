"""Weight bytes of a GGUF file by what decides their place: block, experts, embedding, output."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.formats.gguf import TYPES, row_bytes, tensor_bytes
from engine.formats.mix_rules import OUTSIDE
from engine.units import align_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HOST_ALIGNMENT = 32
CUDA_ALIGNMENT = 128
CUDA_ROW_ELEMENTS = 512
"""CUDA and HIP pad the last row of a quantised tensor to this many elements."""

_EMBEDDINGS = frozenset(
    {"token_embd.weight", "per_layer_token_embd.weight", "position_embd.weight",
     "token_types.weight"}
)  # fmt: skip
"""Input tensors (``llama-arch.cpp``, LLM_TENSOR_LAYER_INPUT): always on the host."""
_EMBEDDING_NORMS = frozenset({"token_embd_norm.weight", "token_embd_norm.bias"})
"""Input tensors too, but for LFM2, whose last norm has this name."""
_REPACKABLE = frozenset({"Q4_0", "Q4_K", "IQ4_NL", "Q2_K", "MXFP4"})


class Held(NamedTuple):
    """Bytes of some tensors, by the kind of buffer they would be in."""

    host: int = 0
    cuda: int = 0

    def on(self, *, cuda: bool) -> int:
        """The bytes in one of the two."""
        return self.cuda if cuda else self.host


class FileTensor(NamedTuple):
    """One tensor of the (real or planned) file; ``shape`` in ggml order."""

    block: int
    """Block it belongs to, or ``OUTSIDE``."""
    name: str
    """Without the block's prefix."""
    ggml_type: str
    shape: tuple[int, ...]


class BlockBytes(NamedTuple):
    """Weight bytes of every block: everything but experts, and experts."""

    rest: tuple[Held, ...]
    experts: tuple[Held, ...]

    def between(self, first: int, last: int, *, cuda: bool, experts: bool) -> int:
        """The sum over blocks ``first`` to ``last - 1``."""
        held = self.experts if experts else self.rest
        return sum([h[cuda] for h in held[first:last]])


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Sums over the tensors of a file."""

    tensors: int
    size_bytes: int
    """As stored, prediction blocks included."""
    type_bytes: Mapping[str, int]
    """As stored, per ggml type."""
    blocks: BlockBytes
    """Of the blocks that run."""
    embeddings: Held
    """Input embeddings, per-layer ones included."""
    token_embedding: Held
    """The token embedding alone: what a tied head copies."""
    rope_factors: Held
    """Rotary factors: every device with a layer has a copy."""
    output: Held
    """What is loaded with the output layer; the copy of a tied embedding apart."""
    output_matrix_bytes: int
    """The matrix that makes the logits."""
    largest_down_bytes: int
    """The largest down projection, experts together: what op offload copies last."""
    repackable_bytes: int
    """Matrices that the CPU backend copies into a layout of its own (AVX2, AVX-512)."""
    is_tied: bool
    """Whether the head is the embedding."""


def split_name(name: str) -> tuple[int, str]:
    """Block number and the rest of a tensor's name: ``blk.3.attn_q.weight`` is (3, …)."""
    prefix, _, rest = name.partition(".")
    number, _, suffix = rest.partition(".")
    if prefix == "blk" and number.isdecimal() and len(number) < 10:
        return int(number), suffix
    return OUTSIDE, name


def weigh(tensors: Iterable[FileTensor], num_layers: int) -> Weights:
    """The sums over ``tensors``; blocks from ``num_layers`` on are stored and not loaded."""
    sums = [[0] * num_layers for _ in range(4)]
    types: Counter[str] = Counter()
    outside: list[FileTensor] = []
    count = largest_down = repackable = 0
    for tensor in tensors:
        block, name, ggml_type, shape = tensor
        size, on_host, on_cuda = _sizes(ggml_type, shape)
        count += 1
        types[ggml_type] += size
        if block == OUTSIDE:
            outside.append(tensor)
            continue
        is_expert, is_down = _role(name)
        if is_down:
            largest_down = max(largest_down, size)
        if block < num_layers:
            first = 2 if is_expert else 0
            sums[first][block] += on_host
            sums[first + 1][block] += on_cuda
            if ggml_type in _REPACKABLE and len(shape) > 1:
                repackable += on_host
    names = {tensor.name for tensor in outside}
    is_tied = "output.weight" not in names
    inputs = _EMBEDDINGS
    if names & {"output_norm.weight", "token_types.weight"}:
        inputs |= _EMBEDDING_NORMS
    matrix = "token_embd.weight" if is_tied else "output.weight"
    return Weights(
        tensors=count,
        size_bytes=sum(types.values()),
        type_bytes=types,
        blocks=BlockBytes(
            tuple(Held(*pair) for pair in zip(sums[0], sums[1], strict=True)),
            tuple(Held(*pair) for pair in zip(sums[2], sums[3], strict=True)),
        ),
        embeddings=_held(t for t in outside if t.name in inputs),
        token_embedding=_held(t for t in outside if t.name == "token_embd.weight"),
        rope_factors=_held(t for t in outside if t.name.startswith("rope_f")),
        output=_held(
            t for t in outside if t.name not in inputs and not t.name.startswith("rope_f")
        ),
        output_matrix_bytes=sum(_sizes(t[2], t[3])[0] for t in outside if t.name == matrix),
        largest_down_bytes=largest_down,
        repackable_bytes=repackable,
        is_tied=is_tied,
    )


@lru_cache(maxsize=65536)
def _sizes(ggml_type: str, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Bytes as stored, in a host buffer, in a CUDA buffer."""
    size = on_cuda = tensor_bytes(ggml_type, shape)
    rest = shape[0] % CUDA_ROW_ELEMENTS if shape else 0
    if rest and TYPES[ggml_type].is_quantised:
        on_cuda += row_bytes(ggml_type, CUDA_ROW_ELEMENTS - rest)
    return size, align_up(size, HOST_ALIGNMENT), align_up(on_cuda, CUDA_ALIGNMENT)


@lru_cache(maxsize=4096)
def _role(name: str) -> tuple[bool, bool]:
    """Whether ``--n-cpu-moe`` moves a tensor of this name, and whether it is a down projection."""
    is_expert = any(f"ffn_{part}_exps" in name for part in ("up", "down", "gate", "gate_up"))
    return is_expert, "ffn_down" in name


def _held(tensors: Iterable[FileTensor]) -> Held:
    found = [_sizes(t.ggml_type, t.shape) for t in tensors]
    return Held(sum(f[1] for f in found), sum(f[2] for f in found))
