"""What PyTorch itself takes beside weights and cache: workspaces, rounding, slack."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.sequence_state import CACHED, layer_kinds
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, exactly
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.weights import FORMATS, is_quantised
from engine.runtimes.transformers import releases
from engine.units import MIB, align_up
from engine.words import grouped, tr

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec
    from engine.devices.device import Device
    from engine.runtimes.transformers.settings import Settings

_HOPPER = 9.0
_LARGE_BYTES = 10 * MIB
"""From here on a request gets a segment of its own, in steps of ``_STEP_BYTES``."""
_STEP_BYTES = 2 * MIB
_SEGMENT_BYTES = 20 * MIB
"""Smaller requests, from 1 MiB on, share segments of this size."""
_UNSPLIT_BYTES = MIB
"""So much or less left of a block is not split off, and counts as allocated."""
_ROUNDED_UP = ("fp8", "int8", "gptq")


def workspaces(device: Device) -> Estimate:
    """Workspaces of cuBLAS: what generations hold beside weights and cache."""
    if device.vendor not in (Vendor.NVIDIA, Vendor.AMD):
        return exactly(0, Basis.EXACT, tr("no cuBLAS here"))
    if device.compute_capability and device.compute_capability < _HOPPER:
        return Estimate(
            8 * MIB,
            9 * MIB,
            24 * MIB,
            Basis.ASSUMED,
            tr("PyTorch's cuBLAS workspace before Hopper: 8,519,680 B, 1 MiB of cuBLASLt"),
            "9 MiB",
            tr("BLAS workspaces"),
        )
    return Estimate(
        12 * MIB,
        36 * MIB,
        48 * MIB,
        Basis.FITTED,
        tr("25 of 28 generations of Qwen3 on H20 held 33 to 48 MiB more, one 12 MiB"),
        "36 MiB",
        tr("BLAS workspaces"),
    )


def slack(cache: int, moving: Estimate) -> Estimate:
    """What the caching allocator holds without using it: every step asks for other sizes."""
    likely = (cache + moving.likely_bytes) // 10
    return Estimate(
        0,
        likely,
        max((cache + moving.high_bytes) // 4, likely),
        Basis.ASSUMED,
        tr("a tenth of what changes size; up to a quarter without expandable segments"),
        tr("({cache} + {likely_bytes}) / 10 = {likely} B").format(
            cache=grouped(cache), likely_bytes=grouped(moving.likely_bytes), likely=grouped(likely)
        ),
    )


def rounding(spec: ArchitectureSpec, weight_format: str, settings: Settings) -> Estimate | None:
    """What weights are rounded up by before 5.0; None where nothing is.

    Tensors that fill one large block leave no gaps. Before 5.0 that block was half as large as
    quantised weights: the other half came from segments of the allocator, whose rests of up to
    1 MiB count as allocated. Before 4.50 all weights came from segments.

    Source:
        PyTorch 2.6 ``CUDACachingAllocator.cpp :: should_split``; Transformers 4.51.3
        ``caching_allocator_warmup`` (factor 4). Qwen3-30B-A3B-FP8 on H20: 339 MiB. Qwen 1 of
        1.8B, 7B and 14B: within 20 MiB, where all weights come from segments.
    """
    if settings.version >= releases.WHOLE_WARM_UP:
        return None
    warms_up = settings.version >= releases.WARM_UP
    if warms_up and not weight_format.startswith(_ROUNDED_UP):
        return None
    rest = _rest_bytes(spec, weight_format)
    if not rest:
        return None
    if not warms_up:
        return Estimate(
            rest // 2,
            rest,
            rest,
            Basis.FITTED,
            tr("rests of the allocator's blocks"),
            f"{grouped(rest)} B",
            tr("rounding"),
        )
    return Estimate(
        0,
        rest // 2,
        rest,
        Basis.FITTED,
        tr("rests of the allocator's blocks, of about half of the tensors"),
        f"{grouped(rest)} B / 2",
        tr("rounding"),
    )


def second_head(spec: ArchitectureSpec, weight_format: str, settings: Settings) -> Estimate | None:
    """The tied table that an FP8 checkpoint held twice before 5.0; None where there is one."""
    is_fp8 = weight_format.startswith("fp8")
    if settings.version >= releases.WHOLE_WARM_UP or not is_fp8 or not spec.tie_word_embeddings:
        return None
    size = spec.vocab_size * spec.hidden_size * settings.element_bytes
    text = tr("{vocab_size} × {hidden_size} × {element_bytes} B").format(
        vocab_size=grouped(spec.vocab_size),
        hidden_size=grouped(spec.hidden_size),
        element_bytes=settings.element_bytes,
    )
    source = tr("twelve generations of Qwen3-0.6B, 1.7B and 4B in FP8 held the tied table twice")
    return Estimate(0, size, size, Basis.FITTED, source, text, tr("head"))


@lru_cache(maxsize=CACHED)
def _rest_bytes(spec: ArchitectureSpec, weight_format: str) -> int:
    """Rests of the matrices; scales are tensors of their own, too small to matter."""
    chosen = FORMATS[weight_format]
    plain_bits = 8 * element_bytes(chosen.dtype or canonical(spec.dtype) or "bfloat16")
    rest = 0
    for layer, count in layer_kinds(spec):
        for tensor in layer.tensors:
            if tensor.linear:
                packed = is_quantised(tensor, weight_format)
                bits = chosen.value_bits if packed else plain_bits
                each = tensor.elements // tensor.copies * bits // 8
                rest += _unsplit(each) * tensor.copies * count
    return rest


def _unsplit(size: int) -> int:
    if size <= _UNSPLIT_BYTES:
        return 0
    if size >= _LARGE_BYTES:
        left = align_up(size, _STEP_BYTES) - size
        return left if left <= _UNSPLIT_BYTES else 0
    fit = _SEGMENT_BYTES // size
    left = _SEGMENT_BYTES - fit * size
    return left // fit if left <= _UNSPLIT_BYTES else 0
