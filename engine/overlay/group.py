"""Which processes run the plan, what they hold on a device, and which rank sits where.

By names and command lines, as far as those tell. The plan is compared with what its own group of
processes holds, never with all that a device holds: that counts what others took, and a model
that is about to make room.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.devices.device import DeviceKind
from engine.telemetry import mapped
from engine.telemetry.commands import recognise
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind, Quality, own_bytes
from engine.units import MIB
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.budget.model import Budget
    from engine.telemetry.snapshot import ProcessReading, TelemetrySnapshot

_ENDINGS = re.compile(r"(?i)(?:[-_.](?:gguf|hf|instruct|it|chat))+$")
_LEAST_NAME = 4
_TENSOR_RANK = re.compile(r"(?:\b|_)TP(\d+)")
_PIPELINE_RANK = re.compile(r"(?:\b|_)PP(\d+)")
THERE_BYTES: Final = 64 * MIB
"""Less is no model: a bare driver context on a small card, a launcher's own memory."""
_HIDDEN_BYTES: Final = 256 * MIB
"""Held on a card without a single process in the driver's list: they are outside a container."""
_HIDDEN = Missing(
    tr_later("held by processes outside this container: the driver lists none of them here")
)
_UNTOLD = Missing(tr_later("this device doesn't say which process holds how much"))
_WEAKEST = (
    Quality.EXACT,
    Quality.RESIDENT,
    Quality.COMMITTED,
    Quality.OVER_COUNTS,
    Quality.NOT_REPORTED,
)


@dataclass(frozen=True, slots=True)
class Planned:
    """What to look for."""

    runtime: str
    """Key of the machine contract."""
    model: str
    """Hub id, catalogue name or file name."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the plan's processes hold on one device."""

    must_stay_bytes: int
    """Allocated by them; in host memory anonymous and shared pages."""
    file_bytes: int
    """Resident pages of mapped model files: the system may drop them, and the run is slow."""
    quality: Quality
    """The weakest of their figures."""
    pids: tuple[int, ...]

    @property
    def total_bytes(self) -> int:
        """What a plan predicts: both."""
        return self.must_stay_bytes + self.file_bytes


def planned(budget: Budget) -> Planned:
    """What to look for where ``budget`` is what was planned."""
    return Planned(budget.deployment.runtime, budget.model.id)


def held_by(reading: DeviceReading, plan: Planned) -> Held | Missing:
    """What the plan's processes hold on a device, or why nobody says."""
    if isinstance(reading.processes, Missing):
        return reading.processes
    used = reading.used_bytes
    is_hidden = not reading.processes and reading.pool is PoolKind.VRAM
    if is_hidden and isinstance(used, int) and used >= _HIDDEN_BYTES:
        return _HIDDEN
    ours = [p for p in reading.processes if runs(p, plan)]
    sizes = [p.used_bytes for p in ours if isinstance(p.used_bytes, int)]
    # A process that is there, but whose share the driver keeps to itself, is not nought.
    if len(sizes) < len(ours):
        return _UNTOLD
    quality = max((p.quality for p in ours), key=_WEAKEST.index, default=Quality.EXACT)
    return Held(sum(sizes), mapped.model_bytes(ours), quality, tuple(p.pid for p in ours))


def plan_bytes(reading: DeviceReading, plan: Planned) -> int | None:
    """What the plan's processes hold on a device; None where nobody says which there are."""
    held = held_by(reading, plan)
    return None if isinstance(held, Missing) else held.total_bytes


def foreign_bytes(reading: DeviceReading, plan: Planned) -> int | Missing:
    """What is held by anyone but the plan's processes and this program itself."""
    used, held = reading.used_bytes, held_by(reading, plan)
    if isinstance(used, Missing):
        return used
    if isinstance(held, Missing):
        return held
    return max(used - held.total_bytes - own_bytes(reading), 0)


def runs(process: ProcessReading, plan: Planned) -> bool:
    """Whether the process is of the plan's runtime and, if it names a model, of that model."""
    seen = recognise(process.name, process.command)
    if not seen.runtime or seen.runtime != plan.runtime:
        return False
    one, other = _plain(seen.model), _plain(plan.model)
    return len(one) < _LEAST_NAME or len(other) < _LEAST_NAME or one in other or other in one


def _plain(name: str) -> str:
    """The last part of a name, without endings and separators that differ between copies."""
    last = _ENDINGS.sub("", name.replace("\\", "/").rsplit("/", 1)[-1])
    return re.sub(r"[^a-z0-9]", "", last.lower())


@dataclass(frozen=True, slots=True)
class Places:
    """On which device each rank really runs."""

    by_rank: Mapping[int, str]
    """The device's uuid; ranks of devices that aren't here are left out."""
    basis: str
    """How that is known, in a phrase."""


def places(budget: Budget, snapshot: TelemetrySnapshot) -> Places:
    """Rank by rank the device it runs on: by the processes' titles, else in the driver's order.

    A runtime that was shown other devices than the plan's (``CUDA_VISIBLE_DEVICES``) takes them
    in the order in which they are numbered, which is that of the bus.
    """
    plan = planned(budget)
    meant = {r.rank: r.slot.uuid for r in budget.ranks if r.slot.uuid}
    ranks = [r.rank for r in budget.ranks if r.slot.device.kind is not DeviceKind.HOST]
    cards = [d for d in snapshot.devices if d.pool is not PoolKind.HOST]
    titled = _titled(cards, plan, budget.deployment.tensor_parallel_size)
    if ranks and set(titled) >= set(ranks):
        found = {rank: titled[rank] for rank in ranks}
        return Places(meant | found, tr("by the titles of the processes"))
    holding = [d.uuid for d in cards if (plan_bytes(d, plan) or 0) >= THERE_BYTES]
    is_elsewhere = set(holding) != {meant.get(rank) for rank in ranks}
    if is_elsewhere and len(holding) == len(ranks):
        found = dict(zip(ranks, holding, strict=True))
        return Places(meant | found, tr("in the order of the bus, where its processes hold memory"))
    return Places(meant, tr("as planned"))


def _titled(cards: Iterable[DeviceReading], plan: Planned, tensor_ranks: int) -> dict[int, str]:
    """Ranks that processes name in their titles (``VLLM::Worker_PP1_TP0``)."""
    found: dict[int, str] = {}
    for card in cards:
        processes = () if isinstance(card.processes, Missing) else card.processes
        for process in processes:
            tensor = _TENSOR_RANK.search(process.name) or _TENSOR_RANK.search(process.command)
            if tensor is None or not runs(process, plan):
                continue
            title = f"{process.name} {process.command}"
            pipeline = _PIPELINE_RANK.search(title)
            stage = int(pipeline[1]) if pipeline else 0
            found.setdefault(stage * tensor_ranks + int(tensor[1]), card.uuid)
    return found
