"""A runtime that is seen as a plain dict: a missing value is ``{"missing": "why"}``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.seen.attribution import difference
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from engine.seen.model import ModelSeen, PoolSeen, RuntimeSeen


def to_dict(seen: RuntimeSeen) -> dict[str, Any]:
    """``seen`` as JSON can hold it; ``difference`` is null where both figures agree."""
    apart = difference(seen)
    return {
        "runtime": seen.runtime,
        "label": seen.label,
        "reach": seen.reach.value,
        "why": seen.why,
        "address": str(seen.address) if seen.address else "",
        "version": _value(seen.version),
        "pids": list(seen.pids),
        "model": _model(seen.model),
        "pool": _pool(seen.pool),
        "requests_running": _value(seen.running),
        "requests_waiting": _value(seen.waiting),
        "requests_prefilling": _value(seen.prefilling),
        "prompt_tokens": _value(seen.prompt_tokens),
        "output_tokens": _value(seen.output_tokens),
        "stated_bytes": _value(seen.stated_bytes),
        "stated": [
            {
                "region": one.region.value if one.region else "",
                "rank": one.rank,
                "on_device": one.on_device,
                "size_bytes": one.size_bytes,
            }
            for one in seen.stated
        ],
        "attributed_bytes": _value(seen.held_bytes),
        "attributed": [
            {
                "uuid": one.uuid,
                "device": one.device,
                "size_bytes": _value(one.size_bytes),
                "quality": one.quality.value,
            }
            for one in seen.held
        ],
        "difference": apart.reason if apart else None,
        "notes": list(seen.notes),
        "raw": dict(seen.raw),
    }


def _model(model: ModelSeen | Missing) -> dict[str, Any]:
    if isinstance(model, Missing):
        return {"missing": model.reason}
    return {
        "name": model.name,
        "context_tokens": _value(model.context_tokens),
        "slots": _value(model.slots),
        "quantisation": model.quantisation,
        "file": model.file,
        "expires": model.expires,
    }


def _pool(pool: PoolSeen | Missing) -> dict[str, Any]:
    if isinstance(pool, Missing):
        return {"missing": pool.reason}
    return {
        "tokens": _value(pool.tokens),
        "tokens_known": pool.tokens_known.value,
        "used_share": _value(pool.used_share),
        "used_tokens": _value(pool.used_tokens),
        "evictable_tokens": _value(pool.evictable_tokens),
        "size_bytes": _value(pool.size_bytes),
        "size_known": pool.size_known.value,
    }


def _value(value: str | float | Missing) -> Any:
    return {"missing": value.reason} if isinstance(value, Missing) else value
