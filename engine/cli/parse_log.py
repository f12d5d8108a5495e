"""``plimsoll parse-log``: what a runtime's log states, the prediction, and why it failed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine import lessons
from engine.cancel import CancelToken
from engine.cli import streams
from engine.cli.encode import encode
from engine.cli.hub import opener
from engine.cli.look import Look, fitted, wrapped
from engine.contract.desk import Desk
from engine.contract.learn import lesson_of
from engine.contract.log import log_answer
from engine.contract.run import explain
from engine.fit.verdict import Fit
from engine.logs import words
from engine.logs.read import read
from engine.logs.why import happened
from engine.units import UnitSystem, format_gib

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from engine.contract.run import Run
    from engine.logs.reading import LogReading
    from engine.logs.reconcile import RankRows

CAME_UP, FAILED, NOTHING_KNOWN = 0, 1, 3
_UNIT = UnitSystem.BINARY
_NAME, _NUMBER = 16, 11
_TABLE = 2 + _NAME + 3 * _NUMBER + 8
_MOST_RANKS = 16
_NOT_KNOWN = "–"


def run(options: argparse.Namespace) -> int:
    """Read the log and explain it; the exit status says whether it tells of a failure."""
    token = CancelToken()
    reading = read_log(options.log, token)
    desk = Desk(token, opener(options) if "model" in options.given else None)
    found = explain(reading, desk, options.given)
    if options.learn:
        _learn(found, options.log)
    output = streams.output()
    if options.json:
        output.write(encode(log_answer(found)) + "\n")
    else:
        look = Look.of(output)
        look.write(_describe(found, look), output)
    if not reading.understood:
        return NOTHING_KNOWN
    return FAILED if found.has_failed else CAME_UP


def read_log(name: str, token: CancelToken) -> LogReading:
    """The log in the file ``name``; ``-`` is stdin.

    Raises:
        OSError: it can't be read.
    """
    if name == "-":
        return read(sys.stdin.buffer, token)
    with Path(name).open("rb") as stream:
        return read(stream, token)


def _learn(found: Run, name: str) -> None:
    """Keep what the run measured; what is wrong with that is said before the answer."""
    from engine.devices.here import this_machine  # noqa: PLC0415 - loads drivers

    path = lessons.default_file()
    lesson = lesson_of(found, this_machine(), Path(name).name, time.time())
    lessons.save(path, lessons.with_(lessons.read(path), [lesson]))
    streams.notice(f"Learned from this run as {lesson.id}; plimsoll learned shows all.")


def _describe(found: Run, look: Look) -> Iterator[str]:
    yield from _story(found, look)
    yield from _would_have_helped(found, look)
    yield ""
    yield look.faint(look.line(words.about(found.reading)))
    if found.plan is not None:
        yield look.faint(look.line(f"predicted for {found.plan.model.id}"))
    for rows in found.rows[:_MOST_RANKS]:
        yield ""
        yield from _table(rows, look)
    for heading, sentences in (("Not predicted", (found.unplanned,)), ("Assumed", found.notes)):
        text = " ".join(sentences)
        if text:
            yield ""
            yield from wrapped(f"{heading}: {text}", look.width, first="  ", rest="  ")


def _story(found: Run, look: Look) -> Iterator[str]:
    """What happened."""
    reading, cause = found.reading, found.cause
    headline = look.line(words.headline(cause, reading, _UNIT), look.width - 2)
    if cause is None:
        yield look.strong(headline)
    else:
        yield look.verdict(headline, Fit.TIGHT if cause.is_soft else Fit.DOES_NOT_FIT)
    for sentence in happened(cause, reading, _UNIT):
        yield from wrapped(sentence, look.width, first="  ", rest="  ")
    if cause is not None:
        balance = words.balance(cause, _UNIT)
        if balance:
            yield from wrapped(balance, look.width, first="  ", rest="  ")
        yield look.faint(f"  Line {cause.line:,}")


def _would_have_helped(found: Run, look: Look) -> Iterator[str]:
    if not found.remedies:
        return
    yield ""
    yield "  What would have helped"
    room = min(38, look.width - 4 - 12)
    for one in found.remedies:
        margin = one.margin_bytes
        amount = "" if margin is None else format_gib(margin, digits=1, signed=True)
        yield f"    {fitted(one.label, room)}{fitted(amount, 12, right=True)}"


def _table(rows: RankRows, look: Look) -> Iterator[str]:
    """A row for each region; a narrow terminal gets what was stated and predicted alone."""
    is_wide = look.width >= _TABLE
    heads = ("stated", "predicted", "difference")
    head = _line(rows.name or "GiB", *(heads if is_wide else heads[:2]))
    yield look.faint(head + "  line" if is_wide else head)
    for row in rows.rows:
        if row.stated is None:
            continue
        predicted, difference = row.predicted, row.difference_bytes
        figures = [
            format_gib(row.stated.size_bytes, unit=False),
            _NOT_KNOWN if predicted is None else format_gib(predicted.likely_bytes, unit=False),
        ]
        lines = ""
        if is_wide:
            signed = None if difference is None else format_gib(difference, unit=False, signed=True)
            figures.append(signed or _NOT_KNOWN)
            lines = "  " + ", ".join(f"{n:,}" for n in row.stated.lines)
        text = _line(row.region.label, *figures)
        yield look.region("■", row.region) + f" {text[2:]}{lines}"


def _line(name: str, *figures: str) -> str:
    shown = (fitted(figure, _NUMBER, right=True) for figure in figures)
    return f"  {fitted(name, _NAME)}" + "".join(shown)
