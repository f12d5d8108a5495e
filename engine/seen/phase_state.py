"""What the overlay needs of a runtime that is seen: is it ready, what does it work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.overlay.state import Stated, seconds, share, whole
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from engine.seen.model import RuntimeSeen


def phase_state(seen: RuntimeSeen) -> Stated:
    """The state of one look; what the runtime doesn't say stays unknown."""
    pool = None if isinstance(seen.pool, Missing) else seen.pool
    return Stated(
        is_loaded=None if isinstance(seen.is_loaded, Missing) else seen.is_loaded,
        requests_running=whole(seen.running),
        pool_share=share(pool.used_share) if pool else None,
        live_tokens=_live_tokens(seen),
        prompt_tokens=whole(seen.prompt_tokens),
        generated_tokens=whole(seen.output_tokens),
        cpu_s=seconds(seen.cpu_s),
    )


def _live_tokens(seen: RuntimeSeen) -> int | None:
    """Tokens that requests need: those that are kept for later give way to them."""
    if isinstance(seen.pool, Missing):
        return None
    used, kept = whole(seen.pool.used_tokens), whole(seen.pool.evictable_tokens)
    return None if used is None else max(used - (kept or 0), 0)
