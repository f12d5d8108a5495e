"""Recurrent states in SGLang: how many it keeps room for, and what they leave for the pool.

Source:
    SGLang 0.5.23 ``kv_cache_configurator.py :: _handle_max_mamba_cache``,
    ``configs/mamba_utils.py``; 0.5.4 to 0.5.17 ``model_runner_kv_cache_mixin.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.budget.sequence_state import CACHED, constant_state_bytes, layer_kinds
from engine.runtimes.sglang import rules

if TYPE_CHECKING:
    from engine.architecture.spec import ArchitectureSpec
    from engine.runtimes.sglang.settings import Settings

_ALWAYS_FLOAT32 = frozenset({"mamba", "mamba2"})
"""Kinds whose own key for the dtype of states SGLang doesn't read: it reads ``mamba_ssm_dtype``."""
_BEFORE_RATIO = 512
"""States where neither a number nor a ratio decides (``model_runner.py``, 0.5.2 and 0.5.3)."""


@dataclass(frozen=True, slots=True)
class States:
    """The states of one rank."""

    slots: int
    """What SGLang prints as ``max_mamba_cache_size``; one more is held as padding."""
    per_request: int
    """Of them a running request may hold."""
    slot_bytes: int
    """On the stage with most recurrent layers, which decides for all."""
    counted_bytes: int
    """Taken out of the room before the pool is sized."""
    verified_bytes: int
    """Copies for tokens that a draft proposes."""

    @property
    def most_requests(self) -> int:
        """Requests that can run at once."""
        return self.slots // self.per_request

    def held_bytes(self, slot_bytes: int) -> int:
        """What a stage holds whose state of one sequence takes ``slot_bytes``."""
        if not self.slot_bytes:
            return 0
        return (self.slots + 1) * slot_bytes + self.verified_bytes * slot_bytes // self.slot_bytes


@lru_cache(maxsize=CACHED)
def slot_bytes(spec: ArchitectureSpec, first: int, stop: int, dtype: str, tp: int) -> int:
    """The state of one sequence in layers ``first`` to ``stop`` on one rank.

    The recurrent part is kept in 32 bits unless the config's ``mamba_ssm_dtype`` says otherwise.
    """
    found = 0
    for layer, count in layer_kinds(spec, first, stop):
        state = layer.state
        if state is None:
            continue
        kept = state.state_dtype or "float32"
        if state.kind in _ALWAYS_FLOAT32:
            kept = "float32"
        found += constant_state_bytes(replace(state, state_dtype=kept), dtype, tp) * count
    return found


def states(spec: ArchitectureSpec, settings: Settings, each_bytes: int, room_bytes: int) -> States:
    """The states that ``room_bytes`` of pool and states together are shared with.

    Args:
        spec: the model.
        settings: the deployment.
        each_bytes: state of one sequence, on the stage with most of it.
        room_bytes: what is left for states and pool.
    """
    deployment, version = settings.deployment, settings.version
    share = settings.parallel.attention_dp
    per_request = 1
    if settings.radix:
        per_request = rules.STATES_PER_REQUEST.at(version)
        if spec.model_type in rules.UNTRACKED_STATES:
            per_request = min(per_request, 3)
    asked, given = deployment.max_running_requests, deployment.max_mamba_cache_size
    padded = rules.STATES_WITH_PADDING.at(version)
    drafts = settings.drafts
    most = None if asked is None else max(asked // share, 1)
    if given is not None:
        slots = max(given // share, 1)
    elif not settings.radix and most is not None:
        slots = most
    elif not rules.STATES_BY_RATIO.at(version):
        slots = (most or _BEFORE_RATIO * share) if asked else _BEFORE_RATIO // share
    else:
        ratio = deployment.mamba_full_memory_ratio or rules.STATE_RATIO
        budget = room_bytes * ratio / (1 + ratio)
        if padded:
            budget -= each_bytes * (1 + drafts)
            slots = int(budget // (each_bytes * (1 + drafts / per_request)))
        else:
            budget -= each_bytes * (most or 0) * drafts * ratio / (1 + ratio)
            slots = int(budget // each_bytes)
    slots = max(slots, 0)
    verified = 0
    if drafts:
        running = slots // per_request if most is None else min(most, slots // per_request)
        verified = each_bytes * (running + (1 if padded else 0)) * drafts
    counted = (slots + (1 if padded else 0)) * each_bytes + verified
    return States(slots, per_request, each_bytes, counted, verified)
