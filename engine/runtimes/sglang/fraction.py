"""``mem_fraction_static`` where it is not given: what SGLang leaves for its work, by release.

Source:
    SGLang ``server_args.py`` (0.4.0 to 0.5.13), ``arg_groups/memory_hook.py`` (0.5.23).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.runtimes.sglang.rules import (
    CAPACITIES,
    DRAFT_RESERVE_GIB,
    GRAPHS_WITHIN_REQUESTS,
    INTEL_RESERVE_GIB,
    Since,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.runtimes.sglang.rules import Version

_GIB = 1024
"""MiB in a GiB: SGLang reckons in MiB."""
_MAX_PREFILL_TOKENS = 16384
"""Of a step where prompts are not cut into chunks."""
_LATENT_PREFILL_MIB = 1536


@dataclass(frozen=True, slots=True)
class Load:
    """What the reserve depends on."""

    version: Version
    device_mib: float
    """Memory of the smallest device, as the driver reports it."""
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_attention: int
    """Data-parallel ranks that share the devices; 1 where they don't."""
    chunked_prefill_size: int
    decode_max_bs: int
    """0 where decoding has no CUDA graphs."""
    prefill_buckets: int
    """0 where prefilling has none."""
    is_latent: bool
    drafts: bool
    is_cuda: bool = True
    is_intel: bool = False

    @property
    def ranks(self) -> int:
        """Devices of one replica."""
        return self.tensor_parallel_size * self.pipeline_parallel_size


@dataclass(frozen=True, slots=True)
class StepSize:
    """Defaults by the device's size."""

    chunked_prefill_size: int
    decode_max_bs: int


def default_step(version: Version, device_mib: float, tp: int, requests: int | None) -> StepSize:
    """Tokens of a prefill step, and the largest batch with a graph, where neither is given."""
    found = next(c for c in CAPACITIES.at(version) if device_mib < c.below_mib)
    batch = found.max_bs if tp < 4 else found.max_bs_wide
    if requests is not None and GRAPHS_WITHIN_REQUESTS.at(version):
        batch = min(batch, requests)
    return StepSize(found.chunked_prefill_size, batch)


def step_tokens(chunked_prefill_size: int) -> int:
    """Tokens of the largest prefill step."""
    return chunked_prefill_size if chunked_prefill_size > 0 else _MAX_PREFILL_TOKENS


def prefill_buckets(most: int) -> int:
    """Sizes of prefill steps that are captured, up to ``most`` tokens.

    Source:
        SGLang 0.5.23 ``cuda_graph_hook.py :: generate_prefill_cuda_graph_batch_sizes``.
    """
    spans = (
        range(4, 33, 4), range(48, 257, 16), range(288, 513, 32), range(576, 1025, 64),
        range(1280, 4097, 256), range(4608, most + 1, 512),
    )  # fmt: skip
    return sum(size <= most for span in spans for size in span)


def decode_sizes(max_bs: int) -> int:
    """Batch sizes that are captured for decoding, up to ``max_bs``.

    Source:
        SGLang 0.5.23 ``cuda_graph_hook.py :: generate_decode_cuda_graph_batch_sizes``.
    """
    spans = ((1, 2, 4, 8, 12), range(16, 257, 8), range(272, 512, 16), range(512, max_bs + 1, 32))
    sizes = {size for span in spans for size in span if size <= max_bs}
    return len(sizes | {max_bs}) if max_bs else 0


def fraction(load: Load) -> float:
    """The share of the free memory that weights and pool take, multimodal models apart."""
    return _FRACTIONS.at(load.version)(load)


def _by_ranks(load: Load) -> float:
    for ranks, share in ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87)):
        if load.ranks >= ranks:
            return share
    return 0.88


def _large_by_13_gib(load: Load) -> float:
    if load.device_mib <= 81920:
        return _by_ranks(load)
    return (load.device_mib - 13 * _GIB) / load.device_mib


def _large_by_18_gib(load: Load) -> float:
    share = _by_ranks(load) if load.device_mib <= 81920 else 0.88
    if load.device_mib > 180_000 and load.is_cuda:
        return 0.79
    if load.device_mib > 96 * _GIB:
        reserve = (20 if load.drafts else 18) * _GIB
        grown = share + 48 * _GIB * (1 - share) / load.device_mib
        return min(grown, (load.device_mib - reserve) / load.device_mib)
    return share * 0.95 if load.drafts else share


def _by_size(load: Load) -> float:
    reserved = 32.0
    for below, fixed, each in ((35, 2.8, 0.1), (90, 9.5, 0.5), (160, 12, 0.5)):
        if load.device_mib < below * _GIB:
            reserved = fixed + load.ranks * each
            break
    reserved += 2 if load.drafts else 0
    reserved += 4 if load.data_parallel_attention > 1 else 0
    return round((load.device_mib - reserved * _GIB) / load.device_mib, 3)


def reserved_mib(load: Load) -> float:
    """What is left for activations, graphs and workspaces since 0.5.3."""
    found = 512 + 1.5 * max(step_tokens(load.chunked_prefill_size), 2048)
    found += load.ranks / 8 * _GIB + 2 * load.decode_max_bs
    if load.data_parallel_attention > 1:
        each = 4.5 if load.decode_max_bs > 300 else 3
        found += each * load.decode_max_bs * load.data_parallel_attention
    if load.prefill_buckets:
        found += _LATENT_PREFILL_MIB if load.is_latent else 8 * load.prefill_buckets
    if load.device_mib > 60 * _GIB:
        found = max(found, 10 * _GIB)
    if load.is_intel:
        found += INTEL_RESERVE_GIB.at(load.version) * _GIB
    return found + (DRAFT_RESERVE_GIB.at(load.version) * _GIB if load.drafts else 0)


def _by_work(load: Load) -> float:
    return round((load.device_mib - reserved_mib(load)) / load.device_mib, 3)


_FRACTIONS: Since[Callable[[Load], float]] = Since(
    ((0,), _by_ranks),
    ((0, 4, 6), _large_by_13_gib),
    ((0, 4, 7), _large_by_18_gib),
    ((0, 4, 8), _by_size),
    ((0, 5, 3), _by_work),
)


@dataclass(frozen=True, slots=True)
class Tower:
    """A vision tower as SGLang weighs it: layers × width² against a ViT-L."""

    layers: int = 24
    width: int = 1024


def of_multimodal(version: Version, tower: Tower | None) -> float:
    """What the share of a multimodal model is multiplied by.

    Args:
        version: the release.
        tower: of the config's own ``vision_config``; None where it has none.
    """
    if version < (0, 4, 10):
        return 0.95 if version < (0, 4, 5) else 0.9
    if tower is None:
        return 1.0
    weight = tower.layers * tower.width**2 / (24 * 1024**2)
    return 0.95 * max(0.8, min(1.05, 1 - 0.1 * (weight - 1)))
