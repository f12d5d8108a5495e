"""Model, KV, recurrent-state and output buffers: exact, by llama.cpp's own rules.

Checked to the byte on 2,842 measured runs (``tests/truth``).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.formats.gguf import TYPES, row_bytes
from engine.runtimes.llama_cpp.placement import HOST
from engine.runtimes.llama_cpp.shape import CacheKind
from engine.runtimes.llama_cpp.weights import CUDA_ALIGNMENT, CUDA_ROW_ELEMENTS
from engine.units import align_up, ceil_div
from engine.words import grouped, tr

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.runtimes.llama_cpp.placement import Placement
    from engine.runtimes.llama_cpp.settings import Settings
    from engine.runtimes.llama_cpp.shape import Block, Shape

_F32_BYTES = 4
_TWICE_TIED = frozenset({"gemma3n", "gemma4"})
"""The output tensor is created first there, so that a tied embedding is held twice."""


def model_buffers(shape: Shape, placement: Placement, *, cuda: bool, mmap: bool) -> dict[int, int]:
    """Weight bytes by device index (``HOST`` for the CPU).

    Args:
        shape: the model.
        placement: device of every layer.
        cuda: whether GPU buffers are padded as CUDA and HIP do.
        mmap: whether host weights are the mapped file.
    """
    held = dict.fromkeys((HOST, *range(placement.devices)), 0)
    weights = shape.weights
    held[HOST] += weights.embeddings.host
    on_gpu = placement.output != HOST
    held[placement.output] += weights.output.on(cuda=cuda and on_gpu)
    if weights.is_tied and on_gpu and not shape.is_encoder:
        held[placement.output] += weights.token_embedding.on(cuda=cuda)
    elif shape.architecture in _TWICE_TIED and not mmap:
        held[HOST] += weights.token_embedding.host
    for device in set(placement.blocks):
        held[device] += weights.rope_factors.on(cuda=cuda and device != HOST)
    for device, first, last in placement.runs():
        on_cuda = cuda and device != HOST
        held[device] += weights.blocks.between(first, last, cuda=on_cuda, experts=False)
        kept = max(first, min(last, placement.cpu_experts))
        held[HOST] += weights.blocks.between(first, kept, cuda=False, experts=True)
        held[device] += weights.blocks.between(kept, last, cuda=on_cuda, experts=True)
    return held


def cells(shape: Shape, settings: Settings, kind: CacheKind) -> int:
    """Cells of one stream in one cache (``llama-kv-cache-iswa.cpp``)."""
    build = settings.build
    if kind is CacheKind.FULL or settings.swa_full or not build.keeps_windows:
        return settings.n_ctx_seq
    shared = settings.is_unified and not shape.keeps_entries
    windows = shape.window * (settings.slots if shared else 1)
    # The micro-batch counts as asked for, even where the context is shorter.
    wanted = windows + (settings.n_batch if build.windows_hold_batch else settings.tokens)
    return align_up(
        min(settings.n_ctx_seq, wanted), max(build.cell_rounding(flash=settings.flash), 1)
    )


class KvLayer(NamedTuple):
    """KV cache of one layer: ``cells × cell_bytes + padding_bytes``."""

    cells: int
    cell_bytes: int
    padding_bytes: int
    entries_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """All of it."""
        return self.cells * self.cell_bytes + self.padding_bytes + self.entries_bytes

    @property
    def formula(self) -> str:
        """The same as a calculation."""
        parts = [
            tr("{cells} cells × {cell_bytes} B").format(
                cells=grouped(self.cells), cell_bytes=grouped(self.cell_bytes)
            )
        ]
        if self.entries_bytes:
            parts.append(
                tr("{entries_bytes} B of entries").format(entries_bytes=grouped(self.entries_bytes))
            )
        if self.padding_bytes:
            parts.append(f"{grouped(self.padding_bytes)} B")
        return f"({' + '.join(parts)})" if len(parts) > 1 else parts[0]


def kv_layer(shape: Shape, settings: Settings, block: Block, *, cuda: bool) -> KvLayer:
    """What one layer keeps."""
    if block.cache is CacheKind.NONE:
        return KvLayer(0, 0, 0)
    # Without flash attention V is stored transposed, padded to the widest layer.
    v_width = block.v_width if settings.flash or not block.v_width else shape.widest_value
    streams = settings.slots if shape.keeps_entries else settings.streams
    rows = cells(shape, settings, block.cache) * streams
    each = row_bytes(settings.type_k, block.k_width) + row_bytes(settings.type_v, v_width)
    padding = 0
    if cuda:
        padding += _row_padding(settings.type_k, block.k_width)
        padding += _row_padding(settings.type_v, block.v_width)
    entries = sum(
        ceil_div(settings.n_ctx_seq, tokens) * streams * row_bytes(settings.type_k, width)
        for tokens, width in block.entries
    )
    return KvLayer(rows, each, padding, entries)


def _row_padding(ggml_type: str, width: int) -> int:
    rest = width % CUDA_ROW_ELEMENTS
    if not width or not rest or not TYPES[ggml_type].is_quantised:
        return 0
    return align_up(row_bytes(ggml_type, CUDA_ROW_ELEMENTS - rest), CUDA_ALIGNMENT)


@lru_cache(maxsize=1024)
def groups(
    shape: Shape, placement: Placement, *, offload_kqv: bool
) -> tuple[tuple[int, Block, int], ...]:
    """(device of the cache, kind of block, number of such blocks)."""
    devices = placement.blocks if offload_kqv else (HOST,) * shape.num_layers
    counted = Counter(zip(devices, shape.block_kinds, strict=True))
    return tuple((device, shape.kinds[kind], n) for (device, kind), n in counted.items())


def kv_buffers(
    shape: Shape, settings: Settings, placement: Placement, *, cuda: bool
) -> dict[int, int]:
    """KV cache bytes by device index: each layer's cache is where the layer is."""
    held = dict.fromkeys((HOST, *range(placement.devices)), 0)
    for device, block, count in groups(shape, placement, offload_kqv=settings.offload_kqv):
        layer = kv_layer(shape, settings, block, cuda=cuda and device != HOST)
        held[device] += layer.size_bytes * count
    return held


def kv_formula(
    shape: Shape, settings: Settings, placement: Placement, devices: Collection[int], *, cuda: bool
) -> str:
    """The KV cache on ``devices`` as a calculation, one term per kind of layer."""
    kinds: Counter[KvLayer] = Counter()
    for device, block, count in groups(shape, placement, offload_kqv=settings.offload_kqv):
        if device in devices and block.cache is not CacheKind.NONE:
            kinds[kv_layer(shape, settings, block, cuda=cuda and device != HOST)] += count
    if not kinds:
        return ""
    parts = [
        tr("{count} layers × {formula}").format(count=count, formula=layer.formula)
        for layer, count in kinds.items()
    ]
    whole = sum(layer.size_bytes * count for layer, count in kinds.items())
    types = f"K {settings.type_k.lower()}, V {settings.type_v.lower()}"
    return tr("{names} = {whole} B ({types})").format(
        names=" + ".join(parts), whole=grouped(whole), types=types
    )


def state_buffers(shape: Shape, settings: Settings, placement: Placement) -> dict[int, int]:
    """Recurrent state bytes by device index: f32, one per slot, and one per guess taken back."""
    held = dict.fromkeys((HOST, *range(placement.devices)), 0)
    for device, block, count in groups(shape, placement, offload_kqv=settings.offload_kqv):
        elements = block.conv_state + block.recurrent_state
        held[device] += _F32_BYTES * elements * settings.states * count
    return held


def output_bytes(shape: Shape, settings: Settings) -> int:
    """Logits on the host, one row per slot; grows when a batch asks for more rows."""
    return _F32_BYTES * shape.n_vocab * settings.slots
