"""vLLM's rules that changed between releases, as data keyed by version.

A rule holds from the version it is listed under until the next entry. Where the release of a
change is not established, the entry says so and the range covers both sides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from engine.errors import DeploymentError
from engine.units import MIB

if TYPE_CHECKING:
    from engine.devices.device import Device

T = TypeVar("T")
Version = tuple[int, ...]

NEWEST = "0.33.0"
VERSIONS = (
    NEWEST, "0.32.0", "0.31.0", "0.30.0", "0.29.0", "0.28.0", "0.27.0", "0.26.0", "0.25.0",
    "0.24.0", "0.23.0", "0.22.0", "0.21.0", "0.20.2", "0.19.0", "0.18.0", "0.17.0", "0.16.0",
    "0.15.0", "0.14.0", "0.13.0", "0.12.0", "0.11.0", "0.10.0", "0.9.0", "0.8.5", "0.7.3", "0.6.6",
)  # fmt: skip
_OLDEST = (0, 2)

LEFT_OUT = {
    "qwen2_5_omni": ("talker.", "token2wav."),
    "qwen3_omni_moe": ("talker.", "code2wav."),
}
"""Type of a model -> how the names of its tensors begin that vLLM does not load: the voice.

Source:
    vLLM ``qwen2_5_omni_thinker.py`` and ``qwen3_omni_moe_thinker.py``, ``load_weights``.
"""


class Since(Generic[T]):
    """A value by version: the last entry whose version is not newer than the one asked for."""

    def __init__(self, *entries: tuple[Version, T]) -> None:
        self._entries = entries
        self._known: dict[Version, T] = {}

    def at(self, version: Version) -> T:
        """The value in force at ``version``."""
        if version not in self._known:
            found = next(value for since, value in reversed(self._entries) if since <= version)
            self._known[version] = found
        return self._known[version]


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes as low, likely and high."""

    low: int
    likely: int
    high: int


def _mib(low: float, likely: float, high: float) -> Span:
    return Span(round(low * MIB), round(likely * MIB), round(high * MIB))


@dataclass(frozen=True, slots=True)
class ActivationLaw:
    """Peak of the profile run: the larger of the forward pass and the sampler.

    sampler = logit_bytes × max_num_seqs × vocabulary + hidden × T × H × b + constant
    forward = T × b × (3 H + 3 I) + forward_hidden × T × H × b
    """

    logit_bytes: float
    """Per sampled row and vocabulary entry, for 16-bit models."""
    logit_bytes_low: float
    logit_bytes_high: float
    hidden: float
    """Copies of the hidden states of one step that stay beside the sampler's peak."""
    forward_hidden: float
    """The same beside the forward pass's peak."""
    constant_bytes: int
    source: str


_H100_LOGS = "61 logged starts of vLLM 0.19 on H100 (llm-d-planner, accuracy report)"

ACTIVATIONS: Since[ActivationLaw] = Since(
    (
        (0,),
        ActivationLaw(
            38, 37, 38.5, 1.6, 0, 11 * MIB, "17 starts of vLLM 0.6 to 0.16 (T4, 4090, A100, H100)"
        ),
    ),
    ((0, 17), ActivationLaw(14.47, 14.3, 14.6, 1.17, 1.17, 47 * MIB, _H100_LOGS)),
    (
        (0, 20),
        ActivationLaw(
            6.0, 5.5, 14.6, 1.17, 1.17, 16 * MIB,
            "bf16 and fp32 logits of one row; the change lies between 0.19 and 0.24",
        ),
    ),
    (
        (0, 24),
        ActivationLaw(
            6.0, 5.5, 8.0, 1.17, 1.17, 16 * MIB,
            "bf16 and fp32 logits of one row; starts of 0.24 and 0.27",
        ),
    ),
)  # fmt: skip
"""38 B a row until 0.16, 14.47 B at 0.17 to 0.19, 6 B (bf16 + fp32 logits) since."""

UTILISATION = Since[float](((0,), 0.9), ((0, 21), 0.92))
"""Default ``gpu_memory_utilization``; the release of the change is not established."""

GRAPHS_INSIDE = Since[bool](((0,), False), ((0, 21), True))
"""Whether an estimate of the CUDA graphs is taken out of the budget before the pool."""

SAMPLER_BUFFERS = Since[bool](((0,), False), ((0, 33), True))
"""Whether penalty counters and prompt masks are kept for every row (model runner 2): read in
the source of 0.33, not yet seen in a log."""


@dataclass(frozen=True, slots=True)
class GraphLaw:
    """Memory of CUDA graphs at 51 capture sizes, in GiB.

    constant + layer × layers + width × layers × hidden / 4096 + experts (where there are any)
    + parallel (with tensor parallelism)
    """

    constant: float
    layer: float
    width: float
    experts: float
    parallel: float
    low: float
    """Smallest and largest ratio to the law that a log showed."""
    high: float
    source: str


_CAPTURED = (0.685, 0.0, 0.007, 0.896, -0.15)

GRAPHS: Since[GraphLaw] = Since(
    ((0,), GraphLaw(*_CAPTURED, 0.15, 3.0, "captured: twelve starts of 0.5 to 0.16")),
    ((0, 17), GraphLaw(*_CAPTURED, 0.6, 1.25, "captured: 41 starts of 0.19 on H100")),
    (
        (0, 21),
        GraphLaw(
            0.434, 0.0065, 0.0048, 0.401, 0.0, 0.5, 1.5,
            "estimated by vLLM itself: 41 starts of 0.19, four since 0.24",
        ),
    ),
)  # fmt: skip
"""Until 0.20 what was captured; since 0.21 vLLM's own estimate, which it takes out of the budget
before the pool (0.3 to 1.0 of it is captured then)."""

SWEEP_CAPTURES = Since[bool](((0,), True), ((0, 11), False))
"""Whether capture sizes go up in steps of 8 all the way (later: of 16 from 256 on)."""

INSIDE_SINGLE = Since[Span](
    ((0,), _mib(20, 260, 1830)),
    ((0, 7), _mib(20, 31, 90)),
    ((0, 11), _mib(20, 133, 200)),
    ((0, 18), _mib(130, 256, 470)),
)
"""Memory outside PyTorch that grows during start-up and is charged to the budget, one GPU."""

INSIDE_TENSOR_PARALLEL = Since[Span](
    ((0,), _mib(120, 360, 3670)),
    ((0, 7), _mib(120, 310, 1030)),
    ((0, 11), _mib(300, 558, 1030)),
    ((0, 18), _mib(300, 2130, 2270)),
)
"""The same with tensor parallelism: collectives and their buffers. 2.06 to 2.21 GiB were read
on H100 with 0.19; cards without NVLink took 0.12 to 0.55."""

INSIDE_PIPELINE = _mib(20, 72, 256)
"""The same with pipeline stages of one GPU each (0.07 GiB read four times)."""

COLLECTIVES_LARGE = _mib(250, 1040, 2100)
"""Taken before the budget starts when there is more than one rank: 0.9 to 1.5 GiB less was free
at the start of 2 and 4 ranks on H100 than of one."""

COLLECTIVES = _mib(50, 250, 1000)
"""The same on cards without NVLink: 450 to 850 MiB lay outside the allocator, context included."""

LIBRARIES = _mib(0, 252, 380)
"""Library handles and the first request's workspaces on one GPU, outside the budget."""

SLACK = _mib(0, 128, 620)
"""What the caching allocator holds without using it."""


def parse_version(text: str | None) -> Version:
    """``"0.8.5.post1"`` -> ``(0, 8, 5)``; None means the newest.

    Raises:
        DeploymentError: not a vLLM version, or one whose rules are not known.
    """
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", text or NEWEST)
    if match is None:
        message = f"{text!r} is not a vLLM version such as {NEWEST}."
        raise DeploymentError(message, field="runtime_version")
    version = tuple(int(part) for part in match.groups() if part is not None)
    if version < _OLDEST:
        message = f"vLLM {text} is older than 0.2, the oldest whose rules are known here."
        raise DeploymentError(message, field="runtime_version")
    return version


@dataclass(frozen=True, slots=True)
class StepSize:
    """What one step may hold."""

    max_num_batched_tokens: int
    max_num_seqs: int


def default_step(device: Device, version: Version) -> StepSize:
    """Tokens and sequences of a step when neither is given, for a server on ``device``.

    Source:
        vLLM ``engine/arg_utils.py :: get_batch_defaults``.
    """
    gib = device.total_bytes / 2**30
    small_class = any(word in device.name for word in ("A100", "GB10"))
    if version < (0, 8):
        return StepSize(2048, 256)
    if gib >= 160:
        return StepSize(16384, 1024)
    if gib >= 70 and not small_class:
        return StepSize(8192, 1024)
    return StepSize(2048, 256)


def capture_sizes(max_num_seqs: int, max_tokens: int, speculative: int, version: Version) -> int:
    """Number of batch sizes for which CUDA graphs are captured.

    1, 2, 4, then multiples of 8 below 256 and of 16 up to the largest.

    Source:
        vLLM ``config/vllm.py :: _set_cudagraph_sizes``.
    """
    largest = min(2 * max_num_seqs * (1 + speculative), 512, max_tokens)
    if version < (0, 8):
        largest = min(max_num_seqs, 256)
    small = sum(1 for size in (1, 2, 4) if size <= largest)
    if SWEEP_CAPTURES.at(version):
        return small + largest // 8
    eights = min(largest, 248) // 8
    sixteens = max(0, (largest - 256) // 16 + 1) if largest >= 256 else 0
    return small + eights + sixteens
