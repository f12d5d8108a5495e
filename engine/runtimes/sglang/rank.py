"""One rank of an SGLang deployment: its regions, and what is left between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.architecture.spec import Subject, direction_of
from engine.budget.bounds import as_bound, counted, least, no_state
from engine.budget.model import Moments, RankBudget, Region, RegionBudget
from engine.evidence import Basis, Estimate, exactly, total
from engine.runtimes.sglang import kernels, work
from engine.runtimes.sglang.fraction import step_tokens
from engine.runtimes.sglang.graphs import Captures, cuda_graphs
from engine.runtimes.sglang.transients import index_logits
from engine.runtimes.sglang.vision import has_tower
from engine.units import GIB, MIB
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.architecture.model import Model
    from engine.architecture.spec import Direction
    from engine.budget.model import Region as _Region
    from engine.devices.device import Slot
    from engine.runtimes.sglang.pool import Pool, Room, Stage
    from engine.runtimes.sglang.settings import Settings

_RESERVES = tr_later(
    "SGLang takes the whole rest of its static share at start, whatever the plan needs."
)
_SOURCE = "SGLang mem_cache/kv_cache_configurator.py"


@dataclass(frozen=True, slots=True)
class Need:
    """What the plan asks of one scheduler."""

    requests: int
    tokens: int
    """Held by each request."""


@dataclass(frozen=True, slots=True)
class Place:
    """A rank's stage and the room on its device."""

    rank: int
    slot: Slot
    stage: Stage
    room: Room


def rank_budget(
    model: Model, settings: Settings, pool: Pool, need: Need, place: Place
) -> RankBudget:
    """The regions of one rank. Together they reach the load line unless the plan is over it."""
    stage, slot = place.stage, place.slot
    doubt = direction_of(pool.doubts, Subject.SEQUENCE_STATE)
    needed = _needed(settings, stage, need, doubt)
    cache = _pool_estimate(settings, pool, stage, needed)
    outside = _outside(model, settings, pool, stage, slot)
    regions: dict[_Region, RegionBudget] = {
        Region.WEIGHTS: stage.weights,
        Region.KV_CACHE: _kv_region(settings, pool, place, need, (cache, needed), doubt),
        Region.RECURRENT_STATE: _state_region(pool, stage, doubt),
        Region.ACTIVATIONS: RegionBudget(
            Region.ACTIVATIONS,
            as_bound(outside.activations, model.spec.direction(Subject.ACTIVATIONS)),
            None,
            tr("{step_tokens} tokens a prefill step").format(
                step_tokens=grouped(step_tokens(settings.chunk))
            ),
        ),
        Region.CUDA_GRAPHS: RegionBudget(
            Region.CUDA_GRAPHS, outside.graphs, 0, _graphs_note(settings)
        ),
        Region.RUNTIME: _runtime_region(place.room, outside),
        Region.ALLOCATOR: RegionBudget(
            Region.ALLOCATOR, work.slack(), 0, tr("Held but unused, outside the static share")
        ),
    }
    regions[Region.HEADROOM] = _headroom(settings, pool, place, regions)
    regions[Region.FOREIGN] = RegionBudget(
        Region.FOREIGN, slot.foreign, slot.foreign.likely_bytes, slot.foreign.source
    )
    return RankBudget(
        place.rank,
        slot,
        regions,
        needed,
        has_pool=stage.layout is not None,
        moments=Moments(stage.loading, outside.decoding, _sustained(model, settings, need)),
    )


def _sustained(model: Model, settings: Settings, need: Need) -> tuple[Estimate, ...]:
    """What comes with the first requests."""
    live = need.requests * need.tokens
    scores = index_logits(model.spec, step_tokens(settings.chunk), need.tokens, live)
    found = [] if scores is None else [scores]
    if settings.vision_mib:
        size = settings.vision_mib * MIB
        source = "SGLang SGLANG_VLM_CACHE_SIZE_MB"
        found.append(Estimate(0, size, size, Basis.EXACT, source, "", tr("cache of images")))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Outside:
    """What SGLang takes beside weights, states and pool."""

    activations: Estimate
    decoding: Estimate
    graphs: Estimate
    runtime: list[Estimate]


def _outside(model: Model, settings: Settings, pool: Pool, stage: Stage, slot: Slot) -> _Outside:
    spec, deployment = model.spec, settings.deployment
    step = work.Step(
        tokens=step_tokens(settings.chunk),
        rows=max(settings.decode_max_bs, 1) * max(settings.drafts, 1),
        element_bytes=settings.element_bytes,
        tensor_parallel_size=deployment.tensor_parallel_size,
        attention_tp=settings.parallel.attention_tp,
        has_tower=has_tower(spec),
    )
    captures = Captures(
        len(stage.layers) + _draft_layers(model, settings, stage),
        settings.decode_max_bs,
        settings.prefill_buckets,
        deployment.ranks,
        settings.vendor,
        settings.shares_host,
        settings.version_is_stated,
    )
    requests = pool.running
    runtime = [
        work.request_tables(requests, settings.context, settings.drafts),
        kernels.workspace(
            spec, settings.backend, requests, settings.context, settings.parallel.attention_tp
        ),
    ]
    return _Outside(
        work.activations(spec, step), work.decoding(spec, step), cuda_graphs(captures), runtime
    )


def _draft_layers(model: Model, settings: Settings, stage: Stage) -> int:
    """Layers that draft, beside the stage's own."""
    if not settings.drafts or stage.layers.stop != len(model.spec.layers):
        return 0
    draft = settings.deployment.draft_model
    return len(draft.spec.layers if draft else model.spec.mtp_attentions)


def _graphs_note(settings: Settings) -> str:
    if not settings.decode_max_bs:
        return tr("No CUDA graphs are captured")
    note = tr("Batches up to {decode_max_bs}").format(decode_max_bs=grouped(settings.decode_max_bs))
    if settings.prefill_buckets:
        note += tr(", and {prefill_buckets} sizes of prefill steps").format(
            prefill_buckets=settings.prefill_buckets
        )
    return note


def _needed(settings: Settings, stage: Stage, need: Need, doubt: Direction | None) -> Estimate:
    layout = stage.layout
    if layout is None:
        return exactly(0, Basis.EXACT, tr("no layer keeps a cache"))
    tokens = layout.needed_tokens(need.requests, need.tokens, step_tokens(settings.chunk))
    size = layout.size_bytes(tokens)
    each = tr("{requests} × {tokens} tokens").format(
        requests=need.requests, tokens=grouped(need.tokens)
    )
    formula = tr("{each} in pages of {page} × {cell} B = {size} GiB").format(
        each=each,
        page=layout.page,
        cell=figures(format(layout.cell, ",.0f")),
        size=figures(format(size / GIB, ".2f")),
    )
    return counted(size, doubt, Basis.EXACT, _SOURCE, formula)


def _pool_estimate(settings: Settings, pool: Pool, stage: Stage, needed: Estimate) -> Estimate:
    layout = stage.layout
    if layout is None:
        return exactly(0, Basis.EXACT, tr("no layer keeps a cache"))
    given = settings.deployment.kv_pool_bytes
    if given is not None:
        return exactly(given, Basis.SETTING, tr("kv_pool_bytes as given"), needed.formula)
    likely = layout.size_bytes(pool.tokens) if pool.tokens else 0
    low = layout.size_bytes(pool.tokens_low) if pool.tokens_low else 0
    high = layout.size_bytes(pool.tokens_high) if pool.tokens_high else 0
    formula = tr("{formula} = {tokens} tokens × {cell} B; needed: {formula_2}").format(
        formula=pool.formula,
        tokens=grouped(pool.tokens),
        cell=figures(format(layout.cell, ",.0f")),
        formula_2=needed.formula,
    )
    return Estimate(
        min(low, likely),
        likely,
        max(high, likely),
        pool.basis,
        tr("SGLang {runtime_version}: static share of the free memory less weights").format(
            runtime_version=settings.deployment.runtime_version
        ),
        formula,
    )


def _kv_region(
    settings: Settings,
    pool: Pool,
    place: Place,
    need: Need,
    cache_and_needed: tuple[Estimate, Estimate],
    doubt: Direction | None,
) -> RegionBudget:
    cache, needed = cache_and_needed
    stage = place.stage
    if stage.layout is None:
        nothing, note = no_state(doubt)
        return RegionBudget(Region.KV_CACHE, nothing, 0, note)
    minimum = need.requests * stage.least_per_request_bytes
    wants = _gib(needed.likely_bytes)
    free = _gib(pool.free_bytes)
    note = tr("Rest of {fraction} × {free} free; the plan needs {wants}").format(
        fraction=figures(format(settings.fraction, ".3g")), free=free, wants=wants
    )
    if settings.deployment.kv_pool_bytes is not None:
        note = tr("Pool as given; the plan needs {wants}").format(wants=wants)
    gap = tr(_RESERVES)
    if stage.layout.sliding_cell:
        gap += tr(
            " Sliding layers have a pool of their own, {ratio} of the other's tokens."
        ).format(ratio=figures(format(stage.layout.ratio, "g")))
    if needed.likely_bytes > minimum:
        gap += tr(" As it is kept the plan takes {wants} in place of {gib} GiB.").format(
            wants=wants, gib=_bare(minimum)
        )
    return RegionBudget(Region.KV_CACHE, cache, least(minimum, doubt), note, gap)


def _state_region(pool: Pool, stage: Stage, doubt: Direction | None) -> RegionBudget:
    if pool.states is None or not stage.slot_bytes:
        nothing, note = no_state(doubt)
        return RegionBudget(Region.RECURRENT_STATE, nothing, None, note)
    size = pool.states.held_bytes(stage.slot_bytes)
    formula = tr("({slots} + 1) states × {slot_bytes} B").format(
        slots=grouped(pool.states.slots), slot_bytes=grouped(stage.slot_bytes)
    )
    source = "SGLang kv_cache_configurator.py :: _handle_max_mamba_cache"
    estimate = counted(size, doubt, Basis.EXACT, source, formula)
    if pool.states_are_fitted:
        low, high = size * 24 // 25, size * 26 // 25
        estimate = Estimate(low, size, high, pool.basis, source, formula)
    note = tr("{slots} states and one of padding; a request may hold {per_request}").format(
        slots=grouped(pool.states.slots), per_request=pool.states.per_request
    )
    return RegionBudget(Region.RECURRENT_STATE, estimate, None, note)


def _runtime_region(room: Room, outside: _Outside) -> RegionBudget:
    runtime = total([*room.before_loading, *outside.runtime])
    parts = [
        tr("{label} {gib}").format(label=p.label, gib=_gib(p.likely_bytes))
        for p in runtime.parts
        if p.likely_bytes
    ]
    context = room.before_loading[0].likely_bytes
    return RegionBudget(Region.RUNTIME, runtime, context, ", ".join(parts))


def _headroom(
    settings: Settings, pool: Pool, place: Place, regions: dict[_Region, RegionBudget]
) -> RegionBudget:
    """What the static share leaves and nothing takes; never less than nothing."""
    slot = place.slot
    held = sum(r.estimate.likely_bytes for r in regions.values()) + slot.foreign.likely_bytes
    # Weights over the static share take what is left for work: that is no room.
    over = min(pool.raw_bytes, 0)
    left = max(slot.device.allocatable.likely_bytes - held - over, 0)
    spread = sum(
        regions[kind].estimate.high_bytes - regions[kind].estimate.likely_bytes
        for kind in (Region.ACTIVATIONS, Region.CUDA_GRAPHS, Region.RUNTIME, Region.ALLOCATOR)
    )
    allocatable = slot.device.allocatable.likely_bytes
    formula = tr("{gib} − {gib_2} = {gib_3} GiB").format(
        gib=_gib(allocatable), gib_2=_gib(held), gib_3=_bare(left)
    )
    estimate = Estimate(
        max(left - spread, 0),
        left,
        left + spread,
        Basis.SETTING,
        tr("what mem_fraction_static leaves"),
        formula,
    )
    note = tr("1 − {fraction}, less activations, graphs and tables").format(
        fraction=figures(format(settings.fraction, ".3g"))
    )
    if settings.deployment.kv_pool_bytes is not None:
        note = tr("What the given pool leaves")
    return RegionBudget(Region.HEADROOM, estimate, 0, note)


def _gib(size_bytes: int) -> str:
    """``4.00 GiB``: every figure says its unit, by which it can be written in another."""
    return f"{_bare(size_bytes)} GiB"


def _bare(size_bytes: int) -> str:
    """Before a unit that stands in the sentence."""
    sign = "−" if size_bytes < 0 else ""
    return sign + figures(f"{abs(size_bytes) / GIB:.2f}")
