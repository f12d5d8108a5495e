"""SGLang's rules that changed between releases, as data keyed by version.

Read in the wheels of 0.4.0 to 0.5.23 (``server_args.py``, ``arg_groups/memory_hook.py``,
``model_executor/model_runner.py``, ``mem_cache/kv_cache_configurator.py``,
``model_executor/pool_configurator.py``, ``configs/model_config.py``).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from engine.errors import DeploymentError
from engine.runtimes.checks import RELEASE
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
Version = tuple[int, ...]

NEWEST = "0.5.23"
VERSIONS = (
    NEWEST, "0.5.22", "0.5.21", "0.5.20", "0.5.19", "0.5.18", "0.5.17", "0.5.16", "0.5.15",
    "0.5.14", "0.5.13", "0.5.12", "0.5.11", "0.5.10", "0.5.9", "0.5.8", "0.5.7", "0.5.6", "0.5.5",
    "0.5.4", "0.5.3", "0.5.2", "0.5.1", "0.4.10", "0.4.9", "0.4.8", "0.4.7", "0.4.6", "0.4.5",
    "0.4.4", "0.4.3", "0.4.2", "0.4.1", "0.4.0",
)  # fmt: skip
_OLDEST = (0, 4)


class Since(Generic[T]):
    """A value by version: the last entry whose version is not newer than the one asked for."""

    def __init__(self, *entries: tuple[Version, T]) -> None:
        self._entries = entries

    def at(self, version: Version) -> T:
        """The value in force at ``version``."""
        return next(value for since, value in reversed(self._entries) if since <= version)


def parse_version(text: str | None) -> Version:
    """``"0.5.6.post2"`` -> ``(0, 5, 6)``; None means the newest.

    Raises:
        DeploymentError: not an SGLang version, or one whose rules are not known.
    """
    match = RELEASE.fullmatch(text or NEWEST)
    if match is None:
        message = tr("{text!r:.40} is not an SGLang version such as {newest}.").format(
            text=text, newest=NEWEST
        )
        raise DeploymentError(message, field="runtime_version")
    version = tuple(int(part) for part in match.groups() if part is not None)
    if version < _OLDEST:
        message = tr(
            "SGLang {text} is older than 0.4, the oldest whose rules are known here."
        ).format(text=text)
        raise DeploymentError(message, field="runtime_version")
    return version


class Capacity(NamedTuple):
    """What SGLang takes on a device of less than ``below_mib``."""

    below_mib: float
    chunked_prefill_size: int
    max_bs: int
    """Largest batch with a CUDA graph, under four tensor-parallel ranks."""
    max_bs_wide: int
    """The same from four ranks on."""


def _by_work(small: Capacity) -> tuple[Capacity, ...]:
    return (
        Capacity(20 * 1024, 2048, 8, 8),
        small,
        Capacity(60 * 1024, 4096, 32, 160),
        Capacity(160 * 1024, 8192, 256, 512),
        Capacity(inf, 16384, 512, 512),
    )


CAPACITIES: Since[tuple[Capacity, ...]] = Since(
    ((0,), (Capacity(25_000, 2048, 8, 80), Capacity(inf, 8192, 160, 160))),
    (
        (0, 4, 7),
        (
            Capacity(25_000, 2048, 8, 80),
            Capacity(180_000, 8192, 160, 160),
            Capacity(inf, 16384, 512, 512),
        ),
    ),
    (
        (0, 4, 8),
        (
            Capacity(35 * 1024, 2048, 8, 80),
            Capacity(96 * 1024, 8192, 160, 160),
            Capacity(160 * 1024, 8192, 256, 256),
            Capacity(inf, 16384, 512, 512),
        ),
    ),
    ((0, 5, 3), _by_work(Capacity(35 * 1024, 2048, 16, 80))),
    ((0, 5, 5), _by_work(Capacity(35 * 1024, 2048, 24, 80))),
    ((0, 5, 20), _by_work(Capacity(35 * 1024, 4096, 48, 160))),
)
"""Defaults by size of the device; before 0.5.3 the graphs' sizes are those of its runner."""

GRAPHS_WITHIN_REQUESTS = Since[bool](((0,), False), ((0, 5, 22), True))
"""Whether graphs stop at ``max_running_requests`` where both are left open but that."""

PREFILL_GRAPHS = Since[bool](((0,), False), ((0, 5, 10), True))
"""Whether prefill steps have CUDA graphs of their own by default."""

PREFILL_GRAPHS_BESIDE_DRAFTS = Since[bool](((0,), False), ((0, 5, 12), True))
PREFILL_GRAPHS_WIDELY = Since[bool](((0,), False), ((0, 5, 14), True))
"""Whether also with adapters, an index and attention split by data."""

PREFILL_GRAPHS_OF_TOWERS: Mapping[str, Version] = {
    "cohere2_vision": (0, 5, 14),
    "minimax_m3": (0, 5, 14),
    "qwen3_5": (0, 5, 16),
    "kimi_k25": (0, 5, 16),
    "kimi_k3": (0, 5, 19),
    "muse_glimmer": (0, 5, 19),
    "paddleocr_vl": (0, 5, 19),
    "qwen4_exp": (0, 5, 23),
}
"""How a root with a tower begins -> since when its prefill steps have graphs; others have none
(``model_config.py :: multimodal_breakable_cuda_graph_supported_model_archs`` and its like)."""
NO_PREFILL_GRAPHS = ("qwen3_next", "bailing", "llada")
"""Types without graphs of prefill steps until 0.5.14, like all with an index."""
NO_PREFILL_GRAPHS_ON_TENSORRT = frozenset({"deepseek_v3", "kimi_k2"})
TENSORRT_WITHOUT_PREFILL_GRAPHS: Version = (0, 5, 15)
"""Types of ``DeepseekV3ForCausalLM``, and since when they have none on TensorRT-LLM's kernels."""
LATENT_PREFILL_GRAPHS = Since[int](((0,), 2048), ((0, 5, 23), 8192))
"""Tokens of the largest prefill step with a graph of a model that keeps latent vectors."""
GRAPHS_WITHIN_CONTEXT = Since[bool](((0,), False), ((0, 5, 14), True), ((0, 5, 17), False))
"""Whether a context that is given bounds the prefill steps with graphs."""

DRAFT_RESERVE_GIB = Since[int](((0,), 2), ((0, 5, 10), 4), ((0, 5, 14), 0))
"""What a draft model adds to the reserve; since 0.5.14 its weights count as weights."""

DRAFTS_FIRST = Since[bool](((0,), False), ((0, 5, 14), True))
"""Whether what drafts is loaded before the pool is sized."""
DRAFTS_COUNTED = Since[bool](((0,), False), ((0, 5, 14), True))
DRAFTS_COUNTED_BESIDE_WINDOWS = Since[bool](((0,), False), ((0, 5, 15), True))
"""Whether the draft's layers count when the pool, or two of them, are sized: each like one of its
target's. Before, their pool came out of the reserve."""
BLOCK_DRAFTS_COUNTED = Since[bool](((0,), False), ((0, 5, 12), True))
BLOCK_DRAFTS_AS_HELD = Since[bool](((0,), False), ((0, 5, 18), True))
"""The same of drafts for whole blocks (DFlash), and since when by their own widths."""

INTEL_RESERVE_GIB = Since[int](((0,), 0), ((0, 5, 20), 2))
"""What Intel's work areas for odd step sizes add to the reserve."""

VISION_CACHE_MIB = Since[int](((0,), 0), ((0, 5, 18), 100))
"""Kept out of the pool for multimodal models (``SGLANG_VLM_CACHE_SIZE_MB``)."""

INDEX_COUNTED = Since[bool](((0,), False), ((0, 5, 4), True))
"""Whether the keys of a sparse indexer count when the pool is sized. In 0.5.3 they came on top
(54.5 GiB printed, 65.5 held: pull request 11309)."""

INDEX_SPLITS_ATTENTION: tuple[Version, Version] = ((0, 5, 3), (0, 5, 6))
"""From which release to before which attention beside an index is split by data over all tensor
ranks, whatever is asked."""
INDEX_SHARE = Since[float | None](((0,), None), ((0, 5, 3), 0.8), ((0, 5, 4), None))
"""The static share that SGLang takes beside an index, whatever is asked."""

PACKED_COUNTED = Since[bool](((0,), False), ((0, 5, 17), True))
"""Whether FP8 latents packed with scales count as wide as they are when the pool is sized."""

RAW_SPARSE_LATENTS = Since[bool](((0,), False), ((0, 5, 9), True))
"""Whether Blackwell's kernels keep FP8 latents beside an index plain (576 B), not packed (656)."""

HOST_READ: Version = (0, 5, 4)
"""Since when free memory is the host's on devices that share it."""

TWO_POOLS: Mapping[str, Version] = {
    "gpt_oss": (0, 5, 8),
    "llama4": (0, 5, 8),
    "mimo_v2": (0, 5, 7),
    "step3p5": (0, 5, 9),
    "step3p7": (0, 5, 13),
    "gemma4": (0, 5, 11),
    "diffusion_gemma": (0, 5, 21),
    "laguna": (0, 5, 12),
    "mellum": (0, 5, 16),
    "inkling": (0, 5, 16),
    "muse_glimmer": (0, 5, 19),
    "granite_swa": (0, 5, 19),
    "granitemoe_swa": (0, 5, 19),
}
"""How a type of model begins -> since when its sliding layers have a pool of their own
(``is_hybrid_swa_model``). All others keep every token in every layer: Gemma 2 and 3 too."""

SLIDING_RATIO = 0.8
SLIDING_RATIOS: Mapping[str, float] = {"inkling": 0.1, "deepseek_v4": 0.1}
"""Default ``swa_full_tokens_ratio`` by how a type begins."""
SLIDING_AS_FULL: Mapping[str, Version] = {"mimo_v2": (0, 5, 8)}
"""How a type begins -> until when its two pools had as many tokens (a log of December 2025)."""

SLIDING_COUNTED_TWICE: Mapping[str, tuple[Version, Version]] = {"mimo_v2": ((0, 5, 8), (0, 5, 9))}
"""How a type begins -> the releases, from one to before another, that counted its sliding layers
among the full ones too (pull request 18039)."""

STATE_RATIO = 0.9
"""Default ``mamba_full_memory_ratio``."""
STATES_BY_RATIO = Since[bool](((0,), False), ((0, 5, 4), True))
"""Whether states share the room with the pool by that ratio; before, 512 were kept."""
STATES_WITH_PADDING = Since[bool](((0,), False), ((0, 5, 17), True))
"""Whether the padding state is counted when they are numbered; it is held in every release."""

STATES_PER_REQUEST = Since[int](((0,), 3), ((0, 5, 7), 5), ((0, 5, 8), 3), ((0, 5, 14), 5))
"""States that a running request may hold with a prefix cache: three, and two more to track."""
UNTRACKED_STATES = frozenset({"lfm2", "lfm2_moe"})
"""Types that never track (``_MAMBA_EXTRA_BUFFER_ARCHS`` lacks them)."""

ENTRIES_BY_STAGE = Since[bool](((0,), False), ((0, 5, 14), True))
"""Whether DeepSeek-V4's windows are counted for a stage's layers; before, for prediction blocks
too, loaded or not."""
ENTRY_STATES_BY_REQUEST = Since[bool](((0,), False), ((0, 5, 15), True))
"""Whether what waits to be an entry of 128 tokens is kept by request; before, by the window's
tokens."""
WINDOWS_BY_REQUEST = Since[bool](((0,), False), ((0, 5, 21), True))
"""Whether those windows are kept for so many requests, not for a share of the pool's tokens."""
ENTRY_REQUESTS, DRAFTED_REQUESTS = 256, 48
"""``max_running_requests`` where it is not given: with compressed entries, else with drafts."""

REQUESTS_BY_TOKENS = Since[bool](((0,), False), ((0, 5, 9), True))
"""Whether there are never more requests than half of the pool's tokens."""

ROCM_INDEX_PAGE = Since[int](((0,), 64), ((0, 5, 8), 1), ((0, 5, 12), 64))
"""Tokens of a page beside an index on ROCm: since 0.5.12 where its Triton is 3.5 or newer."""

FLASH_ON_HOPPER = Since[bool](((0,), False), ((0, 4, 6), True))
"""Whether FlashAttention 3 is the default there; before, FlashInfer."""
TENSORRT_ON_BLACKWELL = Since[bool](((0,), False), ((0, 5, 8), True))
"""Whether TensorRT-LLM's kernels, in pages of 64, are the default on data-centre Blackwell."""


def covers(types: Mapping[str, tuple[Version, Version]], model_type: str, version: Version) -> bool:
    """Whether ``types`` has ``model_type`` in releases that ``version`` is one of."""
    found = starts_with(model_type, types)
    return found is not None and found[0] <= version < found[1]


def starts_with(model_type: str, types: Mapping[str, T]) -> T | None:
    """The entry of ``types`` that ``model_type`` begins with."""
    return next((value for name, value in types.items() if model_type.startswith(name)), None)
