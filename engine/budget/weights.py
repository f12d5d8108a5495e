"""Bytes of weights on every rank: from file headers where they were read, else from shapes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.model import StoredGroup
from engine.architecture.spec import AttentionKind, Direction, ModuleClass, Sharding, Subject
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.budget.sharding import (
    Split,
    in_stages,
    is_expert,
    outer_stages,
    shard,
    shards,
    stage_layers,
)
from engine.evidence import Basis
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.weights import FORMATS, tensor_bytes
from engine.units import align_up, ceil_div
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.architecture.model import Model, StoredWeights
    from engine.architecture.spec import ArchitectureSpec, LayerSpec, Tensor

AS_STORED = "auto"
_UNPACKED = frozenset({"F32", "F16", "BF16"})
"""Dtypes of a header whose matrices have their logical shapes."""
_ON_LOADING = frozenset({"nf4", "nf4-plain"})

_CLASS_SHARDING = {
    ModuleClass.EMBEDDING: Sharding.VOCAB,
    ModuleClass.LM_HEAD: Sharding.VOCAB,
    ModuleClass.ATTENTION: Sharding.COLUMN,
    ModuleClass.MLP: Sharding.COLUMN,
    ModuleClass.SHARED_EXPERTS: Sharding.COLUMN,
    ModuleClass.EXPERTS: Sharding.EXPERT_COLUMN,
}


class WeightLayout(NamedTuple):
    """How a runtime lays the weights out; with the model, all that their bytes depend on."""

    weight_format: str = AS_STORED
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    enable_expert_parallel: bool = False
    with_mtp: bool = False
    """Whether the multi-token-prediction blocks are loaded, beside the tables that they share."""
    vocab_multiple: int = 1
    halve_float32: bool = False
    """Whether 32-bit checkpoints are loaded in 16 bits (vLLM's ``dtype auto``)."""
    left_out: tuple[str, ...] = ()
    """How the names of tensors begin that stay in the files."""
    text_only: bool = False
    """Whether the encoders of images and sounds stay in the files."""
    replicas: int = 1
    """Data-parallel replicas that share the experts out among all their ranks."""
    whole: frozenset[ModuleClass] = frozenset()
    """Classes of tensors that every rank holds whole."""
    everywhere: bool = False
    """Whether every pipeline stage holds what is outside the layers."""
    layers_per_stage: tuple[int, ...] | None = None
    """How many layers each pipeline stage holds; None where they are dealt out evenly."""

    def stage_layers(self, layers: int) -> tuple[range, ...]:
        """The layers of each pipeline stage of a model with so many."""
        if self.layers_per_stage is not None:
            return in_stages(self.layers_per_stage)
        return stage_layers(layers, self.pipeline_parallel_size)

    @property
    def split(self) -> Split:
        """How tensors are cut over the ranks of one stage."""
        return Split(
            self.tensor_parallel_size,
            self.enable_expert_parallel,
            self.vocab_multiple,
            self.replicas,
            self.whole,
        )


@dataclass(frozen=True, slots=True)
class StageWeights:
    """Weights of one tensor-parallel rank of one pipeline stage."""

    layers: range
    by_module: Mapping[ModuleClass, int]
    size_bytes: int


class Weights(NamedTuple):
    """Weights of a whole deployment, stage by stage."""

    stages: tuple[StageWeights, ...]
    weight_format: str
    """The format, ``auto`` resolved."""
    quantised: bool
    basis: Basis
    source: str
    direction: Direction | None = None
    """Which way the sizes are in doubt; None where they are not."""


@lru_cache(maxsize=CACHED)
def parameters(spec: ArchitectureSpec) -> int:
    """Parameters of the built model, counted once."""
    if spec.stated_parameters is not None:
        return spec.parameters
    inside = sum(layer.parameters * count for layer, count in layer_kinds(spec))
    return inside + sum(tensor.parameters for tensor in spec.outer)


_ENCODERS = (ModuleClass.VISION, ModuleClass.AUDIO)


def weights(model: Model, layout: WeightLayout) -> Weights:
    """The weights of ``model`` under ``layout``, cached by identity of spec and header.

    Headers win: where they were read and the format is the stored one, their sizes count.
    Any other format is worked out from the logical tensors.
    """
    return _weights(model.spec, model.stored, layout)


@lru_cache(maxsize=CACHED)
def _weights(spec: ArchitectureSpec, stored: StoredWeights | None, layout: WeightLayout) -> Weights:
    name = layout.weight_format
    if name == AS_STORED:
        name = stored.format_label if stored else spec.weight_format
    if stored is not None and name in (stored.format_label, spec.weight_format):
        found = _from_groups(spec, layout, stored.groups, name, Basis.READ, stored.source)
        # What a header holds is summed by class, so what is left out cannot be told apart.
        doubt = Direction.UPPER if layout.left_out else None
        if layout.with_mtp and spec.uncounted_mtp:
            doubt = spec.direction(Subject.WEIGHTS)
        return found._replace(basis=Basis.BOUND, direction=doubt) if doubt else found
    direction = spec.direction(Subject.WEIGHTS)
    basis = Basis.BOUND if direction else Basis.EXACT
    header = stored.groups if stored is not None and name in FORMATS else ()
    if spec.stated_parameters is None:
        found = _from_tensors(spec, layout, name, basis)
        if name in _ON_LOADING and name != spec.weight_format and _has_experts(spec):
            # Transformers 5 leaves stacked experts alone; older ones packed them.
            return found._replace(basis=Basis.BOUND, direction=direction or Direction.LOWER)
    elif header and all(g.dtype in _UNPACKED or not g.parameters for g in header):
        source = tr("tensor shapes of the header, stored as {label}").format(
            label=FORMATS[name].label
        )
        groups = [_stored_as(group, spec, name) for group in header]
        found = _from_groups(spec, layout, groups, name, basis, source)
    else:
        groups = _stated_groups(spec, spec.stated_parameters, name)
        source = tr("parameters per class from the catalogue × bits of the format")
        found = _from_groups(spec, layout, groups, name, basis, source)
        if not _is_plain(name):
            return found._replace(basis=Basis.BOUND, direction=direction or Direction.EITHER)
    return found._replace(direction=direction)


def _has_experts(spec: ArchitectureSpec) -> bool:
    return any(layer.moe is not None for layer, _ in layer_kinds(spec))


def _stored_as(group: StoredGroup, spec: ArchitectureSpec, name: str) -> StoredGroup:
    """A group of an unpacked header as another format stores it: its matrices packed."""
    chosen = FORMATS[name]
    if chosen.matrix_bytes is None:
        width = element_bytes(chosen.dtype or spec.dtype)
        return replace(group, size_bytes=group.parameters * width, dtype=chosen.dtype or "")
    if group.module not in chosen.modules:
        return group
    width, base = element_bytes(group.dtype), element_bytes(_base_dtype(spec, name))
    size = group.size_bytes
    for rows, columns, count in group.matrices:
        size += (chosen.matrix_bytes(rows, columns, base) - rows * columns * width) * count
    return replace(group, size_bytes=size)


def _from_groups(
    spec: ArchitectureSpec,
    layout: WeightLayout,
    groups: Iterable[StoredGroup],
    name: str,
    basis: Basis,
    source: str,
) -> Weights:
    stages = layout.stage_layers(len(spec.layers))
    stage_of = {layer: i for i, layers in enumerate(stages) for layer in layers}
    sums: list[Counter[ModuleClass]] = [Counter() for _ in stages]
    quantised = not _is_plain(name)
    for group in groups:
        # Tables that a prediction block repeats keep the block's layer number: they are shared.
        if group.module is ModuleClass.MTP and (group.layer is not None or not layout.with_mtp):
            continue
        if layout.text_only and group.module in _ENCODERS:
            continue
        size = _resident_bytes(group, layout, quantised=quantised)
        on_rank = _group_on_rank(group, size, spec, layout)
        if group.layer is not None and group.layer in stage_of:
            sums[stage_of[group.layer]][group.module] += on_rank
        else:
            for stage in _places(group.module, len(stages), spec, layout):
                sums[stage][group.module] += on_rank
    return Weights(_stages(stages, sums), name, quantised, basis, source)


def _places(
    module: ModuleClass, stages: int, spec: ArchitectureSpec, layout: WeightLayout
) -> tuple[int, ...]:
    """The stages that hold a tensor from outside the layers.

    Prediction blocks run on the last stage and read embeddings: in a pipeline they have their own.

    Source:
        vLLM ``v1/spec_decode/llm_base_proposer.py :: _maybe_share_embeddings``.
    """
    if layout.everywhere:
        return tuple(range(stages))
    found = outer_stages(module, stages, tied=spec.tie_word_embeddings)
    reads = layout.with_mtp and module is ModuleClass.EMBEDDING and stages > 1
    return (*found, stages - 1) if reads else found


def _resident_bytes(group: StoredGroup, layout: WeightLayout, *, quantised: bool) -> int:
    is_float32 = canonical(group.dtype) == "float32"
    if layout.halve_float32 and not quantised and is_float32:
        return group.size_bytes // 2
    return group.size_bytes


def _group_on_rank(
    group: StoredGroup, size: int, spec: ArchitectureSpec, layout: WeightLayout
) -> int:
    if group.sharding is Sharding.VOCAB and spec.vocab_size:
        padded = align_up(spec.vocab_size, layout.vocab_multiple)
        size = size * padded // spec.vocab_size
    split = layout.split
    if split.expert_ranks == 1:
        return size
    layer = None
    if group.layer is not None and group.layer < len(spec.layers):
        layer = spec.layers[group.layer]
    if is_expert(group.sharding):
        return _expert_share(layer, size, split)
    if group.module in split.whole:
        return size
    return ceil_div(size, shards(group.sharding, layer, split.tensor_parallel_size))


def _expert_share(layer: LayerSpec | None, size: int, split: Split) -> int:
    """The largest share of one rank of a layer's experts."""
    ranks = split.expert_ranks
    experts = layer.moe.num_experts if layer is not None and layer.moe else 0
    if split.enable_expert_parallel and experts:
        return ceil_div(size * ceil_div(experts, ranks), experts)
    return ceil_div(size, ranks)


def _stated_groups(
    spec: ArchitectureSpec, parameters: Mapping[ModuleClass, int], name: str
) -> list[StoredGroup]:
    """Per-class sums as groups, spread evenly over the layers where a class lives in them."""
    base = 8 * element_bytes(_base_dtype(spec, name))
    packed = FORMATS.get(name)
    layers = max(len(spec.layers), 1)
    groups: list[StoredGroup] = []
    for module, count in parameters.items():
        is_packed = packed is not None and not packed.is_plain and module in packed.modules
        bits = packed.bits if packed is not None and is_packed else base
        sharding = _CLASS_SHARDING.get(module, Sharding.REPLICATED)
        inside = module not in (
            ModuleClass.EMBEDDING,
            ModuleClass.LM_HEAD,
            ModuleClass.VISION,
            ModuleClass.AUDIO,
            ModuleClass.OTHER,
        )
        places = range(layers) if inside and spec.layers else (None,)
        size = round(count * bits / 8)
        for place in places:
            share = _share(size, place, layers)
            groups.append(StoredGroup(place, module, sharding, "", share, 0, share, 1))
    return groups


def _share(size: int, place: int | None, layers: int) -> int:
    if place is None:
        return size
    return size * (place + 1) // layers - size * place // layers


@lru_cache(maxsize=CACHED)
def layer_sizes(spec: ArchitectureSpec, split: Split, fmt: str) -> Mapping[int, list[int]]:
    """Bytes of every tensor of each distinct layer on one rank, by the layer's ``id``."""
    return {
        id(layer): _sizes(spec, layer.tensors, layer, split, fmt) for layer, _ in layer_kinds(spec)
    }


def _sizes(
    spec: ArchitectureSpec,
    tensors: Iterable[Tensor],
    layer: LayerSpec | None,
    split: Split,
    fmt: str,
) -> list[int]:
    chosen = FORMATS[fmt]
    base = chosen.dtype or canonical(spec.dtype) or "bfloat16"
    width = element_bytes(base) if chosen.is_plain else 0
    as_published = fmt == spec.weight_format
    kept = spec.unquantised if as_published else ()
    uncut = split.expert_ranks == 1 and layer is not None
    found: list[int] = []
    for tensor in tensors:
        part = tensor
        if not uncut:
            part = shard(tensor, layer, split)
        own = part.stored_as if as_published else ""
        if width and not own:
            found.append(part.elements * width)
        else:
            found.append(tensor_bytes(part, own or fmt, base, kept, is_named=bool(own)))
    return found


def _from_tensors(spec: ArchitectureSpec, layout: WeightLayout, name: str, basis: Basis) -> Weights:
    fmt = name if name in FORMATS else _plain_name(spec)
    if layout.halve_float32 and fmt == "fp32" and layout.weight_format == AS_STORED:
        fmt = "bf16"
    split = layout.split
    sizes = layer_sizes(spec, split, fmt)
    scales = spec.kv_scale_bytes if fmt == spec.weight_format else 0
    ranges = layout.stage_layers(len(spec.layers))
    sums: list[dict[ModuleClass, int]] = []
    for layers in ranges:
        stage: dict[ModuleClass, int] = {}
        for layer, count in layer_kinds(spec, layers.start, layers.stop):
            for tensor, size in zip(layer.tensors, sizes[id(layer)], strict=True):
                stage[tensor.module] = stage.get(tensor.module, 0) + size * count
            if scales and _keeps_pairs(layer):
                stage[ModuleClass.ATTENTION] += scales * count
        sums.append(stage)
    loaded = [t for t in spec.outer if not t.name.startswith(layout.left_out)]
    if layout.text_only:
        loaded = [t for t in loaded if t.module not in _ENCODERS]
    predicting = (t for t in spec.mtp if layout.with_mtp and not t.repeats)
    outer = (*loaded, *predicting)
    for tensor, size in zip(outer, _sizes(spec, outer, None, split, fmt), strict=True):
        for place in _places(tensor.module, len(ranges), spec, layout):
            sums[place][tensor.module] = sums[place].get(tensor.module, 0) + size
    source = tr("tensor shapes of the config, stored as {label}").format(label=FORMATS[fmt].label)
    return Weights(_stages(ranges, sums), fmt, not _is_plain(fmt), basis, source)


def _keeps_pairs(layer: LayerSpec) -> bool:
    """Whether it projects keys and values of its own, each of which may have a scale."""
    attention = layer.attention
    if attention is None or attention.kind is AttentionKind.LATENT:
        return False
    return attention.keeps_cache and attention.keeps_values


def _stages(
    ranges: tuple[range, ...], sums: Sequence[Mapping[ModuleClass, int]]
) -> tuple[StageWeights, ...]:
    return tuple(
        StageWeights(layers, dict(stage), sum(stage.values()))
        for layers, stage in zip(ranges, sums, strict=True)
    )


def _is_plain(name: str) -> bool:
    found = FORMATS.get(name)
    return found is not None and found.is_plain


def _plain_name(spec: ArchitectureSpec) -> str:
    return {"float16": "fp16", "float32": "fp32"}.get(canonical(spec.dtype) or "", "bf16")


def _base_dtype(spec: ArchitectureSpec, name: str) -> str:
    chosen = FORMATS.get(name)
    if chosen is not None and chosen.dtype:
        return chosen.dtype
    return canonical(spec.dtype) or "bfloat16"
