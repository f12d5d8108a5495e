"""What a start of vLLM takes of one device beside weights and pool, by rank and device."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import Subject
from engine.budget.bounds import as_bound
from engine.budget.sequence_state import CACHED
from engine.runtimes.vllm import activations, graphs

if TYPE_CHECKING:
    from engine.devices.device import Device
    from engine.evidence import Estimate
    from engine.runtimes.vllm.activations import Step
    from engine.runtimes.vllm.graphs import Captures


class Startup(NamedTuple):
    """The parts of one rank."""

    activations: Estimate
    """Peak of the profile run."""
    graphs: Estimate
    captures: Captures


@lru_cache(maxsize=CACHED)
def startup(step: Step, device: Device) -> Startup:
    """What ``step`` takes on ``device``."""
    sizes = graphs.captures(step)
    peak = activations.peak(step, device)
    return Startup(
        as_bound(peak, step.spec.direction(Subject.ACTIVATIONS)),
        graphs.memory(step, sizes, device),
        sizes,
    )
