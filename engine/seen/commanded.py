"""What a runtime's command line says beside its endpoint: as a plan, and to fill its gaps."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from engine.errors import PlimsollError
from engine.launch import read
from engine.seen.model import Known, ModelSeen, RuntimeSeen
from engine.seen.readers import llama_cpp
from engine.telemetry.snapshot import Missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.launch.read import Understood
    from engine.seen.groups import Group

_PYTHON = re.compile(r"python[\d.]*(?:\.exe)?")
_PROGRAMS = frozenset({"vllm", "sglang", "mlx_lm.server", "mlx_lm.generate", "mlx_lm.chat"})
"""Scripts that Python runs under their own name."""
_PADDING = 256
"""llama.cpp rounds the cells of a slot up to it."""


def understood(
    words: tuple[str, ...], environment: Mapping[str, str] | None = None
) -> Understood | None:
    """The plan of a running process's command line; None where it is none that can be read.

    Args:
        words: the command line.
        environment: the process's variables that count, for runtimes that are told by them.
    """
    if not words:
        return None
    if _PYTHON.fullmatch(PurePosixPath(words[0]).name) and len(words) > 1:
        script = PurePosixPath(words[1]).name
        if script in _PROGRAMS:
            words = (script, *words[2:])
    named = (f"{name}={shlex.quote(value)}" for name, value in (environment or {}).items())
    try:
        return read.read(" ".join((*named, shlex.join(words))))
    except PlimsollError:
        return None


def commanded(seen: RuntimeSeen, group: Group) -> RuntimeSeen:
    """``seen`` with what the command line of its group says where the endpoint says nothing."""
    found = next((u for p in group.members if (u := understood(p.words))), None)
    name = (found.model if found else "") or group.model
    if isinstance(seen.model, Missing) and name and not seen.address:
        seen = replace(seen, model=ModelSeen(name))
    if found is None or seen.runtime != "llama.cpp" or not isinstance(seen.model, ModelSeen):
        return seen
    return _with_cells(seen, seen.model, found)


def _with_cells(seen: RuntimeSeen, model: ModelSeen, found: Understood) -> RuntimeSeen:
    """The capacity of llama-server's cache, which its endpoint leaves open with several slots."""
    pool, each, slots = seen.pool, model.context_tokens, model.slots
    if isinstance(pool, Missing) or isinstance(pool.tokens, int):
        return seen
    if isinstance(each, Missing) or isinstance(slots, Missing):
        return seen
    plan = found.deployment
    shares = plan.kv_unified
    if shares is None:
        shares = _shares(plan.n_parallel, plan.n_ctx or plan.max_model_len, each)
    if shares is None:
        return seen
    cells = each if shares else each * slots
    return replace(seen, pool=llama_cpp.with_capacity(pool, cells, Known.DERIVED))


def _shares(slots: int | None, cells: int | None, each: int) -> bool | None:
    """Whether slots share one cache: those that are asked for have parts, unless told otherwise.

    With slots of its own choice llama-server lets them share the cells that ``-c`` gives.
    """
    if slots is not None:
        return False
    return abs(cells - each) < _PADDING or None if cells else None
