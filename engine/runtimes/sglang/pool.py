"""The pool of a whole deployment: the poorest device sets the room, the widest stage the tokens.

Source:
    SGLang 0.5.23 ``mem_cache/kv_cache_configurator.py``: free memory is the least of all ranks
    before and after loading, and stages agree on the fewest tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.budget import sequence_state as state
from engine.budget.weights import AS_STORED
from engine.devices.device import Vendor
from engine.evidence import Basis, total
from engine.runtimes.loading import stored_format
from engine.runtimes.sglang import rules, work
from engine.runtimes.sglang.caches import CacheRule, cache_doubts, pool_layout
from engine.runtimes.sglang.compressed import Steps, is_known
from engine.runtimes.sglang.drafting import draft_doubts, drafted
from engine.runtimes.sglang.kv_dtypes import architectural
from engine.runtimes.sglang.loading import loaded, split_of
from engine.runtimes.sglang.states import slot_bytes, states
from engine.runtimes.sglang.transients import while_loading
from engine.units import GIB, MIB
from engine.words import figures, tr

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import ArchitectureSpec, Doubt
    from engine.budget.model import RegionBudget
    from engine.devices.device import Slot
    from engine.evidence import Estimate
    from engine.runtimes.sglang.caches import PoolLayout
    from engine.runtimes.sglang.settings import Settings
    from engine.runtimes.sglang.states import States

_FEWEST, _MOST = 2048, 4096
"""Requests for which there are tables where nothing else is asked."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage, before it meets a device."""

    layers: range
    weights: RegionBudget
    sized_with: Estimate
    """Of the weights, what is loaded when the pool is sized."""
    layout: PoolLayout | None
    slot_bytes: int
    """Recurrent state of one sequence."""
    least_per_request_bytes: int
    loading: tuple[Estimate, ...]
    """Beside the weights at the worst moment of loading them."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a device has free before anything of the model is loaded."""

    before_loading: list[Estimate]
    """What the process holds by then."""
    low: int
    likely: int
    high: int


@dataclass(frozen=True, slots=True)
class Pool:
    """What all ranks of one replica agree on."""

    tokens: int
    tokens_low: int
    tokens_high: int
    raw_bytes: int
    """Room for the pool, with its sign: negative when the weights are over the static share."""
    free_bytes: int
    """Free on the poorest device before loading."""
    states: States | None
    states_are_fitted: bool
    running: int
    """Requests of one scheduler that can run at once."""
    basis: Basis
    formula: str
    doubts: tuple[Doubt, ...]


def stages(model: Model, settings: Settings, tokens: int) -> tuple[Stage, ...]:
    """Every stage; ``tokens`` is what each request holds."""
    spec = model.spec
    tp = settings.parallel.attention_tp
    rule = CacheRule(
        kv_dtype=settings.kv_dtype,
        attention_tp=tp,
        page=settings.page,
        version=settings.version,
        sliding_ratio=settings.deployment.swa_full_tokens_ratio,
        with_drafts=settings.drafts_itself,
        draft=None
        if settings.deployment.draft_model is None
        else (settings.deployment.draft_model.spec),
    )
    if _packs_entries(spec, settings):
        steps = Steps(
            _per_scheduler(settings) or 1, settings.chunk, settings.drafts, settings.radix
        )
        rule = replace(rule, steps=steps)
    plain = architectural(spec, settings.kv_dtype)
    split = split_of(model, settings)
    chosen = split.weight_format
    stored = stored_format(model) if chosen == AS_STORED else chosen
    draft = settings.deployment.draft_model
    beside = None if draft is None else drafted(model, draft, split)
    found = loaded(model, split, beside and beside.held)
    first = found
    if settings.drafts and not rules.DRAFTS_FIRST.at(settings.version):
        first = loaded(model, replace(split, with_mtp=False))
    return tuple(
        Stage(
            layers,
            region,
            early.estimate,
            pool_layout(spec, layers.start, layers.stop, rule),
            slot_bytes(spec, layers.start, layers.stop, settings.dtype, tp),
            state.rank_bytes(spec, plain, tokens, layers, tp, settings.dtype),
            while_loading(model, layers, split, stored)
            + (beside.loading if beside and layers.stop == len(spec.layers) else ()),
        )
        for (layers, region), (_, early) in zip(found, first, strict=True)
    )


def _packs_entries(spec: ArchitectureSpec, settings: Settings) -> bool:
    """Whether it is known how compressed entries are kept: off ROCm."""
    return settings.vendor is Vendor.NVIDIA and is_known(spec)


def _per_scheduler(settings: Settings) -> int | None:
    asked = settings.deployment.max_running_requests
    return None if asked is None else max(asked // settings.parallel.attention_dp, 1)


def room_of(slot: Slot, settings: Settings) -> Room:
    """What is free on ``slot`` before loading."""
    parts = work.before_loading(slot.device, settings.deployment.ranks)
    taken = total([*parts, slot.foreign])
    allocatable = slot.device.allocatable
    return Room(
        parts,
        max(allocatable.low_bytes - taken.high_bytes, 0),
        max(allocatable.likely_bytes - taken.likely_bytes, 0),
        max(allocatable.high_bytes - taken.low_bytes, 0),
    )


def pool_of(
    model: Model, settings: Settings, found: tuple[Stage, ...], rooms: list[tuple[Stage, Room]]
) -> Pool:
    """The pool of one replica whose ranks have ``rooms``."""
    spec, deployment = model.spec, settings.deployment
    beside = settings.vision_mib * MIB
    share = settings.fraction
    free = [min(getattr(r, end) for _, r in rooms) for end in ("low", "likely", "high")]
    left = [
        min(room.low - stage.sized_with.high_bytes for stage, room in rooms),
        min(room.likely - stage.sized_with.likely_bytes for stage, room in rooms),
        min(room.high - stage.sized_with.low_bytes for stage, room in rooms),
    ]
    raw = [
        int(rest - before * (1 - share)) - beside for rest, before in zip(left, free, strict=True)
    ]
    each = max(stage.slot_bytes for stage in found)
    given = deployment.kv_pool_bytes
    ratio = deployment.mamba_full_memory_ratio or rules.STATE_RATIO
    together = max(raw[1], 0) if given is None else round(given * (1 + ratio))
    kept = states(spec, settings, each, together) if each else None
    counted = kept.counted_bytes if kept else 0
    rest = [size - counted for size in raw]
    by_ratio = kept is not None and deployment.max_mamba_cache_size is None and settings.radix
    if by_ratio and raw[1] > 0:
        # States and pool share the room by a ratio: so they share what is not known of it.
        part = rest[1] / raw[1]
        rest = [int(size * part) for size in raw]
    tokens = [_tokens(settings, found, size) for size in rest]
    taken = (free[1] - left[1]) / GIB
    names = figures(f"{share:.3g} × {free[1] / GIB:.2f} GiB − {taken:.2f} GiB")
    if counted:
        names += tr(" − {counted} of states").format(counted=figures(f"{counted / GIB:.2f} GiB"))
    device = rooms[0][1]
    fitted = all(p.basis is not Basis.ASSUMED for p in device.before_loading)
    return Pool(
        tokens=tokens[1],
        tokens_low=min(tokens[0], tokens[1]),
        tokens_high=max(tokens[2], tokens[1]),
        raw_bytes=rest[1] if given is None else 0,
        free_bytes=free[1],
        states=kept,
        states_are_fitted=by_ratio,
        running=_running(settings, tokens[1], kept, has_cache=_has_cache(found)),
        basis=Basis.FITTED if fitted else Basis.ASSUMED,
        formula=tr("{names} = {rest} GiB").format(
            names=names, rest=figures(format(rest[1] / GIB, ".2f"))
        ),
        doubts=cache_doubts(
            spec,
            settings.version,
            drafting=settings.drafts_itself,
            packs_entries=_packs_entries(spec, settings),
        )
        + draft_doubts(deployment),
    )


def _tokens(settings: Settings, found: tuple[Stage, ...], room: int) -> int:
    """Tokens of the pool: as few as the stage has for which they are dearest."""
    layouts = [stage.layout for stage in found if stage.layout is not None]
    if not layouts:
        return 0
    given, asked = settings.deployment.kv_pool_bytes, settings.deployment.max_total_tokens
    if given is not None:
        return min(layout.tokens(given) for layout in layouts)
    tokens = min(layout.tokens_for(room) for layout in layouts)
    if asked is not None:
        tokens = min(tokens, asked // settings.page * settings.page)
    return tokens


def _has_cache(found: tuple[Stage, ...]) -> bool:
    return any(stage.layout is not None for stage in found)


def _running(settings: Settings, tokens: int, kept: States | None, *, has_cache: bool) -> int:
    """Requests of one scheduler that can run at once (``max_running_requests``)."""
    halved = rules.REQUESTS_BY_TOKENS.at(settings.version)
    asked = _per_scheduler(settings)
    if asked is None:
        found = max(min(512 * tokens // max(settings.context, 1), _MOST), _FEWEST)
    else:
        found = asked
    if halved and has_cache:
        found = min(found, tokens // 2)
    return min(found, kept.most_requests) if kept is not None else found
