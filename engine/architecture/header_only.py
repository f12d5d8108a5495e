"""A safetensors header without a config: exact weights, and a bound on the sequence state.

The rows of the key and value projections are what a token keeps in a layer; how many heads
share them, and whether the layer has a window, a header does not say.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from engine.architecture.naming import layer_of, named, pattern_of
from engine.architecture.spec import (
    ArchitectureSpec,
    AttentionKind,
    AttentionSpec,
    Direction,
    Doubt,
    LayerSpec,
    ModuleClass,
    Subject,
    Tensor,
)
from engine.errors import UnknownArchitectureError
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.naming import Named
    from engine.source.raw import RawModel

_DTYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
_FORMATS = {"BF16": "bf16", "F16": "fp16", "F32": "fp32", "F8_E4M3": "fp8"}
_MOST_LAYERS = 4_096
_REASON = tr_later("without a config.json every layer is taken to attend to everything")


def from_header(raw: RawModel) -> ArchitectureSpec:
    """The model of which only the header is known.

    Raises:
        UnknownArchitectureError: the header shows no layers.
    """
    counted: defaultdict[int | None, Counter[tuple[str, Named, tuple[int, ...]]]]
    counted = defaultdict(Counter)
    seen: dict[str, Named] = {}
    for tensor in raw.tensors:
        pattern = pattern_of(tensor.name)
        found = seen.setdefault(pattern, named(pattern))
        if found.holds == "other":
            continue
        layer = layer_of(tensor.name) if found.is_layered else None
        counted[layer][pattern.partition(".#.")[2] or pattern, found, tensor.shape] += 1
    layers = [layer for layer in counted if layer is not None and layer < _MOST_LAYERS]
    specs = _layers(counted, max(layers, default=-1) + 1)
    if not specs:
        message = tr("{id} has no config.json, and its header shows no layers to size.").format(
            id=raw.id
        )
        raise UnknownArchitectureError(message)
    outer = _tensors(counted[None])
    table = next((t.shape for t in outer if t.module is ModuleClass.EMBEDDING), (0, 0))
    sizes: Counter[str] = Counter()
    for tensor in raw.tensors:
        sizes[tensor.dtype] += tensor.size_bytes
    dtype = sizes.most_common(1)[0][0]
    return ArchitectureSpec(
        model_type="",
        layers=specs,
        outer=tuple(t for t in outer if t.module is not ModuleClass.MTP),
        mtp=tuple(t for t in outer if t.module is ModuleClass.MTP),
        hidden_size=table[-1],
        vocab_size=table[0],
        max_position_embeddings=None,
        dtype=_DTYPES.get(dtype, "bfloat16"),
        tie_word_embeddings=not any(t.module is ModuleClass.LM_HEAD for t in outer),
        weight_format=_FORMATS.get(dtype, "bf16"),
        doubts=(_doubt(specs),),
    )


def _doubt(layers: tuple[LayerSpec, ...]) -> Doubt:
    silent = sum(layer.attention is None for layer in layers)
    if silent:
        reason = tr(
            "without a config.json the state of {silent} layers is not known: not counted"
        ).format(silent=silent)
        return Doubt(Subject.SEQUENCE_STATE, reason, Direction.LOWER)
    return Doubt(Subject.SEQUENCE_STATE, tr(_REASON), Direction.UPPER)


def _tensors(counts: Counter[tuple[str, Named, tuple[int, ...]]]) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(
            name, found.module, shape, copies, found.sharding,
            linear=name.endswith(".weight") and len(shape) == 2
            and found.module not in (ModuleClass.EMBEDDING, ModuleClass.NORM),
        )
        for (name, found, shape), copies in counts.items()
    )  # fmt: skip


def _layers(
    counted: defaultdict[int | None, Counter[tuple[str, Named, tuple[int, ...]]]], count: int
) -> tuple[LayerSpec, ...]:
    made: dict[tuple[Tensor, ...], LayerSpec] = {}
    found: list[LayerSpec] = []
    for index in range(count):
        tensors = _tensors(counted[index])
        layer = made.get(tensors)
        if layer is None:
            width = max(
                (t.shape[0] for t in tensors if t.name.endswith("mlp.up_proj.weight")), default=0
            )
            layer = made[tensors] = LayerSpec(tensors, _attention(tensors), None, None, width)
        found.append(layer)
    return tuple(found)


def _attention(tensors: tuple[Tensor, ...]) -> AttentionSpec | None:
    rows = {t.name.split(".")[-2]: t.shape[0] for t in tensors if t.linear}
    rank = next((t.shape[0] for t in tensors if "kv_a_layernorm" in t.name), 0)
    joined = rows.get("kv_a_proj_with_mqa", 0)
    if 0 < rank < joined:
        rope = joined - rank
        return AttentionSpec(
            AttentionKind.LATENT, 1, 1, joined, rank, kv_lora_rank=rank, qk_rope_head_dim=rope
        )
    key, value = rows.get("k_proj", 0), rows.get("v_proj", 0)
    if not key or not value:
        return None
    heads = max(rows.get("q_proj", key) // key, 1)
    return AttentionSpec(AttentionKind.FULL, heads, 1, key, value)
