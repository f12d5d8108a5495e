"""Weights of one rank as SGLang holds them after loading ("mem usage" of its log)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass, Subject, direction_of
from engine.budget.bounds import counted, least
from engine.budget.model import Region, RegionBudget
from engine.budget.sequence_state import CACHED
from engine.budget.weights import StageWeights, WeightLayout, parameters, weights
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, total
from engine.formats.weights import FORMATS
from engine.runtimes.sglang import buffers
from engine.runtimes.sglang.allocator import held_apart, rounding_bytes
from engine.runtimes.sglang.parallel import stage_sizes
from engine.runtimes.sglang.vision import doubts_of, has_plain_tower
from engine.units import align_up, format_gib
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.budget.sharding import Split as Cut
    from engine.budget.weights import Weights
    from engine.runtimes.sglang.settings import Settings

_VOCAB_MULTIPLE = 64
_ROUNDED = tr_later("PyTorch CUDACachingAllocator.cpp: segments in steps of 2 MiB")


@dataclass(frozen=True, slots=True)
class Split:
    """What of a deployment decides a rank's weights."""

    weight_format: str
    tensor_parallel_size: int
    pipeline_parallel_size: int
    attention_tp: int
    enable_expert_parallel: bool
    with_mtp: bool
    loras: int
    lora_rank: int
    element_bytes: int
    """Of the model's own dtype."""
    vendor: Vendor
    shares_host: bool
    """Whether the device's memory is the host's."""


def split_of(model: Model, settings: Settings) -> Split:
    """The split of ``settings``."""
    deployment = settings.deployment
    return Split(
        deployment.weight_format,
        deployment.tensor_parallel_size,
        deployment.pipeline_parallel_size,
        settings.parallel.attention_tp,
        deployment.enable_expert_parallel,
        bool(settings.drafts_itself and (model.spec.mtp or model.spec.uncounted_mtp)),
        deployment.max_loras,
        deployment.max_lora_rank,
        settings.element_bytes,
        settings.vendor,
        settings.shares_host,
    )


@lru_cache(maxsize=CACHED)
def loaded(
    model: Model, split: Split, draft: Estimate | None = None
) -> tuple[tuple[range, RegionBudget], ...]:
    """Layers and weights of every pipeline stage.

    Args:
        model: the model.
        split: how its weights are cut.
        draft: a draft model of its own, on the last stage.
    """
    found = weights(model, _layout(model.spec, split, split.tensor_parallel_size))
    if found.direction and not direction_of(doubts_of(model.spec), Subject.WEIGHTS):
        found = found._replace(direction=None, basis=Basis.EXACT)
    return tuple(
        (stage.layers, _region(model, split, found, stage, draft))
        for stage in _cut_otherwise(model, split, found)
    )


def _layout(spec: ArchitectureSpec, split: Split, tp: int) -> WeightLayout:
    multiple = _VOCAB_MULTIPLE
    if align_up(max(spec.vocab_size, 1), multiple) % tp:
        multiple *= tp
    return WeightLayout(
        weight_format=split.weight_format,
        tensor_parallel_size=tp,
        pipeline_parallel_size=split.pipeline_parallel_size,
        enable_expert_parallel=split.enable_expert_parallel,
        with_mtp=split.with_mtp,
        vocab_multiple=multiple,
        halve_float32=True,
        layers_per_stage=stage_sizes(len(spec.layers), split.pipeline_parallel_size),
    )


def cut_of(spec: ArchitectureSpec, split: Split) -> Cut:
    """How the tensors of one stage are cut over its ranks."""
    return _layout(spec, split, split.tensor_parallel_size).split


def _cut_otherwise(model: Model, split: Split, found: Weights) -> tuple[StageWeights, ...]:
    """The stages, with what is cut into fewer parts than the rest.

    Under data-parallel attention a rank has its group's attention and the whole embedding; some
    towers are whole on every rank.
    """
    parts: dict[ModuleClass, int] = {}
    if split.tensor_parallel_size > 1 and has_plain_tower(model.spec):
        parts[ModuleClass.VISION] = 1
    if split.attention_tp < split.tensor_parallel_size:
        parts |= {ModuleClass.ATTENTION: split.attention_tp, ModuleClass.EMBEDDING: 1}
    stages = found.stages
    for module, tp in parts.items():
        own = weights(model, _layout(model.spec, split, tp)).stages
        stages = tuple(
            _replaced(stage, module, other) for stage, other in zip(stages, own, strict=True)
        )
    return stages


def _replaced(stage: StageWeights, module: ModuleClass, other: StageWeights) -> StageWeights:
    if module not in stage.by_module:
        return stage
    by_module = {**stage.by_module, module: other.by_module.get(module, 0)}
    return replace(stage, by_module=by_module, size_bytes=sum(by_module.values()))


def _region(
    model: Model, split: Split, found: Weights, stage: StageWeights, draft: Estimate | None
) -> RegionBudget:
    spec = model.spec
    stored = counted(
        stage.size_bytes, found.direction, found.basis, found.source, label=tr("tensors")
    )
    layers, name = stage.layers, found.weight_format
    further = (
        _rounding(spec, layers, split, name),
        buffers.rotary_tables(model, split),
        buffers.absorbed(spec, layers, split, name),
        buffers.group_indices(spec, layers, split, name),
        buffers.adapters(spec, layers, split),
        buffers.left_behind(split),
        buffers.misread(split),
        draft if layers.stop == len(spec.layers) else None,
    )
    parts = [stored, *(part for part in further if part is not None)]
    formula = " + ".join(f"{grouped(part.likely_bytes)} B ({part.label})" for part in parts)
    estimate = total(parts, formula=formula)
    extra = format_gib(estimate.likely_bytes - stage.size_bytes)
    names = ", ".join(part.label for part in parts[1:])
    if found.basis is Basis.READ:
        note = tr("Tensor sizes in the file header, plus buffers")
    else:
        known = FORMATS.get(found.weight_format)
        label = known.label if known else found.weight_format
        note = tr("{spec} parameters in {label}, plus buffers").format(
            spec=grouped(parameters(spec)), label=label
        )
    if split.pipeline_parallel_size > 1:
        note = tr("Layers {start} to {stop}; {note}").format(
            start=stage.layers.start, stop=stage.layers.stop - 1, note=note
        )
    known_least = least(stage.size_bytes, found.direction)
    gap = tr("{extra} more than the tensors: {names}.").format(extra=extra, names=names)
    return RegionBudget(Region.WEIGHTS, estimate, known_least, note, gap)


def _rounding(spec: ArchitectureSpec, layers: range, split: Split, name: str) -> Estimate | None:
    """What whole segments hold beyond the layers' matrices.

    Intel's free memory is the total less what is allocated, so that none of it shows there.
    """
    if split.vendor is Vendor.INTEL or name not in FORMATS:
        return None
    size = rounding_bytes(held_apart(spec, layers, cut_of(spec, split), name))
    low = size if FORMATS[name].is_plain else 0
    return Estimate(low, size, size, Basis.FITTED, tr(_ROUNDED), "", tr("rounding"))
