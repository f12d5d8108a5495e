"""A report as one web page: no scripts, nothing from elsewhere, tables that a reader can hear."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, cast

from engine.report import inks, map_picture, picture
from engine.report.document import (
    Align,
    BarsFigure,
    Block,
    Bullets,
    Cell,
    Column,
    Command,
    Facts,
    Figure,
    Formula,
    Heading,
    MapFigure,
    PageBreak,
    Paragraph,
    Table,
    Tone,
)
from engine.words import chosen, tr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.report.document import ReportDocument

_LONGEST_WORD = 24
"""What is longer is a path or an id, and may break anywhere; words never do."""
_SHORT = 20
"""What is no longer stays on its line."""
BEGINNING = "<!DOCTYPE html>\n<!-- Plimsoll report -->"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Says to the browser what is so anyway: no script, and nothing is fetched."""


def html(document: ReportDocument) -> str:
    """The whole of ``document``; the same document gives the same page."""
    body: list[str] = []
    name = ""
    for kind, group in groupby(document.blocks, type):
        blocks = list(group)
        body += _written(kind, blocks, name)
        last = blocks[-1]
        name = last.text if isinstance(last, Heading) else name
    creator = f"Plimsoll {document.version}".strip()
    return "\n".join(
        (
            BEGINNING,
            f'<html lang="{chosen().code}">',
            '<head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width">',
            f'<meta name="generator" content="{escape(creator)}">',
            f"<title>{escape(document.title)}</title>",
            f"<style>{_style()}</style></head>",
            f"<body>{inks.patterns()}<main>",
            f'<header><p class="quiet">{escape(document.subject)}</p>',
            f"<h1>{escape(document.headline)}</h1><p>{escape(document.detail)}</p></header>",
            *body,
            f'<footer><p class="quiet">{escape(document.footer)}</p></footer>',
            "</main></body></html>\n",
        )
    )


def _written(kind: type[Block], blocks: Sequence[Block], name: str) -> Iterable[str]:
    """Blocks of one kind that follow each other, under the heading ``name``."""
    if kind is Formula:
        return [_formulas(cast("Sequence[Formula]", blocks), name)]
    if kind is Command:
        lines = "\n".join(escape(block.text) for block in cast("Sequence[Command]", blocks))
        return [f"<pre><code>{lines}</code></pre>"]
    return [_one(block, name) for block in blocks]


def _one(block: Block, name: str) -> str:
    match block:
        case Heading():
            tag = "h2" if block.is_part else "h3"
            made = f"<{tag}>{escape(block.text)}</{tag}>"
        case Paragraph():
            made = f'<p class="{block.tone}">{escape(block.text)}</p>'
        case Bullets():
            made = f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in block.items)}</ul>"
        case Facts():
            pairs = (f"<div><dt>{escape(n)}</dt><dd>{escape(v)}</dd></div>" for n, v in block.pairs)
            made = f"<dl>{''.join(pairs)}</dl>"
        case Table():
            made = _table(block, name)
        case Figure():
            made = _figure(picture.plan(block), block.caption)
        case MapFigure():
            made = _figure(map_picture.fit_map(block), block.caption)
        case BarsFigure():
            made = _figure(picture.side_by_side(block), block.caption)
        case PageBreak() | Command() | Formula():
            made = ""
    return made


def _figure(drawn: str, caption: str) -> str:
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(table: Table, name: str) -> str:
    hidden = "" if table.has_header else ' class="unseen"'
    heads = "".join(
        f'<th scope="col"{_side(column)}>{escape(column.title)}</th>' for column in table.columns
    )
    rows = "".join(_row(row, table.columns) for row in table.rows)
    total = f"<tfoot>{_row(table.total, table.columns)}</tfoot>" if table.total else ""
    return (
        f'<div class="wide"><table><caption class="unseen">{escape(name)}</caption>'
        f"<thead{hidden}><tr>{heads}</tr></thead><tbody>{rows}</tbody>{total}</table></div>"
    )


def _row(cells: Sequence[Cell], columns: Sequence[Column]) -> str:
    made: list[str] = []
    for number, (cell, column) in enumerate(zip(cells, columns, strict=True)):
        tag = "td" if number else 'th scope="row"'
        exact = f' title="{cell.value_bytes} B"' if cell.value_bytes is not None else ""
        tone = cell.tone or column.tone
        text = f"{_swatch(cell)}{escape(cell.text)}"
        made.append(f"<{tag}{_side(column, tone, cell.text)}{exact}>{text}</{tag[:2]}>")
    return f"<tr>{''.join(made)}</tr>"


def _side(column: Column, tone: Tone = Tone.NORMAL, text: str = "") -> str:
    right = "right" if column.align is Align.RIGHT else ""
    told = (right, "" if tone is Tone.NORMAL else tone.value, _length(text))
    said = " ".join(word for word in told if word)
    return f' class="{said}"' if said else ""


def _length(text: str) -> str:
    """How ``text`` may break: not at all, between words, or anywhere."""
    if 0 < len(text) <= _SHORT:
        return "short"
    return "long" if any(len(word) > _LONGEST_WORD for word in text.split()) else ""


def _swatch(cell: Cell) -> str:
    if cell.region is None:
        return ""
    return (
        '<svg class="swatch" width="12" height="12" aria-hidden="true">'
        f'<rect width="12" height="12" fill="{inks.fill(cell.region)}"/></svg>'
    )


def _formulas(formulas: Sequence[Formula], name: str) -> str:
    titles = (tr("Name"), tr("Size"), tr("How it is worked out"), tr("Known from"))
    sides = ("", ' class="right"', "", "")
    heads = "".join(
        f'<th scope="col"{side}>{escape(title)}</th>'
        for title, side in zip(titles, sides, strict=True)
    )
    rows = "".join(
        f'<tr><th scope="row" class="{_length(f.name)}">{escape(f.name)}</th>'
        f'<td class="right">{escape(f.value)}</td>'
        f"<td><code>{escape(f.calculation)}</code></td>"
        f'<td class="quiet">{escape(f.source)}</td></tr>'
        for f in formulas
    )
    return (
        f'<div class="wide"><table><caption class="unseen">{escape(name)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _style() -> str:
    ink, second, third = (
        inks.color(f"text.{name}") for name in ("primary", "secondary", "tertiary")
    )
    hair, sunken = inks.color("line.hair"), inks.color("surface.sunken")
    return (
        f"body{{margin:0;color:{ink};background:#fff;color-scheme:light;"
        "font:15px/1.5 Inter,system-ui,sans-serif}"
        "main{max-width:50rem;margin:auto;padding:2rem 1.5rem}"
        "h1{font-size:1.8rem;line-height:1.2;margin:.2rem 0 .6rem}"
        "h2{font-size:1.3rem;margin:2.6rem 0 .6rem}h3{font-size:1rem;margin:1.6rem 0 .5rem}"
        f"p{{margin:.3rem 0}}.quiet,figcaption{{color:{second}}}"
        f"dl{{display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));"
        f"margin:1.2rem 0;border-top:1px solid {hair}}}"
        f"dl div{{padding:.4rem .6rem .4rem 0;border-bottom:1px solid {hair}}}"
        f"dt{{color:{third};font-size:.8rem}}dd{{margin:0;font-weight:500}}"
        "figure{margin:1rem 0}figure svg{width:100%;height:auto}figcaption{font-size:.8rem}"
        "table{border-collapse:collapse;width:100%;font-size:.82rem}"
        f"th,td{{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;"
        f"border-bottom:1px solid {hair};font-weight:400}}td.long,th.long,td code"
        "{overflow-wrap:anywhere}.short{white-space:nowrap}.wide{overflow-x:auto}"
        f"thead th{{color:{third}}}"
        ".strong,tfoot th,tfoot td{font-weight:600}tfoot td.quiet{font-weight:400}"
        ".right{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
        ".swatch{margin-right:.5rem;vertical-align:-1px}"
        f"pre{{background:{sunken};padding:.6rem;white-space:pre-wrap;overflow-wrap:anywhere}}"
        "code{font-family:'JetBrains Mono',ui-monospace,monospace;font-size:.8rem}"
        "ul{padding-left:1.1rem}footer{margin-top:2rem;font-size:.8rem}"
        ".unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}"
        "@page{margin:16mm}@media print{main{max-width:none;padding:0}table{font-size:.7rem}"
        "h2,h3{break-after:avoid}tr,figure{break-inside:avoid}tfoot{display:table-row-group}}"
    )
