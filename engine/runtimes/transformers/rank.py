"""The budget of one device, and of the RAM that holds what the devices don't."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import Subject
from engine.budget import sequence_state as state
from engine.budget.bounds import as_bound, counted, least, no_state
from engine.budget.model import Moments, RankBudget, Region, RegionBudget
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.weights import FORMATS
from engine.runtimes import overheads
from engine.runtimes.transformers import (
    adapters,
    allocator,
    caches,
    kernels,
    masks,
    peaks,
    releases,
    transients,
)
from engine.runtimes.transformers.cache import kinds, state_bytes
from engine.units import MIB
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import Direction, LayerSpec
    from engine.devices.device import Slot
    from engine.runtimes.transformers.placement import Placement, Share
    from engine.runtimes.transformers.settings import Settings

_CACHE_SOURCE = "Transformers 5.24 cache_utils.py"
_AUTOAWQ_SOURCE = tr_later(
    "sixteen generations of Qwen3 with AutoAWQ 0.2.9 held an eighth more "
    "cache than their tokens, and up to 66 MiB beside; why is not known"
)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Builds the rank budgets of one plan."""

    model: Model
    settings: Settings
    placement: Placement
    packed_share: tuple[int, int]
    """The whole model's bytes as stored and as held, where unpacking is not certain."""

    def device(self, rank: int, slot: Slot) -> RankBudget:
        """A device; the first one also computes the layers that lie in RAM or on disk."""
        tp = self.settings.deployment.tensor_parallel_size
        share = self.placement.devices[rank // tp]
        computes = share.layers if rank else (*share.layers, *self.placement.away)
        layers = self._layers(computes)
        spec, settings = self.model.spec, self.settings
        moving = peaks.activations(layers, spec.hidden_size, spec.vocab_size, settings, tp)
        if not layers and not share.size_bytes:
            moving = exactly(0, Basis.EXACT, tr("nothing computes here"))
        kept = caches.held(layers, settings, tp)
        cache = self._cache(kept.device_bytes, kept.formula)
        constant, constant_note = self._state(layers, tp)
        runtime, runtime_note = _runtime(slot)
        adapted = self._adapter_bytes(len(layers))
        minimum = settings.batch * self._least_bytes(computes, tp)
        doubted = spec.direction(Subject.SEQUENCE_STATE)
        entries = (
            self._weights(share, len(layers), adapted, on_loan=rank == 0),
            RegionBudget(
                Region.KV_CACHE,
                cache,
                least(min(minimum, cache.low_bytes), doubted),
                self._cache_note(kept.device_bytes, doubted),
            ),
            RegionBudget(
                Region.RECURRENT_STATE,
                constant,
                least(constant.likely_bytes, doubted) if constant.likely_bytes else None,
                constant_note,
            ),
            RegionBudget(
                Region.ACTIVATIONS,
                as_bound(moving, spec.direction(Subject.ACTIVATIONS)),
                None,
                tr("{chunk} tokens read in one pass, {attention}").format(
                    chunk=grouped(settings.chunk), attention=settings.attention
                ),
            ),
            _absent(Region.CUDA_GRAPHS, tr("Not used by Transformers by default")),
            RegionBudget(Region.RUNTIME, runtime, None, runtime_note),
            RegionBudget(
                Region.ALLOCATOR,
                allocator.slack(kept.device_bytes, moving),
                0,
                tr("Sizes change with every token"),
            ),
            _absent(Region.HEADROOM, tr("Transformers leaves nothing free on purpose")),
            _others(slot),
        )
        return RankBudget(
            rank,
            slot,
            {entry.region: entry for entry in entries},
            total([cache, constant]),
            has_pool=False,
            moments=transients.moments(self.model, slot.device, layers, settings, adapted, tp),
        )

    def host(self, rank: int, slot: Slot) -> RankBudget | None:
        """The RAM, where weights or a cache lie in it; None where neither does."""
        every = self._layers(tuple(range(len(self.model.spec.layers))))
        kept = caches.held(every, self.settings, 1)
        share = self.placement.host
        if not share.size_bytes and not kept.host_bytes:
            return None
        cache = self._cache(
            kept.host_bytes,
            tr("{host_bytes} B, layer by layer").format(host_bytes=grouped(kept.host_bytes)),
        )
        entries = (
            self._weights(share, len(share.layers), 0, on_loan=False),
            RegionBudget(
                Region.KV_CACHE,
                cache,
                None,
                tr("Every layer but the one that computes and the next")
                if kept.host_bytes
                else tr("The cache lies where its layers compute"),
            ),
            *(
                _absent(region, tr("Nothing of it in RAM"))
                for region in (Region.RECURRENT_STATE, Region.ACTIVATIONS, Region.CUDA_GRAPHS)
            ),
            _absent(Region.RUNTIME, tr("No context of its own")),
            _absent(Region.ALLOCATOR, tr("Pages of the system, no pool")),
            _absent(Region.HEADROOM, tr("Transformers leaves nothing free on purpose")),
            _others(slot),
        )
        regions = {entry.region: entry for entry in entries}
        return RankBudget(rank, slot, regions, total([cache]), has_pool=False, moments=Moments())

    def _layers(self, indices: tuple[int, ...]) -> list[LayerSpec]:
        return [self.model.spec.layers[at] for at in indices]

    def _least_bytes(self, computes: tuple[int, ...], tp: int) -> int:
        """What the architecture keeps of one sequence in these layers."""
        spec, settings = self.model.spec, self.settings
        alike: dict[int, list[int]] = {}
        for at in computes:
            alike.setdefault(id(spec.layers[at]), []).append(at)
        return sum(
            state.rank_bytes(
                spec, settings.kv_dtype, settings.context, range(places[0], places[0] + 1), tp
            )
            * len(places)
            for places in alike.values()
        )

    def _adapter_bytes(self, layers: int) -> int:
        """Of the adapters' parameters the part of so many layers."""
        deployment, spec = self.settings.deployment, self.model.spec
        if not deployment.max_loras or not spec.layers:
            return 0
        whole = adapters.parameters(spec, deployment.max_lora_rank) * adapters.KEPT_BYTES
        return deployment.max_loras * whole * layers // len(spec.layers)

    def _cache(self, size: int, formula: str) -> Estimate:
        doubted = self.model.spec.direction(Subject.SEQUENCE_STATE)
        settings = self.settings
        name = settings.held.weight_format
        if name == "auto":
            name = self.model.spec.weight_format
        is_autoawq = name.startswith("awq") and settings.version < releases.GPTQMODEL_FOR_AWQ
        if is_autoawq and doubted is None and size:
            grown = size + size // 8
            return Estimate(
                size, grown, grown + 96 * MIB, Basis.FITTED, tr(_AUTOAWQ_SOURCE), f"{formula} × 9/8"
            )
        return counted(size, doubted, Basis.EXACT, _CACHE_SOURCE, formula)

    def _cache_note(self, size: int, doubted: Direction | None) -> str:
        settings, cache = self.settings, self.settings.cache
        if not size:
            return no_state(doubted)[1]
        if cache.is_offloaded:
            return tr("The layer that computes and the next; the others lie in RAM")
        packed = tr(", packed to {label}").format(label=cache.label) if cache.is_quantised else ""
        return tr("{batch} × {context} tokens at the end{packed}").format(
            batch=settings.batch, context=grouped(settings.context), packed=packed
        )

    def _state(self, layers: list[LayerSpec], tp: int) -> tuple[Estimate, str]:
        spec, batch = self.model.spec, self.settings.batch
        doubted = spec.direction(Subject.SEQUENCE_STATE)
        size = batch * sum(
            state_bytes(layer.state, spec.dtype, tp) * count
            for layer, count in kinds(layers)
            if layer.state is not None
        )
        if not size:
            return no_state(doubted)
        return counted(size, doubted, Basis.EXACT, tr("constant per sequence")), tr(
            "{batch} sequences"
        ).format(batch=batch)

    def _weights(self, share: Share, layers: int, adapted: int, *, on_loan: bool) -> RegionBudget:
        settings = self.settings
        packed = FORMATS.get(settings.held.unpacked_from)
        gap = (
            tr("Stored in {label}, unpacked on loading.").format(label=packed.label)
            if packed
            else ""
        )
        found = FORMATS.get(settings.held.weight_format)
        parts = [self._tensors(share)]
        name = found.name if found else self.model.spec.weight_format
        if name in FORMATS and share.direction is None and share.layers:
            parts += self._before_5(name, share)
        first = share is self.placement.devices[0]
        masked = masks.kept(self.model.spec, settings.version, len(share.layers), first=first)
        if masked is not None:
            parts.append(masked)
        if adapted:
            text = tr("{adapted} × {kept_bytes} B").format(
                adapted=grouped(adapted // adapters.KEPT_BYTES), kept_bytes=adapters.KEPT_BYTES
            )
            parts.append(exactly(adapted, Basis.EXACT, "PEFT 0.21", text, tr("adapters")))
        lent = self.placement.on_loan_bytes if on_loan else 0
        if lent:
            source = "accelerate 1.15 hooks.py: a module comes to the device while it computes"
            parts.append(
                Estimate(
                    0,
                    lent // 2,
                    lent,
                    Basis.ASSUMED,
                    source,
                    f"{grouped(lent)} B / 2",
                    tr("on loan"),
                )
            )
        estimate = parts[0] if len(parts) == 1 else total(parts)
        stored = found.label if found else tr("as stored")
        return RegionBudget(
            Region.WEIGHTS,
            estimate,
            least(share.size_bytes, share.direction),
            tr("{layers} layers, {stored}").format(layers=layers, stored=stored),
            gap,
        )

    def _before_5(self, weight_format: str, share: Share) -> list[Estimate]:
        """What weights took beyond their tensors before 5.0."""
        spec, settings = self.model.spec, self.settings
        parts: list[Estimate] = []
        rounded = allocator.rounding(spec, weight_format, settings)
        if rounded is not None:
            parts.append(_scaled(rounded, len(share.layers), len(spec.layers)))
        buffers = kernels.buffers(spec, weight_format, settings.version)
        if buffers is not None:
            parts.append(buffers)
        head = allocator.second_head(spec, weight_format, settings)
        if head is not None and share is self.placement.devices[0]:
            parts.append(head)
        return parts

    def _tensors(self, share: Share) -> Estimate:
        found = counted(
            share.size_bytes, share.direction, share.basis, share.source, label=tr("tensors")
        )
        if self.settings.held.is_certain or share.direction is not None:
            return found
        low = share.size_bytes
        if self.settings.held.unpacked_from and share.size_bytes:
            # Of the whole model, what stays packed in proportion: layers may be dealt otherwise.
            stored, held = self.packed_share
            low = min(low, share.size_bytes * stored // held)
        return Estimate(
            low, share.size_bytes, share.size_bytes, Basis.ASSUMED, share.source, "", tr("tensors")
        )


def _scaled(estimate: Estimate, part: int, whole: int) -> Estimate:
    return Estimate(
        estimate.low_bytes * part // whole,
        estimate.likely_bytes * part // whole,
        estimate.high_bytes * part // whole,
        estimate.basis,
        estimate.source,
        estimate.formula,
        estimate.label,
    )


def _runtime(slot: Slot) -> tuple[Estimate, str]:
    """Context and kernels of one PyTorch process, and its BLAS workspaces."""
    process = overheads.torch_process(slot.device)
    runtime = total([process, allocator.workspaces(slot.device)])
    on_gpu = slot.device.vendor in (Vendor.NVIDIA, Vendor.AMD)
    return runtime, tr("Context and BLAS workspaces") if on_gpu else tr("No context of its own")


def _absent(region: Region, why: str) -> RegionBudget:
    return RegionBudget(region, exactly(0, Basis.EXACT, why), 0, why)


def _others(slot: Slot) -> RegionBudget:
    foreign = slot.foreign
    return RegionBudget(Region.FOREIGN, foreign, foreign.likely_bytes, foreign.source)
