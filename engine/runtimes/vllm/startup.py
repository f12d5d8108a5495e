"""What a start of vLLM takes of one device beside weights and pool, by rank and device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.architecture.spec import Subject
from engine.budget.bounds import as_bound
from engine.budget.sequence_state import CACHED
from engine.runtimes.vllm import activations, graphs, overheads
from engine.runtimes.vllm.runner import Runner

if TYPE_CHECKING:
    from engine.devices.device import Device
    from engine.evidence import Estimate
    from engine.runtimes.vllm.activations import Step
    from engine.runtimes.vllm.graphs import Captures


@dataclass(frozen=True, slots=True)
class Startup:
    """The parts of one rank."""

    activations: Estimate
    """Peak of the profile run."""
    graphs: Estimate
    captures: Captures
    buffers: Estimate | None
    """Persistent buffers of model runner 2: in the share since 0.27, beside it before."""


@lru_cache(maxsize=CACHED)
def startup(step: Step, device: Device) -> Startup:
    """What ``step`` takes on ``device``."""
    sizes = graphs.captures(step)
    peak = activations.peak(step, device)
    buffers = None
    if step.last_stage and step.keeps_cache and step.runner is Runner.V2:
        buffers = overheads.sampler_buffers(step.spec.vocab_size, step.rows, step.tables)
    return Startup(
        as_bound(peak, step.spec.direction(Subject.ACTIVATIONS)),
        graphs.memory(step, sizes, device),
        sizes,
        buffers,
    )
