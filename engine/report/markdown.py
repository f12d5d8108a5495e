"""A report as Markdown, for an issue, a wiki or a chat; pictures are their captions there."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, cast

from engine.report.document import (
    Align,
    BarsFigure,
    Block,
    Bullets,
    Command,
    Facts,
    Figure,
    Formula,
    Heading,
    MapFigure,
    PageBreak,
    Paragraph,
    Table,
)
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.report.document import ReportDocument

BEGINNING = "<!-- Plimsoll report -->"
_MEANS_SOMETHING = re.compile(r"[\\`*<\[\]|~]|(?<!\w)_|_(?!\w)")
_BEGINS_A_BLOCK = re.compile(r"^(>|(?:#+|[+-]|\d+[.)])(?= |$))")


def markdown(document: ReportDocument) -> str:
    """The whole of ``document``; the same document gives the same text."""
    parts = [
        BEGINNING,
        f"# {escaped(document.headline)}",
        escaped(document.subject),
        escaped(document.detail),
    ]
    for kind, group in groupby(document.blocks, type):
        parts += _written(kind, list(group))
    parts.append(f"*{escaped(document.footer)}*")
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """``text`` as words: nothing in it makes a table, a link, a tag or a list."""
    return _BEGINS_A_BLOCK.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", _words(text))


def _words(text: str) -> str:
    """``text`` within a line, where nothing begins a block."""
    return _MEANS_SOMETHING.sub(lambda found: f"\\{found[0]}", " ".join(text.split()))


def _written(kind: type[Block], blocks: Sequence[Block]) -> Iterable[str]:
    """Blocks of one kind that follow each other."""
    if kind is Formula:
        return [_formulas(cast("Sequence[Formula]", blocks))]
    if kind is Command:
        return [_fenced([block.text for block in cast("Sequence[Command]", blocks)])]
    return [_one(block) for block in blocks]


def _one(block: Block) -> str:
    match block:
        case Heading():
            made = f"{'##' if block.is_part else '###'} {escaped(block.text)}"
        case Paragraph():
            made = escaped(block.text)
        case Bullets():
            made = "\n".join(f"- {escaped(item)}" for item in block.items)
        case Facts():
            made = "\n".join(f"- {escaped(name)}: **{escaped(v)}**" for name, v in block.pairs)
        case Table():
            made = _table(block)
        case Figure() | MapFigure() | BarsFigure():
            made = f"*{escaped(block.caption)}*"
        case PageBreak() | Command() | Formula():
            made = ""
    return made


def _table(table: Table) -> str:
    heads = [column.title for column in table.columns]
    rights = [column.align is Align.RIGHT for column in table.columns]
    rows = [[cell.text for cell in row] for row in table.rows]
    if table.total:
        rows.append([cell.text for cell in table.total])
    return _grid(heads, rights, rows)


def _formulas(formulas: Sequence[Formula]) -> str:
    heads = [tr("Name"), tr("Size"), tr("How it is worked out"), tr("Known from")]
    rows = [[f.name, f.value, f.calculation, f.source] for f in formulas]
    return _grid(heads, [False, True, False, False], rows)


def _grid(heads: Sequence[str], rights: Sequence[bool], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(_words(cell) for cell in cells)} |"

    rule = f"|{'|'.join('---:' if right else '---' for right in rights)}|"
    return "\n".join((line(heads), rule, *(line(row) for row in rows)))


def _fenced(lines: Sequence[str]) -> str:
    text = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}sh\n{text}\n{fence}"
