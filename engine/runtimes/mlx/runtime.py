"""MLX's budget: weights as stored, caches that grow by rows, and the peak of one evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Doubt, ModuleClass, Subject, direction_of
from engine.budget import sequence_state as state
from engine.budget.bounds import as_bound, counted, least, no_state
from engine.budget.model import (
    Budget,
    Moments,
    RankBudget,
    Region,
    RegionBudget,
    SequenceState,
)
from engine.budget.weights import AS_STORED, WeightLayout, weights
from engine.devices.device import DeviceKind, Vendor
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.weights import FORMATS
from engine.runtimes import overheads
from engine.runtimes.bounded import bound
from engine.runtimes.mlx import hardware, peaks
from engine.runtimes.mlx.models import loader
from engine.runtimes.mlx.rules import PROMPTS_KEPT, VERSIONS
from engine.runtimes.mlx.settings import OFFERED, Settings, settle
from engine.runtimes.taught import taught
from engine.units import UnitSystem, format_bytes, format_gib
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.budget.weights import StageWeights, Weights
    from engine.deployment.spec import Deployment
    from engine.devices.device import Device, Machine, Slot

_TOWERS = (ModuleClass.VISION, ModuleClass.AUDIO)
_NEVER_CUT = frozenset({ModuleClass.EMBEDDING, ModuleClass.LM_HEAD, *_TOWERS})
"""``models/*.py :: Model.shard`` of mlx-lm cuts layers alone: each rank holds table and head. So
does ``models/pipeline.py :: PipelineMixin``, which only drops the layers of others."""
_LAYERS_IN_FLIGHT = 3
"""Of a checkpoint whose experts are stacked on loading: layers whose experts are there twice."""


class Mlx:
    """mlx-lm (and mlx-vlm) on Apple silicon."""

    name = "mlx"
    label = "MLX"
    versions: tuple[str, ...] = VERSIONS
    kv_cache_dtypes: tuple[str, ...] = (AS_STORED,)

    def weight_formats(self, model: Model) -> tuple[str, ...]:
        """As stored, and what ``mlx_lm.convert`` writes."""
        names = (n for n in OFFERED if n != model.spec.weight_format)
        return () if model.is_gguf else (AS_STORED, *names)

    @taught
    def plan(self, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        """The budget of every rank.

        Raises:
            DeploymentError: the deployment is impossible; names the field to correct.
        """
        hardware.check(machine)
        settings = settle(model, deployment, machine)
        spec, tp = model.spec, settings.deployment.tensor_parallel_size
        pp = settings.deployment.pipeline_parallel_size
        layout = WeightLayout(settings.loads, tp, pp, whole=_NEVER_CUT, everywhere=True)
        found = weights(model, layout)
        slots = machine.slots[: settings.deployment.ranks]
        planned = [
            _rank(model, settings, found, found.stages[index // tp], (index, slot))
            for index, slot in enumerate(slots)
        ]
        ranks = tuple(rank for rank, _ in planned)
        fullest = max(ranks, key=lambda r: r.needed.likely_bytes)
        layers = found.stages[fullest.rank // tp].layers
        budget = Budget(
            model=model,
            deployment=settings.deployment,
            machine=machine,
            ranks=ranks,
            sequence_state=SequenceState(
                architecture_bytes_per_sequence=state.architecture_bytes(
                    spec, spec.dtype, settings.context
                ),
                reserved_bytes_per_sequence=fullest.needed.likely_bytes // settings.requests,
                bytes_per_token=peaks.growth_bytes(spec, settings, layers, tp),
                formula=peaks.kv_formula(spec, settings, layers, tp),
            ),
            assumptions=(*settings.assumptions, *_told(model, settings, ranks)),
            warnings=(*settings.warnings, *_warned(settings, planned)),
            refusals=(*_unknown_type(spec), *settings.refusals, *_rejected(planned)),
            doubts=_text_doubts(spec),
        )
        return bound(budget, _doubts(spec, settings, slots))


def _rank(
    model: Model,
    settings: Settings,
    found: Weights,
    stage: StageWeights,
    place: tuple[int, Slot],
) -> tuple[RankBudget, int]:
    """One rank's budget, and the largest single buffer that it asks for."""
    index, slot = place
    spec, tp, layers = model.spec, settings.deployment.tensor_parallel_size, stage.layers
    requests = settings.requests
    doubted = spec.direction(Subject.SEQUENCE_STATE)
    kept = peaks.kv_bytes(spec, settings, layers, tp) * requests
    constant = peaks.state_bytes(spec, layers, tp) * requests
    moving = peaks.peaks(spec, settings, layers, tp, hardware.chip(slot.device))
    cache_estimate = counted(
        kept,
        doubted,
        Basis.EXACT,
        "mlx-lm 0.32 models/cache.py",
        peaks.kv_formula(spec, settings, layers, tp),
    )
    constant_estimate, constant_note = no_state(doubted)
    if constant:
        constant_note = (
            tr("1 sequence")
            if requests == 1
            else tr("{requests} sequences").format(requests=grouped(requests))
        )
        constant_estimate = counted(constant, doubted, Basis.EXACT, tr("constant per sequence"))
    minimum = requests * state.rank_bytes(spec, spec.dtype, settings.context, layers, tp)
    resident = _weights(spec, settings, found, stage)
    entries = (
        RegionBudget(
            Region.WEIGHTS,
            resident,
            least(resident.low_bytes, found.direction),
            tr("{layers} layers, {format_label}").format(
                layers=len(layers), format_label=_format_label(settings, found)
            ),
        ),
        RegionBudget(
            Region.KV_CACHE,
            cache_estimate,
            least(min(minimum, kept), doubted),
            _cache_note(settings) if kept else no_state(doubted)[1],
            tr("Rows come 256 at a time.") if kept > minimum else "",
        ),
        RegionBudget(
            Region.RECURRENT_STATE,
            constant_estimate,
            least(constant, doubted) if constant else None,
            constant_note,
        ),
        RegionBudget(
            Region.ACTIVATIONS,
            as_bound(moving.activations, spec.direction(Subject.ACTIVATIONS)),
            None,
            moving.note,
        ),
        _absent(Region.CUDA_GRAPHS, tr("Not used by MLX")),
        RegionBudget(
            Region.RUNTIME, _process(slot.device), None, tr("What MLX's figures leave out")
        ),
        RegionBudget(
            Region.ALLOCATOR,
            _slack(moving.activations),
            0,
            tr("Freed buffers are kept for reuse until the chunk ends"),
        ),
        _absent(Region.HEADROOM, tr("MLX leaves nothing free on purpose")),
        RegionBudget(Region.FOREIGN, slot.foreign, slot.foreign.likely_bytes, slot.foreign.source),
    )
    rank = RankBudget(
        index,
        slot,
        {e.region: e for e in entries},
        total([cache_estimate, constant_estimate]),
        has_pool=False,
        moments=Moments(
            load=_loading(model, settings, stage),
            decode=moving.decode,
            sustained=_kept_prompts(settings, kept, constant),
        ),
    )
    return rank, moving.largest_bytes


def _weights(
    spec: ArchitectureSpec, settings: Settings, found: Weights, stage: StageWeights
) -> Estimate:
    """Bytes of a stage: mlx-lm leaves the towers of a multimodal model in the file."""
    towers = sum(stage.by_module.get(module, 0) for module in _TOWERS)
    if loader(spec) != "mlx-lm":
        towers = 0
    size, source = stage.size_bytes - towers, found.source
    direction = found.direction
    if direction is spec.direction(Subject.WEIGHTS):
        direction = direction_of(_text_doubts(spec), Subject.WEIGHTS)
    if not settings.is_read:
        direction = Direction.EITHER
    if direction is not None:
        return counted(size, direction, found.basis, source, label=tr("tensors"))
    basis = Basis.EXACT if found.basis is Basis.BOUND else found.basis
    if towers:
        source += tr("; mlx-vlm loads {towers} B of towers too, mlx-lm does not").format(
            towers=grouped(towers)
        )
    return Estimate(size, size, size + towers, basis, source, "", tr("tensors"))


def _format_label(settings: Settings, found: Weights) -> str:
    name = settings.loads if settings.loads != AS_STORED else found.weight_format
    chosen = FORMATS.get(name)
    return chosen.label if chosen else tr("as stored")


def _cache_note(settings: Settings) -> str:
    packed = ""
    if settings.packing.applies(settings.context):
        packed = tr(", {bits} bits").format(bits=settings.packing.bits)
    return tr("{requests} × {context} tokens at the end{packed}").format(
        requests=grouped(settings.requests), context=grouped(settings.context), packed=packed
    )


def _process(device: Device) -> Estimate:
    if device.vendor is Vendor.APPLE and device.kind is not DeviceKind.HOST:
        return overheads.ggml(device, "metal")
    return overheads.context(device)


def _slack(moving: Estimate) -> Estimate:
    return Estimate(
        0,
        0,
        moving.likely_bytes // 10,
        Basis.ASSUMED,
        tr(
            "mlx clears its cache of buffers after every chunk; what is reused "
            "has mostly the same size"
        ),
        tr("up to a tenth of the activations"),
    )


def _loading(model: Model, settings: Settings, stage: StageWeights) -> tuple[Estimate, ...]:
    """Experts of a checkpoint that is not MLX's own are stacked when it is loaded."""
    experts = stage.by_module.get(ModuleClass.EXPERTS, 0)
    layers = max(len(stage.layers), 1)
    if not experts or settings.weight_format.startswith("mlx-"):
        return ()
    each = experts // layers
    return (
        Estimate(
            0,
            each,
            min(_LAYERS_IN_FLIGHT, layers) * each,
            Basis.ASSUMED,
            tr("mlx-lm models/*.py :: sanitize stacks the experts of a layer into new tensors"),
            tr("{each} B of one layer's experts").format(each=grouped(each)),
            tr("Experts beside their stack"),
        ),
    )


def _kept_prompts(settings: Settings, kept: int, constant: int) -> tuple[Estimate, ...]:
    if settings.requests == 1 or not kept:
        return ()
    each = (kept + constant) // settings.requests
    return (
        Estimate(
            0,
            0,
            PROMPTS_KEPT * each,
            Basis.ASSUMED,
            tr("mlx_lm.server --prompt-cache-size 10, without a limit in bytes"),
            tr("{prompts_kept} × {each} B").format(prompts_kept=PROMPTS_KEPT, each=grouped(each)),
            tr("Caches of finished prompts"),
        ),
    )


def _told(model: Model, settings: Settings, ranks: tuple[RankBudget, ...]) -> list[str]:
    regions = (Region.WEIGHTS, Region.KV_CACHE, Region.RECURRENT_STATE, Region.ACTIVATIONS)
    peak = max(sum(r.regions[n].estimate.likely_bytes for n in regions) for r in ranks)
    shown = format_bytes(peak, UnitSystem.DECIMAL)
    found = [
        tr("mlx_lm prints its peak in decimal GB: about {shown} for this plan.").format(shown=shown)
    ]
    if any(t.module in _TOWERS for t in model.spec.outer) and loader(model.spec) == "mlx-lm":
        found.append(tr("Loaded by mlx-lm, the text part alone; mlx-vlm loads the towers too."))
    if settings.requests == 1:
        each = format_gib(ranks[0].needed.likely_bytes)
        found.append(
            tr(
                "mlx_lm.server keeps the caches of {prompts_kept} finished "
                "prompts, up to {each} each: not counted for a single request."
            ).format(prompts_kept=PROMPTS_KEPT, each=each)
        )
    return found


def _warned(settings: Settings, planned: list[tuple[RankBudget, int]]) -> list[str]:
    found: list[str] = []
    if settings.deployment.ranks > 1:
        found.append(
            tr(
                "Several Macs: which classes can be shared out differs, and no "
                "such run was measured."
            )
        )
    for rank, largest in planned:
        resident = rank.regions[Region.WEIGHTS].estimate.likely_bytes
        found += hardware.warnings(rank.slot.device, resident, largest)
    return list(dict.fromkeys(found))


def _rejected(planned: list[tuple[RankBudget, int]]) -> list[str]:
    found = [t for rank, largest in planned for t in hardware.refusals(rank.slot.device, largest)]
    return list(dict.fromkeys(found))


def _unknown_type(spec: ArchitectureSpec) -> list[str]:
    if loader(spec):
        return []
    name = spec.root_type or spec.model_type
    return [
        tr("Neither mlx-lm {versions} nor mlx-vlm 0.7 has a class for {name}.").format(
            versions=VERSIONS[0], name=name
        )
    ]


def _text_doubts(spec: ArchitectureSpec) -> tuple[Doubt, ...]:
    """What is in doubt of what is loaded: of mlx-lm's text part no tower."""
    if loader(spec) != "mlx-lm":
        return spec.doubts
    return tuple(d for d in spec.doubts if not d.on_tower)


def _doubts(spec: ArchitectureSpec, settings: Settings, slots: tuple[Slot, ...]) -> list[Doubt]:
    found = [d for slot in slots for d in hardware.doubts(slot.device)]
    if not settings.is_read:
        reason = tr(
            "mlx-lm is not known to read {weight_format} weights: counted as stored"
        ).format(weight_format=spec.weight_format)
        found.append(Doubt(Subject.WEIGHTS, reason, Direction.EITHER))
    kinds = state.attention_kinds(spec)
    if any(a.compression for a in kinds):
        reason = tr("how MLX keeps compressed entries is not known: counted by the nearest rule")
        found.append(Doubt(Subject.SEQUENCE_STATE, reason, Direction.EITHER))
    if any(a.index_head_dim for a in kinds):
        reason = tr("the scores of the indexer come on top of the activations that are counted")
        found.append(Doubt(Subject.ACTIVATIONS, reason, Direction.LOWER))
    return list(dict.fromkeys(found))


def _absent(region: Region, why: str) -> RegionBudget:
    return RegionBudget(region, exactly(0, Basis.EXACT, why), 0, why)
