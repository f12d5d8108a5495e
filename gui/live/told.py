"""A runtime in words: what it says of itself, what the drivers say of it, and where they differ."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from engine.seen.attribution import difference
from engine.seen.model import Known, ModelSeen, PoolSeen, Reach, RuntimeSeen
from engine.telemetry.snapshot import Missing, Quality
from engine.words import grouped, tr, tr_count, tr_later
from gui.kit import format as fmt
from gui.live.explain import Passage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.units import UnitSystem

MARKS = {
    Quality.EXACT: tr_later("exact"),
    Quality.RESIDENT: tr_later("in memory now"),
    Quality.COMMITTED: tr_later("promised, not all of it in memory"),
    Quality.OVER_COUNTS: tr_later("shared memory counted more than once"),
    Quality.NOT_REPORTED: tr_later("not all of it reported"),
}
"""How far a driver's figure can be trusted, in brackets after it."""


def name(seen: RuntimeSeen, *, is_short: bool = False) -> str:
    """``vLLM 0.25.1, opt-125m``; without the model's folder or owner where it ``is_short``."""
    version = "" if isinstance(seen.version, Missing) else seen.version
    model = "" if isinstance(seen.model, Missing) else seen.model.name
    if is_short:
        model = model.replace("\\", "/").rpartition("/")[2]
    return ", ".join(filter(None, (f"{seen.label} {version}".strip(), model)))


def pool(seen: RuntimeSeen) -> str:
    """``11%`` of the pool, or a dash."""
    found = seen.pool
    if isinstance(found, Missing) or isinstance(found.used_share, Missing):
        return fmt.DASH
    return tr("{percent}%").format(percent=round(found.used_share * 100))


def requests(seen: RuntimeSeen) -> str:
    """``3``, or ``64 + 12`` where some wait; a dash where it isn't known."""
    if isinstance(seen.running, Missing):
        return fmt.DASH
    running, waiting = grouped(seen.running), seen.waiting
    return f"{running} + {grouped(waiting)}" if isinstance(waiting, int) and waiting else running


def cell_tip(seen: RuntimeSeen, key: str, unit: UnitSystem) -> str:
    """What a cell's figure is in a sentence, or why there is none."""
    if key == "pool":
        found = seen.pool
        return tr(found.reason) if isinstance(found, Missing) else _pool(found, unit)
    if key == "requests":
        running = seen.running
        return tr(running.reason) if isinstance(running, Missing) else _requests(seen)
    return _bytes(seen, unit)


def passage(seen: RuntimeSeen, unit: UnitSystem) -> Passage:
    """All that is known of one runtime."""
    return Passage(name(seen), "\n".join(_lines(seen, unit)))


def _lines(seen: RuntimeSeen, unit: UnitSystem) -> Iterator[str]:
    if seen.reach not in {Reach.ANSWERS, Reach.LOADING}:
        yield tr("Not asked further: {why}.").format(why=tr(seen.why).rstrip("."))
    elif seen.reach is Reach.LOADING:
        yield tr("The model is being loaded.")
    if isinstance(seen.model, ModelSeen):
        yield from _context(seen.model)
    if seen.reach is Reach.ANSWERS and not isinstance(seen.pool, Missing):
        yield _pool(seen.pool, unit)
    if not isinstance(seen.running, Missing):
        yield _requests(seen)
    yield _bytes(seen, unit)
    apart = difference(seen)
    if apart is not None and apart.reason:
        yield apart.reason
    yield from seen.notes


def _context(model: ModelSeen) -> Iterator[str]:
    context, slots = model.context_tokens, model.slots
    if isinstance(context, Missing):
        yield tr("Context not known: {reason}.").format(reason=tr(context.reason))
    elif isinstance(slots, Missing) or slots == 1:
        yield tr("Context of {tokens} tokens.").format(tokens=grouped(context))
    else:
        words = tr("Context of {tokens} tokens in each of {slots} slots.")
        yield words.format(tokens=grouped(context), slots=grouped(slots))
    if model.expires == "never":
        yield tr("It stays loaded until it is unloaded by hand.")
    elif model.expires:
        with suppress(ValueError, OverflowError):
            at = datetime.fromisoformat(model.expires).astimezone()
            yield tr("It is unloaded at {time} unless it is asked again.").format(
                time=f"{at:%H:%M}"
            )


def _pool(found: PoolSeen, unit: UnitSystem) -> str:
    """``KV pool: 44,946 of 400,448 tokens, 3.1 GiB by what the model keeps``."""
    if isinstance(found.tokens, Missing):
        return tr("Size of the KV pool not known: {reason}.").format(reason=tr(found.tokens.reason))
    capacity = grouped(found.tokens)
    if isinstance(found.used_tokens, Missing):
        words = tr("KV pool of {tokens} tokens").format(tokens=capacity)
    else:
        words = tr("KV pool: {used} of {tokens} tokens").format(
            used=grouped(found.used_tokens), tokens=capacity
        )
    if isinstance(found.evictable_tokens, int) and found.evictable_tokens:
        freed = tr("{tokens} of them given up on demand")
        words += ", " + freed.format(tokens=grouped(found.evictable_tokens))
    if isinstance(found.size_bytes, int):
        size = fmt.size(found.size_bytes, unit)
        by = (
            tr("{size} as stated")
            if found.size_known is Known.STATED
            else tr("{size} by what the model keeps for a token")
        )
        words += ", " + by.format(size=size)
    return f"{words}."


def _requests(seen: RuntimeSeen) -> str:
    running, waiting = seen.running, seen.waiting
    if isinstance(running, Missing):
        return tr(running.reason)
    words = tr_count("{number} request runs", "{number} requests run", running)
    text = words.format(number=grouped(running))
    if isinstance(waiting, int):
        more = tr_count("{number} waits", "{number} wait", waiting)
        text += ", " + more.format(number=grouped(waiting))
    return f"{text}."


def _bytes(seen: RuntimeSeen, unit: UnitSystem) -> str:
    stated, held = seen.stated_bytes, seen.held_bytes
    said = (
        tr("states no bytes")
        if isinstance(stated, Missing)
        else tr("states {size}").format(size=fmt.size(stated, unit))
    )
    if isinstance(held, Missing):
        words = tr("The engine {stated}; what its processes hold is not known: {reason}.")
        return words.format(stated=said, reason=tr(held.reason))
    words = tr("The engine {stated}; the driver attributes {held} to it ({mark}).")
    return words.format(stated=said, held=fmt.size(held, unit), mark=tr(MARKS[seen.quality]))
