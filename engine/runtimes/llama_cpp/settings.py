"""What llama-server makes of a deployment: its defaults, roundings and refusals.

Source: llama.cpp b11434 ``llama-context.cpp`` (constructor), ``common/arg.cpp``,
``tools/server/server.cpp`` and ``server-context.cpp``; what older builds do: ``builds``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.formats.gguf import TYPES
from engine.formats.kv import LLAMA_CPP_KV_DTYPES
from engine.runtimes.llama_cpp.builds import build_of
from engine.units import align_up, ceil_div
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment
    from engine.runtimes.llama_cpp.builds import Build
    from engine.runtimes.llama_cpp.shape import Shape

DEFAULT_BATCH = 2048
DEFAULT_MICRO_BATCH = 512
MAX_SLOTS = 256
LEAST_FITTED_CONTEXT = 4096
OLD_DEFAULT_CONTEXT = 4096
CELL_ROUNDING = 256
_MAX_CONTEXT = 2**31
_CACHE_NAMES = {"auto": "f16", "fp16": "f16", "float16": "f16", "bfloat16": "bf16", "fp32": "f32"}
LEAST_LENT = 32
"""Rows of a product from which on a GPU is lent the host's weights for it."""
_SWITCH = {"on": True, "1": True, "true": True, "off": False, "0": False, "false": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """Every value that the buffers depend on, as llama.cpp ends up using it."""

    build: Build
    backend: str
    """``cuda``, ``rocm``, ``vulkan``, ``metal``, ``sycl`` or ``cpu``."""
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
    drafted: int = 0
    """Tokens guessed ahead for every request (MTP or a draft model)."""

    @property
    def lends(self) -> bool:
        """Whether a GPU is lent what is on the host, for a micro-batch (ggml-cuda, offload_op)."""
        return self.op_offload and self.tokens >= LEAST_LENT

    @property
    def at_once(self) -> int:
        """Requests that run at once; further ones wait for a slot."""
        return min(self.concurrency, self.slots)

    @property
    def is_quantised(self) -> bool:
        """Whether K or V is stored in blocks."""
        return TYPES[self.type_k].is_quantised or TYPES[self.type_v].is_quantised

    @property
    def states(self) -> int:
        """Recurrent states: one a slot, and one for each guess that may be taken back."""
        return self.slots * (1 + self.drafted)

    @property
    def is_cuda(self) -> bool:
        """Whether GPU buffers are padded as CUDA does; HIP is built from the same source."""
        return self.backend in ("cuda", "rocm")


def chosen_cells(deployment: Deployment) -> int | None:
    """Total context that the user asks for (``-c``); None where llama.cpp decides.

    Raises:
        DeploymentError: the version is no build.
    """
    if deployment.n_ctx:
        return deployment.n_ctx
    build = build_of(deployment.runtime_version)
    if deployment.max_model_len is None:
        return None if build.fits_context or deployment.n_ctx == 0 else OLD_DEFAULT_CONTEXT
    slots, unified = _slots(deployment, build, [])
    # Slots that do not share take equal parts, however few of them are used.
    shares = unified and build.shares_context
    return deployment.max_model_len * (min(deployment.concurrency, slots) if shares else slots)


def settle(
    deployment: Deployment, shape: Shape, *, total: int, on_gpu: bool, backend: str
) -> tuple[Settings, tuple[str, ...]]:
    """The settings llama-server runs with, and a sentence for each default used.

    Args:
        deployment: what the user chose.
        shape: the model.
        total: context of all requests together, in tokens (``-c``).
        on_gpu: whether any layer runs on a GPU.
        backend: which build computes there.

    Raises:
        DeploymentError: llama.cpp would refuse; names the setting.
    """
    build = build_of(deployment.runtime_version)
    _refuse_impossible(deployment, build, backend)
    notes: list[str] = []
    slots, unified = _slots(deployment, build, notes)
    _in_range("n_ctx" if deployment.n_ctx else "max_model_len", total, _MAX_CONTEXT)
    batch = min(total, _given(deployment.n_batch, DEFAULT_BATCH, "n_batch", notes))
    micro = _given(deployment.n_ubatch, DEFAULT_MICRO_BATCH, "n_ubatch", notes)
    type_k, type_v = _cache_types(deployment, shape, notes)
    flash = _flash(deployment, shape, build, notes, on_gpu=on_gpu, backend=backend)
    cells, per_stream, streams = _cells(total, slots, build, unified=unified, flash=flash)
    tokens = min(micro, batch, cells)
    outputs = deployment.n_outputs_max
    if outputs is None:
        outputs = slots * (1 + deployment.speculative_tokens) if build.limits_outputs else tokens
    if TYPES[type_v].is_quantised and not flash and shape.mla is None:
        raise DeploymentError(
            tr(
                "llama.cpp stores V as {name} only with flash attention: turn flash_attn on, or "
                "keep V in f16."
            ).format(name=type_v.lower()),
            field="cache_type_v",
        )
    return Settings(
        build=build,
        backend=backend,
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
        context=_per_request(deployment, total, per_stream, slots, build, unified=unified),
        concurrency=deployment.concurrency,
        drafted=deployment.speculative_tokens,
    ), tuple(notes)


def _per_request(
    deployment: Deployment,
    total: int,
    per_stream: int,
    slots: int,
    build: Build,
    *,
    unified: bool,
) -> int:
    if deployment.max_model_len is not None and not deployment.n_ctx:
        return deployment.max_model_len
    if not unified:
        return min(total, per_stream)
    at_once = min(deployment.concurrency, slots)
    return max(total // (at_once if build.shares_context else slots), 1)


def _given(value: int | None, default: int, name: str, notes: list[str]) -> int:
    if value is None:
        notes.append(
            tr("{name} = {default}, llama-server's default.").format(
                name=name, default=grouped(default)
            )
        )
        return default
    _in_range(name, value, _MAX_CONTEXT)
    return value


def _in_range(name: str, value: int, highest: int) -> None:
    if not 1 <= value <= highest:
        raise DeploymentError(
            tr("{name} = {value} is out of range: choose 1 to {highest}.").format(
                name=name, value=grouped(value), highest=grouped(highest)
            ),
            field=name,
        )


def _slots(deployment: Deployment, build: Build, notes: list[str]) -> tuple[int, bool]:
    # Before streams, every slot wrote to the one cache there was.
    unified = deployment.kv_unified if build.has_streams else True
    if deployment.n_parallel is not None:
        _in_range("n_parallel", deployment.n_parallel, MAX_SLOTS)
        return deployment.n_parallel, bool(unified)
    if deployment.concurrency <= build.default_slots:
        if build.default_slots > 1:
            notes.append(
                tr(
                    "{default_slots} slots share one KV cache, llama-server's default without -np."
                ).format(default_slots=build.default_slots)
            )
        else:
            notes.append(tr("1 slot, llama-server's default in {name}.").format(name=build.name))
        return build.default_slots, unified is not False
    _in_range("concurrency", deployment.concurrency, MAX_SLOTS)
    notes.append(
        tr("{concurrency} slots (-np), one for each request.").format(
            concurrency=deployment.concurrency
        )
    )
    return deployment.concurrency, bool(unified)


def _cells(
    total: int, slots: int, build: Build, *, unified: bool, flash: bool
) -> tuple[int, int, int]:
    """(cells of all streams, cells of one stream, streams)."""
    rounding = build.cell_rounding(flash=flash)
    padded = align_up(total, rounding) if build.pads_total else total
    if unified or slots == 1:
        whole = align_up(padded, rounding)
        return whole, whole, 1
    each = padded // slots if build.pads_total else ceil_div(padded, slots)
    per_stream = align_up(max(each, 1), rounding)
    return per_stream * slots, per_stream, slots


def _cache_types(deployment: Deployment, shape: Shape, notes: list[str]) -> tuple[str, str]:
    chosen = deployment.kv_cache_dtype
    asked_k, asked_v = deployment.cache_type_k, deployment.cache_type_v
    type_k = _cache_type(asked_k or chosen, "cache_type_k" if asked_k else "kv_cache_dtype")
    type_v = _cache_type(asked_v or chosen, "cache_type_v" if asked_v else "kv_cache_dtype")
    if asked_k is None and asked_v is None and chosen == "auto":
        notes.append(tr("KV cache in f16, llama.cpp's default."))
    if shape.mla is not None and type_k != type_v:
        raise DeploymentError(
            tr(
                "Keys and values are one latent vector in this model: llama.cpp wants cache_type_k "
                "and cache_type_v to be the same."
            ),
            field="cache_type_v",
        )
    keys = [("cache_type_k", type_k, block.k_width) for block in shape.kinds]
    values = [("cache_type_v", type_v, block.v_width) for block in shape.kinds]
    widest = ("cache_type_v", type_v, shape.widest_value)
    for name, kind, width in (*keys, *values, widest):
        if width % TYPES[kind].elements:
            raise DeploymentError(
                tr(
                    "{name} = {lower} packs {elements} elements in a block, "
                    "which does not divide this model's width of {width}."
                ).format(name=name, lower=kind.lower(), elements=TYPES[kind].elements, width=width),
                field=name,
            )
    return type_k, type_v


def _cache_type(name: str, setting: str) -> str:
    lowered = _CACHE_NAMES.get(name.lower(), name.lower())
    if lowered not in LLAMA_CPP_KV_DTYPES:
        choices = ", ".join(LLAMA_CPP_KV_DTYPES)
        raise DeploymentError(
            tr("llama.cpp has no KV cache type {name!r:.40}: choose one of {choices}.").format(
                name=name, choices=choices
            ),
            field=setting,
        )
    return lowered.upper()


def _flash(
    deployment: Deployment,
    shape: Shape,
    build: Build,
    notes: list[str],
    *,
    on_gpu: bool,
    backend: str,
) -> bool:
    asked = deployment.flash_attn
    if isinstance(asked, bool):
        return asked
    if asked is not None and asked.lower() != "auto":
        switch = _SWITCH.get(asked.lower())
        if switch is None:
            raise DeploymentError(
                tr("flash_attn = {asked!r:.40} is none of on, off and auto.").format(asked=asked),
                field="flash_attn",
            )
        return switch
    if not build.has_auto_flash:
        notes.append(tr("Flash attention off, the default of {name}.").format(name=build.name))
        return False
    has_kernel = not on_gpu or shape.mla is not None or _is_fused(shape.head_dim, backend)
    notes.append(
        tr("Flash attention on, as llama.cpp's auto decides.")
        if has_kernel
        else tr(
            "Flash attention off: {backend} has no kernel for a head width of {head_dim}."
        ).format(backend=backend, head_dim=shape.head_dim)
    )
    return has_kernel


def _is_fused(head_dim: int, backend: str) -> bool:
    widths = _FLASH_HEADS.get(backend)
    return head_dim in widths if widths is not None else head_dim % _FLASH_STEP == 0


_CUDA_HEADS = frozenset({0, 40, 64, 72, 80, 96, 112, 128, 192, 256, 320, 512, 576})
_METAL_HEADS = frozenset({0, 32, 40, 48, 64, 72, 80, 96, 112, 128, 192, 256, 320, 512, 576})
_FLASH_HEADS = {"cuda": _CUDA_HEADS, "rocm": _CUDA_HEADS, "metal": _METAL_HEADS}
"""Head widths with a kernel."""
_FLASH_STEP = 8
"""Vulkan and SYCL take any width that is a multiple of it (``ggml-vulkan.cpp``, supports_op)."""


def _refuse_impossible(deployment: Deployment, build: Build, backend: str) -> None:
    if deployment.concurrency < 1:
        raise DeploymentError(tr("concurrency is at least 1."), field="concurrency")
    if deployment.max_model_len is not None:
        _in_range("max_model_len", deployment.max_model_len, _MAX_CONTEXT)
    if deployment.n_ctx is not None and deployment.n_ctx < 0:
        raise DeploymentError(tr("n_ctx is 0 (the model's own) or more."), field="n_ctx")
    if deployment.n_cpu_moe < 0:
        raise DeploymentError(tr("n_cpu_moe is 0 or more layers."), field="n_cpu_moe")
    if deployment.n_outputs_max is not None and deployment.n_outputs_max < 0:
        raise DeploymentError(tr("n_outputs_max is 0 (n_batch) or more."), field="n_outputs_max")
    _refuse_split(deployment.split_mode, build, backend)


def _refuse_split(mode: str | None, build: Build, backend: str) -> None:
    if mode in (None, "none", "layer"):
        return
    if mode == "row":
        if build.splits_rows or backend == "sycl":
            return
        message = tr(
            "split_mode row is gone from {backend} in {name}, which says "
            "that the device does not support split buffers: choose layer, "
            "tensor or none."
        ).format(backend=backend, name=build.name)
    elif mode == "tensor":
        if build.splits_tensors:
            return
        message = tr("{name} has no split_mode tensor: it came with b8738.").format(name=build.name)
    else:
        message = tr("split_mode = {mode!r:.40} is none of none, layer, row and tensor.").format(
            mode=mode
        )
    raise DeploymentError(message, field="split_mode")
