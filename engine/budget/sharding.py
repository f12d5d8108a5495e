"""Which rank holds which part: pipeline stages over layers, tensor parallelism over shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import AttentionKind, ModuleClass, Sharding
from engine.units import align_up, ceil_div

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.spec import LayerSpec, Tensor

VOCAB_MULTIPLE = 64
"""vLLM pads embedding and head to a multiple of 64 rows (``vocab_parallel_embedding.py``)."""

_FIRST_STAGE = frozenset(
    {ModuleClass.EMBEDDING, ModuleClass.VISION, ModuleClass.AUDIO, ModuleClass.OTHER}
)


def stage_layers(layers: int, stages: int) -> tuple[range, ...]:
    """The layers of each pipeline stage, as vLLM splits them.

    Every stage gets ``layers // stages``; the remainder goes one each to the stages before the
    last, from the back.

    Source:
        vLLM ``distributed/utils.py :: get_pp_indices``.
    """
    base, rest = divmod(layers, stages)
    sizes = [base] * stages
    for back in range(rest):
        sizes[stages - 2 - back] += 1
    return in_stages(sizes)


def in_stages(sizes: Sequence[int]) -> tuple[range, ...]:
    """The layers of pipeline stages that hold so many each."""
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(range(s, s + n) for s, n in zip(starts, sizes, strict=True))


def outer_stages(module: ModuleClass, stages: int, *, tied: bool) -> tuple[int, ...]:
    """The pipeline stages that hold a tensor from outside the layers.

    Tied embeddings are needed at both ends: the first stage looks tokens up, the last one
    makes logits.
    """
    last = stages - 1
    if module is ModuleClass.EMBEDDING and tied and stages > 1:
        return (0, last)
    return (0,) if module in _FIRST_STAGE else (last,)


def kv_shards(layer: LayerSpec | None, tp: int) -> int:
    """Into how many different parts ``tp`` ranks split a layer's KV projections.

    Beyond the number of KV heads the heads are replicated, so the parts stop shrinking.
    """
    attention = layer.attention if layer else None
    if attention is None or attention.kind is AttentionKind.LATENT:
        return tp
    return min(tp, attention.num_key_value_heads)


def shards(sharding: Sharding, layer: LayerSpec | None, tp: int) -> int:
    """How many ranks of ``tp`` hold different parts of a tensor; the rest are replicas."""
    if sharding is Sharding.REPLICATED:
        return 1
    return kv_shards(layer, tp) if sharding is Sharding.KV_HEADS else tp


class Split(NamedTuple):
    """How tensors are cut over the ranks of one stage."""

    tensor_parallel_size: int = 1
    enable_expert_parallel: bool = False
    """Whether whole experts are spread over the ranks, in place of slices of each."""
    vocab_multiple: int = 1
    """Rows of vocabulary tensors are padded to this."""
    replicas: int = 1
    """Data-parallel replicas that share the experts out among all their ranks."""
    whole: frozenset[ModuleClass] = frozenset()
    """Classes of tensors that every rank holds whole."""

    @property
    def expert_ranks(self) -> int:
        """Ranks that share the experts out."""
        return self.tensor_parallel_size * self.replicas


def is_expert(sharding: Sharding) -> bool:
    """Whether a tensor is one of many experts."""
    return sharding in (Sharding.EXPERT_COLUMN, Sharding.EXPERT_ROW)


def shard(tensor: Tensor, layer: LayerSpec | None, split: Split) -> Tensor:
    """One rank's part of ``tensor``: the largest, where a split is uneven.

    Args:
        tensor: a logical tensor, rows first.
        layer: the layer it belongs to; None outside the layers.
        split: how tensors are cut.
    """
    shape, tp = tensor.shape, split.tensor_parallel_size
    if tensor.sharding is Sharding.VOCAB and shape[0] % split.vocab_multiple:
        shape = (align_up(shape[0], split.vocab_multiple), *shape[1:])
    if is_expert(tensor.sharding):
        tp = split.expert_ranks
        if split.enable_expert_parallel:
            return replace(tensor, copies=ceil_div(tensor.copies, tp))
    if tensor.module in split.whole:
        return tensor if shape == tensor.shape else replace(tensor, shape=shape)
    parts = shards(tensor.sharding, layer, tp)
    if parts > 1:
        by_row = tensor.sharding in (Sharding.ROW, Sharding.EXPERT_ROW)
        axis = 1 if by_row and len(shape) > 1 else 0
        if not by_row or len(shape) > 1:
            shape = (*shape[:axis], ceil_div(shape[axis], parts), *shape[axis + 1 :])
    return tensor if shape == tensor.shape else replace(tensor, shape=shape)
