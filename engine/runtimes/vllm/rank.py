"""One rank of a vLLM deployment: its regions, and the pool that is left."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from engine.budget.bounds import counted, least, no_state
from engine.budget.model import Moments, RankBudget, Region, RegionBudget
from engine.devices.device import DeviceKind
from engine.evidence import Basis, Estimate, exactly, total
from engine.runtimes import overheads as device_overheads
from engine.runtimes.vllm import overheads, rules, transients
from engine.runtimes.vllm.hardware import is_fitted
from engine.runtimes.vllm.startup import startup
from engine.units import GIB
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from engine.devices.device import Device, Slot
    from engine.runtimes.vllm.settings import Settings
    from engine.runtimes.vllm.stage import StagePlan
    from engine.runtimes.vllm.startup import Startup

_RESERVES = tr_later("vLLM takes the whole rest of its share at start, whatever the plan needs.")


class Need(NamedTuple):
    """What the plan asks of one replica."""

    requests: int
    tokens: int
    """Held by each request."""


def rank_budget(
    settings: Settings, stage: StagePlan, need: Need, rank: int, slot: Slot
) -> RankBudget:
    """The regions of one rank. Together they reach the load line unless the plan is over it."""
    needed = _needed(stage, need)
    start = startup(stage.step, slot.device)
    charged = _charged(settings, stage, slot.device)
    inside = _inside(settings, stage, start, charged)
    pool, raw_bytes = _pool(settings, stage, inside, slot.device, needed)
    share_bytes = inside.likely_bytes + raw_bytes
    if stage.layout is None:
        # Nothing takes the rest of the share: it stays free.
        share_bytes = ceil(settings.utilisation * slot.device.allocatable.likely_bytes)
    beside = _beside(settings, start, stage.buffers, slot, share_bytes)
    runtime = total([*beside.runtime, *charged])
    regions = {
        Region.WEIGHTS: stage.weights,
        Region.KV_CACHE: _kv_region(settings, stage, need, (pool, needed), slot.device),
        Region.RECURRENT_STATE: _recurrent_region(stage),
        Region.ACTIVATIONS: RegionBudget(
            Region.ACTIVATIONS,
            _on(slot.device, start.activations),
            None,
            tr("{tokens} tokens a step, {rows} sampled rows").format(
                tokens=grouped(settings.tokens), rows=grouped(settings.rows)
            ),
        ),
        Region.CUDA_GRAPHS: _graphs_region(settings, start, slot.device),
        Region.RUNTIME: _runtime_region(_on(slot.device, runtime), slot.device),
        Region.ALLOCATOR: RegionBudget(
            Region.ALLOCATOR, beside.slack, 0, tr("Held but unused, outside the budget")
        ),
    }
    regions[Region.HEADROOM] = _headroom(settings, beside, runtime)
    unused = share_bytes - inside.likely_bytes if stage.layout is None else 0
    if beside.left_bytes < 0 < unused:
        why = tr("vLLM starts only where all of its share is free, whatever it takes of it")
        kept = exactly(unused, Basis.SETTING, why, beside.formula)
        regions[Region.HEADROOM] = RegionBudget(Region.HEADROOM, kept, 0, why)
    regions[Region.FOREIGN] = RegionBudget(
        Region.FOREIGN, slot.foreign, slot.foreign.likely_bytes, slot.foreign.source
    )
    moments = Moments(
        load=(*stage.loading, *transients.starting(stage.step)),
        decode=_on(slot.device, transients.decoding(stage.step, slot.device, need.requests)),
        sustained=transients.sustained(stage.step, slot.device, need.requests, need.tokens),
    )
    return RankBudget(rank, slot, regions, needed, stage.layout is not None, moments)


def _charged(settings: Settings, stage: StagePlan, device: Device) -> list[Estimate]:
    """Buffers that are charged to the share beside weights and activations."""
    deployment = settings.deployment
    tp, pp = deployment.tensor_parallel_size, deployment.pipeline_parallel_size
    eager = deployment.enforce_eager
    growth = overheads.inside(device, settings.version, tp, pp, eager=eager)
    counted_in = rules.BUFFERS_CHARGED.at(settings.version)
    return [growth, stage.buffers] if stage.buffers and counted_in else [growth]


def _inside(
    settings: Settings, stage: StagePlan, start: Startup, charged: list[Estimate]
) -> Estimate:
    """Weights, activations, buffers and, since 0.20, graphs: taken out of the share."""
    parts = [stage.weights.estimate, start.activations, *charged]
    if rules.GRAPHS_INSIDE.at(settings.version):
        parts.append(start.graphs)
    return total(parts, "vLLM", tr("share"))


class _Beside(NamedTuple):
    """What lies on the device beside the share."""

    runtime: list[Estimate]
    """Context, collectives, libraries."""
    slack: Estimate
    left_bytes: int
    """Headroom; negative when not even context and collectives have room."""
    formula: str


def _beside(
    settings: Settings, start: Startup, buffers: Estimate | None, slot: Slot, share_bytes: int
) -> _Beside:
    """Context and collectives must fit beside the share; libraries and slack take what is left."""
    device, ranks = slot.device, settings.deployment.ranks
    firm: list[Estimate] = []
    if not rules.CONTEXT_CHARGED.at(settings.version):
        firm.append(device_overheads.context(device))
        if ranks > 1:
            firm.append(device_overheads.collectives(device, ranks))
    if buffers and not rules.BUFFERS_CHARGED.at(settings.version):
        firm.append(buffers)
    allocatable = device.allocatable.likely_bytes
    taken = share_bytes + slot.foreign.likely_bytes + sum(e.likely_bytes for e in firm)
    if not rules.GRAPHS_INSIDE.at(settings.version):
        taken += start.graphs.likely_bytes
    room = allocatable - taken
    libraries = overheads.libraries(max(room, 0))
    slack = overheads.slack(max(room - libraries.likely_bytes, 0))
    left = room - libraries.likely_bytes - slack.likely_bytes
    soft = libraries.likely_bytes + slack.likely_bytes
    formula = tr("{gib} − {gib_2} = {gib_3} GiB").format(
        gib=_gib(allocatable), gib_2=_gib(taken + soft), gib_3=_bare(left)
    )
    return _Beside([*firm, libraries], slack, left, formula)


def _pool(
    settings: Settings, stage: StagePlan, inside: Estimate, device: Device, needed: Estimate
) -> tuple[Estimate, int]:
    """The pool, and the same with its sign: negative when nothing is left."""
    if stage.layout is None:
        return exactly(0, Basis.EXACT, tr("no layer keeps a cache")), 0
    given = _given(settings, stage.layout.bytes_per_block)
    if given is not None:
        return exactly(given[0], Basis.SETTING, given[1], needed.formula), given[0]
    share, allocatable = settings.utilisation, device.allocatable
    asked = [
        ceil(share * size)
        for size in (allocatable.low_bytes, allocatable.likely_bytes, allocatable.high_bytes)
    ]
    raw = asked[1] - inside.likely_bytes
    terms = " − ".join([_gib(part.likely_bytes) for part in inside.parts])
    blocks = max(raw, 0) // stage.layout.bytes_per_block
    formula = tr(
        "one sequence at the least: {equation}; needed: {formula}; "
        "reserved: {share} × {gib} − {terms} = {gib_2} GiB = {blocks} "
        "blocks"
    ).format(
        equation=stage.equation,
        formula=needed.formula,
        share=figures(format(share, "g")),
        gib=_gib(allocatable.likely_bytes),
        terms=terms,
        gib_2=_bare(raw),
        blocks=grouped(blocks),
    )
    # What a start takes is read from what the system has available: cached files move it.
    moves = stage.weights.estimate.likely_bytes // 10 if device.kind is DeviceKind.UNIFIED else 0
    estimate = Estimate(
        max(asked[0] - inside.high_bytes - moves, 0),
        max(raw, 0),
        max(asked[2] - inside.low_bytes + moves, 0),
        Basis.FITTED if is_fitted(device) else Basis.ASSUMED,
        tr("vLLM {runtime_version}: share of the device less what start-up takes").format(
            runtime_version=settings.deployment.runtime_version
        ),
        formula,
    )
    return estimate, raw


def _given(settings: Settings, block_bytes: int) -> tuple[int, str] | None:
    """The pool where it does not follow from the share, and by which setting."""
    deployment = settings.deployment
    if deployment.num_gpu_blocks_override is not None:
        blocks = deployment.num_gpu_blocks_override
        return blocks * block_bytes, tr(
            "num_gpu_blocks_override: {blocks} × {block_bytes} B"
        ).format(blocks=grouped(blocks), block_bytes=grouped(block_bytes))
    if deployment.kv_pool_bytes is not None:
        return deployment.kv_pool_bytes, tr("kv_pool_bytes as given")
    if deployment.kv_cache_memory_bytes is not None:
        return deployment.kv_cache_memory_bytes, tr("kv_cache_memory_bytes as given")
    return None


def _is_given(settings: Settings) -> bool:
    return _given(settings, 0) is not None


def _needed(stage: StagePlan, need: Need) -> Estimate:
    if stage.layout is None:
        return exactly(0, Basis.EXACT, tr("no layer keeps a cache"))
    requests, each = need.requests, stage.blocks_per_request
    if requests * each < stage.blocks_at_most:
        # However few tokens are live, vLLM refuses to start without room for a longest request.
        requests, each = 1, stage.blocks_at_most
    # One block, the null block, is never given out.
    size = (requests * each + 1) * stage.layout.bytes_per_block
    formula = tr("({requests} × {each} blocks + 1) × {bytes_per_block} B = {gib} GiB").format(
        requests=requests,
        each=grouped(each),
        bytes_per_block=grouped(stage.layout.bytes_per_block),
        gib=_bare(size),
    )
    source = "vLLM v1/core/kv_cache_utils.py"
    return counted(size, stage.state_in_doubt, Basis.EXACT, source, formula)


def _kv_region(
    settings: Settings,
    stage: StagePlan,
    need: Need,
    pool_and_needed: tuple[Estimate, Estimate],
    device: Device,
) -> RegionBudget:
    pool, needed = pool_and_needed
    if stage.layout is None:
        nothing, note = no_state(stage.state_in_doubt)
        return RegionBudget(Region.KV_CACHE, nothing, 0, note)
    minimum = need.requests * stage.least_per_request_bytes
    wants, whole = _gib(needed.likely_bytes), _gib(device.allocatable.likely_bytes)
    note = tr("Rest of {utilisation} × {whole}; the plan needs {wants}").format(
        utilisation=figures(format(settings.utilisation, "g")), whole=whole, wants=wants
    )
    if _is_given(settings):
        note = tr("Pool as given; the plan needs {wants}").format(wants=wants)
    gap = tr(_RESERVES)
    blocks = need.requests * stage.blocks_per_request * stage.layout.bytes_per_block
    longest = stage.blocks_at_most * stage.layout.bytes_per_block
    if longest > blocks:
        gap += tr(" It starts only with room for one request of max_model_len: {gib} GiB.").format(
            gib=_bare(longest)
        )
    if blocks > minimum:
        gap += tr(" In blocks the plan takes {gib} in place of {gib_2} GiB.").format(
            gib=_gib(blocks), gib_2=_bare(minimum)
        )
    if transients.compiles(stage.step) and not _is_given(settings):
        gap += f" {tr(transients.COLD_COMPILE)}"
    known = least(minimum, stage.state_in_doubt)
    return RegionBudget(Region.KV_CACHE, pool, known, note, gap)


def _recurrent_region(stage: StagePlan) -> RegionBudget:
    held = stage.layout is not None and stage.layout.has_state
    estimate, note = no_state(stage.state_in_doubt)
    if held:
        note = tr("Held in blocks of the pool")
        estimate = exactly(0, Basis.EXACT, note)
    return RegionBudget(Region.RECURRENT_STATE, estimate, None, note)


def _on(device: Device, fitted: Estimate) -> Estimate:
    """A figure fitted on NVIDIA's GPUs, as it counts on ``device``."""
    if is_fitted(device) or fitted.basis is not Basis.FITTED:
        return fitted
    return replace(fitted, basis=Basis.ASSUMED)


def _graphs_region(settings: Settings, start: Startup, device: Device) -> RegionBudget:
    sizes = start.captures
    note = tr("{max} capture sizes").format(max=max(sizes.pieces, sizes.whole))
    if not sizes.graphs:
        note = tr("None: enforce_eager")
    elif not rules.GRAPHS_INSIDE.at(settings.version):
        note += tr(", on top of the budget before 0.20")
    return RegionBudget(Region.CUDA_GRAPHS, _on(device, start.graphs), 0, note)


def _runtime_region(runtime: Estimate, device: Device) -> RegionBudget:
    parts = [
        tr("{label} {gib}").format(label=p.label, gib=_gib(p.likely_bytes))
        for p in runtime.parts
        if p.likely_bytes
    ]
    known = min(device_overheads.context(device).likely_bytes, runtime.likely_bytes)
    return RegionBudget(Region.RUNTIME, runtime, known, ", ".join(parts))


def _headroom(settings: Settings, beside: _Beside, runtime: Estimate) -> RegionBudget:
    """What is left of the device beside the share; never less than nothing."""
    left = max(beside.left_bytes, 0)
    spread = runtime.high_bytes - runtime.likely_bytes
    spread += beside.slack.high_bytes - beside.slack.likely_bytes
    estimate = Estimate(
        max(left - spread, 0),
        left,
        left + spread,
        Basis.SETTING,
        tr("what gpu_memory_utilization leaves"),
        beside.formula,
    )
    note = tr("1 − {utilisation}, less context, slack, others").format(
        utilisation=figures(format(settings.utilisation, "g"))
    )
    if _is_given(settings):
        note = tr("What the given pool leaves")
    return RegionBudget(Region.HEADROOM, estimate, 0, note)


def _gib(size_bytes: int) -> str:
    """``4.00 GiB``: every figure says its unit, by which it can be written in another."""
    return f"{_bare(size_bytes)} GiB"


def _bare(size_bytes: int) -> str:
    """Before a unit that stands in the sentence."""
    sign = "−" if size_bytes < 0 else ""
    return sign + figures(f"{abs(size_bytes) / GIB:.2f}")
