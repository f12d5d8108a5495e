"""Recordings: a session kept as JSON Lines, played back through the same door as live readings.

The form is described in ``docs/recording.md``. Whoever records hands over values and goes on: a
thread of its own writes each line whole and brings the file to the disk once a second, so that a
crash of the program costs what was handed over in the same moment, and a power cut a second.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, cast

from engine.errors import TelemetryError
from engine.telemetry import markers, masking, plain
from engine.telemetry.lines import SCHEMA, Lines
from engine.telemetry.markers import Marker
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from engine.telemetry.snapshot import TelemetrySnapshot

__all__ = ["SCHEMA", "Recorder", "RecordingEndedError", "Replay", "free_path"]

MOST_SAMPLES = 1_000_000
"""Eleven days at 1 Hz; a file that goes on for ever is cut here."""
_MOST_WAITING = 600
"""Samples that a disk may lag behind before the recording ends."""
_TO_DISK_S = 1.0
_CLOSE_WITHIN_S = 2.0
"""A disk that does not answer is left alone after that, with its thread."""
_MOST_NAMES = 10_000


class RecordingEndedError(TelemetryError):
    """A replay has delivered its last sample."""


def free_path(path: Path) -> Path:
    """``path``, or with a number behind its name where that exists: ``memory 2.jsonl``."""
    if not path.exists():
        return path
    name, dot, endings = path.name.partition(".")
    numbered = (path.with_name(f"{name} {n}{dot}{endings}") for n in range(2, _MOST_NAMES))
    return next((one for one in numbered if not one.exists()), path)


class Recorder:
    """Writes snapshots and markers, masked, to a file that was not there before."""

    def __init__(self, path: Path, machine: Mapping[str, Any]) -> None:
        """Create ``path`` and write the header.

        Args:
            path: the file to write; one that exists is never touched.
            machine: ``devices.plain.to_dict`` of the machine that is recorded.

        Raises:
            TelemetryError: the file exists, or cannot be written.
        """
        self._path = path
        self._fault: TelemetryError | None = None
        self._whole_bytes = 0
        header = {
            "schema": SCHEMA,
            "started": round(time.time(), 3),
            "machine": masking.in_mapping(dict(machine)),
        }
        try:
            self._file: IO[bytes] = path.open("xb", buffering=0)
        except FileExistsError as error:
            message = tr("{name!r} exists already; a recording needs a new name.")
            raise TelemetryError(message.format(name=path.name)) from error
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._put(header)
        except OSError as error:
            self._file.close()
            with suppress(OSError):
                path.unlink()
            raise self._unwritable(error) from error
        self._waiting: queue.Queue[TelemetrySnapshot | Marker | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def write(self, snapshot: TelemetrySnapshot) -> None:
        """Append one snapshot; returns at once.

        Raises:
            TelemetryError: what was handed over before could not be written (a full disk).
        """
        self._hand_over(snapshot)

    def mark(self, marker: Marker) -> None:
        """Append a marker; returns at once.

        Raises:
            TelemetryError: what was handed over before could not be written.
        """
        self._hand_over(marker)

    def close(self) -> None:
        """Finish the file. May be called twice.

        Raises:
            TelemetryError: what was handed over last could not be written.
        """
        if self._thread.is_alive():
            with suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._thread.join(_CLOSE_WITHIN_S)
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def _hand_over(self, what: TelemetrySnapshot | Marker) -> None:
        if self._fault is not None:
            raise self._fault
        if not self._thread.is_alive():
            raise self._unwritable(ValueError())
        try:
            self._waiting.put_nowait(what)
        except queue.Full:
            message = tr("The recording {name!r} cannot be written: the disk is too slow.")
            raise TelemetryError(message.format(name=self._path.name)) from None

    def _run(self) -> None:
        """Write what comes until None does, or until the disk takes no more."""
        synced = time.monotonic()
        try:
            while (what := self._waiting.get()) is not None:
                is_marker = isinstance(what, Marker)
                self._put(
                    markers.to_dict(what) if is_marker else plain.to_dict(masking.masked(what))
                )
                if is_marker or time.monotonic() - synced >= _TO_DISK_S:
                    os.fsync(self._file.fileno())
                    synced = time.monotonic()
            os.fsync(self._file.fileno())
        except (OSError, ValueError) as error:
            self._fault = self._ended(error)
        finally:
            with suppress(OSError):
                self._file.close()

    def _put(self, record: Mapping[str, Any]) -> None:
        """One whole line, or none."""
        line = json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        left = memoryview(line)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            # What a full disk took of the line would spoil what comes before it for others.
            with suppress(OSError):
                self._file.truncate(self._whole_bytes)
            raise
        self._whole_bytes += len(line)

    def _ended(self, error: Exception) -> TelemetryError:
        why = error.strerror if isinstance(error, OSError) else str(error)
        message = tr("The recording {name!r} has ended: {why}. What was written before is kept.")
        return TelemetryError(message.format(name=self._path.name, why=why))

    def _unwritable(self, error: Exception) -> TelemetryError:
        why = error.strerror if isinstance(error, OSError) else tr("the file is closed")
        return TelemetryError(
            tr("The recording {name!r} cannot be written: {why}.").format(
                name=self._path.name, why=why
            )
        )


class Replay:
    """A recording as a ``Sampler``: each ``sample`` is the next moment; memory stays constant."""

    def __init__(self, path: Path) -> None:
        """Open ``path`` and read its header.

        Raises:
            TelemetryError: no such file, or not a recording.
        """
        self._lines = Lines(path)
        self._samples = 0
        self.machine = self._lines.machine
        """The machine it was recorded on, as ``devices.plain.to_dict`` wrote it."""

    def sample(self) -> TelemetrySnapshot:
        """The next moment.

        Raises:
            RecordingEndedError: the last moment was delivered before.
            TelemetryError: the recording is damaged here, or holds no samples.
        """
        found = self._next()
        if found is not None:
            return found
        if not self._samples:
            raise no_samples(self._lines)
        message = tr("The recording {name!r} has ended.").format(name=self._lines.name)
        raise RecordingEndedError(message)

    def snapshots(self) -> Iterator[TelemetrySnapshot]:
        """All moments that are left, in order.

        Raises:
            TelemetryError: the recording is damaged.
        """
        while (found := self._next()) is not None:
            yield found

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def _next(self) -> TelemetrySnapshot | None:
        while self._samples < MOST_SAMPLES and (line := self._lines.next_raw()) is not None:
            record = self._lines.parsed(line)
            if record is None:
                return None
            if "marker" not in record:
                self._samples += 1
                return recorded(self._lines, record)
        return None


def recorded(lines: Lines, record: Mapping[str, object], number: int = 0) -> TelemetrySnapshot:
    """The sample of line ``number``, or of the one last read: marked as from a recording.

    Raises:
        TelemetryError: it is no sample.
    """
    try:
        snapshot = plain.from_dict(record)
    except TelemetryError as error:
        raise lines.damaged(error.message, number) from error
    source = f"recording {lines.name}"
    devices = tuple(replace(d, source=f"{source}, {d.source}") for d in snapshot.devices)
    return replace(snapshot, devices=devices)


def no_samples(lines: Lines) -> TelemetryError:
    """What to say of a recording of a header alone."""
    return TelemetryError(tr("The recording {name!r} holds no samples.").format(name=lines.name))


def marker_of(lines: Lines, record: Mapping[str, object]) -> Marker | None:
    """The marker of a line just read; None where it is a sample.

    Raises:
        TelemetryError: it should be a marker and is none.
    """
    fields = record.get("marker")
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise lines.damaged(tr("the marker is not an object"))
    try:
        return markers.from_dict(cast("dict[str, object]", fields))
    except TelemetryError as error:
        raise lines.damaged(error.message) from error
