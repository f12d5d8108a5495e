"""The dtypes in which SGLang keeps keys, values and latents."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import attention_kinds
from engine.devices.device import Vendor
from engine.errors import DeploymentError
from engine.formats.dtypes import canonical
from engine.runtimes.sglang import rules
from engine.runtimes.sglang.compressed import PACKED
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec
    from engine.devices.device import Device
    from engine.runtimes.sglang.rules import Version

KV_DTYPES = ("auto", "bf16", "fp8_e4m3", "fp8_e5m2", "mxfp8", "nvfp4", "fp4_mx_block16")
"""SGLang's choices, ``auto`` (the model's own dtype) first."""
_SPELLINGS = {"bfloat16": "bf16", "fp8": "fp8_e4m3", "fp4_e2m1": "fp4_mx_block16"}
FOUR_BITS = ("nvfp4", "fp4_mx_block16")
_PAIRS_ONLY = ("mxfp8",)


def kv_dtype(
    model: Model, asked: str, dtype: str, version: Version, device: Device, assumed: list[str]
) -> str:
    """The KV dtype in force; ``fp8_ds_mla`` where FP8 latents are packed with scales.

    Raises:
        DeploymentError: SGLang has no such dtype, or not for this model.
    """
    name = _SPELLINGS.get(asked, asked)
    if name not in KV_DTYPES:
        message = tr("{asked!r} is no KV cache dtype of SGLang; it takes {names}.").format(
            asked=asked, names=", ".join(KV_DTYPES)
        )
        raise DeploymentError(message, field="kv_cache_dtype")
    kinds = attention_kinds(model.spec)
    if any(a.compression for a in kinds):
        return _of_entries(name, assumed)
    latent = any(a.kind is AttentionKind.LATENT for a in kinds)
    sparse = latent and any(a.index_head_dim for a in kinds)
    if latent and name in _PAIRS_ONLY:
        message = tr("{name} keeps keys and values; this model keeps latent vectors (MLA).").format(
            name=name
        )
        raise DeploymentError(message, field="kv_cache_dtype")
    if name == "auto":
        name, why = _default(model, dtype, device, sparse=sparse)
        assumed.append(tr("KV cache in {name}: {why}.").format(name=name, why=why))
    if sparse and name == "fp8_e4m3" and not _keeps_plain(version, device):
        return "fp8_ds_mla"
    return name


def _of_entries(name: str, assumed: list[str]) -> str:
    """Compressed entries are packed, whichever of their two dtypes is asked for."""
    if name not in ("auto", "bf16", "fp8_e4m3"):
        message = tr("SGLang keeps compressed entries in fp8_e4m3, not in {name}.").format(
            name=name
        )
        raise DeploymentError(message, field="kv_cache_dtype")
    if name != "fp8_e4m3":
        assumed.append(
            tr("KV cache in FP8, packed with scales: SGLang’s only form for this model.")
        )
    return PACKED


def architectural(spec: ArchitectureSpec, name: str) -> str:
    """A dtype as wide as SGLang's ``name`` by which a sequence's least is counted."""
    if name in FOUR_BITS:
        latent = any(a.kind is AttentionKind.LATENT for a in attention_kinds(spec))
        return "nvfp4_ds_mla" if latent else "nvfp4"
    return "fp8" if name == "mxfp8" else name


def _default(model: Model, dtype: str, device: Device, *, sparse: bool) -> tuple[str, str]:
    if sparse:
        new = device.vendor is Vendor.NVIDIA and device.compute_capability >= 10
        return "fp8_e4m3" if new else "bf16", tr("SGLang's default for this model on this device")
    own = canonical(dtype) or "bfloat16"
    stated = model.spec.kv_cache_dtype
    if stated is not None and stated.startswith("fp8") and _is_modelopt(model):
        return "fp8_e4m3", tr("as the checkpoint asks")
    return own, tr("the model's own dtype")


def _is_modelopt(model: Model) -> bool:
    """Only what ModelOpt writes (``kv_cache_quant_algo``) changes SGLang's default."""
    stated = model.config.get("quantization_config") if model.config is not None else None
    if not isinstance(stated, dict):
        return True
    return cast("dict[str, object]", stated).get("quant_method") in (None, "modelopt")


def _keeps_plain(version: Version, device: Device) -> bool:
    known = rules.RAW_SPARSE_LATENTS.at(version)
    return known and device.vendor is Vendor.NVIDIA and device.compute_capability >= 10
