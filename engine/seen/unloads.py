"""Which models a runtime has given up between two looks, by its own word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.seen.model import ModelSeen, Reach, RuntimeSeen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SAY_SO = frozenset({Reach.ANSWERS, Reach.LOADING})


def unloaded(
    before: Iterable[RuntimeSeen], now: Iterable[RuntimeSeen]
) -> Iterator[tuple[RuntimeSeen, RuntimeSeen]]:
    """Each row of ``before`` whose model is loaded no more, and what its server says instead.

    A server that ended, or that did not answer this time, has told of nothing.
    """
    there = {_server(row): row for row in now if row.address and row.reach in _SAY_SO}
    loaded = {(_server(row), _name(row)) for row in now}
    for row in before:
        server = there.get(_server(row))
        is_gone = bool(_name(row)) and (_server(row), _name(row)) not in loaded
        if server is not None and is_gone and server.reach is Reach.ANSWERS:
            yield row, server


def _server(row: RuntimeSeen) -> tuple[str, str]:
    return row.runtime, str(row.address)


def _name(row: RuntimeSeen) -> str:
    is_loaded = row.reach is Reach.ANSWERS and isinstance(row.model, ModelSeen)
    return row.model.name if is_loaded and isinstance(row.model, ModelSeen) else ""
