"""vLLM's rules that changed between releases, as data keyed by version.

A rule holds from the version it is listed under until the next entry. Where the release of a
change is not established, the entry says so and the range covers both sides.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from engine.errors import DeploymentError
from engine.runtimes.checks import RELEASE
from engine.units import MIB
from engine.words import tr

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
        try:
            return self._known[version]
        except KeyError:
            found = next(value for since, value in reversed(self._entries) if since <= version)
            self._known[version] = found
            return found


class Span(NamedTuple):
    """Bytes as low, likely and high."""

    low: int
    likely: int
    high: int


def _mib(low: float, likely: float, high: float) -> Span:
    return Span(round(low * MIB), round(likely * MIB), round(high * MIB))


UTILISATION = Since[float](((0,), 0.9), ((0, 20), 0.92))
"""Default ``gpu_memory_utilization`` (``config/cache.py``)."""

GRAPHS_INSIDE = Since[bool](((0,), False), ((0, 20), True))
"""Whether an estimate of the CUDA graphs is taken out of the budget before the pool
(``VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS``, on since 0.20.0; its own words say 0.21)."""

BUFFERS_CHARGED = Since[bool](((0,), False), ((0, 27), True))
"""Whether what a start takes is read from the device, and so counts penalty counters, prompt masks
and block tables of model runner 2 (``mem_utils.py``, "total_consumed"). Before, they lay in no
figure: neither weights, nor peak, nor growth outside PyTorch."""

TEXT_ONLY = (0, 17)
"""The first version that takes ``language_model_only``."""

INSIDE_SINGLE = Since[Span](
    ((0,), _mib(0, 100, 300)),
    ((0, 2, 5), _mib(250, 700, 1840)),
    ((0, 6, 4), _mib(250, 350, 1840)),
    ((0, 6, 5), _mib(200, 266, 1840)),
    ((0, 7), _mib(20, 31, 120)),
    ((0, 11), _mib(20, 133, 200)),
    ((0, 18), _mib(100, 256, 480)),
    ((0, 27), _mib(100, 200, 620)),
)
"""Memory outside PyTorch that grows during start-up and is charged to the budget, one GPU.

Until 0.2.4 only what PyTorch had allocated counted; from then until 0.6.4 all that the device had
lost (``CONTEXT_CHARGED``)."""

CONTEXT_CHARGED = Since[bool](((0,), False), ((0, 2, 5), True), ((0, 6, 5), False))
"""Whether the growth is all that the device has lost since before the process: context, collectives
and what the allocator holds (pull requests 2031 and 10511). A card of Yi-34B under 0.5.4 holds 0.9
of itself without graphs, and no more."""

INSIDE_ON_HOPPER = Since[Span | None](
    ((0,), None), ((0, 11), _mib(120, 133, 150)), ((0, 18), _mib(235, 256, 330)), ((0, 27), None)
)
"""The same on Hopper where it is better known: 29 starts, one of them at 470 MiB."""

INSIDE_TENSOR_PARALLEL = Since[Span](
    ((0,), _mib(0, 100, 600)),
    ((0, 2, 5), _mib(600, 1500, 13_600)),
    ((0, 6, 4), _mib(120, 360, 3670)),
    ((0, 7), _mib(120, 310, 1030)),
    ((0, 11), _mib(300, 558, 1030)),
    ((0, 18), _mib(300, 2130, 2270)),
)
"""The same with tensor parallelism: collectives and their buffers. 2.06 to 2.21 GiB were read
on H100 with 0.19. 0.2.5 lost 13.1 GiB on each of four A100 (pull request 2031)."""

PARALLEL_WITHOUT_LINKS = Since[Span | None](
    ((0,), None), ((0, 7), _mib(120, 164, 570)), ((0, 11), _mib(120, 360, 1030))
)
"""The same on cards without NVLink: 0.12 and 0.20 GiB were read with 0.7 and 0.8, up to 0.55
later."""

PARALLEL_ON_HOPPER = Since[Span | None](
    ((0,), None), ((0, 11), _mib(500, 558, 620)), ((0, 18), _mib(2050, 2136, 2270)), ((0, 27), None)
)
"""The same on Hopper: three starts of 0.11 and eleven of 0.19."""

PARALLEL_EAGER = Since[Span | None](((0,), None), ((0, 18), _mib(300, 900, 2270)))
"""The same with NVLink where nothing is compiled, and so no collectives are joined to what follows
them: two H200 under an eager start had at most 1.0 GiB left for them."""

INSIDE_ON_ROCM = _mib(100, 900, 2000)
"""The same on AMD's cards, whose kernels are loaded meanwhile: about 1.2 GiB in one start of 0.11
on a card of 192 GB, whose own size is assumed."""

PARALLEL_ON_ROCM = _mib(300, 1800, 5000)
"""The same with tensor parallelism: 4.75 GiB beside the weights in one start on eight MI355X."""

INSIDE_PIPELINE = _mib(20, 72, 256)
"""The same with pipeline stages of one GPU each (0.07 GiB read four times)."""

LIBRARIES = _mib(0, 252, 380)
"""Library handles and the first request's workspaces on one GPU, outside the budget."""

SLACK = _mib(0, 128, 620)
"""What the caching allocator holds without using it."""


@lru_cache(maxsize=64)
def parse_version(text: str | None) -> Version:
    """``"0.8.5.post1"`` -> ``(0, 8, 5)``; None means the newest.

    Raises:
        DeploymentError: not a vLLM version, or one whose rules are not known.
    """
    match = RELEASE.fullmatch(text or NEWEST)
    if match is None:
        message = tr("{text!r:.40} is not a vLLM version such as {newest}.").format(
            text=text, newest=NEWEST
        )
        raise DeploymentError(message, field="runtime_version")
    version = tuple(int(part) for part in match.groups() if part is not None)
    if version < _OLDEST:
        message = tr(
            "vLLM {text} is older than 0.2, the oldest whose rules are known here."
        ).format(text=text)
        raise DeploymentError(message, field="runtime_version")
    return version


class StepSize(NamedTuple):
    """What one step may hold."""

    max_num_batched_tokens: int
    max_num_seqs: int


def default_step(device: Device, version: Version) -> StepSize:
    """Tokens and sequences of a step when neither is given, for a server on ``device``.

    Source:
        vLLM ``engine/arg_utils.py :: get_batch_defaults`` (0.8 to 0.33).
    """
    gib = device.total_bytes / 2**30
    if version < (0, 8) or (version < (0, 10, 1) and 0 < device.compute_capability < 8):
        return StepSize(2048, 256)
    if gib >= 160 and version >= _LARGEST_TIER:
        return StepSize(16384, 1024)
    left_out = _SMALL_DESPITE_MEMORY.at(version)
    is_large = gib >= 70 and not any(name in device.name for name in left_out)
    # A version without its last part may be any of them.
    rows = 1024 if is_large or (len(version) > 2 and version < _FEWER_ROWS) else 256
    return StepSize(8192 if is_large else 2048, rows)


_LARGEST_TIER, _FEWER_ROWS = (0, 28), (0, 8, 4)
_SMALL_DESPITE_MEMORY = Since[tuple[str, ...]](
    ((0,), ()), ((0, 9), ("A100",)), ((0, 33), ("A100", "GB10"))
)
"""Cards of 70 GiB and more that get the steps of smaller ones."""
