"""What vLLM's kernels need of a device, and what its figures were fitted on.

Source:
    vLLM 0.32 ``features/quantization`` (FP8 from 7.5 as weight-only Marlin, 8.9 in hardware;
    AWQ from 7.5) and the refusal "The quantization method fp8 is not supported for the current
    GPU" of its issues 1488, 4202 and 4327.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.weights import AS_STORED
from engine.devices.device import DeviceKind, Vendor
from engine.errors import DeploymentError
from engine.runtimes.loading import stored_format
from engine.words import figures, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.deployment.spec import Deployment
    from engine.devices.device import Device

_FROM_TURING = ("fp8", "awq")
"""Formats that vLLM refuses below compute capability 7.5."""
_LOW_BITS = ("mxfp4", "nvfp4", "mxfp8")
_NOT_ON_AMD = ("awq", "gptq", "int8", "nf4")
_ON_HOST = tr_later(
    "There is no GPU: vLLM's CPU backend has rules of its own, so this is "
    "its GPU arithmetic on the machine's RAM."
)
_ON_APPLE = tr_later(
    "vLLM has no backend for Apple's GPU; this is its arithmetic for CUDA, "
    "on the memory that Metal would give."
)


def check_format(model: Model, deployment: Deployment, device: Device) -> None:
    """Refuse a weight format that vLLM refuses on ``device``.

    Raises:
        DeploymentError: naming ``weight_format``.
    """
    name = _format(model, deployment)
    capability = device.compute_capability
    if device.vendor is Vendor.NVIDIA and 0 < capability < 7.5 and name.startswith(_FROM_TURING):
        message = tr(
            "vLLM refuses {name} weights on {name_2}: the method isn't "
            "supported for this GPU; minimum capability 7.5, its own "
            "{capability}."
        ).format(name=name, name_2=device.name, capability=figures(format(capability, ".1f")))
        raise DeploymentError(message, field="weight_format")


def is_fitted(device: Device) -> bool:
    """Whether vLLM's figures were fitted on devices of its kind: NVIDIA's."""
    return device.vendor is Vendor.NVIDIA


def device_warnings(model: Model, deployment: Deployment, device: Device, dtype: str) -> list[str]:
    """What is not known, or not proven, of vLLM on ``device``."""
    if device.kind is DeviceKind.HOST:
        return [tr(_ON_HOST)]
    if device.vendor is Vendor.APPLE:
        return [tr(_ON_APPLE)]
    name = _format(model, deployment)
    if not is_fitted(device):
        found = [
            tr("vLLM's fitted figures come from NVIDIA GPUs; on {name} they are assumed.").format(
                name=device.name
            )
        ]
        if device.vendor is Vendor.AMD and name.startswith(_NOT_ON_AMD):
            found.append(
                tr("vLLM's own table lists no {name} kernels for AMD: it may refuse.").format(
                    name=name
                )
            )
        return found
    return _cuda_warnings(name, device, dtype)


def _cuda_warnings(name: str, device: Device, dtype: str) -> list[str]:
    capability = device.compute_capability
    found: list[str] = []
    if 0 < capability < 8 and dtype == "bfloat16":
        found.append(
            tr("{name} has no BF16: start vLLM with --dtype half; the sizes are the same.").format(
                name=device.name
            )
        )
    if 0 < capability < 8 and name.startswith(_LOW_BITS):
        found.append(
            tr("No record shows vLLM loading {name} weights on {name_2}.").format(
                name=name, name_2=device.name
            )
        )
    elif 0 < capability < 8.9 and name.startswith("fp8"):
        older = tr(" (releases before Turing was added refuse)") if capability < 8 else ""
        found.append(
            tr(
                "{name} computes in 16 bits: FP8 weights stay at 1 byte, for "
                "weights only (Marlin){older}."
            ).format(name=device.name, older=older)
        )
    return found


def _format(model: Model, deployment: Deployment) -> str:
    name = deployment.weight_format
    return stored_format(model) if name == AS_STORED else name
