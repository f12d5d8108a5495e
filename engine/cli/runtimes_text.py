"""The runtimes that are seen, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cancel import CancelToken
from engine.cli.look import wrapped
from engine.seen.attribution import difference
from engine.seen.look import Looker
from engine.seen.model import ModelSeen, Reach
from engine.telemetry.snapshot import Missing
from engine.telemetry.wire import Asking
from engine.units import format_gib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.cli.look import Look
    from engine.seen.model import RuntimeSeen
    from engine.telemetry.snapshot import TelemetrySnapshot


class Seer:
    """Looks for runtimes on this computer, as often as it is asked; sends nothing beyond it."""

    def __init__(self) -> None:
        self._looker = Looker()

    def look(self, snapshot: TelemetrySnapshot) -> tuple[RuntimeSeen, ...]:
        """Those that are seen now."""
        return self._looker.look(snapshot, Asking(CancelToken(), offline=True))


def described(runtimes: Iterable[RuntimeSeen], look: Look) -> Iterator[str]:
    """A paragraph for each."""
    found = tuple(runtimes)
    if not found:
        yield look.line("No runtime is seen.")
    for seen in found:
        yield look.strong(look.line(_name(seen)))
        for line in _lines(seen):
            yield from wrapped(line, look.width, first="  ", rest="    ")


def _name(seen: RuntimeSeen) -> str:
    version = "" if isinstance(seen.version, Missing) else f" {seen.version}"
    model = f" · {seen.model.name}" if isinstance(seen.model, ModelSeen) else ""
    return f"{seen.label}{version}{model}"


def _lines(seen: RuntimeSeen) -> Iterator[str]:
    where = f" at {seen.address}" if seen.address else ""
    why = f": {seen.why}" if seen.why else ""
    yield f"{seen.reach.value}{where}{why}"
    if isinstance(seen.model, ModelSeen) and isinstance(seen.model.context_tokens, int):
        yield f"context {seen.model.context_tokens:,} tokens"
    pool = seen.pool
    if not isinstance(pool, Missing) and isinstance(pool.tokens, int):
        used = f"{pool.used_tokens:,} of " if isinstance(pool.used_tokens, int) else ""
        yield f"KV pool {used}{pool.tokens:,} tokens"
    if seen.reach is Reach.ANSWERS and isinstance(seen.running, int):
        waiting = f", {seen.waiting:,} waiting" if isinstance(seen.waiting, int) else ""
        yield f"requests {seen.running:,} running{waiting}"
    stated, held = seen.stated_bytes, seen.held_bytes
    yield f"stated {_size(stated)}, attributed {_size(held)}"
    apart = difference(seen)
    if apart is not None:
        yield apart.reason
    yield from seen.notes


def _size(size: int | Missing) -> str:
    return f"unknown ({size.reason})" if isinstance(size, Missing) else format_gib(size)
