"""Budgets as values: regions, ranks, sequence state. The same names and order everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import Direction, Subject, direction_of
from engine.evidence import Estimate, total
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.architecture.model import Model
    from engine.architecture.spec import Doubt
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine, Slot


class Region(StrEnum):
    """Where bytes go on a device (design, section 2). Order = table order."""

    WEIGHTS = "weights"
    KV_CACHE = "kv_cache"
    RECURRENT_STATE = "recurrent_state"
    ACTIVATIONS = "activations"
    CUDA_GRAPHS = "cuda_graphs"
    RUNTIME = "runtime"
    ALLOCATOR = "allocator"
    HEADROOM = "headroom"
    FOREIGN = "foreign"

    @property
    def label(self) -> str:
        """The name a person reads."""
        return tr(_LABELS[self])


_LABELS = {
    Region.WEIGHTS: tr_later("Weights"),
    Region.KV_CACHE: tr_later("KV cache"),
    Region.RECURRENT_STATE: tr_later("Recurrent state"),
    Region.ACTIVATIONS: tr_later("Activations"),
    Region.CUDA_GRAPHS: tr_later("CUDA graphs"),
    Region.RUNTIME: tr_later("Runtime"),
    Region.ALLOCATOR: tr_later("Allocator slack"),
    Region.HEADROOM: tr_later("Headroom"),
    Region.FOREIGN: tr_later("Others"),
}

_SUBJECTS = {
    Region.WEIGHTS: Subject.WEIGHTS,
    Region.KV_CACHE: Subject.SEQUENCE_STATE,
    Region.RECURRENT_STATE: Subject.SEQUENCE_STATE,
    Region.ACTIVATIONS: Subject.ACTIVATIONS,
}

STACK_ORDER = (Region.FOREIGN, *(r for r in Region if r is not Region.FOREIGN))
"""Bottom to top in the picture: the measured total contains the others, so they lie below."""


@dataclass(frozen=True, slots=True)
class RegionBudget:
    """One region of one rank."""

    region: Region
    estimate: Estimate
    """What the runtime holds: for a pool, what it reserves."""
    least_bytes: int | None
    """The architecture's minimum for this plan; None where there is no such thing."""
    note: str
    """How it is worked out, in one short line."""
    gap: str = ""
    """Why the runtime holds more than the least, in one sentence; empty where it doesn't."""


@dataclass(frozen=True, slots=True)
class Moments:
    """What a rank holds at some moments beside its regions, each part with its name."""

    load: tuple[Estimate, ...] = ()
    """Beside the weights, at the worst moment of loading them."""
    decode: Estimate | None = None
    """In place of the activations while every request gets its next token; None: as many."""
    sustained: tuple[Estimate, ...] = ()
    """Beside everything, once the first requests have run: what no start-up shows."""


@dataclass(frozen=True, slots=True)
class RankBudget:
    """One device's budget. ``regions`` holds every Region; absent ones are 0 with a note."""

    rank: int
    slot: Slot
    regions: Mapping[Region, RegionBudget]
    needed: Estimate
    """KV cache and state that the plan needs on this rank, whatever the runtime reserves."""
    has_pool: bool
    """Whether the runtime takes the rest of the device as a pool (vLLM), so that the plan has
    to fit the pool; otherwise it has to fit below the load line."""
    moments: Moments = Moments()
    """What comes on top at some moments; ``phases.peaks`` makes the peak of every phase of it."""
    unmatched_bytes: int = 0
    """Of the headroom: what this rank's pool could take, were the poorest rank's as large."""

    @property
    def planned(self) -> Estimate:
        """Sum of all regions, others and headroom included."""
        return total(r.estimate.named(r.region.label) for r in self.regions.values())

    @property
    def free_bytes(self) -> int:
        """Below the load line, above the plan; negative if the plan is over it."""
        planned_bytes = sum([r.estimate.likely_bytes for r in self.regions.values()])
        return self.slot.device.allocatable.likely_bytes - planned_bytes


class SequenceState(NamedTuple):
    """KV cache and recurrent state of a sequence, and the pool that holds them.

    The least is of the whole model, once. All other sizes are of one rank: the fullest, which
    decides for all. Counts are None where the runtime has no such thing.
    """

    architecture_bytes_per_sequence: int
    """The least at the plan's context, whole model, without any rounding or copies."""
    reserved_bytes_per_sequence: int
    """What this runtime sets aside for it on one rank."""
    bytes_per_token: int
    """Growth per further token at the plan's context, one rank."""
    pool_bytes: int | None = None
    """All that is set aside on one rank."""
    num_blocks: int | None = None
    block_size: int | None = None
    bytes_per_block: int | None = None
    pool_tokens: int | None = None
    max_concurrency: float | None = None
    formula: str = ""
    """The KV equation with its inputs filled in."""


@dataclass(frozen=True, slots=True)
class LlamaCppBuffers:
    """llama.cpp's own buffers by device name (``CPU``, ``CUDA0`` …), bytes."""

    model_buffers: Mapping[str, int]
    kv_buffers: Mapping[str, int]
    rs_buffers: Mapping[str, int]
    compute_buffers: Mapping[str, int]
    output_buffer: int


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """The answer to "where does every byte go", before any verdict."""

    model: Model
    deployment: Deployment
    """With every default filled in."""
    machine: Machine
    ranks: tuple[RankBudget, ...]
    sequence_state: SequenceState
    assumptions: tuple[str, ...] = ()
    """Every default used, one sentence each."""
    warnings: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    """Why this release of the runtime refuses to start though the memory would do."""
    doubts: tuple[Doubt, ...] = ()
    """Why figures are only bounds, and in which direction; they make the verdict careful."""
    llama_cpp: LlamaCppBuffers | None = None

    @property
    def bounds(self) -> tuple[str, ...]:
        """The reasons of all doubts, one sentence each."""
        return tuple(dict.fromkeys(doubt.reason for doubt in self.doubts))

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left out: every figure in doubt is counted at its most."""
        return all(doubt.direction is Direction.UPPER for doubt in self.doubts)

    def direction(self, region: Region) -> Direction | None:
        """Which way the figure of ``region`` is in doubt; None where it is not."""
        subject = _SUBJECTS.get(region)
        return direction_of(self.doubts, subject) if subject else None
