"""What the sliders of a plan stop at: round numbers, and no more than model and machine allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.devices import catalogue
from engine.runtimes.checks import splits_evenly
from gui.kit.stop_slider import octaves

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.devices.device import Machine
    from gui.sizing.plan import Plan

CONTEXT_PARTS = 8
"""Stops of the context to a doubling of it."""
PARTS = 4
"""Of everything else."""
_CONTEXT_LOW = 512
_CONTEXT_HIGH = 2**20
"""End of the context where the model states no limit of its own."""
_REQUESTS = 256
_TOKENS_LOW, _TOKENS_HIGH = 64, 2**16
_DEVICES = 64
"""Most of a device of which a plan takes as many as it has ranks."""
_SHARE = tuple(round(0.01 * n, 2) for n in range(5, 101))
_SHARES = frozenset({"gpu_memory_utilization", "mem_fraction_static"})
_BATCHES_OF_REQUESTS = frozenset(
    {"concurrency", "max_num_seqs", "max_running_requests", "cuda_graph_max_bs", "n_parallel",
     "batch_size"}
)  # fmt: skip
_BATCHES_OF_TOKENS = frozenset(
    {"max_num_batched_tokens", "chunked_prefill_size", "n_batch", "n_ubatch", "prefill_chunk_size",
     "prefill_step_size"}
)  # fmt: skip


def context_stops(longest: int | None, context: int | None) -> tuple[int, ...]:
    """Of a model that takes ``longest`` tokens, with ``context`` in force."""
    high = max(longest or _CONTEXT_HIGH, context or 1)
    return octaves(min(_CONTEXT_LOW, longest or _CONTEXT_LOW), high, CONTEXT_PARTS)


def stops_of(
    name: str, plan: Plan, model: Model | None, machine: Machine | None
) -> tuple[float, ...]:
    """The stops of the setting ``name``; empty where a number has to be typed."""
    if name in _SHARES:
        return _SHARE
    if name in _BATCHES_OF_REQUESTS:
        return octaves(1, max(_REQUESTS, getattr(plan.deployment, name) or 0), PARTS)
    if name in _BATCHES_OF_TOKENS:
        return octaves(_TOKENS_LOW, _TOKENS_HIGH, PARTS)
    if model is None or not model.spec.layers:
        return ()
    layers = len(model.spec.layers)
    of_the_model = {
        "n_cpu_moe": lambda: range(layers + 1),
        # One more: what comes after the last layer.
        "n_gpu_layers": lambda: range(layers + 2),
        "tensor_parallel_size": lambda: _tensor_sizes(plan, model, machine),
        "pipeline_parallel_size": lambda: range(
            1, min(layers, _devices_for("pipeline_parallel_size", plan, machine)) + 1
        ),
    }
    return tuple(of_the_model[name]()) if name in of_the_model else ()


def _tensor_sizes(plan: Plan, model: Model, machine: Machine | None) -> list[int]:
    """Sizes for which there are devices, and which divide the model."""
    most = _devices_for("tensor_parallel_size", plan, machine)
    spread = bool(plan.deployment.enable_expert_parallel)
    further = range(2, most + 1)
    return [1, *(n for n in further if splits_evenly(model.spec, n, expert_parallel=spread))]


def _devices_for(size: str, plan: Plan, machine: Machine | None) -> int:
    """What one parallel size may come to beside the others."""
    deployment = plan.deployment
    is_given = plan.device is None or catalogue.lists(plan.device)
    devices = len(machine.slots) if machine is not None and is_given else _DEVICES
    others = deployment.ranks * deployment.data_parallel_size // getattr(deployment, size)
    return max(1, devices // others)
