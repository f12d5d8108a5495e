"""What Transformers holds at some moments beside its regions: loading, decoding, once compiled.

Source:
    Transformers 5.24 ``modeling_utils.py :: caching_allocator_warmup``, ``core_model_loading.py``,
    ``integrations/bitsandbytes.py``, ``integrations/mxfp4.py``, ``generation/utils.py ::
    _valid_auto_compile_criteria``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import ModuleClass
from engine.budget.model import Moments
from engine.budget.sequence_state import CACHED, layer_kinds
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate
from engine.formats.dtypes import canonical, element_bytes
from engine.formats.weights import FORMATS
from engine.runtimes.loading import stored_format
from engine.runtimes.transformers import peaks, releases
from engine.units import MIB
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec, LayerSpec
    from engine.devices.device import Device
    from engine.runtimes.transformers.settings import Settings

_GRAPHS = tr_later("CUDA graphs of the compiled step")
_IN_FLIGHT = 4
"""Tensors that its threads read at a time."""


def moments(
    model: Model,
    device: Device,
    layers: Sequence[LayerSpec],
    settings: Settings,
    adapter_bytes: int,
    tp: int,
) -> Moments:
    """What one device holds beside its regions at some moments.

    Args:
        model: the model.
        device: the device.
        layers: those that compute on it.
        settings: the plan.
        adapter_bytes: of the adapters there, as they are kept.
        tp: ranks that share every layer.
    """
    if not layers:
        return Moments()
    return Moments(
        load=loading(model, settings, adapter_bytes, tp),
        decode=peaks.decoding(layers, settings, tp),
        sustained=_compiled(device, settings),
    )


def _compiled(device: Device, settings: Settings) -> tuple[Estimate, ...]:
    """What a step that was compiled keeps: ``generate`` compiles it by itself for static caches."""
    on_gpu = device.vendor in (Vendor.NVIDIA, Vendor.AMD)
    compiles = settings.cache.form.static and not settings.cache.is_offloaded
    if not on_gpu or not compiles or settings.version < releases.AUTO_COMPILE:
        return ()
    source = tr("torch.compile in mode reduce-overhead; a captured size of vLLM keeps 2 to 83 MiB")
    graphs = Estimate(0, 32 * MIB, 512 * MIB, Basis.ASSUMED, source, "32 MiB", tr(_GRAPHS))
    return (graphs,)


def loading(model: Model, settings: Settings, adapter_bytes: int, tp: int) -> tuple[Estimate, ...]:
    """Beside the weights at the worst moment of loading, each part with its name.

    The allocator is warmed up with the weights' own size in one piece, which they then fill: that
    is no more than the weights.
    """
    largest, matrix, experts, head = _largest(model.spec, tp)
    stored, held = stored_format(model), settings.held
    packed = FORMATS.get(settings.deployment.weight_format)
    turned = packed is not None and packed.is_plain and packed.name != stored
    parts = [
        _part(0, 32 * MIB, 64 * MIB, tr("segments not yet full")),
        _part(0, matrix if turned else 0, _IN_FLIGHT * matrix, tr("tensors on their way")),
    ]
    if held.unpacked_from:
        parts.append(
            _part(0, experts or largest, 2 * (experts or largest), tr("a layer being unpacked"))
        )
    elif packed is not None and not packed.is_plain and packed.name != stored:
        text = tr("full-precision modules being quantised")
        parts.append(_part(0, matrix, 2 * matrix, text))
    elif experts and stored in _PLAIN and settings.version >= releases.JOINED_EXPERTS:
        parts.append(
            _part(0, experts, 2 * experts, tr("one layer's experts before they are joined"))
        )
    elif packed is not None and packed.is_plain and packed.dtype != canonical(model.spec.dtype):
        # The head comes last, when no room is left in the block that the allocator began with.
        parts.append(_part(0, 0, head, tr("the head being turned to another dtype")))
    if adapter_bytes:
        # Made in the base's 16 bits, then turned to 32: what is let go of is partly taken again.
        parts.append(_part(0, adapter_bytes // 4, adapter_bytes // 2, tr("adapters in 16 bits")))
    return tuple(parts)


_PLAIN = frozenset({"bf16", "fp16", "fp32"})


def _part(low: int, likely: int, high: int, label: str) -> Estimate:
    source = "Transformers 5.24 core_model_loading.py"
    return Estimate(low, likely, high, Basis.ASSUMED, source, f"{grouped(likely)} B", label)


class _Largest(NamedTuple):
    """Bytes of the largest of each kind, unpacked; experts of a layer together."""

    tensor: int
    matrix: int
    """Of those in a layer."""
    experts: int
    head: int
    """0 where the head is the embedding table."""


@lru_cache(maxsize=CACHED)
def _largest(spec: ArchitectureSpec, tp: int) -> _Largest:
    """The largest tensors of one rank; experts count one by one as tensors."""
    width = element_bytes(canonical(spec.dtype) or "bfloat16")
    kinds = [layer for layer, _ in layer_kinds(spec)]
    matrix = max((t.elements // t.copies for layer in kinds for t in layer.tensors), default=0)
    single = max((t.elements // t.copies for t in spec.outer), default=0)
    heads = (t.elements for t in spec.outer if t.module is ModuleClass.LM_HEAD)
    experts = (
        sum(t.elements for t in layer.tensors if t.module is ModuleClass.EXPERTS) for layer in kinds
    )
    found = (max(single, matrix), matrix, max(experts, default=0), max(heads, default=0))
    return _Largest(*(elements * width // tp for elements in found))
