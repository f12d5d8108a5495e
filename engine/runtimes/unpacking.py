"""Which weight formats Transformers keeps packed on a device, and which it unpacks to BF16.

Source:
    Transformers 5.24 ``quantizers/quantizer_finegrained_fp8.py``, ``quantizer_mxfp4.py``,
    ``quantizer_nvfp4.py``, ``quantizer_compressed_tensors.py`` (``validate_environment``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.budget.weights import AS_STORED
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.formats.weights import FORMATS
from engine.runtimes.loading import stored_format
from engine.words import figures, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.budget.model import Budget
    from engine.devices.device import Device

UNPACKED = "bf16"
_FP8_CAPABILITY = 8.9
_MXFP4_CAPABILITY = 7.5
_NVFP4_CAPABILITY = 10.0
_BITSANDBYTES = frozenset({"nf4", "nf4-plain", "int8"})
_GPTQMODEL = ("awq", "gptq")


class Held(NamedTuple):
    """What becomes of a format on a device."""

    weight_format: str
    """As given; ``bf16`` where it is unpacked on loading."""
    unpacked_from: str = ""
    """The stored format, where it is unpacked."""
    is_certain: bool = True
    """False where it may be kept, or may not load: the figure is an assumption then."""
    assumption: str = ""
    warning: str = ""


def held(model: Model, weight_format: str, device: Device) -> Held:
    """How ``device`` holds ``model`` in ``weight_format``.

    Raises:
        DeploymentError: Transformers can't make that format on this device.
    """
    stored = stored_format(model)
    name = stored if weight_format == AS_STORED else weight_format
    is_stored = name == stored
    if name.startswith("fp8"):
        return _fp8(name, weight_format, device, is_stored=is_stored)
    if name == "mxfp4":
        return _mxfp4(name, weight_format, device, is_stored=is_stored)
    if name.startswith("nvfp4"):
        return _nvfp4(weight_format, device, is_stored=is_stored)
    return _by_library(name, weight_format, device)


def in_words(budget: Budget) -> str:
    """``, unpacked to BF16`` where Transformers doesn't keep the stored format; else empty."""
    deployment = budget.deployment
    if deployment.runtime != "transformers":
        return ""
    found = held(budget.model, deployment.weight_format, budget.machine.slots[0].device)
    return tr(", unpacked to {label}").format(label=_label(UNPACKED)) if found.unpacked_from else ""


def _fp8(name: str, weight_format: str, device: Device, *, is_stored: bool) -> Held:
    if device.vendor in (Vendor.AMD, Vendor.INTEL):
        doubt = tr("FP8 on {name} is not on record for Transformers: counted as stored.").format(
            name=device.name
        )
        return Held(weight_format, is_certain=False, warning=doubt)
    if _is_cuda(device):
        if not device.compute_capability:
            return Held(
                weight_format,
                assumption=tr("{name} is assumed to compute in FP8.").format(name=device.name),
            )
        if device.compute_capability >= _FP8_CAPABILITY:
            return Held(weight_format)
        why = tr("below compute capability 8.9 ({name} has {compute_capability})").format(
            name=device.name, compute_capability=figures(format(device.compute_capability, ".1f"))
        )
    elif not is_stored:
        message = tr(
            "Transformers makes FP8 weights only on a GPU; {name} is none it takes."
        ).format(name=device.name)
        raise DeploymentError(message, field="weight_format")
    else:
        why = tr("without a CUDA or Intel GPU ({name})").format(name=device.name)
    said = tr("Weights in {label} are unpacked to BF16 {why}.").format(label=_label(name), why=why)
    if name.startswith("fp8-block") and not name.endswith("-ct"):
        return Held(UNPACKED, name, warning=said)
    said = tr("{said} A compressed-tensors checkpoint may stay packed.").format(said=said)
    return Held(UNPACKED, name, is_certain=False, warning=said)


def _mxfp4(name: str, weight_format: str, device: Device, *, is_stored: bool) -> Held:
    capability = device.compute_capability
    can_keep = device.vendor is Vendor.INTEL and device.kind is not DeviceKind.HOST
    can_keep |= _is_cuda(device) and (not capability or capability >= _MXFP4_CAPABILITY)
    if can_keep:
        needs = tr(
            "The packages kernels and triton are installed; without them Transformers unpacks "
        )
        return Held(
            weight_format, assumption=tr("{needs}MXFP4 weights to BF16.").format(needs=needs)
        )
    if not is_stored:
        message = tr(
            "Transformers makes MXFP4 weights on CUDA GPUs from 7.5; not on {name}."
        ).format(name=device.name)
        raise DeploymentError(message, field="weight_format")
    said = tr("MXFP4 weights are unpacked to BF16 on {name}").format(name=device.name)
    if device.kind is DeviceKind.HOST or device.vendor is Vendor.AMD:
        said = tr("{said}, unless triton 3.5 and kernels for it are installed.").format(said=said)
        return Held(UNPACKED, name, is_certain=False, warning=said)
    return Held(
        UNPACKED, name, warning=tr("{said}: that takes a CUDA GPU from 7.5 on.").format(said=said)
    )


def _nvfp4(weight_format: str, device: Device, *, is_stored: bool) -> Held:
    if is_stored:
        said = tr("Transformers 5.24 loads NVFP4 only from compressed-tensors checkpoints.")
        return Held(weight_format, is_certain=False, warning=said)
    if not _is_cuda(device) or 0 < device.compute_capability < _NVFP4_CAPABILITY:
        message = tr(
            "Transformers makes NVFP4 weights on Blackwell GPUs only, not on {name}."
        ).format(name=device.name)
        raise DeploymentError(message, field="weight_format")
    return Held(
        weight_format, assumption=tr("The package kernels is installed, which NVFP4 needs.")
    )


def _by_library(name: str, weight_format: str, device: Device) -> Held:
    if _is_cuda(device):
        return Held(weight_format)
    library = ""
    if name in _BITSANDBYTES:
        library = "bitsandbytes"
    elif name.startswith(_GPTQMODEL):
        library = "gptqmodel"
    if not library:
        return Held(weight_format)
    where = tr("the CPU") if device.kind is DeviceKind.HOST else device.name
    said = tr(
        "Weights in {label} are loaded by {library}, which no record shows "
        "on {where}: it may refuse."
    ).format(label=_label(name), library=library, where=where)
    return Held(weight_format, is_certain=False, warning=said)


def _label(name: str) -> str:
    known = FORMATS.get(name)
    return known.label if known else name


def _is_cuda(device: Device) -> bool:
    return device.vendor is Vendor.NVIDIA
