"""The verdict in words: what it is, by how much, and what the runtime will do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.architecture.spec import Direction
from engine.budget.model import Region
from engine.budget.phases import largest, loading_bytes, outgrows
from engine.devices.device import DeviceKind
from engine.evidence import Basis
from engine.fit import static_share
from engine.fit.verdict import Fit
from engine.runtimes.registry import RUNTIMES
from engine.units import UnitSystem, format_gib
from engine.words import figures, grouped, tr, tr_count, tr_later

if TYPE_CHECKING:
    from engine.budget.model import Budget, RankBudget

_ORDINALS = (
    tr_later("first"),
    tr_later("second"),
    tr_later("third"),
    tr_later("fourth"),
    tr_later("fifth"),
    tr_later("sixth"),
    tr_later("seventh"),
    tr_later("eighth"),
    tr_later("ninth"),
)
_COUNTS = (
    tr_later("no"),
    tr_later("one"),
    tr_later("both"),
    tr_later("all three"),
    tr_later("all four"),
    tr_later("all five"),
    tr_later("all six"),
    tr_later("all seven"),
)
_CAUSES = {
    Region.WEIGHTS: tr_later("the weights"),
    Region.KV_CACHE: tr_later("the KV cache"),
    Region.RECURRENT_STATE: tr_later("the recurrent state"),
    Region.ACTIVATIONS: tr_later("the activations"),
    Region.CUDA_GRAPHS: tr_later("the CUDA graphs"),
    Region.RUNTIME: tr_later("the runtime"),
    Region.ALLOCATOR: tr_later("the allocator’s slack"),
    Region.FOREIGN: tr_later("what others hold"),
    Region.HEADROOM: "gpu_memory_utilization",
}
_STATIC_SHARE = "sglang"
"""The runtime that takes a share of what is free, and starts with what pool is left of it."""


def headline(
    budget: Budget,
    fit: Fit,
    margin_bytes: int,
    region: Region,
    unit: UnitSystem = UnitSystem.BINARY,
) -> str:
    """One sentence without a full stop, one decimal."""
    amount = format_gib(abs(margin_bytes), unit, digits=1)
    if fit is Fit.UNKNOWN:
        return _unknown(budget, unit)
    at_least = tr("at least ") if budget.doubts else ""
    if fit is Fit.DOES_NOT_FIT:
        cause = tr(_CAUSES[region])
        if region is Region.HEADROOM:
            static = budget.deployment.runtime == _STATIC_SHARE
            cause = _stated_pool(budget) or (static_share.SETTING if static else cause)
        return tr("Doesn’t fit: {at_least}{amount} over, because of {cause}").format(
            at_least=at_least, amount=amount, cause=cause
        )
    # llama.cpp keeps a part on the host: that is no rank of its own.
    devices = [r for r in budget.ranks if r.slot is not budget.machine.host]
    everywhere = tr(" on every rank") if len(devices) > 1 else ""
    word = tr("Fits") if fit is Fit.FITS else tr("Tight")
    if budget.refusals:
        version = budget.deployment.runtime_version or ""
        return tr("{word}, but {runtime_label} {version}").format(
            word=word, runtime_label=runtime_label(budget), version=version
        ).rstrip() + tr(" refuses to start")
    return tr("{word}, with {at_least}{amount} to spare{everywhere}").format(
        word=word, at_least=at_least, amount=amount, everywhere=everywhere
    )


def _unknown(budget: Budget, unit: UnitSystem) -> str:
    counted = format_gib(max(_wanted_bytes(rank) for rank in budget.ranks), unit, digits=1)
    if budget.doubts and budget.is_complete:
        return tr("Unknown: at most {counted} of each device").format(counted=counted)
    if budget.direction(Region.WEIGHTS) in (Direction.UPPER, Direction.EITHER):
        return tr("Unknown: {counted} if nothing is left out").format(counted=counted)
    least = max(rank.regions[Region.WEIGHTS].estimate.low_bytes for rank in budget.ranks)
    return tr("Unknown: at least {least}").format(least=format_gib(least, unit, digits=1))


def _wanted_bytes(rank: RankBudget) -> int:
    wanted = sum(
        entry.estimate.likely_bytes
        for region, entry in rank.regions.items()
        if region not in (Region.KV_CACHE, Region.HEADROOM, Region.FOREIGN)
    )
    return wanted + rank.needed.likely_bytes


def detail(budget: Budget, fit: Fit, rank: RankBudget, region: Region, unit: UnitSystem) -> str:
    """What the runtime will do, in whole sentences, and before it who else holds the device."""
    what = _what_then_happens(budget, fit, rank, region, unit)
    parts = rank.regions[Region.FOREIGN].estimate.parts
    if fit is not Fit.DOES_NOT_FIT or region is not Region.FOREIGN or not parts:
        return what
    held = tr("{size} is held by {process}.").format(
        size=_one(parts[0].likely_bytes, unit), process=parts[0].label
    )
    return f"{held} {what}"


def _what_then_happens(
    budget: Budget, fit: Fit, rank: RankBudget, region: Region, unit: UnitSystem
) -> str:
    if budget.doubts and fit is Fit.UNKNOWN:
        return _first_reason(budget)
    if budget.refusals and fit is not Fit.DOES_NOT_FIT:
        return budget.refusals[0]
    coming = largest(rank.moments.load)
    if coming is not None and rank.free_bytes >= 0 > _line_bytes(rank) - loading_bytes(rank):
        taken, there = _one(loading_bytes(rank), unit), _one(_line_bytes(rank), unit)
        return tr(
            "While it loads, {runtime_label} takes {taken} for a moment "
            "({label}), and the device has {there}."
        ).format(runtime_label=runtime_label(budget), taken=taken, label=coming.label, there=there)
    if rank.has_pool:
        return _pool_detail(budget, fit, rank, region, unit)
    if rank.free_bytes < 0 and rank.regions[Region.HEADROOM].estimate.likely_bytes:
        refuse = _refuses_free if region is Region.FOREIGN else _too_large_a_share
        return refuse(budget, rank, runtime_label(budget), unit)
    return _plain_detail(budget, fit, rank, unit)


def _line_bytes(rank: RankBudget) -> int:
    return rank.slot.device.allocatable.likely_bytes


def _first_reason(budget: Budget) -> str:
    """The reason that weighs most: what is not counted before what may be too much."""
    order = (Direction.LOWER, Direction.EITHER, Direction.UPPER)
    return min(budget.doubts, key=lambda doubt: order.index(doubt.direction)).reason


def runtime_label(budget: Budget) -> str:
    """The runtime's name as its makers write it."""
    found = RUNTIMES.get(budget.deployment.runtime)
    return found.label if found else budget.deployment.runtime


def _tokens(budget: Budget) -> str:
    deployment = budget.deployment
    context = deployment.max_model_len or 0
    if budget.ranks[0].has_pool and deployment.live_tokens is not None:
        room = (
            ""
            if deployment.live_tokens >= context
            else tr(" (max_model_len {context})").format(context=grouped(context))
        )
        return tr("{live_tokens} live tokens{room}").format(
            live_tokens=grouped(deployment.live_tokens), room=room
        )
    at_once = requests_at_once(budget)
    said = (
        tr("1 token") if context == 1 else tr("{context} tokens").format(context=grouped(context))
    )
    return said if at_once == 1 else tr("{at_once} × {said}").format(at_once=at_once, said=said)


def requests_at_once(budget: Budget) -> int:
    """Requests that run at once: with llama.cpp, those beyond its slots wait."""
    deployment = budget.deployment
    slots = deployment.n_parallel if budget.llama_cpp is not None else None
    return min(deployment.concurrency, slots or deployment.concurrency)


def _queue(budget: Budget) -> str:
    """Who waits where there are fewer slots than requests; empty where nobody does."""
    at_once = requests_at_once(budget)
    waiting = budget.deployment.concurrency - at_once
    if not waiting:
        return ""
    runs = (
        tr("One request runs")
        if at_once == 1
        else tr("{at_once} requests run").format(at_once=at_once)
    )
    return tr(" {runs} at a time: the other {others_wait}.").format(
        runs=runs,
        others_wait=tr_count("one waits", "{waiting} wait", waiting).format(waiting=waiting),
    )


def _pool_detail(
    budget: Budget, fit: Fit, rank: RankBudget, region: Region, unit: UnitSystem
) -> str:
    label = runtime_label(budget)
    pool, needed = rank.regions[Region.KV_CACHE].estimate, rank.needed.likely_bytes
    tokens = _tokens(budget)
    if fit is Fit.UNKNOWN:
        need = tr("{tokens} need {one} of KV cache").format(tokens=tokens, one=_one(needed, unit))
        return tr(
            "{label}’s rules for this device are not known; by those for CUDA {need}."
        ).format(label=label, need=need)
    static = budget.deployment.runtime == _STATIC_SHARE
    if rank.free_bytes < 0 and _stated_pool(budget) and region is Region.HEADROOM:
        return _too_large_a_pool(budget, rank, unit)
    if rank.free_bytes < 0:
        over = static_share.too_large if static else _over_the_share
        return over(budget, rank, region, unit)
    if pool.likely_bytes >= needed:
        reserved = tr("{label} reserves {one} of KV cache").format(
            label=label, one=_one(pool.likely_bytes, unit)
        )
        lines = tr("{reserved}; {tokens} need {one}.").format(
            reserved=reserved, tokens=tokens, one=_one(needed, unit)
        )
        if len(budget.ranks) > 1:
            lines += " " + _fullest(budget, rank)
        return (_why_tight(rank, unit) if fit is Fit.TIGHT else "") + lines
    left = _one(pool.likely_bytes, unit)
    start = tr("{tokens} need {one} of KV cache; {label} has {left} left.").format(
        tokens=tokens, one=_one(needed, unit), label=label, left=left
    )
    return f"{start} {static_share.what_then(budget) if static else _what_then(budget)}"


def _stated_pool(budget: Budget) -> str:
    """The setting that states the pool's size outright; empty where the share decides."""
    names = ("num_gpu_blocks_override", "kv_pool_bytes", "kv_cache_memory_bytes")
    return next((n for n in names if getattr(budget.deployment, n) is not None), "")


def _too_large_a_pool(budget: Budget, rank: RankBudget, unit: UnitSystem) -> str:
    """The pool is as large as it was told to be, and the rest of the plan finds no room."""
    pool, line = rank.regions[Region.KV_CACHE].estimate.likely_bytes, _line_bytes(rank)
    beside = line - rank.free_bytes - pool
    return tr(
        "{stated_pool} makes a pool of {one}; with the {one_2} beside it "
        "that is more than the device’s {one_3}: {runtime_label} stops "
        "with an out-of-memory error."
    ).format(
        stated_pool=_stated_pool(budget),
        one=_one(pool, unit),
        one_2=_one(beside, unit),
        one_3=_one(line, unit),
        runtime_label=runtime_label(budget),
    )


def _over_the_share(budget: Budget, rank: RankBudget, region: Region, unit: UnitSystem) -> str:
    """Start-up asks for more than the device has."""
    label = runtime_label(budget)
    if region is Region.FOREIGN:
        return _refuses_free(budget, rank, label, unit)
    if rank.regions[Region.KV_CACHE].estimate.likely_bytes:
        return _too_large_a_share(budget, rank, label, unit)
    share = _share_bytes(budget, rank)
    wanted = share - rank.free_bytes
    return tr(
        "{label} refuses to start: it needs {one} before any KV cache, and may take {one_2}."
    ).format(label=label, one=_one(wanted, unit), one_2=_one(share, unit))


def _why_tight(rank: RankBudget, unit: UnitSystem) -> str:
    """Begins the second line, whose end a narrow window cuts."""
    coming = [part for part in rank.moments.sustained if part.high_bytes]
    if coming and outgrows(rank):
        most = _one(sum(part.high_bytes for part in coming), unit)
        parts = ", ".join(part.label for part in coming)
        return tr("The first requests may add {most}: {parts}. ").format(most=most, parts=parts)
    if rank.has_pool and not rank.regions[Region.HEADROOM].estimate.likely_bytes:
        return tr("Nothing is left beside its share for libraries and fragmentation. ")
    return tr("The high estimate doesn’t fit. ")


def _what_then(budget: Budget) -> str:
    """Refuse when not even one request fits at full length, else queue."""
    state = budget.sequence_state
    blocks, at_once = state.num_blocks or 0, state.max_concurrency or 0.0
    # One block, the null block, is never given out.
    runs = int((blocks - 1) // round(blocks / at_once)) if at_once else 0
    if runs < 1:
        longest = tr("one request of {max_model_len} tokens doesn’t fit").format(
            max_model_len=grouped(budget.deployment.max_model_len or 0)
        )
        return tr("{runtime_label} refuses to start: {longest}.").format(
            runtime_label=runtime_label(budget), longest=longest
        )
    waiting = tr(_ORDINALS[runs]) if runs < len(_ORDINALS) else tr("{runs}th").format(runs=runs + 1)
    return tr("It starts, but the {waiting} request waits.").format(waiting=waiting)


def _too_large_a_share(budget: Budget, rank: RankBudget, label: str, unit: UnitSystem) -> str:
    """The share leaves too little beside it for what lies outside the budget."""
    allocatable = rank.slot.device.allocatable.likely_bytes
    beside = allocatable - _share_bytes(budget, rank)
    wanted = beside - rank.free_bytes
    share = budget.deployment.gpu_memory_utilization
    return tr(
        "{label} takes {share} of the device and leaves {one}; its "
        "context, libraries and what others hold need {one_2}."
    ).format(
        label=label,
        share=figures(format(share, "g")),
        one=_one(beside, unit),
        one_2=_one(wanted, unit),
    )


def _refuses_free(budget: Budget, rank: RankBudget, label: str, unit: UnitSystem) -> str:
    share = _share_bytes(budget, rank)
    held = rank.slot.foreign.likely_bytes
    return tr(
        "{label} refuses to start: others hold {one}, and it asks for "
        "{one_2} ({gpu_memory_utilization} of the device)."
    ).format(
        label=label,
        one=_one(held, unit),
        one_2=_one(share, unit),
        gpu_memory_utilization=figures(format(budget.deployment.gpu_memory_utilization, "g")),
    )


def _share_bytes(budget: Budget, rank: RankBudget) -> int:
    share = budget.deployment.gpu_memory_utilization or 1.0
    return round(share * rank.slot.device.allocatable.likely_bytes)


def _fullest(budget: Budget, rank: RankBudget) -> str:
    pools = {
        r.regions[Region.KV_CACHE].estimate.likely_bytes + r.unmatched_bytes for r in budget.ranks
    }
    count = len(budget.ranks)
    everyone = tr(_COUNTS[count]) if count < len(_COUNTS) else tr("all {count}").format(count=count)
    if len(pools) == 1:
        return tr("The pool is the same on {everyone} ranks.").format(everyone=everyone)
    return tr("Rank {rank} is the fullest and sets the pool for {everyone}.").format(
        rank=rank.rank, everyone=everyone
    )


def _plain_detail(budget: Budget, fit: Fit, rank: RankBudget, unit: UnitSystem) -> str:
    label = runtime_label(budget)
    held = _wanted_bytes(rank)
    cache = rank.needed.likely_bytes
    tokens = _tokens(budget)
    if fit is Fit.UNKNOWN:
        taken = tr("by those for CUDA it takes {one}").format(one=_one(held, unit))
        return tr("{label}’s rules for this device are not known; {taken}.").format(
            label=label, taken=taken
        )
    most = _one(max(loading_bytes(rank) - rank.slot.foreign.likely_bytes, held), unit)
    loads_with_more = most != _one(held, unit)
    if fit is not Fit.DOES_NOT_FIT:
        share = (
            tr(", {one} of it for {tokens}").format(one=_one(cache, unit), tokens=tokens)
            if cache
            else ""
        )
        first = (
            tr("; {most} for a moment while it loads").format(most=most) if loads_with_more else ""
        )
        note = "" if fit is Fit.FITS else _why_tight(rank, unit)
        takes = tr("{label} takes {one}{share}{first}.").format(
            label=label, one=_one(held, unit), share=share, first=first
        )
        return f"{note}{takes}{_queue(budget)}"
    room = max(0, rank.slot.device.allocatable.likely_bytes - rank.slot.foreign.likely_bytes)
    alone = rank.slot.foreign.basis is Basis.ASSUMED
    there = (
        tr("the device has {one}").format(one=_one(room, unit))
        if alone
        else tr("{one} are left").format(one=_one(room, unit))
    )
    loading = tr(" while it loads") if loads_with_more else ""
    needs = tr("{label} needs {most}{loading}, and {there}").format(
        label=label, most=most, loading=loading, there=there
    )
    if budget.llama_cpp is not None:
        return f"{needs}: {_llama_cpp_then(budget, rank, unit)}"
    return tr(
        "{needs}: it stops with an out-of-memory error, at load or when the context fills."
    ).format(needs=needs)


def _llama_cpp_then(budget: Budget, rank: RankBudget, unit: UnitSystem) -> str:
    """llama.cpp takes everything at load; what isn't set it moves to the host."""
    if rank.slot.device.kind is DeviceKind.HOST:
        if budget.deployment.mmap:
            return tr("mapped weights are read from disk again and again, or the system ends it.")
        return tr("the system ends it at load.")
    if budget.deployment.n_gpu_layers is None and rank.slot.device.kind is DeviceKind.DISCRETE:
        if not _host_takes_the_rest(budget):
            ram = budget.machine.host.device.allocatable
            if ram.basis is Basis.ASSUMED:
                words = tr("it doesn’t fit even with the {size} of RAM assumed, as none is stated.")
                return words.format(size=_one(ram.likely_bytes, unit))
            return tr("it doesn’t fit even with the computer’s own memory.")
        return tr("by itself (--fit) it keeps fewer layers on the GPU and runs slower.")
    return tr("it stops at load with an out-of-memory error.")


def _host_takes_the_rest(budget: Budget) -> bool:
    """Whether the host's RAM holds what is too much for the GPUs, beside what it holds already."""
    over = left = 0
    for rank in budget.ranks:
        if rank.slot.device.kind is DeviceKind.HOST:
            left += rank.free_bytes
        else:
            over += max(-rank.free_bytes, 0)
    return over <= left


def _one(size_bytes: int, unit: UnitSystem) -> str:
    return format_gib(size_bytes, unit, digits=1)
