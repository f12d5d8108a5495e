"""The attention kernels that SGLang takes on a device, their pages and their workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import attention_kinds
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, exactly
from engine.runtimes.sglang import rules
from engine.units import MIB, ceil_div
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec
    from engine.devices.device import Device
    from engine.runtimes.sglang.rules import Version

_SINKS = ("gpt_oss", "mimo_v2", "granite_swa", "granitemoe_swa")
"""Types with learned sinks, which FlashInfer doesn't read."""
_AITER_PARTITION = 256
_AITER_LATENT_HEADS = frozenset({16, 128})
"""Heads of a rank for which AITER reads latent vectors."""
_AITER_LONG = 8192
_AITER_SHARE = 0.85
_READINGS = {
    "flashinfer": (
        380,
        440,
        680,
        tr_later("0.42 to 0.64 GiB between pool and graphs in five starts"),
    ),
    "fa3": (0, 40, 200, tr_later("0.04 GiB between pool and graphs in one start")),
    "trtllm": (500, 1100, 1300, tr_later("1.12 GiB between pool and graphs on B300")),
    "triton": (0, 20, 300, tr_later("nothing between pool and graphs in one start")),
    "other": (0, 60, 700, tr_later("no start on record")),
}


def attention_backend(
    spec: ArchitectureSpec, device: Device, version: Version, attention_tp: int
) -> str:
    """The kernels that read the cache where none are chosen.

    Source:
        SGLang 0.5.23 ``model_override_base.py :: get_default_attn_backend``.
    """
    latents = [a for a in attention_kinds(spec) if a.kind is AttentionKind.LATENT]
    if device.vendor is Vendor.AMD:
        heads = {a.num_attention_heads // attention_tp for a in latents}
        return "aiter" if heads <= _AITER_LATENT_HEADS else "triton"
    if device.vendor is not Vendor.NVIDIA:
        return "other"
    generation = int(device.compute_capability)
    if generation == 9 and rules.FLASH_ON_HOPPER.at(version):
        return "fa3"
    if generation == 10 and rules.TENSORRT_ON_BLACKWELL.at(version):
        return "trtllm"
    if latents or spec.model_type.startswith(_SINKS):
        return "triton"
    return "flashinfer"


def share_factor(backend: str, context: int, version: Version) -> float:
    """What the static share is multiplied by for the workspace of AITER's long contexts.

    Source:
        SGLang 0.4.8 ``model_runner.py``, 0.5.23 ``arg_groups/attention_hook.py``.
    """
    applies = backend == "aiter" and context > _AITER_LONG and version >= (0, 4, 8)
    return _AITER_SHARE if applies else 1.0


def page_tokens(spec: ArchitectureSpec, backend: str, device: Device, version: Version) -> int:
    """Tokens of a page: 1 unless the kernels take no other size.

    Source:
        SGLang 0.5.23 ``arg_groups/overrides.py``, ``model_overrides/deepseek_v2.py``,
        ``deepseek_v4.py`` and ``minimax_m3.py``.
    """
    kinds = attention_kinds(spec)
    if any(a.compression for a in kinds):
        return 256
    if any(a.index_head_dim for a in kinds):
        if not any(a.kind is AttentionKind.LATENT for a in kinds):
            return 128
        return rules.ROCM_INDEX_PAGE.at(version) if device.vendor is Vendor.AMD else 64
    if backend == "trtllm":
        return 64
    return 128 if device.vendor is Vendor.INTEL else 1


def workspace(
    spec: ArchitectureSpec, backend: str, requests: int, context: int, tp: int
) -> Estimate:
    """What the kernels allocate once the pool is there.

    AITER's decoding keeps partial results of every request and partition of the context: 51.75
    GiB for Qwen3-30B-A3B at 262,144 tokens and 3,261 requests (pull request 18263).
    """
    label = tr("attention workspace")
    if backend == "aiter":
        heads = [a for a in attention_kinds(spec) if a.kind is not AttentionKind.LATENT]
        if heads:
            each = max(ceil_div(a.num_attention_heads, tp) * (4 * a.head_dim + 8) for a in heads)
            partitions = ceil_div(context, _AITER_PARTITION)
            size = requests * partitions * each
            formula = tr("{requests} requests × {partitions} partitions × {each} B").format(
                requests=grouped(requests), partitions=grouped(partitions), each=grouped(each)
            )
            return exactly(size, Basis.EXACT, "SGLang aiter_backend.py", formula, label)
    low, likely, high, source = _READINGS.get(backend, _READINGS["other"])
    basis = Basis.FITTED if backend == "flashinfer" else Basis.ASSUMED
    return Estimate(low * MIB, likely * MIB, high * MIB, basis, tr(source), f"{likely} MiB", label)
