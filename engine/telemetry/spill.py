"""Work of a GPU that was moved to the system's memory: ten times slower, without an error.

Windows moves pages without a word, and so do drivers elsewhere (GTT). It is told once per episode:
when what a runtime has there grew by more than 256 MiB over what it had before, or when the
device's share of it did so within a minute of a load.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engine.telemetry.commands import recognise
from engine.telemetry.snapshot import DeviceReading, Missing, PoolKind
from engine.units import MIB, format_gib
from engine.words import tr

if TYPE_CHECKING:
    from engine.telemetry.snapshot import ProcessReading, TelemetrySnapshot

LEAST_BYTES: Final = 256 * MIB
LOAD_BYTES: Final = 256 * MIB
"""A growth of a device's use within a minute that means that a model is being loaded."""
WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Spill:
    """One episode."""

    uuid: str
    """Device whose work it is."""
    pid: int
    """0 where the device's share grew and no process is known."""
    name: str
    """The process, or empty."""
    size_bytes: int
    """What was added to what was there before."""
    at_s: float
    """On the clock of the snapshots (``monotonic_s``)."""
    device: str = ""
    """The device's name."""

    @property
    def words(self) -> str:
        """What happened and what helps, in a sentence or two."""
        size = format_gib(self.size_bytes, digits=1)
        happened = (
            tr("{size} of {name} on {device} run from system memory, which is slow.")
            if self.name
            else tr("{size} of the work on {device} went to system memory, which is slow.")
        )
        helps = tr("A shorter context, fewer requests at once or a smaller batch leaves room.")
        return f"{happened.format(size=size, name=self.name, device=tr(self.device))} {helps}"


@dataclass(slots=True)
class _Share:
    """What one process, or one device, has in the system's memory."""

    least_bytes: int
    """The least of this episode: what was there before."""
    is_told: bool = False


@dataclass(slots=True)
class _Past:
    """A device's last minute: of each second its least use and share of the system's memory."""

    moments: deque[tuple[float, int, int]] = field(default_factory=deque)
    is_told: bool = False


class SpillWatch:
    """Takes the snapshots in order and tells each episode once."""

    def __init__(self) -> None:
        self._shares: dict[tuple[str, int], _Share] = {}
        self._pasts: dict[str, _Past] = {}

    def take(self, snapshot: TelemetrySnapshot) -> tuple[Spill, ...]:
        """The episodes that begin with this snapshot."""
        found: list[Spill] = []
        seen: set[tuple[str, int]] = set()
        for device in snapshot.devices:
            if isinstance(device.processes, Missing) or device.pool is PoolKind.HOST:
                continue
            for process in device.processes:
                if recognise(process.name, process.command).runtime:
                    seen.add((device.uuid, process.pid))
                    found += self._of_process(device, process, snapshot.monotonic_s)
        self._shares = {key: share for key, share in self._shares.items() if key in seen}
        told = {spill.uuid for spill in found} | {
            k[0] for k, s in self._shares.items() if s.is_told
        }
        for device in snapshot.devices:
            if device.pool is not PoolKind.HOST:
                spills = self._of_device(device, snapshot.monotonic_s)
                found += [spill for spill in spills if spill.uuid not in told]
        return tuple(found)

    def _of_process(
        self, device: DeviceReading, process: ProcessReading, at_s: float
    ) -> list[Spill]:
        there = process.spill_bytes
        if isinstance(there, Missing):
            return []
        # A process that is new has brought all of it.
        share = self._shares.setdefault(
            (device.uuid, process.pid), _Share(there if there <= LEAST_BYTES else 0)
        )
        share.least_bytes = min(share.least_bytes, there)
        grown = there - share.least_bytes
        if grown <= LEAST_BYTES:
            share.is_told = False
            return []
        if share.is_told:
            return []
        share.is_told = True
        return [Spill(device.uuid, process.pid, process.name, grown, at_s, device.name)]

    def _of_device(self, device: DeviceReading, at_s: float) -> list[Spill]:
        used, there = device.used_bytes, device.spill_bytes
        if isinstance(used, Missing) or isinstance(there, Missing):
            return []
        past = self._pasts.setdefault(device.uuid, _Past())
        while past.moments and at_s - past.moments[0][0] > WITHIN_S:
            past.moments.popleft()
        if past.moments and at_s - past.moments[-1][0] < 1.0:
            began, least, little = past.moments.pop()
            past.moments.append((began, min(least, used), min(little, there)))
        else:
            past.moments.append((at_s, used, there))
        loaded = used - min(moment[1] for moment in past.moments)
        grown = there - min(moment[2] for moment in past.moments)
        if grown <= LEAST_BYTES:
            past.is_told = False
        elif loaded >= LOAD_BYTES and not past.is_told:
            past.is_told = True
            return [Spill(device.uuid, 0, "", grown, at_s, device.name)]
        return []
