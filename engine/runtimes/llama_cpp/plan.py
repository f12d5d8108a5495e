"""All buffers of one deployment on one machine, and the context that ``--fit`` would choose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.devices.device import DeviceKind
from engine.errors import DeploymentError
from engine.runtimes.llama_cpp import buffers
from engine.runtimes.llama_cpp.builds import build_of
from engine.runtimes.llama_cpp.compute import Graph
from engine.runtimes.llama_cpp.offload import compute_buffers
from engine.runtimes.llama_cpp.placement import HOST, Placement, place
from engine.runtimes.llama_cpp.projector import Projector, projector
from engine.runtimes.llama_cpp.settings import (
    CELL_ROUNDING,
    LEAST_FITTED_CONTEXT,
    Settings,
    chosen_cells,
    settle,
)
from engine.runtimes.platforms import backend_of
from engine.units import GIB, ceil_div
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.spec import ArchitectureSpec
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine, Slot
    from engine.runtimes.llama_cpp.shape import Shape

FIT_MARGIN_BYTES = GIB
"""What ``--fit`` leaves free on every device."""
_UNKNOWN_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Plan:
    """Bytes of each buffer by device index (``HOST`` = the CPU)."""

    settings: Settings
    placement: Placement
    graph: Graph
    model: dict[int, int]
    kv: dict[int, int]
    state: dict[int, int]
    compute: dict[int, int]
    output: int
    notes: tuple[str, ...]
    projector: Projector | None = None
    """Encoders on the first GPU, or on the host without one."""
    is_fitted_context: bool = False

    @property
    def is_cuda(self) -> bool:
        """Whether GPU buffers are padded as CUDA and HIP do."""
        return self.settings.is_cuda

    def projected(self, device: int) -> int:
        """What ``--fit`` counts on one device."""
        size = self.model[device] + self.kv[device] + self.state[device] + self.compute[device]
        if self.projector is not None and device == self.encoders_on:
            size += self.projector.likely_bytes
        return size + (self.output if device == HOST else 0)

    @property
    def encoders_on(self) -> int:
        """The device of the encoders: the first GPU, whatever layers it has."""
        return 0 if self.placement.devices else HOST


def gpu_slots(machine: Machine, deployment: Deployment) -> tuple[Slot, ...]:
    """The GPUs that llama.cpp uses: all of them, or the first under ``--split-mode none``.

    Raises:
        DeploymentError: the build asked for has no code for one of them.
    """
    gpus = tuple(s for s in machine.slots if s.device.kind is not DeviceKind.HOST)
    if "cpu" in {backend_of(deployment, s.device) for s in gpus}:
        return ()
    return gpus[:1] if deployment.split_mode == "none" else gpus


def plan(
    shape: Shape, deployment: Deployment, machine: Machine, spec: ArchitectureSpec | None = None
) -> Plan:
    """The buffers llama-server allocates; with the encoders of ``spec``, if it has any.

    Raises:
        DeploymentError: llama.cpp would refuse; names the setting.
    """
    total = chosen_cells(deployment)
    if total is not None:
        return _planned(shape, deployment, machine, total, spec)
    trained = shape.context_length or _UNKNOWN_CONTEXT
    whole = _planned(shape, deployment, machine, trained, spec)
    if (
        deployment.n_ctx == 0
        or trained <= LEAST_FITTED_CONTEXT
        or _fits(whole, machine, deployment)
    ):
        return whole
    return _reduced(shape, deployment, machine, whole, spec)


def _reduced(
    shape: Shape,
    deployment: Deployment,
    machine: Machine,
    whole: Plan,
    spec: ArchitectureSpec | None,
) -> Plan:
    """The largest context that leaves the margin free, never under the least one.

    The slack falls almost straight with the context, so a chord finds the spot in a few plans.
    """

    def at(steps: int) -> tuple[Plan, int]:
        tried = _planned(shape, deployment, machine, steps * CELL_ROUNDING, spec)
        return tried, _slack_bytes(tried, machine, deployment)

    low, high = LEAST_FITTED_CONTEXT // CELL_ROUNDING, ceil_div(whole.settings.n_ctx, CELL_ROUNDING)
    best, above = at(low)
    below = -_slack_bytes(whole, machine, deployment)
    while above >= 0 and high - low > 1:
        chord = low + (high - low) * above // (above + below)
        middle = min(max(chord, low + 1), high - 1)
        tried, slack = at(middle)
        if slack >= 0:
            low, best, above = middle, tried, slack
        else:
            high, below = middle, -slack
    return replace(best, is_fitted_context=True)


def _slack_bytes(planned: Plan, machine: Machine, deployment: Deployment) -> int:
    """What is free on the fullest device beyond ``--fit``'s margin."""
    slots = gpu_slots(machine, deployment)
    if not slots:
        # Without a GPU llama.cpp compares with all of the machine's RAM.
        return machine.host.device.total_bytes - planned.projected(HOST) - FIT_MARGIN_BYTES
    return min(
        _free(slot) - planned.projected(index) - FIT_MARGIN_BYTES
        for index, slot in enumerate(slots)
    )


def _fits(planned: Plan, machine: Machine, deployment: Deployment) -> bool:
    return _slack_bytes(planned, machine, deployment) >= 0


def _free(slot: Slot) -> int:
    return slot.device.allocatable.likely_bytes - slot.foreign.likely_bytes


def _shares(slots: tuple[Slot, ...], deployment: Deployment) -> list[float]:
    asked = deployment.tensor_split
    if asked is None:
        free = [float(max(_free(slot), 0)) for slot in slots]
        return free if any(free) else [1.0] * len(slots)
    if len(asked) > len(slots) > 0:
        raise DeploymentError(
            tr("tensor_split names {asked} GPUs; this machine has {slots}.").format(
                asked=len(asked), slots=len(slots)
            ),
            field="tensor_split",
        )
    return [*asked, *[0.0] * (len(slots) - len(asked))] if slots else []


def _planned(
    shape: Shape,
    deployment: Deployment,
    machine: Machine,
    total: int,
    spec: ArchitectureSpec | None,
) -> Plan:
    slots = gpu_slots(machine, deployment)
    placement = place(
        shape,
        _shares(slots, deployment),
        deployment.n_gpu_layers,
        deployment.n_cpu_moe,
        output_first=build_of(deployment.runtime_version).output_first,
    )
    on_gpu = bool(slots) and not placement.on_host_only
    backend = backend_of(deployment, slots[0].device) if slots else "cpu"
    settings, notes = settle(deployment, shape, total=total, on_gpu=on_gpu, backend=backend)
    cuda = settings.is_cuda
    graph = Graph(shape, settings)
    return Plan(
        settings=settings,
        placement=placement,
        graph=graph,
        model=buffers.model_buffers(shape, placement, cuda=cuda, mmap=settings.mmap),
        kv=buffers.kv_buffers(shape, settings, placement, cuda=cuda),
        state=buffers.state_buffers(shape, settings, placement),
        compute=compute_buffers(graph, placement, cuda=cuda),
        output=buffers.output_bytes(shape, settings),
        notes=notes,
        projector=projector(spec, settings)
        if spec and not deployment.language_model_only
        else None,
    )


def placements(
    shape: Shape, deployment: Deployment, machine: Machine, spec: ArchitectureSpec | None = None
) -> tuple[Deployment, ...]:
    """What ``--fit`` would try for a plan that doesn't fit its GPUs: fewer experts or layers there.

    Experts go to the host first, from layer 0; only when all of them are there, whole layers.
    """
    slots = gpu_slots(machine, deployment)
    discrete = any(slot.device.kind is DeviceKind.DISCRETE for slot in slots)
    if not discrete or deployment.n_gpu_layers not in (None, -1):
        return ()
    found: list[Deployment] = []
    layers = shape.num_layers
    total = chosen_cells(deployment) or plan(shape, deployment, machine, spec).settings.n_ctx

    def fits(tried: Deployment) -> bool:
        return _fits(_planned(shape, tried, machine, total, spec), machine, tried)

    if fits(deployment):
        return ()
    if shape.moe is not None:
        moved = _first(lambda n: fits(deployment.with_(n_cpu_moe=n)), 1, layers)
        if moved is not None:
            found.append(deployment.with_(n_cpu_moe=moved))
    units = shape.blocks_in_file + 1
    spared = _first(lambda n: fits(deployment.with_(n_gpu_layers=units - n)), 1, units - 1)
    if spared is not None:
        found.append(deployment.with_(n_gpu_layers=units - spared))
    return tuple(found)


def _first(fits: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest number in the range that fits; None where none does. ``fits`` is monotone."""
    if low > high or not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low
