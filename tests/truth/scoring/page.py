"""``docs/accuracy.md``: how far every runtime's budget is from what was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.truth.scoring.bars import all_bars
from tests.truth.scoring.crossed import lines as crossed
from tests.truth.scoring.reasons import UNEXPLAINED, reason_for
from tests.truth.scoring.tables import percent, percentile, row, rows, worst_of
from tests.truth.scoring.words import (
    GIB,
    NAMES,
    figure_name,
    in_order,
    reasons,
    runtime_name,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.truth.scoring.bars import Bar
    from tests.truth.scoring.board import Board
    from tests.truth.scoring.scores import Score

PAGE = Path(__file__).resolve().parents[3] / "docs" / "accuracy.md"
GLANCE_FILE = PAGE.parents[1] / "resources" / "data" / "accuracy.json"
"""The glance as the product knows it: a report says how far its rules have been off."""
WORST = 10

HEAD = """\
# How far from the truth

Can you trust the numbers? Here is every measured start that we know of, beside what we say of the
same start. They are other people's logs, published tables and llama.cpp's own allocations; each is
a fact in `tests/truth/records` with the page that it comes from.

- **error**: of our likely figure, relative to the measured one; 0 where both agree to the last
  digit that was printed. The **median** is the middle one, 95 of 100 are at or below **p95**.
- **inside**: how often the measured figure lies in our stated range; **width** is how wide that
  range is in the middle case, relative to the figure. A count has no range of its own.
- A pool *from scratch* follows from the settings and the card alone. *From a known pool* starts
  from the bytes that the runtime printed, and has to give its integers.
- **held out**: the same where no fit has seen the model family that it is scored on.

`python -m tests.truth --write` writes this page, and a test keeps it current. No row gets worse
without a line in `tests/truth/baseline.tsv` that says why.
"""
GLANCE = """\
## At a glance

By how much the regions of a budget (weights, cache, activations …) are off, one by one.
"""
BARS = """\
What we set ourselves before measuring.

- **dense**: no layer has experts or a recurrent state. *Rows* are the starts of vLLM 0.11 to 0.19
  that one project logged on an H100 with every setting; any log adds starts of all sorts of cards,
  whose settings are known as far as their pages state them.
- A known pool is met by a record if all its integers are right, a run's compute buffers if each is.
- Real devices are those of llama.cpp's, Ollama's and ik_llama.cpp's logs.
- The last rows come twice, since llama.cpp's own runs are many: over all regions, and over those of
  logs and real devices alone."""
HELD_OUT = """\
Most of a budget follows from a runtime's source and is scored as it is. Some constants no source
states: what libraries hold, what a graph costs. They were fitted to records, and records are what
they are scored on. So each such figure is scored again without its own records: every model family
is left out in turn, then every release; what we say moves by the median residual of the records
that are left, counted in widths of our range. **inside** is within our range, moved along;
**strict** within the range that 95 % of the other records fill (all of them, if fewer than 40), and
its width beside it. From a few records such a range is narrower than the one we state: of *n*
records it holds the next one *n* − 1 times out of *n* + 1.

A figure is missing where fewer than three records of one constant are left. The difference between
the counts of the first line and of the others is what rests on its own records alone. What is in no
line has no fitted part."""
LEFT_OUT = """\
Records and figures that have no row above, and why. A record may be scored in part."""


def page(board: Board) -> str:
    """The text of the page."""
    bars = all_bars(board.scores)
    parts = [HEAD, GLANCE, *_glance(board), *_bars(bars)]
    for runtime in in_order(score.runtime for score in board.scores):
        parts += ["", *_section(board, runtime)]
    parts += ["", "## Held out\n", HELD_OUT, "", *_held_out(board)]
    parts += ["", "## Left out\n", LEFT_OUT, "", *_left_out(board)]
    return "\n".join(parts) + "\n"


def _glance(board: Board) -> Iterator[str]:
    yield "| runtime | records | regions | off, middle | off, p95 | inside | width |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for runtime in in_order(score.runtime for score in board.scores):
        mine = [score for score in board.scores if score.runtime == runtime and score.is_region]
        off = sorted(score.off / GIB for score in mine)
        whole = row(runtime, "all", "", mine)
        yield (
            f"| {runtime_name(runtime)} | {len({s.record for s in mine}):,} | {len(mine):,} |"
            f" {median(off):.3f} GiB | {percentile(off, 0.95):.2f} GiB |"
            f" {percent(whole.inside, 1)} | {percent(whole.width, 1)} |"
        )


def glance_data(text: str) -> str:
    """The lines of the glance in the page ``text``, by runtime, as the product's data."""
    keys = {name: key for key, name in NAMES.items()}
    made: dict[str, dict[str, int | str]] = {}
    for line in text.partition("## Bars")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] not in keys or len(cells) != 7:
            continue
        records, regions, median_off, p95_off, inside = (
            re.sub(r"[^\d.]", "", cell) for cell in cells[1:6]
        )
        made[keys[cells[0]]] = {
            "records": int(records),
            "regions": int(regions),
            "off_median_gib": median_off,
            "off_p95_gib": p95_off,
            "inside_percent": inside,
        }
    return json.dumps(made, indent=1) + "\n"


def _bars(bars: Sequence[Bar]) -> Iterator[str]:
    met = sum(bar.is_met is True for bar in bars)
    yield f"\n## Bars\n\n{BARS}\n\n{met} of {len(bars)} are met.\n"
    yield "| figure | bar | reached | held out | counted | met |\n|---|---|---|---|---:|---|"
    for bar in bars:
        said = {True: "yes", False: "**no**", None: "not scored"}[bar.is_met]
        yield (
            f"| {bar.name} | {bar.limit} | {bar.reached} | {bar.held_out} | {bar.count:,} |"
            f" {said} |"
        )


def _section(board: Board, runtime: str) -> Iterator[str]:
    mine = [score for score in board.scores if score.runtime == runtime]
    yield f"## {runtime_name(runtime)}\n"
    yield "| releases | figure | figures | exact | median | p95 | worst | inside | width |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for one in rows(mine):
        cells = (one.median, one.p95, one.worst, one.inside, one.width)
        yield (
            f"| {one.versions} | {figure_name(one.figure)} | {one.count:,} | {one.exact:,} | "
            + " | ".join(map(percent, cells))
            + " |"
        )
    found = worst_of(mine, WORST)
    if not found:
        yield "\nNone is off."
        return
    unknown = sum(reason_for(score) == UNEXPLAINED for score in found)
    yield f"\nThe {len(found)} worst, those outside our range first; {unknown} {UNEXPLAINED}:\n"
    yield "| record | figure | measured | ours | error | reason |"
    yield "|---|---|---:|---:|---:|---|"
    for score in found:
        yield (
            f"| {_cell(score.record)} | {figure_name(score.figure)} | {shown(score.wanted)} |"
            f" {_ours(score)} | {percent(score.signed, 1)} | {_cell(reason_for(score))} |"
        )


def _held_out(board: Board) -> Iterator[str]:
    yield "| runtime | figure | scored | figures | median | p95 | inside | strict | its width |"
    yield "|---|---|---|---:|---:|---:|---:|---:|---:|"
    for line in crossed(board.scores):
        strict = line.ranged
        cells = (line.row.median, line.row.p95, line.row.inside)
        cells += (strict.inside, strict.width) if strict else (None, None)
        yield (
            f"| {runtime_name(line.runtime)} | {figure_name(line.figure)} | {line.scored} |"
            f" {line.row.count:,} | " + " | ".join(map(percent, cells)) + " |"
        )


def _left_out(board: Board) -> Iterator[str]:
    yield "| runtime | reason | figures | records |\n|---|---|---|---:|"
    for runtime, reason, figures, count in reasons(board.missed):
        yield f"| {runtime_name(runtime)} | {_cell(reason)} | {_cell(figures)} | {count} |"


def _ours(score: Score) -> str:
    if not score.is_region or score.low == score.high:
        return shown(score.likely, score.wanted)
    likely, low, high = (shown(v, score.wanted) for v in (score.likely, score.low, score.high))
    return f"{likely} ({low} to {high})"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")
