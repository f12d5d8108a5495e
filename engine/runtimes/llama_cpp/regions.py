"""From buffers to the regions of each rank: one rank per GPU, and one for the host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.architecture.spec import Direction, Subject, direction_of
from engine.budget.bounds import counted, least, no_state
from engine.budget.model import Moments, RankBudget, Region, RegionBudget
from engine.devices.device import DeviceKind
from engine.evidence import Basis, Estimate, exactly, total
from engine.formats.gguf import TYPES, row_bytes
from engine.runtimes.llama_cpp import ranges, transients
from engine.runtimes.llama_cpp.buffers import groups, kv_formula
from engine.runtimes.llama_cpp.offload import open_bytes
from engine.runtimes.llama_cpp.placement import HOST
from engine.runtimes.llama_cpp.shape import CacheKind
from engine.units import GIB, ceil_div
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.spec import Doubt
    from engine.devices.device import Slot
    from engine.runtimes.llama_cpp.plan import Plan
    from engine.runtimes.llama_cpp.shape import Block, Shape

_WEIGHTS_SOURCE = "llama.cpp b11434 llama-model.cpp, load_tensors"
_CACHE_SOURCE = "llama.cpp b11434 llama-kv-cache.cpp and llama-kv-cache-iswa.cpp"
_STATE_SOURCE = "llama.cpp b11434 llama-memory-recurrent.cpp"
_OUTPUT_SOURCE = "llama.cpp b11434 llama-context.cpp, output_reserve"
_SYSTEM_BYTES = 4 * GIB
"""What a system takes of the RAM beside a GPU that shares it."""
_Q8_K_BYTES, _Q8_K_ELEMENTS = TYPES["Q8_K"].size_bytes, TYPES["Q8_K"].elements


@dataclass(frozen=True, slots=True)
class Ranks:
    """Builds the rank budgets of one plan."""

    shape: Shape
    plan: Plan
    doubts: tuple[Doubt, ...]
    cache_ram_bytes: int = 0
    """Most that the server keeps of earlier prompts."""

    def gpu(self, rank: int, slot: Slot) -> RankBudget:
        """A GPU with memory of its own."""
        return self._rank(rank, slot, (rank,), *self._beside(slot, (rank,)))

    def shared(self, rank: int, slot: Slot, ram_bytes: int) -> RankBudget:
        """A GPU that shares the RAM, with the host's part.

        Of what comes in RAM later, only that counts here which RAM beyond the GPU's line has no
        room for, beside the system.
        """
        devices = (rank, HOST)
        runtime, moments = self._beside(slot, devices)
        line = slot.device.allocatable.likely_bytes
        beyond = max(ram_bytes - line - _SYSTEM_BYTES, 0)
        kept = self._in_ram(beside_gpu=True)
        coming = tuple(transients.less(estimate, beyond) for estimate in kept.sustained)
        moments = Moments(kept.load, sustained=(*moments.sustained, *coming))
        return self._rank(rank, slot, devices, runtime, moments)

    def _beside(self, slot: Slot, devices: tuple[int, ...]) -> tuple[Estimate, Moments]:
        """Context, libraries and page tables of a GPU; what comes there with the first prompt."""
        held = sum(self.plan.projected(device) for device in devices)
        runtime = ranges.device_runtime(slot.device, self.plan.settings.backend, held)
        return runtime, transients.on_gpu(self.shape, self.plan, slot.device, devices[0])

    def host(self, rank: int, slot: Slot, *, beside_gpu: bool) -> RankBudget:
        """The machine's own RAM."""
        work = 0 if beside_gpu and self.plan.placement.is_full else self._work_bytes()
        runtime = ranges.process(slot.device, work, beside_gpu=beside_gpu)
        return self._rank(rank, slot, (HOST,), runtime, self._in_ram(beside_gpu=beside_gpu))

    def _in_ram(self, *, beside_gpu: bool) -> Moments:
        return transients.on_host(
            self.shape, self.plan, beside_gpu=beside_gpu, cache_ram_bytes=self.cache_ram_bytes
        )

    def _work_bytes(self) -> int:
        """The right-hand side of the largest product, quantised for the CPU's kernels."""
        shape = self.shape
        widths = [shape.n_embd, shape.dense_width]
        if shape.moe is not None:
            widths.append(shape.moe.width * shape.moe.num_experts_per_tok)
        blocks = ceil_div(max(widths), _Q8_K_ELEMENTS)
        return self.plan.settings.tokens * blocks * _Q8_K_BYTES

    def _rank(
        self,
        rank: int,
        slot: Slot,
        devices: tuple[int, ...],
        runtime: Estimate,
        moments: Moments,
    ) -> RankBudget:
        kv, state = self._kv(devices), self._state(devices)
        none = exactly(0, Basis.SETTING, tr("llama.cpp leaves nothing free on purpose"))
        regions = (
            self._weights(devices),
            kv,
            state,
            self._activations(devices),
            RegionBudget(
                Region.CUDA_GRAPHS,
                exactly(0, Basis.EXACT, tr("llama.cpp's graphs use the compute buffer")),
                None,
                tr("Captured graphs reuse the compute buffer"),
            ),
            RegionBudget(Region.RUNTIME, runtime, None, _runtime_note(slot)),
            RegionBudget(
                Region.ALLOCATOR,
                exactly(0, Basis.EXACT, tr("one allocation per buffer")),
                None,
                tr("Every buffer is one allocation, made at load"),
            ),
            RegionBudget(
                Region.HEADROOM,
                none,
                None,
                tr("None; only --fit keeps 1 GiB free, when it chooses the context"),
            ),
            RegionBudget(Region.FOREIGN, slot.foreign, None, slot.foreign.source),
        )
        needed = total((kv.estimate.named(tr("KV cache")), state.estimate.named(tr("state"))))
        return RankBudget(
            rank, slot, {r.region: r for r in regions}, needed, has_pool=False, moments=moments
        )

    def _weights(self, devices: tuple[int, ...]) -> RegionBudget:
        plan, shape = self.plan, self.shape
        size = sum(plan.model[d] for d in devices)
        basis = Basis.READ if shape.is_read else Basis.EXACT
        doubted = None if shape.is_read else direction_of(self.doubts, Subject.WEIGHTS)
        copied = HOST not in devices and shape.weights.is_tied and plan.placement.output in devices
        twice = min(shape.weights.token_embedding.cuda, size) if copied else 0
        estimate = counted(
            size,
            doubted,
            basis,
            _WEIGHTS_SOURCE,
            tr("{tensors} tensors of {value}, each padded").format(
                tensors=grouped(shape.weights.tensors), value=shape.file_type or "the file"
            ),
        )
        note = tr("{value} tensors, padded").format(value=shape.file_type or "GGUF")
        shared = self._shared_bytes(devices)
        if shared and doubted is None:
            estimate = replace(estimate, low_bytes=size - shared, basis=Basis.ASSUMED)
            note += tr("; the tied embedding twice, unless both are the same file pages")
        gap = tr("The tied embedding is held twice: here as output, on the host as input.")
        if HOST in devices and plan.settings.mmap:
            note += tr(", mapped: file pages (RssFile), reclaimable")
        known = least(size - twice, doubted)
        if plan.projector is not None and plan.encoders_on in devices:
            encoders = plan.projector.weights
            estimate = total((estimate.named(tr("text model")), encoders))
            known = None if known is None else known + encoders.low_bytes
            note += tr(", and encoders")
        return RegionBudget(Region.WEIGHTS, estimate, known, note, gap if twice else "")

    def _shared_bytes(self, devices: tuple[int, ...]) -> int:
        """What may be counted twice: a mapped file that CPU and Apple's GPU read in one memory."""
        plan, weights = self.plan, self.shape.weights
        on_gpu = plan.placement.output != HOST and plan.placement.output in devices
        mapped = HOST in devices and on_gpu and plan.settings.mmap and not plan.is_cuda
        return weights.token_embedding.host if mapped and weights.is_tied else 0

    def _blocks(self, devices: tuple[int, ...]) -> list[tuple[Block, int]]:
        found = groups(self.shape, self.plan.placement, offload_kqv=self.plan.settings.offload_kqv)
        return [(block, count) for device, block, count in found if device in devices]

    def least_kv_bytes(self, devices: tuple[int, ...], requests: int) -> int:
        """By the architecture: no padding, no shared slots; at the plan's context."""
        settings, window = self.plan.settings, self.shape.window
        per_request = 0
        for block, count in self._blocks(devices):
            if block.cache is CacheKind.NONE:
                continue
            tokens = settings.context
            if block.cache is CacheKind.SLIDING:
                tokens = min(tokens, window)
            row = token_bytes(settings.type_k, settings.type_v, block)
            entries = sum(
                settings.context // ratio * row_bytes(settings.type_k, width)
                for ratio, width in block.entries
            )
            per_request += (tokens * row + entries) * count
        return per_request * requests

    def kv_formula(self, devices: tuple[int, ...]) -> str:
        """The cache there as a calculation; empty where there is none."""
        plan = self.plan
        return kv_formula(self.shape, plan.settings, plan.placement, devices, cuda=plan.is_cuda)

    def growth_bytes(self, devices: tuple[int, ...]) -> int:
        """What one more token takes there, where layers keep all of them; of entries its share."""
        settings = self.plan.settings
        grown = sum(
            token_bytes(settings.type_k, settings.type_v, block) * count
            for block, count in self._blocks(devices)
            if block.cache is CacheKind.FULL
        )
        return grown + sum(
            ceil_div(row_bytes(settings.type_k, width) * count, ratio)
            for block, count in self._blocks(devices)
            for ratio, width in block.entries
        )

    def _kv(self, devices: tuple[int, ...]) -> RegionBudget:
        plan, settings = self.plan, self.plan.settings
        size = sum(plan.kv[d] for d in devices)
        minimum = self.least_kv_bytes(devices, settings.at_once)
        types = f"K {settings.type_k.lower()}, V {settings.type_v.lower()}"
        formula = self.kv_formula(devices)
        doubted = direction_of(self.doubts, Subject.SEQUENCE_STATE)
        estimate = counted(size, doubted, Basis.EXACT, _CACHE_SOURCE, formula)
        note = tr("{n_ctx} cells for {slots}, {types}").format(
            n_ctx=grouped(settings.n_ctx), slots=_slots(settings.slots), types=types
        )
        if not size:
            note = tr("No layer with a cache on this device")
            if doubted is Direction.LOWER:
                note = no_state(doubted)[1]
        return RegionBudget(
            Region.KV_CACHE,
            estimate,
            least(minimum, doubted),
            note,
            self._kv_gap() if size > minimum else "",
        )

    def _kv_gap(self) -> str:
        settings = self.plan.settings
        if self.shape.widths(CacheKind.SLIDING) is not None:
            return tr(
                "Window layers keep the window of every slot and one "
                "micro-batch of {tokens} tokens, rounded up to 256 cells."
            ).format(tokens=grouped(settings.tokens))
        return tr("{n_ctx} cells are reserved at start, rounded up to 256.").format(
            n_ctx=grouped(settings.n_ctx)
        )

    def _state(self, devices: tuple[int, ...]) -> RegionBudget:
        settings = self.plan.settings
        size = sum(self.plan.state[d] for d in devices)
        slots = settings.slots
        minimum = size // slots * settings.at_once
        doubted = direction_of(self.doubts, Subject.SEQUENCE_STATE)
        if not size:
            nothing = exactly(0, Basis.EXACT, tr("no layer on this device keeps a recurrent state"))
            note = tr("No recurrent state")
            if doubted is Direction.LOWER:
                nothing, note = no_state(doubted)
            return RegionBudget(Region.RECURRENT_STATE, nothing, 0, note)
        formula = tr("f32 state × {slots}").format(slots=_slots(slots))
        estimate = counted(size, doubted, Basis.EXACT, _STATE_SOURCE, formula)
        gap = (
            tr("One state is reserved for each of {slots}.").format(slots=_slots(slots))
            if size > minimum
            else ""
        )
        known = least(minimum, doubted)
        return RegionBudget(Region.RECURRENT_STATE, estimate, known, f"f32, {_slots(slots)}", gap)

    def _activations(self, devices: tuple[int, ...]) -> RegionBudget:
        plan, settings = self.plan, self.plan.settings
        used = {d for d in plan.placement.blocks if d != HOST}
        whole = plan.placement.is_full and settings.offload_kqv and len(used) == 1
        parts = [
            ranges.compute(
                plan.compute[device],
                plan.graph.unit,
                open_bytes=open_bytes(plan.graph, plan.placement, device),
                is_plain=not self.shape.is_hybrid and not self.shape.per_layer_embedding,
                is_split=bool(plan.placement.devices) and not whole,
                doubtful=bool(self.doubts),
            )
            for device in devices
        ]
        if HOST in devices:
            rows = tr("4 B × {n_vocab} × {slots}").format(
                n_vocab=grouped(self.shape.n_vocab), slots=_slots(settings.slots)
            )
            parts.append(
                exactly(plan.output, Basis.EXACT, _OUTPUT_SOURCE, rows, tr("output buffer"))
            )
        if plan.projector is not None and plan.encoders_on in devices:
            parts.append(plan.projector.work)
        rows = (
            tr("1 logit row")
            if settings.outputs == 1
            else tr("{outputs} logit rows").format(outputs=grouped(settings.outputs))
        )
        note = tr("Compute buffer for {tokens} tokens, {rows}").format(
            tokens=grouped(settings.tokens), rows=rows
        )
        return RegionBudget(Region.ACTIVATIONS, total(parts), None, note)


def token_bytes(type_k: str, type_v: str, block: Block) -> int:
    """Key and value bytes of one token in one layer."""
    value = row_bytes(type_v, block.v_width) if block.v_width else 0
    return row_bytes(type_k, block.k_width) + value


def _slots(count: int) -> str:
    return tr("1 slot") if count == 1 else tr("{count} slots").format(count=count)


def _runtime_note(slot: Slot) -> str:
    if slot.device.kind is DeviceKind.HOST:
        return tr("Program, libraries and the CPU's work area")
    return tr("Device context and kernels")
