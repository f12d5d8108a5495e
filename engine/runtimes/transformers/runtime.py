"""Transformers' budget: weights by layer over the devices, a cache that grows, a prefill peak."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import ModuleClass, Subject
from engine.budget import sequence_state as state
from engine.budget.bounds import as_bound, counted, least, no_state
from engine.budget.model import Budget, RankBudget, Region, RegionBudget, SequenceState
from engine.budget.weights import AS_STORED, WeightLayout, weights
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.weights import FORMATS
from engine.runtimes import overheads
from engine.runtimes.transformers import peaks
from engine.runtimes.transformers.cache import growth_bytes
from engine.runtimes.transformers.settings import FORMATS_LOADED, Settings, settle

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import Direction
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine, Slot


class Transformers:
    """Transformers 5.24 with accelerate's placement."""

    name = "transformers"
    label = "Transformers"
    versions: tuple[str, ...] = ("5.24.0",)
    kv_cache_dtypes: tuple[str, ...] = (AS_STORED,)

    def weight_formats(self, model: Model) -> tuple[str, ...]:
        """As stored, and every format Transformers loads or quantises to."""
        names = (n for n in FORMATS_LOADED if n != model.spec.weight_format)
        return () if model.is_gguf else (AS_STORED, *names)

    def plan(self, model: Model, deployment: Deployment, machine: Machine) -> Budget:
        """The budget of every device.

        Raises:
            DeploymentError: the deployment is impossible; names the field to correct.
        """
        settings = settle(model, deployment, machine)
        tp = settings.deployment.tensor_parallel_size
        devices = _devices(settings, machine)
        shares = _place(model, settings, len(devices) // tp)
        ranks = tuple(
            _rank(model, settings, shares[index // tp], index, slot)
            for index, slot in enumerate(devices)
        )
        spec = model.spec
        fullest = max(ranks, key=lambda r: r.needed.likely_bytes)
        return Budget(
            model=model,
            deployment=settings.deployment,
            machine=machine,
            ranks=ranks,
            sequence_state=SequenceState(
                architecture_bytes_per_sequence=state.architecture_bytes(
                    spec, settings.kv_dtype, settings.context
                ),
                reserved_bytes_per_sequence=fullest.needed.likely_bytes // settings.batch,
                bytes_per_token=_growth(model, settings, shares[fullest.rank // tp], tp),
                formula=state.sequence_equation(spec, settings.kv_dtype, settings.context),
            ),
            assumptions=settings.assumptions,
            warnings=settings.warnings,
            doubts=spec.doubts,
        )


def _devices(settings: Settings, machine: Machine) -> tuple[Slot, ...]:
    """``device_map="auto"`` spreads the layers over every device there is."""
    ranks = settings.deployment.ranks
    return machine.slots if ranks == 1 else machine.slots[:ranks]


def _growth(model: Model, settings: Settings, share: _Share, tp: int) -> int:
    """What one more token costs after the last one."""
    context, dtype = settings.context, settings.kv_dtype
    return sum(
        count * growth_bytes(layer, context, dtype, tp=tp)
        for layer, count in state.layer_kinds(model.spec, share.layers.start, share.layers.stop)
    )


@dataclass(frozen=True, slots=True)
class _Share:
    """Layers and bytes of weights that one device (or one group of ranks) holds."""

    layers: range
    size_bytes: int
    basis: Basis
    source: str
    direction: Direction | None


@lru_cache(maxsize=1024)
def _placed(model: Model, weight_format: str, tp: int, devices: int) -> tuple[_Share, ...]:
    """Layers dealt in order, each device but the last up to an even share and one layer's room.

    Source:
        accelerate ``utils/modeling.py :: get_balanced_memory``, ``infer_auto_device_map``.
    """
    layout = WeightLayout(weight_format, tp)
    if devices == 1:
        found = weights(model, layout)
        whole = sum(stage.size_bytes for stage in found.stages)
        return (
            _Share(
                range(len(model.spec.layers)), whole, found.basis, found.source, found.direction
            ),
        )
    units = max(len(model.spec.layers), 1)
    found = weights(model, WeightLayout(weight_format, tp, units))
    sizes = [stage.size_bytes for stage in found.stages]
    if model.spec.tie_word_embeddings and units > 1:
        # The tied copy stays on one device.
        sizes[-1] -= found.stages[-1].by_module.get(ModuleClass.EMBEDDING, 0)
    room = sum(sizes) // devices + max(sizes) * 5 // 4
    shares: list[_Share] = []
    start = 0
    for device in range(devices):
        stop, held = start, 0
        last = device == devices - 1
        while stop < units and (last or held + sizes[stop] <= room - max(sizes)):
            held += sizes[stop]
            stop += 1
        layers = range(start, stop)
        shares.append(_Share(layers, held, found.basis, found.source, found.direction))
        start = stop
    return tuple(shares)


def _place(model: Model, settings: Settings, devices: int) -> tuple[_Share, ...]:
    deployment = settings.deployment
    return _placed(
        model, settings.held.weight_format, deployment.tensor_parallel_size, max(devices, 1)
    )


def _rank(model: Model, settings: Settings, share: _Share, rank: int, slot: Slot) -> RankBudget:
    spec, tp = model.spec, settings.deployment.tensor_parallel_size
    layers = [spec.layers[i] for i in share.layers if i < len(spec.layers)]
    cache = peaks.cache_bytes(layers, settings, tp)
    constant = peaks.state_bytes(layers, spec.dtype, settings.batch, tp)
    moving = peaks.activations(layers, spec.hidden_size, spec.vocab_size, settings, tp)
    on_gpu = slot.device.vendor in (Vendor.NVIDIA, Vendor.AMD)
    runtime = total(
        [peaks.process(overheads.context(slot.device)), peaks.workspaces(on_gpu=on_gpu)]
    )
    found = FORMATS.get(settings.held.weight_format)
    stored = found.label if found else "as stored"
    packed = FORMATS.get(settings.held.unpacked_from)
    gap = f"Stored in {packed.label}, unpacked on loading." if packed else ""
    minimum = settings.batch * state.rank_bytes(
        spec, settings.kv_dtype, settings.context, share.layers, tp
    )
    doubted = spec.direction(Subject.SEQUENCE_STATE)
    cache_estimate = counted(
        cache,
        doubted,
        Basis.EXACT,
        "Transformers 5.24 cache_utils.py",
        peaks.cache_formula(layers, settings, tp),
    )
    weights_estimate = _weights(model, settings, share)
    constant_estimate, constant_note = no_state(doubted)
    if constant:
        constant_note = f"{settings.batch} sequences"
        constant_estimate = counted(constant, doubted, Basis.EXACT, "constant per sequence")
    entries = (
        RegionBudget(
            Region.WEIGHTS,
            weights_estimate,
            least(share.size_bytes, share.direction),
            f"{len(layers)} layers, {stored}",
            gap,
        ),
        RegionBudget(
            Region.KV_CACHE,
            cache_estimate,
            least(min(minimum, cache), doubted),
            f"{settings.batch} × {settings.context:,} tokens at the end"
            if cache
            else no_state(doubted)[1],
        ),
        RegionBudget(
            Region.RECURRENT_STATE,
            constant_estimate,
            least(constant, doubted) if constant else None,
            constant_note,
        ),
        RegionBudget(
            Region.ACTIVATIONS,
            as_bound(moving, spec.direction(Subject.ACTIVATIONS)),
            None,
            f"{settings.prompt:,} tokens read in one pass, {settings.attention}",
        ),
        _absent(Region.CUDA_GRAPHS, "Not used by Transformers by default"),
        RegionBudget(
            Region.RUNTIME,
            runtime,
            None,
            "Context and BLAS workspaces" if on_gpu else "No context of its own",
        ),
        RegionBudget(
            Region.ALLOCATOR, peaks.slack(cache, moving), 0, "Sizes change with every token"
        ),
        _absent(Region.HEADROOM, "Transformers leaves nothing free on purpose"),
        RegionBudget(Region.FOREIGN, slot.foreign, slot.foreign.likely_bytes, slot.foreign.source),
    )
    needed = total([cache_estimate, constant_estimate])
    return RankBudget(rank, slot, {e.region: e for e in entries}, needed, has_pool=False)


def _weights(model: Model, settings: Settings, share: _Share) -> Estimate:
    found = counted(share.size_bytes, share.direction, share.basis, share.source, label="tensors")
    held = settings.held
    if held.is_certain or share.direction is not None:
        return found
    low = share.size_bytes
    if held.unpacked_from and share.size_bytes:
        # Of the whole model, what stays packed in proportion: layers may be dealt otherwise.
        tp = settings.deployment.tensor_parallel_size
        packed = _placed(model, settings.deployment.weight_format, tp, 1)[0].size_bytes
        whole = _placed(model, held.weight_format, tp, 1)[0].size_bytes
        low = min(low, share.size_bytes * packed // whole)
    return Estimate(
        low, share.size_bytes, share.size_bytes, Basis.ASSUMED, share.source, "", "tensors"
    )


def _absent(region: Region, why: str) -> RegionBudget:
    return RegionBudget(region, exactly(0, Basis.EXACT, why), 0, why)
