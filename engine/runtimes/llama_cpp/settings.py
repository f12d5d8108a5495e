"""What llama-server makes of a deployment: its defaults, roundings and refusals.

Source: llama.cpp b11434 ``llama-context.cpp`` (constructor), ``common/arg.cpp``,
``tools/server/server.cpp`` and ``server-context.cpp``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.formats.gguf import TYPES
from engine.formats.kv import LLAMA_CPP_KV_DTYPES
from engine.units import align_up

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment
    from engine.runtimes.llama_cpp.shape import Shape

DEFAULT_BATCH = 2048
DEFAULT_MICRO_BATCH = 512
DEFAULT_SLOTS = 4
MAX_SLOTS = 256
LEAST_FITTED_CONTEXT = 4096
CELL_ROUNDING = 256
_MAX_CONTEXT = 2**31
_CACHE_NAMES = {"auto": "f16", "fp16": "f16", "float16": "f16", "bfloat16": "bf16", "fp32": "f32"}
_SWITCH = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """Every value that the buffers depend on, as llama.cpp ends up using it."""

    n_ctx: int
    """Cells of a full-attention layer over all streams."""
    n_ctx_seq: int
    """Cells of one stream."""
    streams: int
    slots: int
    is_unified: bool
    n_batch: int
    tokens: int
    """Tokens of one micro-batch (T)."""
    outputs: int
    """Logit rows reserved in the compute buffer (O)."""
    type_k: str
    type_v: str
    flash: bool
    swa_full: bool
    offload_kqv: bool
    op_offload: bool
    mmap: bool
    n_cpu_moe: int
    n_gpu_layers: int | None
    context: int
    """Tokens one request may have."""
    concurrency: int

    @property
    def is_quantised(self) -> bool:
        """Whether K or V is stored in blocks."""
        return TYPES[self.type_k].is_quantised or TYPES[self.type_v].is_quantised


def chosen_cells(deployment: Deployment) -> int | None:
    """Total context that the user asks for (``-c``); None where llama.cpp decides."""
    if deployment.n_ctx:
        return deployment.n_ctx
    if deployment.max_model_len is None:
        return None
    slots, unified = _slots(deployment, [])
    # Slots with caches of their own take equal parts, however few of them are used.
    return deployment.max_model_len * (min(deployment.concurrency, slots) if unified else slots)


def settle(
    deployment: Deployment, shape: Shape, *, total: int, on_gpu: bool
) -> tuple[Settings, tuple[str, ...]]:
    """The settings llama-server runs with, and a sentence for each default used.

    Args:
        deployment: what the user chose.
        shape: the model.
        total: context of all requests together, in tokens (``-c``).
        on_gpu: whether any layer runs on a GPU.

    Raises:
        DeploymentError: llama.cpp would refuse; names the setting.
    """
    _refuse_foreign(deployment)
    notes: list[str] = []
    slots, unified = _slots(deployment, notes)
    _in_range("n_ctx" if deployment.n_ctx else "max_model_len", total, _MAX_CONTEXT)
    batch = min(total, _given(deployment.n_batch, DEFAULT_BATCH, "n_batch", notes))
    micro = _given(deployment.n_ubatch, DEFAULT_MICRO_BATCH, "n_ubatch", notes)
    cells, per_stream, streams = _cells(total, slots, unified=unified)
    tokens = min(micro, batch, cells)
    outputs = slots if deployment.n_outputs_max is None else deployment.n_outputs_max
    type_k, type_v = _cache_types(deployment, shape, notes)
    flash = _flash(deployment, shape, notes, on_gpu=on_gpu)
    if TYPES[type_v].is_quantised and not flash and shape.mla is None:
        raise DeploymentError(
            f"llama.cpp stores V as {type_v.lower()} only with flash attention: turn flash_attn "
            "on, or keep V in f16.",
            field="cache_type_v",
        )
    return Settings(
        n_ctx=cells,
        n_ctx_seq=per_stream,
        streams=streams,
        slots=slots,
        is_unified=unified,
        n_batch=batch,
        tokens=tokens,
        outputs=min(outputs or batch, tokens),
        type_k=type_k,
        type_v=type_v,
        flash=flash,
        swa_full=deployment.swa_full,
        offload_kqv=deployment.offload_kqv,
        op_offload=deployment.op_offload,
        mmap=deployment.mmap,
        n_cpu_moe=deployment.n_cpu_moe,
        n_gpu_layers=deployment.n_gpu_layers,
        context=_per_request(deployment, total, per_stream, unified=unified),
        concurrency=deployment.concurrency,
    ), tuple(notes)


def _per_request(deployment: Deployment, total: int, per_stream: int, *, unified: bool) -> int:
    if deployment.max_model_len is not None and not deployment.n_ctx:
        return deployment.max_model_len
    return max(total // deployment.concurrency, 1) if unified else min(total, per_stream)


def _given(value: int | None, default: int, name: str, notes: list[str]) -> int:
    if value is None:
        notes.append(f"{name} = {default:,}, llama-server's default.")
        return default
    _in_range(name, value, _MAX_CONTEXT)
    return value


def _in_range(name: str, value: int, highest: int) -> None:
    if not 1 <= value <= highest:
        raise DeploymentError(
            f"{name} = {value:,} is out of range: choose 1 to {highest:,}.", field=name
        )


def _slots(deployment: Deployment, notes: list[str]) -> tuple[int, bool]:
    if deployment.n_parallel is not None:
        _in_range("n_parallel", deployment.n_parallel, MAX_SLOTS)
        return deployment.n_parallel, bool(deployment.kv_unified)
    unified = deployment.kv_unified
    if deployment.concurrency <= DEFAULT_SLOTS:
        notes.append(
            f"{DEFAULT_SLOTS} slots share one KV cache, llama-server's default without -np."
        )
        return DEFAULT_SLOTS, unified is not False
    _in_range("concurrency", deployment.concurrency, MAX_SLOTS)
    notes.append(f"{deployment.concurrency} slots (-np), one for each request.")
    return deployment.concurrency, bool(unified)


def _cells(total: int, slots: int, *, unified: bool) -> tuple[int, int, int]:
    """(cells of all streams, cells of one stream, streams)."""
    padded = align_up(total, CELL_ROUNDING)
    if unified or slots == 1:
        return padded, padded, 1
    per_stream = align_up(max(padded // slots, 1), CELL_ROUNDING)
    return per_stream * slots, per_stream, slots


def _cache_types(deployment: Deployment, shape: Shape, notes: list[str]) -> tuple[str, str]:
    chosen = deployment.kv_cache_dtype
    asked_k, asked_v = deployment.cache_type_k, deployment.cache_type_v
    type_k = _cache_type(asked_k or chosen, "cache_type_k" if asked_k else "kv_cache_dtype")
    type_v = _cache_type(asked_v or chosen, "cache_type_v" if asked_v else "kv_cache_dtype")
    if asked_k is None and asked_v is None and chosen == "auto":
        notes.append("KV cache in f16, llama.cpp's default.")
    if shape.mla is not None and type_k != type_v:
        raise DeploymentError(
            "Keys and values are one latent vector in this model: llama.cpp wants cache_type_k "
            "and cache_type_v to be the same.",
            field="cache_type_v",
        )
    keys = [("cache_type_k", type_k, block.k_width) for block in shape.kinds]
    values = [("cache_type_v", type_v, block.v_width) for block in shape.kinds]
    widest = ("cache_type_v", type_v, shape.widest_value)
    for name, kind, width in (*keys, *values, widest):
        if width % TYPES[kind].elements:
            raise DeploymentError(
                f"{name} = {kind.lower()} packs {TYPES[kind].elements} elements in a block, which "
                f"does not divide this model's width of {width}.",
                field=name,
            )
    return type_k, type_v


def _cache_type(name: str, setting: str) -> str:
    lowered = _CACHE_NAMES.get(name.lower(), name.lower())
    if lowered not in LLAMA_CPP_KV_DTYPES:
        choices = ", ".join(LLAMA_CPP_KV_DTYPES)
        raise DeploymentError(
            f"llama.cpp has no KV cache type {name!r:.40}: choose one of {choices}.", field=setting
        )
    return lowered.upper()


def _flash(deployment: Deployment, shape: Shape, notes: list[str], *, on_gpu: bool) -> bool:
    asked = deployment.flash_attn
    if isinstance(asked, bool):
        return asked
    if asked is not None and asked.lower() != "auto":
        switch = _SWITCH.get(asked.lower())
        if switch is None:
            raise DeploymentError(
                f"flash_attn = {asked!r:.40} is none of on, off and auto.", field="flash_attn"
            )
        return switch
    has_kernel = not on_gpu or shape.mla is not None or shape.head_dim in _CUDA_FLASH_HEADS
    notes.append(
        "Flash attention on, as llama.cpp's auto decides."
        if has_kernel
        else f"Flash attention off: no CUDA kernel for a head width of {shape.head_dim}."
    )
    return has_kernel


_CUDA_FLASH_HEADS = frozenset({0, 40, 64, 72, 80, 96, 112, 128, 192, 256, 320, 512, 576})


def _refuse_foreign(deployment: Deployment) -> None:
    if deployment.concurrency < 1:
        raise DeploymentError("concurrency is at least 1.", field="concurrency")
    if deployment.max_model_len is not None:
        _in_range("max_model_len", deployment.max_model_len, _MAX_CONTEXT)
    if deployment.n_ctx is not None and deployment.n_ctx < 0:
        raise DeploymentError("n_ctx is 0 (the model's own) or more.", field="n_ctx")
    if deployment.n_cpu_moe < 0:
        raise DeploymentError("n_cpu_moe is 0 or more layers.", field="n_cpu_moe")
    if deployment.n_outputs_max is not None and deployment.n_outputs_max < 0:
        raise DeploymentError("n_outputs_max is 0 (n_batch) or more.", field="n_outputs_max")
    if deployment.split_mode not in (None, "none", "layer"):
        raise DeploymentError(
            f"split_mode = {deployment.split_mode!r:.40} cannot be sized: llama.cpp's CUDA backend "
            "splits by layer (or not at all: none) since b11434.",
            field="split_mode",
        )
