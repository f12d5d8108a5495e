"""What one layer of a model runs on one rank: its matrices, and how each counts on the tape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind, ModuleClass
from engine.budget.sequence_state import CACHED
from engine.budget.sharding import Split, shard
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.weights import FORMATS, is_quantised, tensor_bytes
from engine.runtimes.mlx.cache import row_elements, state_bytes
from engine.runtimes.mlx.models import window_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.architecture.spec import ArchitectureSpec, LayerSpec, Tensor

_WORD_BYTES = 4
_ONE_BYTE_SCALES = ("mlx-mxfp4", "mlx-nvfp4", "mlx-mxfp8", "mxfp4", "nvfp4", "mxfp8")
_LEAVES = ("o_proj", "out_proj", "c_proj", "dense", "wo", "attn_out")
"""Names of the matrix that leads out of an attention or a state."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix on one rank."""

    rows: int
    """Elements that it makes of a token."""
    elements: int
    """Elements of its buffers: of a quantised one, words, scales and biases."""


@dataclass(frozen=True, slots=True)
class Attention:
    """One attention layer on one rank, in elements."""

    heads: int
    key: int
    value: int
    """Widths of a head."""
    row: tuple[int, int]
    """Elements of a row of the cache, keys and values."""
    is_latent: bool
    is_gated: bool
    """Whether the query's matrix makes a gate of the same size too."""
    keeps_cache: bool
    window: int
    is_chunked: bool
    caches: int
    index_row: int
    """Elements of a row of an indexer's keys, kept twice; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class State:
    """A layer with a constant state on one rank, in elements."""

    kind: str
    conv: int
    value: int
    """Elements that the state gives for a token."""
    heads: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Experts:
    """Routed experts: how many read a token, and the three stacked matrices."""

    count: int
    per_token: int
    inner: int
    matrices: tuple[Matrix, ...]
    """Gate and up (or one of them), then down."""


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One kind of layer. Compared by identity."""

    attention: Attention | None
    state: State | None
    mixes: tuple[Matrix, ...]
    """Matrices that lead into the attention or state."""
    leaves: Matrix | None
    """The matrix that leads out of it."""
    feeds: tuple[tuple[Matrix, ...], ...]
    """Dense feed-forward parts: the matrices in, and last the one out."""
    is_gated: bool
    experts: Experts | None

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """All matrices that a token passes, the experts' once each."""
        found = [*self.mixes, *(m for feed in self.feeds for m in feed)]
        if self.leaves is not None:
            found.append(self.leaves)
        return (*found, *(self.experts.matrices if self.experts else ()))


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """All layers of a model as one rank runs them. Compared by identity."""

    layers: tuple[Layer, ...]
    hidden: int
    vocabulary: int
    width: int
    """Bytes of an activation."""


@lru_cache(maxsize=CACHED)
def stack(
    spec: ArchitectureSpec, layers: range, weight_format: str, tp: int, max_kv_size: int
) -> Stack:
    """Layers of ``spec`` on one of ``tp`` ranks.

    Args:
        spec: the model.
        layers: those that the rank runs.
        weight_format: a key of ``FORMATS``.
        tp: tensor-parallel size.
        max_kv_size: window of every full attention, or 0.
    """
    wanted = spec.layers[layers.start : layers.stop]
    made: dict[int, Layer] = {}
    for layer in wanted:
        if id(layer) not in made:
            made[id(layer)] = _layer(spec, layer, weight_format, tp, max_kv_size)
    return Stack(
        tuple(made[id(layer)] for layer in wanted),
        spec.hidden_size,
        spec.vocab_size,
        element_bytes(canonical(spec.dtype) or "bfloat16"),
    )


def _layer(spec: ArchitectureSpec, layer: LayerSpec, name: str, tp: int, kept: int) -> Layer:
    parts: dict[ModuleClass, list[tuple[Tensor, Matrix]]] = {}
    for tensor in layer.tensors:
        if tensor.linear or tensor.module is ModuleClass.EXPERTS:
            part = shard(tensor, layer, Split(tp))
            parts.setdefault(tensor.module, []).append((part, _matrix(spec, part, name)))
    mixes, leaves = _mixer(parts.get(ModuleClass.ATTENTION, []))
    feeds = [
        tuple(matrix for _, matrix in parts[module])
        for module in (ModuleClass.MLP, ModuleClass.SHARED_EXPERTS)
        if len(parts.get(module, ())) > 1
    ]
    return Layer(
        _attention(spec, layer, mixes, tp, kept),
        _state(spec, layer, leaves, parts.get(ModuleClass.ATTENTION, []), tp),
        tuple(mixes),
        leaves,
        tuple(feeds),
        layer.gated_mlp,
        _experts(layer, [matrix for _, matrix in parts.get(ModuleClass.EXPERTS, [])], tp),
    )


def _matrix(spec: ArchitectureSpec, tensor: Tensor, name: str) -> Matrix:
    base = canonical(spec.dtype) or "bfloat16"
    chosen = FORMATS.get(tensor.stored_as or name) or FORMATS["bf16"]
    rows = tensor.shape[0]
    if chosen.is_plain or len(tensor.shape) != 2 or not is_quantised(tensor, chosen.name):
        return Matrix(rows, tensor.parameters)
    payload = tensor.parameters * chosen.value_bits // 8
    scales = max(tensor_bytes(tensor, chosen.name, base) - payload, 0)
    scale_bytes = 1 if chosen.name in _ONE_BYTE_SCALES else element_bytes(base)
    return Matrix(rows, payload // _WORD_BYTES + scales // scale_bytes)


def _mixer(found: list[tuple[Tensor, Matrix]]) -> tuple[list[Matrix], Matrix | None]:
    """The matrices that lead in, and the one that leads out: by its name, else the last."""
    if not found:
        return [], None
    last = len(found) - 1
    out = next((i for i, (t, _) in enumerate(found) if _leads_out(t.name)), last)
    return [matrix for i, (_, matrix) in enumerate(found) if i != out], found[out][1]


def _leads_out(name: str) -> bool:
    path = name.removesuffix(".weight").rsplit(".", 1)[-1]
    return path in _LEAVES


def _attention(
    spec: ArchitectureSpec, layer: LayerSpec, mixes: Iterable[Matrix], tp: int, kept: int
) -> Attention | None:
    found = layer.attention
    if found is None:
        return None
    latent = found.kind is AttentionKind.LATENT
    heads = max(found.num_attention_heads // tp, 1)
    key = found.qk_nope_head_dim + found.qk_rope_head_dim if latent else found.head_dim
    query = heads * key
    window = window_of(spec, found, kept)
    return Attention(
        heads=heads,
        key=key,
        value=found.v_head_dim,
        row=row_elements(found, spec.model_type, tp),
        is_latent=latent,
        is_gated=not latent and any(m.rows == 2 * query for m in mixes),
        keeps_cache=found.keeps_cache,
        window=window,
        is_chunked=found.kind is AttentionKind.CHUNKED and not kept,
        caches=found.caches,
        index_row=found.index_head_dim,
    )


def _state(
    spec: ArchitectureSpec,
    layer: LayerSpec,
    leaves: Matrix | None,
    found: list[tuple[Tensor, Matrix]],
    tp: int,
) -> State | None:
    state = layer.state
    if state is None:
        return None
    out = next((t for t, m in found if m is leaves), None)
    value = out.shape[-1] if out is not None else spec.hidden_size
    return State(
        state.kind,
        state.conv_dim // tp,
        value,
        max(state.recurrent_heads // tp, 1),
        state_bytes(state, spec.dtype, tp),
    )


def _experts(layer: LayerSpec, matrices: list[Matrix], tp: int) -> Experts | None:
    moe = layer.moe
    if moe is None or len(matrices) < 2:
        return None
    *inward, down = matrices
    inner = -(-moe.moe_intermediate_size // tp)
    if len(inward) == 1 and inward[0].rows >= 2 * inner:
        # MLX stacks gate and up apart.
        inward = [Matrix(inner, inward[0].elements // 2)] * 2
    return Experts(moe.num_experts, moe.num_experts_per_tok, inner, (*inward, down))
