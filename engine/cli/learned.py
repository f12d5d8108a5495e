"""``plimsoll learned``: the runs that this machine's plans follow; look at, export, forget."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine import lessons
from engine.cli import streams
from engine.cli.encode import encode
from engine.cli.look import Look, wrapped
from engine.errors import LessonError
from engine.units import format_gib

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from engine.lessons import Kept, Lesson


def run(options: argparse.Namespace) -> int:
    """List the runs, after forgetting those that were named."""
    path = lessons.default_file()
    kept = lessons.read(path)
    if options.forget:
        kept = _forgotten(path, kept, options.forget)
    if options.output:
        _export(Path(options.output), kept)
    output = streams.output()
    if options.json:
        for lesson in kept.lessons:
            output.write(encode({"schema": lessons.SCHEMA, **lessons.to_dict(lesson)}) + "\n")
        return 0
    look = Look.of(output)
    look.write(_listed(kept, look), output)
    return 0


def _forgotten(path: Path, kept: Kept, ids: list[str]) -> Kept:
    known = {lesson.id for lesson in kept.lessons}
    gone = known if ids == ["all"] else set(ids)
    if gone - known:
        strange = ", ".join(sorted(gone - known))[:120]
        message = f"No run {strange} was learned from; see plimsoll learned."
        raise LessonError(message, field="forget")
    left = lessons.without(kept, gone)
    lessons.save(path, left)
    return left


def _export(path: Path, kept: Kept) -> None:
    if path.exists():
        message = f"{path.name!r} exists; name a new file."
        raise LessonError(message, field="output")
    lessons.save(path, kept)


def _listed(kept: Kept, look: Look) -> Iterator[str]:
    if not kept.lessons:
        hint = "Nothing was learned yet: plimsoll parse-log FILE --learn, or Log in the window."
        yield from wrapped(hint, look.width, first="", rest="  ")
    for lesson in kept.lessons:
        yield from _described(lesson, look)
    if kept.unread_lines:
        left = f"{len(kept.unread_lines)} further lines of the file can't be read and are kept."
        yield from wrapped(left, look.width, first="", rest="  ")


def _described(lesson: Lesson, look: Look) -> Iterator[str]:
    key = lesson.key
    day = datetime.fromtimestamp(lesson.learned_at_s, UTC).strftime("%Y-%m-%d")
    named = f"{lesson.id}  {day}  {key.model} on {key.runtime} {key.runtime_version}"
    yield from wrapped(named, look.width, first="", rest="  ")
    where = f"{', '.join(key.devices)}; {lesson.source}"
    yield from wrapped(where, look.width, first="  ", rest="    ")
    for rank, regions in enumerate(lesson.ranks):
        for region, one in regions.items():
            rule = f"{format_gib(one.low_bytes)} to {format_gib(one.high_bytes)}"
            measured = format_gib(one.size_bytes)
            row = f"rank {rank}  {region:16}{measured:>12}   the rule said {rule}"
            yield from wrapped(row, look.width, first="  ", rest="    ")
