"""``docs/accuracy.md``: how far every runtime's budget is from what was measured."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.truth.scoring.bars import bars
from tests.truth.scoring.crossed import crossed
from tests.truth.scoring.reasons import reason_for
from tests.truth.scoring.tables import percent, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.truth.scoring.board import Board
    from tests.truth.scoring.scores import Score

PAGE = Path(__file__).resolve().parents[3] / "docs" / "accuracy.md"
WORST = 10
GIB = 2**30
_SMALLEST_BYTES = 2**24
"""A figure above this is bytes, shown in GiB; below, a count."""

HEAD = """\
# How far from the truth

Every measured record that we know of, beside what we say of the same start. Written by
`python -m tests.truth --write`; a test keeps it current, and `tests/truth/baseline.tsv` keeps it
from getting worse without a word. The records are facts in `tests/truth/records`, each with its
source.

- **error**: of our likely figure, relative to the measured one; 0 where the two agree to the last
  digit that was printed.
- **inside**: how often the measured figure lies in our stated range, **width** how wide that range
  is in the middle case.
- A pool *from scratch* knows the settings and the card alone; *from a known pool* starts from the
  bytes that the runtime printed, and has to give its integers.
"""
NAMES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llama.cpp": "llama.cpp",
    "ollama": "Ollama",
    "transformers": "Transformers",
    "mlx": "MLX",
}
FIGURES = {
    "graphs": "CUDA graphs, captured",
    "graphs_estimated": "CUDA graphs, vLLM's estimate",
    "non_torch": "non-torch memory",
    "consumed": "weights and non-torch",
    "kv_pool": "pool from scratch",
    "card": "whole card",
    "end": "end of generation",
    "load": "after loading",
    "kv_blocks from a known pool": "blocks from a known pool",
    "kv_tokens from a known pool": "tokens from a known pool",
    "max_concurrency from a known pool": "concurrency from a known pool",
}
"""Figure -> how the page calls it, where that is not its own name."""


def page(board: Board) -> str:
    """The text of the page."""
    lines = [HEAD, "## Bars\n"]
    lines += ["| figure | bar | reached | figures | met |", "|---|---|---|---:|---|"]
    for bar in bars(board.scores):
        met = {True: "yes", False: "**no**", None: "not scored"}[bar.is_met]
        lines.append(f"| {bar.name} | {bar.limit} | {bar.reached} | {bar.count:,} | {met} |")
    for runtime in _runtimes(board):
        lines += ["", *_section(board, runtime)]
    lines += [
        "",
        "## Held out",
        "",
        *crossed(board.scores),
        "",
        "## Left out",
        "",
        *_left_out(board),
    ]
    return "\n".join(lines) + "\n"


def _runtimes(board: Board) -> list[str]:
    found = {score.runtime for score in board.scores}
    return [name for name in NAMES if name in found] + sorted(found - NAMES.keys())


def _section(board: Board, runtime: str) -> Iterator[str]:
    mine = [score for score in board.scores if score.runtime == runtime]
    yield f"## {NAMES.get(runtime, runtime)}\n"
    yield "| releases | figure | figures | exact | median | p95 | worst | inside | width |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for row in rows(mine):
        cells = (row.median, row.p95, row.worst, row.inside, row.width)
        yield (
            f"| {row.versions} | {FIGURES.get(row.figure, row.figure)} | {row.count:,} |"
            f" {row.exact:,} | " + " | ".join(map(percent, cells)) + " |"
        )
    yield f"\nThe {WORST} worst, those outside our range first:\n"
    yield "| record | figure | measured | ours | error | reason |"
    yield "|---|---|---:|---:|---:|---|"
    for score in worst(mine):
        yield (
            f"| {_cell(score.record)} | {FIGURES.get(score.figure, score.figure)} |"
            f" {_shown(score.wanted)} | {_ours(score)} | {percent(score.signed, 1)} |"
            f" {_cell(reason_for(score))} |"
        )


def worst(scores: list[Score], count: int = WORST) -> list[Score]:
    """Figures that are off: outside our range first, then by error."""
    off = [score for score in scores if score.error]
    return sorted(off, key=lambda s: (s.is_inside, -s.error, s.record, s.figure))[:count]


def _ours(score: Score) -> str:
    if not score.is_region or score.low == score.high:
        return _shown(score.likely)
    return f"{_shown(score.likely)} ({_shown(score.low)} to {_shown(score.high)})"


def _shown(value: float) -> str:
    if abs(value) > _SMALLEST_BYTES:
        return f"{value / GIB:,.2f}"
    return f"{value:,.2f}" if value != int(value) else f"{value:,.0f}"


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")


def _left_out(board: Board) -> Iterator[str]:
    yield "| runtime | reason | records or figures |\n|---|---|---:|"
    reasons = Counter((missed.runtime, missed.reason) for missed in board.missed)
    for (runtime, reason), count in sorted(reasons.items()):
        yield f"| {NAMES.get(runtime, runtime)} | {_cell(reason)} | {count} |"
