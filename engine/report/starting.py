"""How the plan is started: the command, or what to set, and what has to be known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import PlimsollError
from engine.launch.launch import Kind
from engine.launch.shell import posix, remarks
from engine.launch.write import launch
from engine.report.document import Block, Bullets, Command, Facts, Heading, Paragraph
from engine.units import UnitSystem, in_unit
from engine.words import tr

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment
    from engine.launch.launch import Launch
    from engine.sizing import Sizing


def blocks(sizing: Sizing, plan: Deployment, unit: UnitSystem = UnitSystem.BINARY) -> list[Block]:
    """A heading, the command and its remarks; nothing for a plan that can't be written."""
    try:
        found = launch(sizing, plan)
    except PlimsollError:
        return []
    made: list[Block] = [Heading(tr("Start it with {label}").format(label=found.label))]
    made += _started(found)
    # The first page says whether it fits.
    told = (note for note in found.notes if sizing.verdict.headline not in note)
    known = tuple(in_unit(note, unit) for note in told)
    return [*made, Bullets(known)] if known else made


def _started(found: Launch) -> list[Block]:
    kinds = {form.kind: form.text for form in found.forms}
    if Kind.SETTINGS in kinds:
        rows = [line.partition(": ") for line in _said(kinds[Kind.SETTINGS])]
        return [Facts(tuple((name, value) for name, _, value in rows))]
    if Kind.MULTI_NODE in kinds:
        lines = kinds[Kind.MULTI_NODE].splitlines()
        return [Command("\n".join(lines[len(remarks(found.notes)) :]))]
    if not found.words:
        return [Paragraph(tr("It is started from Python: plimsoll launch writes the lines."))]
    made: list[Block] = [Command(posix([found.words], found.environment))]
    if Kind.MODELFILE in kinds:
        made += [Command(line) for line in _said(kinds[Kind.MODELFILE])]
    return made


def _said(text: str) -> list[str]:
    """The lines that are no remarks."""
    return [line for line in text.splitlines() if not line.startswith("#")]
