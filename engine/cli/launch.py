"""``plimsoll launch``: the command that starts a plan, or its container."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cancel import CancelToken
from engine.cli import streams
from engine.cli.encode import encode
from engine.cli.hub import opener
from engine.cli.workspace import earlier
from engine.contract.desk import Desk
from engine.contract.launch import answer
from engine.contract.request import parse
from engine.errors import UsageError
from engine.launch.write import launch
from engine.sizing import size
from engine.source.reference import PathReference
from engine.source.reference import parse as refer

if TYPE_CHECKING:
    import argparse

    from engine.launch.launch import Form, Launch

_ALL = "all"


def run(options: argparse.Namespace) -> int:
    """Write it; what is wrong with the plan stands in the comments."""
    desk = Desk(CancelToken(), opener(options))
    request = parse(options.given)
    plan = desk.plan(request, earlier(options))
    sizing = size(plan.model, plan.deployment, plan.machine)
    found = launch(
        sizing,
        plan.deployment,
        _path(request.model or ""),
        capacity_known=plan.notes.capacity_known,
        node_devices=options.gpus_per_node,
    )
    for remark in request.remarks:
        streams.notice(remark)
    forms = _asked(found, options.form)
    if options.json:
        text = encode(answer(replace(found, forms=forms) if options.form else found))
    else:
        text = "\n\n".join(form.text for form in forms)
    streams.output().write(text + "\n")
    return 0


def _path(reference: str) -> str:
    """Where the model lies, if it is of this disk."""
    if not reference or reference.lstrip().startswith("{"):
        return ""
    meant = refer(reference)
    is_here = isinstance(meant, PathReference) or Path(reference).exists()
    return reference if is_here else ""


def _asked(found: Launch, name: str | None) -> tuple[Form, ...]:
    """The forms of that name; the plain command where none is named."""
    if name == _ALL:
        return found.forms
    if name is None:
        return found.forms[:1]
    chosen = tuple(each for each in found.forms if each.kind.value == name)
    if not chosen:
        there = ", ".join(each.kind.value for each in found.forms)
        message = f"There is no form {name[:40]!r} of this plan: say {there}, or {_ALL}."
        raise UsageError(message, field="form")
    return chosen
