"""CUDA graphs: for which steps SGLang captures them, and what they take.

A graph's buffers come from one private pool, which the largest size fills first; what grows with
layers and sizes is what the driver keeps of every graph, and what kernels load on their first run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import AttentionKind
from engine.budget.sequence_state import CACHED, attention_kinds, layer_kinds
from engine.devices.device import Vendor
from engine.evidence import Basis, Estimate, exactly, total
from engine.runtimes.sglang import fraction, rules
from engine.runtimes.sglang.vision import has_tower
from engine.units import MIB
from engine.words import grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec
    from engine.deployment.spec import Deployment
    from engine.runtimes.sglang.parallel import Parallel
    from engine.runtimes.sglang.rules import Version

_TURNED_OFF = ("kda",)
"""Kinds of state beside which prefill steps get no graphs."""
_DECODE = tr_later(
    "eight starts on one device: 0.03 to 0.13 GiB for up to 36 sizes, 0.60 "
    "for 52; three ranks 0.27, eight 1.93"
)
_PREFILL = tr_later(
    "five starts of 0.5.12 to 0.5.19: 0.69 to 0.89 MiB a layer and size, one of 0.5.13 0.38"
)
_SHARED = tr_later("five starts on GB10: 0.11 to 1.38 GiB of the host's memory with their kernels")
_ROCM = tr_later(
    "three starts on MI300X and MI355X: 1.4 and 6.4 GiB on eight devices, 15 to 17 on four"
)


def prefill_steps(
    spec: ArchitectureSpec,
    deployment: Deployment,
    version: Version,
    split: Parallel,
    chunk: int,
    backend: str,
) -> int:
    """Sizes of prefill steps that get a graph.

    Source:
        SGLang 0.5.10 ``server_args.py`` and ``configs/model_config.py``, 0.5.23
        ``arg_groups/cuda_graph_hook.py``: what turns them off.
    """
    off = _is_off(spec, deployment, version, split) or _falls_back(spec, version, backend)
    if off or not rules.PREFILL_GRAPHS.at(version):
        return 0
    most = fraction.step_tokens(chunk)
    if any(a.kind is AttentionKind.LATENT for a in attention_kinds(spec)):
        most = min(most, rules.LATENT_PREFILL_GRAPHS.at(version))
    if deployment.max_total_tokens is not None:
        most = min(most, deployment.max_total_tokens)
    if deployment.max_model_len is not None and rules.GRAPHS_WITHIN_CONTEXT.at(version):
        most = min(most, deployment.max_model_len)
    return fraction.prefill_buckets(most)


def _is_off(
    spec: ArchitectureSpec, deployment: Deployment, version: Version, split: Parallel
) -> bool:
    kinds = {layer.state.kind for layer, _ in layer_kinds(spec) if layer.state is not None}
    attentions = attention_kinds(spec)
    drafts = deployment.speculative_tokens > 0
    off = (
        deployment.pipeline_parallel_size > 1
        or (has_tower(spec) and not _reads_images(spec, version))
        or any(a.compression for a in attentions)
        or not kinds.isdisjoint(_TURNED_OFF)
        or (drafts and not rules.PREFILL_GRAPHS_BESIDE_DRAFTS.at(version))
    )
    if rules.PREFILL_GRAPHS_WIDELY.at(version):
        return off
    narrow = split.attention_dp > 1 or deployment.max_loras > 0
    indexed = any(a.index_head_dim for a in attentions)
    return off or narrow or indexed or spec.model_type.startswith(rules.NO_PREFILL_GRAPHS)


def _falls_back(spec: ArchitectureSpec, version: Version, backend: str) -> bool:
    """Whether a graph would read latents with other kernels than TensorRT-LLM's."""
    is_old = version < rules.TENSORRT_WITHOUT_PREFILL_GRAPHS
    return (
        backend == "trtllm"
        and not is_old
        and spec.model_type in rules.NO_PREFILL_GRAPHS_ON_TENSORRT
    )


def _reads_images(spec: ArchitectureSpec, version: Version) -> bool:
    """Whether a model with a tower is one whose prefill steps are captured nevertheless."""
    kind = spec.root_type or spec.model_type
    since = rules.starts_with(kind, rules.PREFILL_GRAPHS_OF_TOWERS)
    return since is not None and since <= version


@dataclass(frozen=True, slots=True)
class Captures:
    """The graphs of one stage."""

    layers: int
    decode_max_bs: int
    prefill_buckets: int
    ranks: int
    vendor: Vendor
    shares_host: bool
    surely: bool
    """Whether prefill steps surely have graphs: which they have hangs on the release."""


@lru_cache(maxsize=CACHED)
def cuda_graphs(captures: Captures) -> Estimate:
    """Graphs of decoding and, where they are captured, of prefill steps."""
    if not captures.decode_max_bs and not captures.prefill_buckets:
        return exactly(0, Basis.EXACT, tr("no CUDA graphs"))
    if captures.vendor is Vendor.AMD:
        return _read((100, 1400, 18_000), Basis.ASSUMED, tr(_ROCM), tr("decoding"))
    if captures.vendor is not Vendor.NVIDIA:
        return exactly(0, Basis.ASSUMED, tr("one start on Intel captured none"))
    parts: list[Estimate] = []
    if captures.decode_max_bs:
        parts.append(_decoding(captures))
    if captures.prefill_buckets:
        parts.append(_prefilling(captures))
    if captures.shares_host:
        parts.append(_read((0, 900, 1400), Basis.FITTED, tr(_SHARED), tr("the host's own memory")))
    return total(parts)


def _decoding(captures: Captures) -> Estimate:
    layers, sizes = captures.layers, fraction.decode_sizes(captures.decode_max_bs)
    likely = 20 * MIB + 5 * MIB * layers // 2
    high = 2 * likely + 12 * MIB * sizes + 200 * MIB * (captures.ranks - 1)
    formula = tr("20 MiB + 2.5 MiB × {layers} layers ({sizes} sizes)").format(
        layers=layers, sizes=sizes
    )
    return Estimate(likely // 3, likely, high, Basis.FITTED, tr(_DECODE), formula, tr("decoding"))


def _prefilling(captures: Captures) -> Estimate:
    layers, buckets = captures.layers, captures.prefill_buckets
    likely = max(3 * MIB * layers * buckets // 4, 8 * MIB * buckets)
    low = likely * 9 // 20 if captures.surely else 0
    formula = tr("0.75 MiB × {layers} layers × {buckets} sizes").format(
        layers=layers, buckets=buckets
    )
    return Estimate(
        low, likely, likely * 4 // 3, Basis.FITTED, tr(_PREFILL), formula, tr("prefill")
    )


def _read(sizes_mib: tuple[int, int, int], basis: Basis, source: str, label: str) -> Estimate:
    low, likely, high = (size * MIB for size in sizes_mib)
    return Estimate(low, likely, high, basis, source, f"{grouped(sizes_mib[1])} MiB", label)
