"""``plimsoll size``: one model, or a batch of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cancel import CancelToken
from engine.cli import streams
from engine.cli.batch import answer_lines
from engine.cli.encode import encode
from engine.cli.hub import opener
from engine.cli.workspace import earlier
from engine.contract.answer import error_answer
from engine.contract.desk import Desk
from engine.contract.request import parse
from engine.contract.respond import respond
from engine.errors import PlimsollError, UsageError
from engine.fit import solve
from engine.fit.verdict import Fit
from engine.sizing import size

if TYPE_CHECKING:
    import argparse

    from engine.contract.request import Request
    from engine.fit.changes import Change
    from engine.fit.inverse import Answer

STATUS = {Fit.FITS: 0, Fit.TIGHT: 0, Fit.DOES_NOT_FIT: 1, Fit.UNKNOWN: 3}


def run(options: argparse.Namespace) -> int:
    """Answer; the exit status says whether it fits."""
    if options.batch is not None:
        return _batch(options)
    if options.model is None and "from_command" not in options.given:
        message = "No model is named: plimsoll size MODEL, or --batch FILE for many."
        raise UsageError(message, field="model")
    if options.json:
        return _json(options)
    return _text(options)


def _text(options: argparse.Namespace) -> int:
    from engine.cli.look import Look  # noqa: PLC0415 - no part of an answer in JSON
    from engine.cli.size_text import describe  # noqa: PLC0415 - see above

    desk = Desk(CancelToken(), opener(options))
    request, before = parse(options.given), earlier(options)
    if request.others or before:
        return _together(desk, request, before)
    plan = desk.plan(request)
    sizing = size(plan.model, plan.deployment, plan.machine)
    limits = solve.limits(plan.model, plan.deployment, plan.machine)
    look = Look.of(streams.output())
    ways: tuple[Change, ...] = ()
    if plan.notes.capacity_known and sizing.verdict.outcome is Fit.DOES_NOT_FIT:
        from engine.fit.changes import changes  # noqa: PLC0415 - 30 ms, and only for a misfit

        ways = changes(plan.model, plan.deployment, plan.machine)
    answers: tuple[Answer, ...] = ()
    if request.inverse and plan.notes.capacity_known:
        from engine.fit.inverse import inverse  # noqa: PLC0415 - only where it is asked

        answers = inverse(plan.model, plan.deployment, plan.machine)
    look.write(describe(sizing, limits, plan.notes, look, ways, answers), streams.output())
    return STATUS[sizing.verdict.outcome if plan.notes.capacity_known else Fit.UNKNOWN]


def _together(desk: Desk, request: Request, before: tuple[Request, ...]) -> int:
    from engine.cli.look import Look  # noqa: PLC0415 - no part of an answer in JSON
    from engine.cli.together_text import describe  # noqa: PLC0415 - only for several models
    from engine.together import together  # noqa: PLC0415 - see above

    plan = desk.plan(request, before)
    tenants, machine = desk.tenants(request, before)
    found = together(tenants, machine)
    look = Look.of(streams.output())
    look.write(describe(found, plan.notes, look), streams.output())
    return STATUS[found.outcome if plan.notes.capacity_known else Fit.UNKNOWN]


def _json(options: argparse.Namespace) -> int:
    desk = Desk(CancelToken(), opener(options))
    try:
        found, fit = respond(desk, options.given, options.before)
    except PlimsollError as error:
        # A script reads the answer, a person the sentence: both get theirs.
        streams.output().write(encode(error_answer(None, error)) + "\n")
        streams.complain(error)
        return 2
    streams.output().write(encode(found) + "\n")
    return STATUS[fit]


def _batch(options: argparse.Namespace) -> int:
    if set(options.given):
        first = next(iter(options.given)).replace("_", "-")
        message = f"--batch takes everything from its lines: leave out {first}."
        raise UsageError(message, field=first)
    return answer_lines(options.batch, Desk(CancelToken(), opener(options)))
