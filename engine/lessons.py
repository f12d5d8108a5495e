"""What runs on a machine taught: one measured run as a value, and the file that keeps them.

A run is kept under its key: devices, runtime and release, model, settings. Beside what was measured
stands what the rule had said then, so that the two can be compared for ever. The file is JSON
Lines, one run a line, the first line the schema; what can't be read is left in it and counted.
"""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from engine.errors import LessonError
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCHEMA: Final = "plimsoll.learned/1"
FILE_NAME: Final = "learned.jsonl"
TOTAL: Final = "total"
"""In place of a region: all that the plan's processes hold on a rank."""
_MOST_RUNS: Final = 5_000
_LARGEST_FILE_BYTES: Final = 32 * 2**20
_LARGEST: Final = 2**60
_MOST_ITEMS: Final = 256
_LONGEST_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of a run, in bytes, beside the rule's range of that time."""

    size_bytes: int
    half_bytes: int
    """How far it may be off: half of the last printed digit, or of a sample's unit."""
    low_bytes: int
    likely_bytes: int
    high_bytes: int


@dataclass(frozen=True, slots=True)
class Key:
    """What a run is the same by."""

    devices: tuple[str, ...]
    """Name of the device of each rank, and its total or, in shared memory, its place."""
    runtime: str
    runtime_version: str
    model: str
    parameters: int
    settings: tuple[tuple[str, str], ...]
    """The plan's settings that are not the defaults, by name."""

    @property
    def is_whole(self) -> bool:
        """Whether it says enough to be compared at all."""
        return bool(self.devices and self.runtime and self.runtime_version)


@dataclass(frozen=True, slots=True)
class Lesson:
    """One measured run."""

    id: str
    learned_at_s: float
    """Unix time."""
    key: Key
    ranks: tuple[Mapping[str, Measured], ...]
    """By rank: measured figures by region (or ``TOTAL``)."""
    source: str
    """What it was read from: ``log server.log``, ``NVML 580.126``."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a file of lessons holds."""

    lessons: tuple[Lesson, ...] = ()
    unread_lines: tuple[str, ...] = field(default=(), repr=False)
    """Lines of it that no lesson could be made of; kept as they are."""


def read(path: Path) -> Kept:
    """The runs kept at ``path``; none where there is no such file.

    Raises:
        LessonError: the file can't be read, is of a later version or too large.
    """
    name = printable(path.name, 80)
    try:
        if not path.exists():
            return Kept()
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise LessonError(tr("{name!r} is too large for a file of runs.").format(name=name))
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        message = tr("The runs learned from cannot be read from {name!r}: {why}.")
        raise LessonError(message.format(name=name, why=error.strerror)) from error
    return _parsed(lines, name)


def save(path: Path, kept: Kept) -> None:
    """Put ``kept`` in the place of what ``path`` held: as a whole or not at all.

    Raises:
        LessonError: it can't be written; what was there still is.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(written(kept))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        message = tr("The runs learned from cannot be written to {name!r}: {why}.")
        name = printable(path.name, 80)
        raise LessonError(message.format(name=name, why=error.strerror)) from error


def default_file() -> Path:
    """Where this app keeps them on this system."""
    import platformdirs  # noqa: PLC0415 - only where they are really kept

    return Path(platformdirs.user_data_dir("plimsoll", appauthor=False)) / FILE_NAME


def written(kept: Kept) -> str:
    """The text of a file that holds ``kept``."""
    lines = [json.dumps({"schema": SCHEMA})]
    lines += [json.dumps(to_dict(lesson), ensure_ascii=True) for lesson in kept.lessons]
    return "\n".join([*lines, *kept.unread_lines]) + "\n"


def with_(kept: Kept, new: Iterable[Lesson]) -> Kept:
    """``kept`` with further runs, the oldest left out beyond 5,000."""
    known = {lesson.id: lesson for lesson in (*kept.lessons, *new)}
    ordered = sorted(known.values(), key=lambda lesson: lesson.learned_at_s)
    return Kept(tuple(ordered[-_MOST_RUNS:]), kept.unread_lines)


def without(kept: Kept, ids: Iterable[str]) -> Kept:
    """``kept`` without some of its runs."""
    gone = frozenset(ids)
    left = tuple(lesson for lesson in kept.lessons if lesson.id not in gone)
    return Kept(left, kept.unread_lines)


def to_dict(lesson: Lesson) -> dict[str, Any]:
    """``lesson`` as JSON can hold it; sizes in bytes."""
    key = lesson.key
    return {
        "id": lesson.id,
        "learned_at_s": round(lesson.learned_at_s, 3),
        "devices": list(key.devices),
        "runtime": key.runtime,
        "runtime_version": key.runtime_version,
        "model": key.model,
        "parameters": key.parameters,
        "settings": dict(key.settings),
        "ranks": [
            {
                region: {
                    "measured_bytes": one.size_bytes,
                    "half_bytes": one.half_bytes,
                    "rule_bytes": [one.low_bytes, one.likely_bytes, one.high_bytes],
                }
                for region, one in rank.items()
            }
            for rank in lesson.ranks
        ],
        "source": lesson.source,
    }


def from_dict(record: object) -> Lesson:
    """The run that ``to_dict`` wrote.

    Raises:
        LessonError: a field is absent, of the wrong type or out of bounds.
    """
    fields = _mapping(record)
    key = Key(
        devices=tuple(_text(device) for device in _list(fields.get("devices"))),
        runtime=_text(fields.get("runtime")),
        runtime_version=_text(fields.get("runtime_version")),
        model=_text(fields.get("model")),
        parameters=_size(fields.get("parameters")),
        settings=tuple(
            sorted((_text(name), _text(value)) for name, value in _pairs(fields.get("settings")))
        ),
    )
    return Lesson(
        id=_text(fields.get("id")),
        learned_at_s=_seconds(fields.get("learned_at_s")),
        key=key,
        ranks=tuple(
            {_text(region): _measured(one) for region, one in _pairs(rank)}
            for rank in _list(fields.get("ranks"))
        ),
        source=_text(fields.get("source")),
    )


def _parsed(lines: list[str], name: str) -> Kept:
    """The runs of a file; one that stands there twice counts once, the later one."""
    if not lines:
        return Kept()
    schema = ""
    with suppress(ValueError, RecursionError, LessonError):
        schema = _text(_mapping(json.loads(lines[0])).get("schema"))
    if schema != SCHEMA:
        message = tr(
            "{name!r} is no file of runs that this version reads ({schema}); it is left as it is."
        )
        raise LessonError(message.format(name=name, schema=SCHEMA))
    found: dict[str, Lesson] = {}
    unread: list[str] = []
    for line in filter(str.strip, lines[1:]):
        try:
            lesson = from_dict(json.loads(line))
        except (ValueError, RecursionError, LessonError):
            unread.append(line)
        else:
            found[lesson.id] = lesson
    return Kept(tuple(found.values()), tuple(unread))


def _wrong(what: str) -> LessonError:
    return LessonError(tr("A run that was learned from is damaged: {what}.").format(what=what))


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _wrong("an object is missing")
    return cast("dict[str, object]", value)


def _pairs(value: object) -> Iterable[tuple[str, object]]:
    items = _mapping(value)
    if len(items) > _MOST_ITEMS:
        raise _wrong("too many entries")
    return items.items()


def _list(value: object) -> list[object]:
    if not isinstance(value, list) or len(cast("list[object]", value)) > _MOST_ITEMS:
        raise _wrong("a list is missing or too long")
    return cast("list[object]", value)


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise _wrong("a text is missing or too long")
    return printable(value, _LONGEST_TEXT)


def _size(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise _wrong("a size is missing or out of bounds")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong("a time is missing")
    if not math.isfinite(value) or abs(value) > 1e12:
        raise _wrong("a time is out of bounds")
    return float(value)


def _measured(value: object) -> Measured:
    fields = _mapping(value)
    rule = [_size(size) for size in _list(fields.get("rule_bytes"))]
    if len(rule) != 3 or sorted(rule) != rule:
        raise _wrong("the rule's range is missing or out of order")
    low, likely, high = rule
    size, half = _size(fields.get("measured_bytes")), _size(fields.get("half_bytes"))
    return Measured(size, half, low, likely, high)
