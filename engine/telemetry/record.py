"""Recordings: a session kept as JSON Lines, played back through the same door as live readings.

The first line is ``{"schema": "plimsoll.recording/1", "started": …, "machine": {…}}``, every
further line one snapshot (``plain.to_dict``). Lines are flushed one by one, so that a crash costs
the last sample at most.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from engine.errors import TelemetryError
from engine.telemetry import plain
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from io import BufferedReader
    from pathlib import Path

    from engine.telemetry.snapshot import TelemetrySnapshot

SCHEMA = "plimsoll.recording/1"
_LONGEST_LINE = 4 * 2**20
_MOST_SAMPLES = 1_000_000
"""Eleven days at 1 Hz; a file that goes on for ever is cut here."""


class RecordingEndedError(TelemetryError):
    """A replay has delivered its last sample."""


class Recorder:
    """Writes snapshots to a new file."""

    def __init__(self, path: Path, machine: Mapping[str, Any]) -> None:
        """Create ``path`` and write the header.

        Args:
            path: the file to write; one that exists is replaced.
            machine: ``devices.plain.to_dict`` of the machine that is recorded.

        Raises:
            TelemetryError: the file cannot be written.
        """
        self._path = path
        self.samples = 0
        try:
            self._file = path.open("w", encoding="utf-8", newline="\n")
        except OSError as error:
            raise self._unwritable(error) from error
        header = {"schema": SCHEMA, "started": round(time.time(), 3), "machine": dict(machine)}
        try:
            self._write(header)
        except TelemetryError:
            with suppress(OSError):
                self._file.close()
            raise

    def write(self, snapshot: TelemetrySnapshot) -> None:
        """Append one snapshot.

        Raises:
            TelemetryError: the file cannot be written (a full disk).
        """
        self._write(plain.to_dict(snapshot))
        self.samples += 1

    def close(self) -> None:
        """Finish the file. May be called twice."""
        try:
            self._file.close()
        except OSError as error:
            raise self._unwritable(error) from error

    def _write(self, record: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
            self._file.flush()
        except (OSError, ValueError) as error:
            raise self._unwritable(error) from error

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
        self._name = printable(path.name, 80)
        self._line = 0
        self._samples = 0
        if path.exists() and not path.is_file():  # a pipe would never answer
            message = tr("{name!r} is not a recording of Plimsoll.").format(name=self._name)
            raise TelemetryError(message)
        try:
            self._file: BufferedReader = path.open("rb")
        except OSError as error:
            message = tr("The recording {name!r} cannot be opened: {strerror}.").format(
                name=self._name, strerror=error.strerror
            )
            raise TelemetryError(message) from error
        try:
            self.machine: Mapping[str, Any] = self._header()
            """The machine it was recorded on, as ``devices.plain.to_dict`` wrote it."""
        except TelemetryError:
            self._file.close()
            raise

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
            message = tr("The recording {name!r} holds no samples.").format(name=self._name)
            raise TelemetryError(message)
        message = tr("The recording {name!r} has ended.").format(name=self._name)
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
        self._file.close()

    def _header(self) -> Mapping[str, Any]:
        header = self._parsed()
        schema = header.get("schema") if header is not None else None
        if header is None or not isinstance(schema, str) or not schema.startswith("plimsoll."):
            message = tr("{name!r} is not a recording of Plimsoll.").format(name=self._name)
            raise TelemetryError(message)
        if schema != SCHEMA:
            message = tr(
                "The recording {name!r} is of another version ({schema}); "
                "this one reads {schema_2}."
            ).format(name=self._name, schema=printable(schema, 40), schema_2=SCHEMA)
            raise TelemetryError(message)
        machine = header.get("machine")
        return cast("dict[str, Any]", machine) if isinstance(machine, dict) else {}

    def _next(self) -> TelemetrySnapshot | None:
        if self._samples >= _MOST_SAMPLES:
            return None
        record = self._parsed()
        if record is None:
            return None
        try:
            snapshot = plain.from_dict(record)
        except TelemetryError as error:
            raise self._damaged(error.message) from error
        self._samples += 1
        source = f"recording {self._name}"
        devices = tuple(replace(d, source=f"{source}, {d.source}") for d in snapshot.devices)
        return replace(snapshot, devices=devices)

    def _parsed(self) -> Mapping[str, object] | None:
        """The next line as an object; None at the end, or where the last line was cut off."""
        try:
            line = self._file.readline(_LONGEST_LINE + 1)
        except (OSError, ValueError) as error:
            message = tr("The recording {name!r} cannot be read any further.").format(
                name=self._name
            )
            raise TelemetryError(message) from error
        self._line += 1
        if not line.strip():
            return None
        if len(line) > _LONGEST_LINE:
            raise self._damaged(tr("the line is too long"))
        try:
            record: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            if self._line > 1 and not line.endswith(b"\n"):
                return None  # written while the program or the disk stopped
            raise self._damaged(tr("it is not JSON")) from error
        if not isinstance(record, dict):
            raise self._damaged(tr("it is not an object"))
        return cast("dict[str, object]", record)

    def _damaged(self, why: str) -> TelemetryError:
        if self._line == 1:
            return TelemetryError(
                tr("{name!r} is not a recording of Plimsoll.").format(name=self._name)
            )
        return TelemetryError(
            tr("The recording {name!r} is damaged in line {line}: {why}.").format(
                name=self._name, line=self._line, why=why
            )
        )
