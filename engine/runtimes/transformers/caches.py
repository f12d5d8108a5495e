"""Which cache a generation keeps: plain, quantised or moved to RAM, and where its bytes lie.

Source:
    transformers 5.24.0 ``cache_utils.py``; sizes of quantised layers were measured with
    optimum-quanto 0.2.7 and HQQ 0.2.8 (CPU, BF16).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.errors import DeploymentError
from engine.runtimes.transformers.cache import (
    GROWING,
    Form,
    attention_bytes,
    kept_tokens,
    kinds,
)
from engine.units import ceil_div
from engine.words import figures, grouped, tr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.spec import ArchitectureSpec, AttentionSpec, LayerSpec
    from engine.runtimes.transformers.settings import Settings

CACHES = ("dynamic", "static", "quantized", "offloaded", "offloaded_static")
GROUP = 64
"""Values that share a scale and a zero point."""
_RESIDUAL = 128
"""A quantised layer packs its newest tokens when there are so many; until then they are plain."""
_QUANTO_BITS = (2, 4)
_HQQ_BITS = (1, 2, 3, 4, 8)
_DEFAULT_BITS = 4
RENEWED = frozenset({"qwen"})
"""Types whose own code passes keys and values as tuples in every release (``modeling_qwen.py`` of
Qwen 1)."""
_FP8_SCALES = 8
"""Two scales of 32 bits a layer."""
ON_DEVICE = 2
"""Layers of a cache in RAM that lie on the device: the one that computes and the next."""


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache as it was chosen."""

    form: Form = GROWING
    bits: int = 0
    """Of a quantised cache; 0 where keys and values stay as they are computed."""
    is_fp8: bool = False
    is_offloaded: bool = False
    is_renewed: bool = False
    """Whether a step makes every layer's keys and values anew before it lets go of the old."""

    @property
    def is_quantised(self) -> bool:
        """Whether layers keep packed values."""
        return bool(self.bits)

    @property
    def group_bytes(self) -> int:
        """Bytes of ``GROUP`` packed values with what scales them; HQQ packs 3 bits by tens."""
        if self.is_fp8:
            return GROUP
        packed = ceil_div(GROUP, 10) * 4 if self.bits == 3 else GROUP * self.bits // 8
        return packed + 4

    @property
    def label(self) -> str:
        """What a note calls it."""
        if self.is_fp8:
            return "FP8"
        return tr("{bits} bits").format(bits=self.bits) if self.bits else ""


def check_quantised(spec: ArchitectureSpec) -> None:
    """Refuse a quantised cache where a layer keeps anything but full attention.

    Raises:
        DeploymentError: naming ``cache_implementation``.
    """
    plain = {AttentionKind.FULL, AttentionKind.LATENT}
    for layer in spec.layers:
        attention = layer.attention
        kept = attention is None or (attention.kind in plain and not attention.index_head_dim)
        if not kept or layer.state is not None or layer.cross is not None:
            message = tr(
                "Transformers quantises the cache only of models whose "
                "layers all keep full attention; this one has others."
            )
            raise DeploymentError(message, field="cache_implementation")


def bits_of(kv_bits: float | None) -> tuple[int, str]:
    """Bits of a quantised cache, and the library that packs them: quanto, or HQQ.

    Raises:
        DeploymentError: neither has so many bits.
    """
    bits = _DEFAULT_BITS if kv_bits is None else kv_bits
    if bits not in _HQQ_BITS:
        message = tr("kv_bits is {bits}; quanto takes 2 or 4, HQQ 1, 2, 3, 4 or 8.").format(
            bits=figures(format(bits, "g"))
        )
        raise DeploymentError(message, field="kv_bits")
    return int(bits), "quanto" if bits in _QUANTO_BITS else "HQQ"


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes of a cache at the end of a generation, whole batch."""

    device_bytes: int
    host_bytes: int
    formula: str


def held(layers: Sequence[LayerSpec], settings: Settings, tp: int) -> Held:
    """The cache of ``layers``, on their device and in RAM."""
    cache = settings.cache
    if not cache.is_offloaded:
        found = _kinds(layers, settings, tp)
        size = sum(each * count for (_, each), count in found.items()) * settings.batch
        return Held(size, 0, _formula(found, settings.batch, size))
    stays, moves = 0, list[int]()
    for layer, count in kinds(layers):
        for attention in _attentions(layer):
            size = _attention_bytes(attention, settings, tp) * settings.batch
            # A static cache in RAM leaves its windows on the device: they are small.
            if cache.form.static and attention.window and attention.kind is not AttentionKind.CROSS:
                stays += size * count
            else:
                moves += [size] * count
    moves.sort(reverse=True)
    here = moves[:ON_DEVICE]
    text = tr("{here} of {moves} layers on the device: {sum} B").format(
        here=len(here), moves=len(moves), sum=grouped(sum(here))
    )
    if stays:
        text += tr(" + {stays} B of windows").format(stays=grouped(stays))
    return Held(sum(here) + stays, sum(moves), text)


def unpacked_bytes(attention: AttentionSpec, settings: Settings, tp: int) -> int:
    """Keys and values of one cache of a layer as they are computed with, whole batch."""
    size = attention_bytes(
        attention, settings.context, settings.kv_dtype, tp=tp, form=settings.cache.form
    )
    return size // attention.caches * settings.batch


def _attentions(layer: LayerSpec) -> list[AttentionSpec]:
    return [a for a in (layer.attention, layer.cross) if a is not None and a.keeps_cache]


def _attention_bytes(attention: AttentionSpec, settings: Settings, tp: int) -> int:
    """What one layer keeps of one sequence."""
    cache, dtype = settings.cache, settings.kv_dtype
    whole = attention_bytes(attention, settings.context, dtype, tp=tp, form=cache.form)
    if not cache.is_quantised:
        return whole
    newest = 0
    if not cache.is_fp8:
        tokens = kept_tokens(attention, settings.context, cache.form)
        made = max(settings.context - settings.prompt, 0) % _RESIDUAL
        newest = whole * min(made, tokens) // max(tokens, 1)
    values = (whole - newest) // settings.element_bytes
    scales = _FP8_SCALES if cache.is_fp8 else 0
    return ceil_div(values * cache.group_bytes, GROUP) + scales + newest


def _kinds(layers: Sequence[LayerSpec], settings: Settings, tp: int) -> Counter[tuple[int, int]]:
    """(tokens kept, bytes of them) of every cache, counted."""
    found: Counter[tuple[int, int]] = Counter()
    for layer, count in kinds(layers):
        for attention in _attentions(layer):
            tokens = kept_tokens(attention, settings.context, settings.cache.form)
            size = _attention_bytes(attention, settings, tp)
            found[tokens * attention.caches, size] += count
    return found


def _formula(found: Counter[tuple[int, int]], batch: int, size: int) -> str:
    """The sum as a calculation, one term per kind of layer."""
    many = tr("1 sequence") if batch == 1 else tr("{batch} sequences").format(batch=grouped(batch))
    parts = [
        tr("{count} layers × {kept} × {many}").format(
            count=count, kept=_kept(tokens, each), many=many
        )
        for (tokens, each), count in found.items()
    ]
    return " + ".join(parts) + f" = {grouped(size)} B" if parts else ""


def _kept(tokens: int, size_bytes: int) -> str:
    if tokens and size_bytes % tokens == 0:
        return tr("{tokens} tokens × {size_bytes} B").format(
            tokens=grouped(tokens), size_bytes=grouped(size_bytes // tokens)
        )
    return f"{grouped(size_bytes)} B"
