"""What our model of a model adds: the bytes of a pool that its runtime states in tokens alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from engine.budget.sequence_state import cache_terms, resolve_kv_dtype
from engine.errors import DeploymentError
from engine.seen.model import Known, ModelSeen, RuntimeSeen
from engine.telemetry.snapshot import Missing
from engine.words import tr

if TYPE_CHECKING:
    from engine.architecture.model import Model


def is_of(seen: RuntimeSeen, model: Model) -> bool:
    """Whether the runtime serves ``model``, by its name or its file's."""
    if isinstance(seen.model, Missing):
        return False
    known = {_last(model.id), model.id.casefold()}
    return bool(
        known & {name for said in _names(seen.model) for name in (_last(said), said.casefold())}
    )


def with_pool_bytes(seen: RuntimeSeen, model: Model) -> RuntimeSeen:
    """``seen`` with the bytes of its pool, where every layer keeps just as many tokens.

    Layers with windows or states of their own share a pool in ways that its tokens don't tell.
    """
    pool = seen.pool
    if isinstance(pool, Missing) or isinstance(pool.size_bytes, int):
        return seen
    if isinstance(pool.tokens, Missing) or not is_of(seen, model):
        return seen
    asked = str(seen.settings.get("kv_cache_dtype", "auto"))
    try:
        dtype = resolve_kv_dtype(model.spec, asked, model.spec.dtype)
        terms = cache_terms(model.spec, dtype)
    except DeploymentError:
        return seen
    if not terms or not all(term.grows_alike for term in terms):
        why = Missing(tr("layers of different kinds share the pool"))
        return replace(seen, pool=replace(pool, size_bytes=why))
    each_bytes = sum(term.layers * term.token_bytes for term in terms)
    size = pool.tokens * each_bytes
    return replace(seen, pool=replace(pool, size_bytes=size, size_known=Known.MODELLED))


def _names(model: ModelSeen) -> tuple[str, ...]:
    return tuple(name for name in (model.name, model.file) if name)


def _last(name: str) -> str:
    """The last part of a path or id; a model of this computer goes by its file, without the end."""
    return PurePosixPath(name.replace("\\", "/")).name.casefold().removesuffix(".gguf")
