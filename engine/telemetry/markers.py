"""Moments worth finding again: set by a person, or seen in the curve and in what failed.

Nothing here knows a runtime. A load is a climb that comes to rest, an unload a fall; memory ran
out where a full device falls and a process is gone; a device is lost when two samples miss it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.errors import TelemetryError
from engine.telemetry import masking
from engine.telemetry.pressure import ceiling_bytes
from engine.telemetry.snapshot import Missing
from engine.text import printable
from engine.units import MIB, UnitSystem, format_gib
from engine.words import tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.telemetry.snapshot import DeviceReading, TelemetrySnapshot

LONGEST_TEXT = 200
_LEAST_CHANGE_BYTES = 256 * MIB
"""From telemetry of the field: a smaller change is no model."""
_LEAST_SHARE = 50
"""And not less than this part of the device: large cards have large workspaces."""
_STEP_BYTES = 16 * MIB
"""A change between two samples below this is rest."""
_REST_S = 3.0
_SAME_S = 15.0
"""A fall of memory and a runtime's word this far apart are of one unload."""
_GONE = tr_later("the driver no longer names it")
_FULL = 0.97
_FALL = 0.2
"""Of the ceiling: what is given back at once when a process dies of want."""


class MarkerKind(StrEnum):
    """Who set a marker, and why."""

    NOTE = "note"
    LOAD = "load"
    UNLOAD = "unload"
    OUT_OF_MEMORY = "out of memory"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Marker:
    """One moment with what happened at it."""

    kind: MarkerKind
    monotonic_s: float
    wall_time_s: float
    text: str = ""
    """A person's words, why a device is lost, or which model a runtime says it unloaded."""
    uuid: str = ""
    """The device it is about; empty for all."""
    change_bytes: int = 0
    """By how much the device's use changed, of a load or an unload."""

    @property
    def is_trouble(self) -> bool:
        """Whether something went wrong there."""
        return self.kind in {MarkerKind.OUT_OF_MEMORY, MarkerKind.LOST}

    def words(self, unit: UnitSystem = UnitSystem.BINARY) -> str:
        """``Load, +14.9 GiB`` in the language in force."""
        size = format_gib(self.change_bytes, unit, digits=1, signed=True)
        match self.kind:
            case MarkerKind.NOTE:
                return self.text or tr("Marker")
            case MarkerKind.LOAD:
                return tr("Load, {size}").format(size=size)
            case MarkerKind.UNLOAD:
                return self._unload_words(size)
            case MarkerKind.OUT_OF_MEMORY:
                return tr("Out of memory, perhaps: {size}").format(size=size)
            case MarkerKind.LOST:
                return tr("Device lost: {reason}").format(reason=tr(self.text))

    def _unload_words(self, size: str) -> str:
        if not self.text:
            return tr("Unload, {size}").format(size=size)
        words = tr("Unload, {size}: {name}") if self.change_bytes else tr("Unload: {name}")
        return words.format(size=size, name=self.text)


def to_dict(marker: Marker) -> dict[str, Any]:
    """``marker`` as a line of a recording holds it, masked like everything there."""
    return {
        "marker": {
            "kind": marker.kind.value,
            "monotonic_s": round(marker.monotonic_s, 6),
            "wall_time_s": round(marker.wall_time_s, 6),
            "text": masking.text(printable(marker.text, LONGEST_TEXT)),
            "uuid": masking.text(marker.uuid),
            "change_bytes": marker.change_bytes,
        }
    }


def from_dict(fields: Mapping[str, object]) -> Marker:
    """The marker that ``to_dict`` wrote under ``marker``.

    Raises:
        TelemetryError: a field is absent, of the wrong type or out of bounds.
    """
    try:
        kind = MarkerKind(str(fields.get("kind")))
    except ValueError:
        message = "'kind' is not a kind of marker"
        raise TelemetryError(message, field="kind") from None
    numbers = [fields.get(key, 0) for key in ("monotonic_s", "wall_time_s", "change_bytes")]
    words = [fields.get(key, "") for key in ("text", "uuid")]
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)) or abs(number) > 2**60:
            message = "a marker's time or size is not a number"
            raise TelemetryError(message, field="marker")
    if not all(isinstance(word, str) for word in words):
        message = "a marker's text is not a text"
        raise TelemetryError(message, field="marker")
    monotonic, wall, change = (float(n) for n in numbers if isinstance(n, (int, float)))
    text, uuid = (printable(str(word), LONGEST_TEXT) for word in words)
    return Marker(kind, monotonic, wall, text, uuid, int(change))


@dataclass(slots=True)
class _Course:
    """What one device did so far."""

    used_bytes: int
    begun: tuple[float, float, int]
    """Both clocks and the use where the present climb or fall began."""
    moved_s: float
    direction: int = 0
    was_full: bool = False
    pids: frozenset[int] = frozenset()
    died: bool = False
    missed: int = 0


@dataclass(slots=True)
class MarkerRules:
    """Finds the markers that nobody has to set, sample by sample."""

    _courses: dict[str, _Course] = field(default_factory=dict[str, _Course])
    _told: list[Marker] = field(default_factory=list[Marker])
    """Unloads that a runtime told of, until memory falls or long enough has not."""
    _fell_s: float = -_SAME_S

    def tell_unload(self, name: str, snapshot: TelemetrySnapshot) -> None:
        """A runtime says that it unloaded the model ``name``; the next looks mark it, once.

        Memory comes back before or after that, or not at all where others want it.
        """
        if snapshot.monotonic_s - self._fell_s > _SAME_S:
            when = snapshot.monotonic_s, snapshot.wall_time_s
            self._told.append(Marker(MarkerKind.UNLOAD, *when, name[:LONGEST_TEXT]))

    def look(self, snapshot: TelemetrySnapshot) -> tuple[Marker, ...]:
        """What ``snapshot`` shows to have happened."""
        found: list[Marker] = []
        there = {device.uuid: device for device in snapshot.devices}
        for device in snapshot.devices:
            if isinstance(device.used_bytes, int):
                found += self._course(snapshot, device, device.used_bytes)
        for uuid, course in self._courses.items():
            device = there.get(uuid)
            used = device.used_bytes if device else Missing(_GONE)
            if isinstance(used, Missing):
                course.missed += 1
                if course.missed == 2:
                    when = snapshot.monotonic_s, snapshot.wall_time_s
                    found.append(Marker(MarkerKind.LOST, *when, used.reason, uuid))
        return (*(self._named(m, snapshot) for m in found), *self._waited(snapshot))

    def _named(self, marker: Marker, snapshot: TelemetrySnapshot) -> Marker:
        """A fall of memory with the model that a runtime says it unloaded just then."""
        if marker.kind is not MarkerKind.UNLOAD:
            return marker
        self._fell_s = snapshot.monotonic_s
        return replace(marker, text=self._told.pop(0).text) if self._told else marker

    def _waited(self, snapshot: TelemetrySnapshot) -> tuple[Marker, ...]:
        """Unloads that no fall of memory followed."""
        due = [m for m in self._told if snapshot.monotonic_s - m.monotonic_s >= _SAME_S]
        self._told = [m for m in self._told if m not in due]
        return tuple(due)

    def _course(
        self, snapshot: TelemetrySnapshot, device: DeviceReading, used: int
    ) -> Iterator[Marker]:
        now = (snapshot.monotonic_s, snapshot.wall_time_s, used)
        course = self._courses.get(device.uuid)
        if course is None or course.missed:
            self._courses[device.uuid] = _Course(used, now, now[0], pids=_pids(device))
            return
        step = used - course.used_bytes
        direction = 0 if abs(step) < _STEP_BYTES else 1 if step > 0 else -1
        if direction and direction != course.direction:
            yield from self._closed(device, course)
            course.begun = (now[0], now[1], course.used_bytes)
            course.direction = direction
        if direction:
            course.moved_s = now[0]
        elif course.direction and now[0] - course.moved_s >= _REST_S:
            yield from self._closed(device, course)
            course.direction = 0
        self._look_for_want(device, course, step)
        course.used_bytes = used
        course.pids = _pids(device)

    @staticmethod
    def _look_for_want(device: DeviceReading, course: _Course, step: int) -> None:
        """Whether a full device falls in this step because a process is gone."""
        ceiling = ceiling_bytes(device)
        if ceiling is None:
            return
        if step < -_FALL * ceiling:
            gone = course.pids - _pids(device)
            course.died |= course.was_full and bool(gone or not course.pids)
        course.was_full = course.used_bytes + step >= _FULL * ceiling

    @staticmethod
    def _closed(device: DeviceReading, course: _Course) -> Iterator[Marker]:
        """The marker of a climb or fall that is over, if it was large enough."""
        if not course.direction:
            return
        monotonic, wall, before = course.begun
        change = course.used_bytes - before
        died, course.died = course.died, False
        total = device.total_bytes if isinstance(device.total_bytes, int) else 0
        if abs(change) < max(_LEAST_CHANGE_BYTES, total // _LEAST_SHARE):
            return
        kind = MarkerKind.LOAD if change > 0 else MarkerKind.UNLOAD
        if change < 0 and died:
            kind = MarkerKind.OUT_OF_MEMORY
        yield Marker(kind, monotonic, wall, "", device.uuid, change)


def _pids(device: DeviceReading) -> frozenset[int]:
    held = device.processes
    return frozenset() if isinstance(held, Missing) else frozenset(p.pid for p in held if p.pid)
