"""All scores at once, and what is not scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import PlimsollError
from tests.truth.scoring import apple, devices, generated, gguf, overhead, served
from tests.truth.scoring.ask import Asked, ask, is_offered
from tests.truth.scoring.records import Record, records
from tests.truth.scoring.scores import Missed, Score
from tests.truth.scoring.unscored import left_out, unscored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FIGURES: dict[str, Callable[[Asked], Iterator[Score | Missed]]] = {
    "vllm": served.scores,
    "sglang": served.scores,
    "transformers": generated.scores,
    "llama.cpp": devices.scores,
    "ollama": devices.scores,
    "ik_llama.cpp": devices.scores,
    "mlx": apple.scores,
}
"""Runtime -> what of its records is scored."""


@dataclass(frozen=True)
class Board:
    """The scores of every record, and every figure that has none with its reason."""

    scores: tuple[Score, ...]
    missed: tuple[Missed, ...]


def board(runtimes: Iterable[str] = ()) -> Board:
    """Scores of ``runtimes``, or of all."""
    wanted = set(runtimes)
    scores: list[Score] = []
    missed: list[Missed] = []
    for record in records():
        if not wanted or record.runtime in wanted:
            found, gone = scored(record)
            scores += found
            missed += gone
    if not wanted or "llama.cpp" in wanted:
        scores += gguf.scores()
    return Board(tuple(scores), tuple(missed))


def scored(record: Record) -> tuple[list[Score], list[Missed]]:
    """The scores of one record, and every figure of it that has none with the reason."""

    def missed(reason: str) -> tuple[list[Score], list[Missed]]:
        return [], [Missed(record.id, record.runtime, "*", reason)]

    if "*" in record.left_out:
        return missed(record.left_out["*"])
    try:
        every = _scores(record)
    except PlimsollError as error:
        return missed(f"no answer: {error.message}")
    if every is None:
        return missed("a runtime that is not planned yet")
    gone = [*left_out(record), *unscored(record, every)]
    kept: list[Score] = []
    for one in every:
        if one.figure in record.left_out:
            continue
        if isinstance(one, Score):
            kept.append(one)
        else:
            gone.append(one)
    return (kept, gone) if kept or gone else missed("it states no figure")


def _scores(record: Record) -> list[Score | Missed] | None:
    """None where the runtime is not planned."""
    if "overhead" in record.facts:
        return [overhead.score(record)]
    figures = FIGURES.get(record.runtime)
    if figures is None or not is_offered(record.runtime):
        return None
    return list(figures(ask(record)))
