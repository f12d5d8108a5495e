"""A run that a log tells of, as something to learn from."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.budget.learned import key_of
from engine.budget.model import Region
from engine.contract.run_plan import room_of
from engine.devices.device import DeviceKind
from engine.errors import LessonError
from engine.lessons import TOTAL, Lesson, Measured
from engine.logs.buffers import is_host
from engine.overlay.seen import Seen
from engine.runtimes import registry
from engine.text import printable
from engine.units import MIB, format_gib
from engine.words import tr

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget
    from engine.contract.run import Run
    from engine.devices.device import Machine
    from engine.logs.reconcile import RankRows
    from engine.overlay.overlay import Overlay, RankOverlay

_SAME_SIZE = 0.04
"""A log states what a framework or a driver calls the device's size."""
_ALL_HELD = (Seen.PREFILL, Seen.DECODE, Seen.SUSTAINED)
_NOT_OF_THE_RUN = frozenset({Region.FOREIGN, Region.HEADROOM})


def lesson_of(run: Run, here: Machine, name: str, now_s: float) -> Lesson:
    """What ``run`` taught of this machine.

    Args:
        run: a log explained.
        here: this machine, on which it ran.
        name: the log's name.
        now_s: Unix time.

    Raises:
        LessonError: nothing can be learned from it; says why.
    """
    if run.plan is None:
        raise LessonError(tr("Nothing to learn: {why}").format(why=run.unplanned))
    if run.has_failed:
        message = tr("A run that failed is not learned from: what it would have held is not known.")
        raise LessonError(message)
    _check_size(run, here)
    plan = run.plan.deployment.with_(kv_pool_bytes=None)
    # Beside the rules' own figures, not beside what earlier runs made of them.
    ruled = replace(here, lessons=())
    budget = registry.get(plan.runtime).plan(run.plan.model, plan, ruled)
    if not run.reading.version and not plan.runtime_version:
        message = tr("Nothing to learn: the log does not say which release wrote it.")
        raise LessonError(message)
    ranks = tuple(_measured(run, rank, budget) for rank in budget.ranks)
    if not any(ranks):
        raise LessonError(tr("Nothing to learn: the log states no region of this plan."))
    source = tr("From the log {name}").format(name=printable(name, 120))
    return Lesson(uuid.uuid4().hex, round(now_s, 3), key_of(budget), ranks, source)


def lesson_of_watched(budget: Budget, overlay: Overlay, release: str, now_s: float) -> Lesson:
    """What a run that was watched taught: the most that the plan's processes held on each rank.

    Args:
        budget: the plan that ran.
        overlay: what the samples showed of it.
        release: of the runtime, as it or its log states it.
        now_s: Unix time.

    Raises:
        LessonError: nothing can be learned yet; says why.
    """
    if not release:
        raise LessonError(tr("Nothing to learn: nobody says which release of the runtime runs."))
    peaks = {rank.rank: _peak_bytes(rank) for rank in overlay.ranks}
    missing = [rank.rank for rank in budget.ranks if not peaks.get(rank.rank)]
    if missing:
        message = tr("Nothing to learn yet: no prompt was read while rank {rank} was watched.")
        raise LessonError(message.format(rank=missing[0]))
    ranks = tuple({TOTAL: _of_total(rank, peaks[rank.rank])} for rank in budget.ranks)
    key = replace(key_of(budget), runtime_version=release)
    source = tr("Watched on this computer")
    return Lesson(uuid.uuid4().hex, round(now_s, 3), key, ranks, source)


def _peak_bytes(rank: RankOverlay) -> int:
    """Of the phases in which all that the plan counts is held; 0 where none was seen."""
    peaks = (rank.run.peaks.get(phase) for phase in _ALL_HELD)
    return max((peak.own_bytes for peak in peaks if peak), default=0)


def _of_total(rank: RankBudget, size_bytes: int) -> Measured:
    """The figure beside what the plan expected of all its regions together."""
    parts = [e.estimate for r, e in rank.regions.items() if r not in _NOT_OF_THE_RUN]
    low, likely, high = (
        sum(part.low_bytes for part in parts),
        sum(part.likely_bytes for part in parts),
        sum(part.high_bytes for part in parts),
    )
    return Measured(size_bytes, MIB, low, likely, high)


def _check_size(run: Run, here: Machine) -> None:
    """A log of another machine teaches nothing of this one."""
    room = room_of(run.reading)
    sizes = [slot.device.total_bytes for slot in here.slots]
    if room is None or any(abs(room - size) <= size * _SAME_SIZE for size in sizes):
        return
    message = tr(
        "The log is of a device with {room}, this computer has {size}: it is not learned from."
    )
    listed = ", ".join(format_gib(size, digits=1) for size in dict.fromkeys(sizes))
    raise LessonError(message.format(room=format_gib(room, digits=1), size=listed))


def _measured(run: Run, rank: RankBudget, budget: Budget) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    for rows in run.rows:
        if not _is_of(run, rows, rank, budget):
            continue
        for row in rows.rows:
            stated = row.stated
            if stated is None or row.region in _NOT_OF_THE_RUN:
                continue
            rule = rank.regions[row.region].estimate
            # Of the computer's own memory a log names several kinds, each with its part.
            before = found.get(row.region.value)
            size = max(stated.size_bytes, 0) + (before.size_bytes if before else 0)
            half = stated.half_bytes + (before.half_bytes if before else 0)
            found[row.region.value] = Measured(
                size, half, rule.low_bytes, rule.likely_bytes, rule.high_bytes
            )
    return found


def _is_of(run: Run, rows: RankRows, rank: RankBudget, budget: Budget) -> bool:
    """Whether ``rows`` are those of ``rank``: by its number, and by where its memory is."""
    if is_host(rows.name) != (rank.slot.device.kind is DeviceKind.HOST):
        return False
    if len(budget.ranks) == 1 or is_host(rows.name):
        return True
    numbers = {reading.name: reading.index for reading in run.reading.ranks}
    return numbers.get(rows.name) == rank.rank
