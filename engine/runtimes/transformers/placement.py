"""Which device holds which layer: ``device_map``, as Transformers works it out.

Source:
    Transformers 5.24 ``integrations/accelerate.py :: get_max_memory``, ``get_balanced_memory``,
    ``infer_auto_device_map``; accelerate 1.15 ``big_modeling.py :: dispatch_model``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from engine.architecture.spec import ModuleClass
from engine.budget.sequence_state import CACHED
from engine.budget.weights import WeightLayout, weights
from engine.devices.device import DeviceKind
from engine.runtimes import overheads
from engine.runtimes.transformers import releases

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec, Direction
    from engine.budget.weights import Weights
    from engine.devices.device import Slot
    from engine.evidence import Basis
    from engine.runtimes.transformers.releases import Version

NOT_SPREAD = "none"
MAPS = ("auto", "balanced", "balanced_low_0", "sequential", NOT_SPREAD)
_SMALLER_WHEN_QUANTISED = ("nf4", "int8")
"""Formats of bitsandbytes, whose quantisers leave a tenth of every device."""
_BEFORE_LAYERS = (
    ModuleClass.EMBEDDING,
    ModuleClass.VISION,
    ModuleClass.AUDIO,
    ModuleClass.OTHER,
)


_NEVER_CUT = frozenset({ModuleClass.VISION, ModuleClass.AUDIO})


@dataclass(frozen=True, slots=True)
class Unit:
    """What is placed as a whole: a table, a tower, a layer, the head."""

    size_bytes: int
    layer: int | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """Layers and bytes of weights that one device (or one group of ranks) holds."""

    layers: tuple[int, ...]
    size_bytes: int
    basis: Basis
    source: str
    direction: Direction | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Shares of every GPU, of the RAM and of the disk."""

    devices: tuple[Share, ...]
    host: Share
    disk: Share
    on_loan_bytes: int = 0
    """The largest layer that lies elsewhere: it comes to the first device to compute."""

    @property
    def away(self) -> tuple[int, ...]:
        """Layers that lie in RAM or on disk and compute on the first device."""
        return (*self.host.layers, *self.disk.layers)


class Cut(NamedTuple):
    """How the devices hold a model."""

    weight_format: str
    ranks: int = 1
    """Those that share every layer."""
    whole: frozenset[ModuleClass] = frozenset()
    """Classes of tensors that each of them holds whole."""

    def layout(self, stages: int = 1) -> WeightLayout:
        """The same as the weights' layout, in so many groups of layers."""
        return WeightLayout(self.weight_format, self.ranks, stages, whole=self.whole)


def kept_whole(spec: ArchitectureSpec, version: Version) -> frozenset[ModuleClass]:
    """Classes of tensors that every rank of a tensor-parallel plan holds whole.

    Plans name the layers and the head. A table of its own is in none of them; one that is the
    head as well is since 5.15.

    Source:
        Transformers 5.24 ``models/*/configuration_*.py :: base_model_tp_plan``, ``_tp_plan`` of
        the classes with a head; ``configuration_utils.py`` adds ``embedding_rowwise``.
    """
    if spec.tie_word_embeddings and version >= releases.SPLIT_TABLES:
        return _NEVER_CUT
    return _NEVER_CUT | {ModuleClass.EMBEDDING}


def place(
    model: Model, cut: Cut, slots: tuple[Slot, ...], host: Slot, device_map: str
) -> Placement:
    """The placement of ``model`` on ``slots``, as many of them for every share as it is cut into.

    Args:
        model: the model.
        cut: how the devices hold it.
        slots: the devices in order.
        host: the machine's RAM.
        device_map: one of ``MAPS``.
    """
    tp = cut.ranks
    groups = [slots[at : at + tp] for at in range(0, len(slots), tp)]
    limits = tuple(min(_free(slot) for slot in group) for group in groups)
    if device_map == NOT_SPREAD:
        return _placed(model, cut, limits[:1], None, device_map)
    # One memory is counted once: what CPU and GPU share has no RAM beside it.
    apart = tp == 1 and all(s.device.kind is DeviceKind.DISCRETE for s in slots)
    return _placed(model, cut, limits, _free(host) if apart else None, device_map)


def _free(slot: Slot) -> int:
    """What a process finds free, its own context already there."""
    free = slot.device.allocatable.likely_bytes - slot.foreign.likely_bytes
    return max(free - overheads.torch_process(slot.device).likely_bytes, 0)


@lru_cache(maxsize=1024)
def _placed(
    model: Model,
    cut: Cut,
    free: tuple[int, ...],
    ram: int | None,
    device_map: str,
) -> Placement:
    if len(free) == 1 and (device_map == NOT_SPREAD or ram is None):
        found = weights(model, cut.layout())
        whole = sum(stage.size_bytes for stage in found.stages)
        return _whole(model, found, whole)
    found, units = units_of(model, cut)
    gpus = list(free) if device_map == "sequential" else balanced(units, list(free), device_map)
    if device_map == NOT_SPREAD:
        gpus = list(free)
    host = None if ram is None else ram * 9 // 10
    if found.weight_format.startswith(_SMALLER_WHEN_QUANTISED):
        gpus = [limit * 9 // 10 for limit in gpus]
        host = None if host is None else host * 9 // 10
    homes = fill(units, gpus, host)
    shares = [_share(units, homes, at, found) for at in range(len(free) + 2)]
    away = [u.size_bytes for u, home in zip(units, homes, strict=True) if home >= len(free)]
    return Placement(tuple(shares[:-2]), shares[-2], shares[-1], max(away, default=0))


def _whole(model: Model, found: Weights, size: int) -> Placement:
    layers = tuple(range(len(model.spec.layers)))
    nothing = Share((), 0, found.basis, found.source, found.direction)
    share = Share(layers, size, found.basis, found.source, found.direction)
    return Placement((share,), nothing, nothing)


def _share(units: tuple[Unit, ...], homes: list[int], at: int, found: Weights) -> Share:
    here = [unit for unit, home in zip(units, homes, strict=True) if home == at]
    layers = tuple(unit.layer for unit in here if unit.layer is not None)
    size = sum(unit.size_bytes for unit in here)
    return Share(layers, size, found.basis, found.source, found.direction)


@lru_cache(maxsize=CACHED)
def units_of(model: Model, cut: Cut) -> tuple[Weights, tuple[Unit, ...]]:
    """The model's weights, and its parts in the order in which they are placed."""
    count = max(len(model.spec.layers), 1)
    found = weights(model, cut.layout(stages=count))
    first, last = found.stages[0].by_module, found.stages[-1].by_module
    before = {module: first.get(module, 0) for module in _BEFORE_LAYERS}
    head = last.get(ModuleClass.LM_HEAD, 0)
    sizes = [stage.size_bytes for stage in found.stages]
    if model.spec.tie_word_embeddings and count > 1:
        # The tied copy stays where the table is.
        sizes[-1] -= last.get(ModuleClass.EMBEDDING, 0)
    sizes[0] -= sum(before.values())
    sizes[-1] -= head
    units = [Unit(size) for size in before.values() if size]
    units += [Unit(size, at) for at, size in enumerate(sizes[: len(model.spec.layers)])]
    if not model.spec.layers:
        units.append(Unit(sizes[0]))
    return found, (*units, *([Unit(head)] if head else []))


def balanced(units: tuple[Unit, ...], free: list[int], device_map: str) -> list[int]:
    """Bytes that each GPU may take: an even part and room for one layer, the last what it has.

    A single GPU keeps a tenth free. ``balanced_low_0`` gives the first GPU only what the others
    have no room for.
    """
    if len(free) == 1:
        return [free[0] * 9 // 10]
    low_zero = device_map == "balanced_low_0"
    whole = sum(unit.size_bytes for unit in units)
    room = max(unit.size_bytes for unit in units) * 5 // 4
    even = whole // (len(free) - low_zero) + room
    limits = [min(even, limit) for limit in free[:-1]] + free[-1:]
    if low_zero:
        limits[0] = min(max(whole - sum(limits[1:]), 0), free[0])
    return limits


def fill(units: tuple[Unit, ...], gpus: list[int], host: int | None) -> list[int]:
    """The device of each unit: a GPU's index, then the RAM's, then the disk's.

    Devices are filled in order and never gone back to. The first GPU and the RAM keep room for
    the largest part that is still to come, unless all that is left of the layers fits whole.
    """
    limits: list[int | None] = [*gpus, 0 if host is None else host, None]
    largest = [0] * (len(units) + 1)
    for at in range(len(units) - 1, -1, -1):
        largest[at] = max(units[at].size_bytes, largest[at + 1])
    layers = [at for at, unit in enumerate(units) if unit.layer is not None]
    starts = {0, layers[0]} if layers else {0}
    stop = layers[-1] + 1 if layers else len(units)
    homes: list[int] = []
    device, used = 0, 0
    while len(homes) < len(units):
        at, limit = len(homes), limits[device]
        size = units[at].size_bytes
        if limit is None:
            return homes + [device] * (len(units) - at)
        keeps_room = device in (0, len(gpus))
        body = sum(unit.size_bytes for unit in units[at:stop])
        if device == 0 and at in starts and used + body <= limit - largest[stop]:
            homes += [device] * (stop - at)
            used += body
        elif used + size <= limit - (largest[at + 1] if keeps_room else 0):
            homes.append(device)
            used += size
        else:
            device, used = device + 1, 0
    return homes
