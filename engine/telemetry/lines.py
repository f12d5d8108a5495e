"""The lines of a recording, read one by one from wherever it comes: nothing in it is trusted."""

from __future__ import annotations

import gzip
import json
import re
from typing import IO, TYPE_CHECKING, Any, Final, cast

from engine.errors import TelemetryError
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA: Final = "plimsoll.recording/2"
READABLE: Final = ("plimsoll.recording/1", SCHEMA)
"""The first form has no markers."""
LONGEST_LINE: Final = 4 * 2**20
_GZIP = b"\x1f\x8b"
_CLOCKS = re.compile(
    rb'\{"monotonic_s": (-?\d{1,15}(?:\.\d{1,9})?), "wall_time_s": (-?\d{1,15}(?:\.\d{1,9})?), '
)
"""How a line of ours begins: both clocks without the rest of the line."""


class Lines:
    """An open recording whose header was read. Lines can be taken in order or from an offset."""

    def __init__(self, path: Path) -> None:
        """Open ``path`` and read its header.

        Raises:
            TelemetryError: no such file, or not a recording.
        """
        self.name = printable(path.name, 80)
        self.number = 0
        """Of the line last read; the header is the first."""
        if path.exists() and not path.is_file():  # a pipe would never answer
            raise self._no_recording()
        try:
            self._raw = path.open("rb")
            self.length_bytes = path.stat().st_size
            self.is_packed = self._raw.read(2) == _GZIP
            self._raw.seek(0)
        except OSError as error:
            message = tr("The recording {name!r} cannot be opened: {strerror}.").format(
                name=self.name, strerror=error.strerror
            )
            raise TelemetryError(message) from error
        packed = cast("IO[bytes]", gzip.GzipFile(fileobj=self._raw)) if self.is_packed else None
        self._file: IO[bytes] = packed or self._raw
        try:
            self.machine: Mapping[str, Any] = self._header()
            """The machine it was recorded on, as ``devices.plain.to_dict`` wrote it."""
        except TelemetryError:
            self.close()
            raise

    @property
    def offset(self) -> int:
        """Where the next line begins, in bytes of what was written."""
        return self._file.tell()

    @property
    def share(self) -> float:
        """How much of the file was read, from 0 to 1."""
        return min(self._raw.tell() / max(self.length_bytes, 1), 1.0)

    def go_to(self, offset: int, number: int) -> None:
        """Take the line that begins at ``offset`` next; ``number`` lines come before it.

        Raises:
            TelemetryError: the file can't be read any further.
        """
        try:
            self._file.seek(offset)
        except (OSError, EOFError, ValueError) as error:
            raise self._unreadable() from error
        self.number = number

    def next_raw(self) -> bytes | None:
        """The next line as it stands; None at the end, or where the last line was cut off.

        Raises:
            TelemetryError: the line is too long, or the file can't be read any further.
        """
        try:
            line = self._file.readline(LONGEST_LINE + 1)
        except EOFError:
            return None  # packed, and cut off while it was written
        except (OSError, ValueError) as error:
            raise self._unreadable() from error
        self.number += 1
        if not line.strip():
            return None
        if len(line) > LONGEST_LINE:
            raise self.damaged(tr("the line is too long"))
        return line

    def parsed(self, line: bytes) -> Mapping[str, object] | None:
        """A line as an object; None where it is the last and was cut off.

        Raises:
            TelemetryError: it is neither.
        """
        try:
            record: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            if self.number > 1 and not line.endswith(b"\n"):
                return None  # written while the program or the disk stopped
            raise self.damaged(tr("it is not JSON")) from error
        if not isinstance(record, dict):
            raise self.damaged(tr("it is not an object"))
        return cast("dict[str, object]", record)

    def damaged(self, why: str, number: int = 0) -> TelemetryError:
        """What is wrong with line ``number``, or with the one last read."""
        number = number or self.number
        if number == 1:
            return self._no_recording()
        return TelemetryError(
            tr("The recording {name!r} is damaged in line {line}: {why}.").format(
                name=self.name, line=number, why=why
            )
        )

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._file.close()
        self._raw.close()

    def _no_recording(self) -> TelemetryError:
        return TelemetryError(tr("{name!r} is not a recording of Plimsoll.").format(name=self.name))

    def _unreadable(self) -> TelemetryError:
        return TelemetryError(
            tr("The recording {name!r} cannot be read any further.").format(name=self.name)
        )

    def _header(self) -> Mapping[str, Any]:
        line = self.next_raw()
        header = self.parsed(line) if line is not None else None
        schema = header.get("schema") if header is not None else None
        if header is None or not isinstance(schema, str) or not schema.startswith("plimsoll."):
            raise self._no_recording()
        if schema not in READABLE:
            message = tr(
                "The recording {name!r} is of another version ({schema}); "
                "this one reads {schema_2}."
            ).format(name=self.name, schema=printable(schema, 40), schema_2=SCHEMA)
            raise TelemetryError(message)
        machine = header.get("machine")
        return cast("dict[str, Any]", machine) if isinstance(machine, dict) else {}


def clocks(line: bytes) -> tuple[float, float] | None:
    """Monotonic and wall clock of a line of ours, without reading the rest of it."""
    found = _CLOCKS.match(line)
    return (float(found[1]), float(found[2])) if found else None
