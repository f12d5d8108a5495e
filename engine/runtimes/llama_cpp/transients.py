"""What llama.cpp holds at some moments beside its buffers: while it loads, once it has served.

Buffers are made at load and stay. Beside them come the pool of a GPU, which grows with the first
prompts, and what the server keeps of prompts in RAM.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.budget.model import Moments
from engine.devices.device import DeviceKind
from engine.evidence import Basis, Estimate
from engine.runtimes.llama_cpp.buffers import cells, kv_layer
from engine.runtimes.llama_cpp.shape import CacheKind
from engine.units import GIB, MIB, align_up, ceil_div
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from engine.devices.device import Device
    from engine.runtimes.llama_cpp.plan import Plan
    from engine.runtimes.llama_cpp.settings import Settings
    from engine.runtimes.llama_cpp.shape import Shape

DEFAULT_CACHE_RAM_BYTES = 8 * GIB
"""``--cache-ram`` 8192."""
_POOL_SOURCE = "llama.cpp ggml-cuda.cu, ggml_cuda_pool_leg and ggml_cuda_op_mul_mat_cublas"
_COPIES_SOURCE = "llama.cpp ggml-cuda fattn-common.cuh, before #23907: copies from the pool"
_PROMPTS_SOURCE = "llama.cpp server-task.cpp, server_prompt_cache (--cache-ram)"
_CHECKPOINTS_SOURCE = "llama.cpp server-context.cpp, context checkpoints (--ctx-checkpoints)"
_STAGING_SOURCE = "llama.cpp llama-model-loader.cpp, load_all_data"
_VMM_BYTES = 2 * MIB
_LIBRARY_BYTES = 37 * MIB
"""hipBLAS beside the pool: 27 to 46 MiB with four models on a Strix Halo."""
_F16_BYTES = 2
_STAGING_BYTES = 4 * MIB
_DIRECT_STAGING_BYTES = 256 * MIB
"""Four buffers of 1 MiB; of 64 MiB where the file is read around the page cache."""
_CHECKPOINT_STEP = 8192
_AT_THE_END = 2
"""Checkpoints that every prompt gets near its end, however short it is."""


def on_gpu(shape: Shape, plan: Plan, device: Device, rank: int) -> Moments:
    """What comes on one GPU with the first prompt; nothing comes while it loads."""
    settings = plan.settings
    coming: list[Estimate] = []
    if settings.backend == "rocm":
        coming.append(_unpacked(shape, settings, device))
    if settings.is_cuda and not settings.build.reserves_copies and settings.is_quantised:
        kinds = (CacheKind.FULL, CacheKind.SLIDING)
        size = align_up(max(plan.graph.f16_copies(kind) for kind in kinds), _VMM_BYTES)
        coming.append(
            Estimate(
                size // 2,
                size,
                size,
                Basis.FITTED,
                _COPIES_SOURCE,
                tr("K and V of one layer × 2 B"),
                tr("f16 copies of a layer's cache"),
            )
        )
    encoders = plan.projector
    if encoders is not None and encoders.coming is not None and rank == plan.encoders_on:
        coming.append(encoders.coming)
    return Moments(sustained=tuple(e for e in coming if e.high_bytes))


def _unpacked(shape: Shape, settings: Settings, device: Device) -> Estimate:
    """Matrices in f16 for hipBLAS, where quantised products have no kernel for a whole batch.

    The pool keeps every buffer it has made, each with 5 % to spare: of the largest matrix, of the
    first one, of the activations on both sides. Four models on a Strix Halo, b5863: within 5 %.
    """
    attention = shape.n_head * shape.head_dim
    widest = max(shape.dense_width, attention, shape.moe.width if shape.moe else 0)
    largest = shape.n_embd * widest
    held = largest + (shape.n_embd * attention if attention < widest else 0)
    held += settings.tokens * (widest + 2 * shape.n_embd)
    if not settings.flash:
        scores = settings.tokens * shape.n_head * cells(shape, settings, CacheKind.FULL)
        held += scores if scores > largest else 0
    whole = held * _F16_BYTES * 21 // 20 + _LIBRARY_BYTES
    low = whole * 17 // 20
    if shape.moe is not None:
        # Rows of all experts of a token, sorted by expert, in f32 (ggml_cuda_mul_mat_id).
        routed = settings.tokens * shape.moe.num_experts_per_tok
        whole += 4 * routed * (shape.n_embd + shape.moe.width) * 21 // 20
    likely = whole
    if device.kind is not DeviceKind.UNIFIED:
        low = likely = 0  # RDNA 2 and older cards multiply as stored; of which kind it is, unknown
    elif settings.build.multiplies_packed:
        low = 0  # few types are still unpacked: Q6_K, Q2_K
    return Estimate(
        low,
        likely,
        whole * 23 // 20,
        Basis.FITTED,
        _POOL_SOURCE,
        tr("1.05 × 2 B × {held} elements + {library_bytes} MiB").format(
            held=grouped(held), library_bytes=_LIBRARY_BYTES // MIB
        ),
        tr("unpacked matrices of a prompt"),
    )


def on_host(shape: Shape, plan: Plan, *, beside_gpu: bool, cache_ram_bytes: int) -> Moments:
    """What comes in RAM: staging buffers while it loads, kept prompts once it has served.

    Args:
        shape: the model.
        plan: its buffers.
        beside_gpu: whether weights are sent on to a GPU.
        cache_ram_bytes: most that the server keeps of earlier prompts.
    """
    load: list[Estimate] = []
    settings = plan.settings
    weights = shape.weights
    if not settings.mmap and beside_gpu:
        largest = max(weights.output_matrix_bytes, weights.largest_down_bytes)
        load.append(
            Estimate(
                _STAGING_BYTES,
                _STAGING_BYTES,
                max(_DIRECT_STAGING_BYTES, largest),
                Basis.FITTED,
                _STAGING_SOURCE,
                "4 × 1 MiB",
                tr("staging buffers"),
            )
        )
    kept = (_prompts(shape, settings, cache_ram_bytes), _checkpoints(shape, settings))
    return Moments(tuple(load), sustained=tuple(e for e in kept if e is not None))


def less(estimate: Estimate, room_bytes: int) -> Estimate:
    """What of ``estimate`` has no place in ``room_bytes`` elsewhere."""
    low, likely, high = (
        max(size - room_bytes, 0)
        for size in (estimate.low_bytes, estimate.likely_bytes, estimate.high_bytes)
    )
    return replace(estimate, low_bytes=low, likely_bytes=likely, high_bytes=high)


def state_bytes(shape: Shape, settings: Settings, tokens: int) -> int:
    """What the server writes down of one sequence of ``tokens``: caches and states."""
    size = 0
    for block, count in shape.kind_counts.items():
        layer = kv_layer(shape, settings, block, cuda=False)
        held = min(tokens, layer.cells)
        if block.cache is CacheKind.SLIDING:
            held = min(held, shape.window or held)
        size += count * (held * layer.cell_bytes + 4 * (block.conv_state + block.recurrent_state))
    return size


def _prompts(shape: Shape, settings: Settings, cache_ram_bytes: int) -> Estimate | None:
    """Prompts that gave way to others: one for each request, up to what the server allows."""
    if not settings.build.keeps_prompts or not cache_ram_bytes or shape.is_encoder:
        return None
    likely = settings.at_once * state_bytes(shape, settings, settings.context)
    return Estimate(
        0,
        min(likely, cache_ram_bytes),
        cache_ram_bytes,
        Basis.ASSUMED,
        _PROMPTS_SOURCE,
        tr("one more prompt a request, up to {cache_ram_bytes} GiB").format(
            cache_ram_bytes=figures(format(cache_ram_bytes / GIB, "g"))
        ),
        tr("earlier prompts kept in RAM"),
    )


def _checkpoints(shape: Shape, settings: Settings) -> Estimate | None:
    """Snapshots of what cannot be taken back token by token: states, and windows."""
    most = settings.build.context_checkpoints
    snapshot = sum(
        count * 4 * (block.conv_state + block.recurrent_state)
        for block, count in shape.kind_counts.items()
    )
    if not settings.swa_full:
        snapshot += sum(
            count
            * min(settings.context, shape.window)
            * kv_layer(shape, settings, block, cuda=False).cell_bytes
            for block, count in shape.kind_counts.items()
            if block.cache is CacheKind.SLIDING
        )
    if not most or not snapshot:
        return None
    taken = min(ceil_div(settings.context, _CHECKPOINT_STEP) + _AT_THE_END, most)
    slots = settings.at_once
    return Estimate(
        0,
        slots * taken * snapshot,
        slots * most * snapshot,
        Basis.ASSUMED,
        _CHECKPOINTS_SOURCE,
        tr("{slots} × {taken} snapshots × {snapshot} B").format(
            slots=slots, taken=taken, snapshot=grouped(snapshot)
        ),
        tr("context checkpoints in RAM"),
    )
