"""What Ollama decides before it starts llama-server: context, slots, batch, GPUs, mapping.

Source: Ollama commit fb307609 (August 2026, release 0.33), ``server/routes.go``,
``server/sched.go``, ``llm/server.go`` and ``llm/llama_server.go``; held to the launch lines of
0.31.1, 0.32.13, 0.33.2 and 0.34.2 (``tests/truth/test_ollama_launches.py``). Later commits
choose a single GPU by 1 GiB and 457 MiB kept free in place of a fifth; no release of that was
seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.devices.device import DeviceKind, Vendor
from engine.runtimes import overheads
from engine.runtimes.llama_cpp.shape import CacheKind
from engine.units import GIB, MIB
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.devices.device import Machine, Slot
    from engine.runtimes.llama_cpp.shape import Shape

_TIERS = ((47 * GIB, 262_144), (23 * GIB, 32_768))
SHORTEST_CONTEXT = 4096
LEAST_VISION_CONTEXT = 2048
BATCH = 512
_EMBEDDING_BATCH = 2048
_CONSTRAINED_BATCH = 256
_CONSTRAINED_BYTES = 8 * GIB
_HEADROOM = 80
"""Percent of what is available that a prediction may reach."""
_LARGER_BATCHES = (
    (32_768, 2048, 60, 2 * GIB),
    (4096, 1024, 75, 768 * MIB),
)
"""(context above which, tokens, percent that the prediction may reach, what it adds)."""
_ONE_AT_A_TIME = frozenset(
    {"mllama", "qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe", "qwen3next", "lfm2", "lfm2moe",
     "nemotronh", "nemotronhmoe", "nemotronhomni"}
)  # fmt: skip
"""Architectures that run one request at a time, whatever OLLAMA_NUM_PARALLEL says."""
_COUNTED_ONCE = ("qwen3next", "qwen35")
"""Hybrids whose files state one number of KV heads, and not one for each layer."""
_F16_BYTES = 2
_MAPPED_HEADROOM_BYTES = 8 * 10**9


def gpus(machine: Machine) -> tuple[Slot, ...]:
    """The GPUs that Ollama sees."""
    return tuple(s for s in machine.slots if s.device.kind is not DeviceKind.HOST)


def default_context(slots: Sequence[Slot], overhead_bytes: int) -> int:
    """num_ctx where nothing sets it, by all GPUs' memory less OLLAMA_GPU_OVERHEAD on each."""
    whole = sum(s.device.allocatable.likely_bytes - overhead_bytes for s in slots)
    return next((context for least, context in _TIERS if whole >= least), SHORTEST_CONTEXT)


def next_lower_context(context: int) -> int | None:
    """What an automatic context is cut to when llama-server runs out of memory at load."""
    lower = (tier for _, tier in _TIERS if tier < context)
    return next(lower, SHORTEST_CONTEXT if context > SHORTEST_CONTEXT else None)


def runs_one_at_a_time(shape: Shape) -> bool:
    """Whether OLLAMA_NUM_PARALLEL is held at 1 for this architecture, or for embeddings."""
    name = shape.architecture.replace("_", "").replace("-", "").replace(".", "")
    return name in _ONE_AT_A_TIME or shape.is_encoder


def predicted_bytes(shape: Shape, context: int) -> int:
    """Ollama's own estimate: the file, and an F16 cache as if every layer kept every token.

    It knows no windows, cache types, latent vectors or states, so it is no figure of ours:
    Ollama chooses GPUs and batch by it.
    """
    width = shape.n_embd // shape.n_head if shape.n_head else 0
    cache = 2 * shape.blocks_in_file * _least_kv_heads(shape) * width * context * _F16_BYTES
    return shape.weights.size_bytes + cache


def _least_kv_heads(shape: Shape) -> int:
    kept = [b for b in shape.kinds if b.cache is not CacheKind.NONE]
    each_layer = len(kept) < len(shape.kinds) and not shape.architecture.startswith(_COUNTED_ONCE)
    if not kept or each_layer or shape.mla is not None or not shape.head_dim:
        return 1
    sliding = {CacheKind.SLIDING: shape.head_dim_swa}
    return max(min(b.k_width // sliding.get(b.cache, shape.head_dim) for b in kept), 1)


def available_bytes(machine: Machine, slots: Sequence[Slot]) -> int:
    """Free memory of ``slots`` as llama-server lists it: its own context is there already."""
    free = 0
    for slot in slots:
        device = slot.device
        own = device.allocatable.likely_bytes - slot.foreign.likely_bytes
        own -= overheads.context(device).likely_bytes
        if device.kind is DeviceKind.UNIFIED:
            own = min(own, _host_free(machine))
        free += max(own, 0)
    return free


def _host_free(machine: Machine) -> int:
    host = machine.host
    return host.device.allocatable.likely_bytes - host.foreign.likely_bytes


def chosen_gpus(machine: Machine, predicted: int, *, spread: bool) -> tuple[Slot, ...]:
    """The best single GPU that holds the prediction in 80 % of its free memory, else a group.

    A group are all GPUs of one vendor; a discrete GPU goes before one that shares the RAM.
    """
    found = gpus(machine)
    if len(found) < 2:
        return found
    held = [
        (slot,)
        for slot in found
        if predicted <= available_bytes(machine, (slot,)) * _HEADROOM // 100
    ]
    vendors = dict.fromkeys(s.device.vendor for s in found)
    groups = [tuple(s for s in found if s.device.vendor is v) for v in vendors]
    return max(
        held if held and not spread else groups,
        key=lambda group: (
            any(s.device.kind is DeviceKind.DISCRETE for s in group),
            available_bytes(machine, group),
        ),
    )


def batch(shape: Shape, context: int, predicted: int, available: int) -> int:
    """Tokens of a logical and of a physical batch, where num_batch is not set.

    Args:
        shape: the model.
        context: of all slots together.
        predicted: ``predicted_bytes``.
        available: free on the chosen GPUs; 0 without one, where every batch is taken.
    """
    if shape.is_encoder:
        return min(_EMBEDDING_BATCH, context)
    threshold = available * _HEADROOM // 100
    for above, tokens, percent, surcharge in _LARGER_BATCHES:
        if context <= above:
            continue
        fits = predicted + surcharge <= threshold and predicted <= available * percent // 100
        if not available or fits:
            return tokens
    return BATCH


def batch_without_flash(slots: Sequence[Slot], context: int) -> int:
    """The same on CUDA where flash attention is switched off."""
    small = any(
        min(s.device.allocatable.likely_bytes - s.foreign.likely_bytes, s.device.total_bytes)
        <= _CONSTRAINED_BYTES
        for s in slots
    )
    return _CONSTRAINED_BATCH if small and context > SHORTEST_CONTEXT else BATCH


def unmapped(
    machine: Machine, slots: Sequence[Slot], platform: str, predicted: int, file_bytes: int
) -> str:
    """Why the file is not mapped by default; empty where it is."""
    available = available_bytes(machine, slots)
    vendors = {s.device.vendor for s in slots}
    shared = any(s.device.kind is DeviceKind.UNIFIED for s in slots)
    if not slots:
        return tr("it runs on the CPU")
    if platform == "windows" and Vendor.NVIDIA in vendors:
        return tr("CUDA on Windows")
    if Vendor.APPLE in vendors:
        return tr("only a part goes to the GPU") if predicted > available else ""
    if shared:
        return tr("a GPU that shares the RAM would hold it twice")
    headroom = max(_MAPPED_HEADROOM_BYTES, machine.host.device.total_bytes // 10)
    fits = predicted <= available * _HEADROOM // 100
    if machine.is_here and fits and _host_free(machine) < file_bytes + headroom:
        return tr("the RAM is short")
    return ""
