"""From the failing line to its cause: which kind of failure, which region, how much was short."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from engine.budget.model import Region
from engine.logs.buffers import is_host
from engine.logs.reading import Phase
from engine.logs.regions import stated_regions
from engine.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.logs.reading import Failure, LogReading

_OF_OTHERS_BYTES = 512 * MIB
"""Less than this beside a process is the driver's, and no other program's."""
_CONTEXT_BYTES = 1 * GIB
"""A process holds up to this beside what PyTorch allocated."""
_UNEVEN_BYTES = 64 * MIB
"""Ranks that differ by less are alike."""
_PIECES = 100
"""Unused pieces of less than one in so many of a device are the allocator's everyday rest."""
_SERVERS = frozenset({"vllm", "sglang", "tgi"})
"""Runtimes that hold their whole KV pool before they serve."""


class Kind(StrEnum):
    """What kind of failure it is."""

    LOAD = "load"
    PREFILL = "prefill"
    CONCURRENCY = "concurrency"
    FRAGMENTATION = "fragmentation"
    GRAPHS = "graphs"
    RANK = "rank"
    REFUSED = "refused"
    SPILLED = "spilled"
    KILLED = "killed"
    HOST = "host"
    TAKEN = "taken"
    RUNTIME = "runtime"
    DIED = "died"
    UNKNOWN = "unknown"


class Uneven(NamedTuple):
    """Two ranks that hold different amounts of one region."""

    region: Region
    held_bytes: int
    """By the rank that failed."""
    other: str
    other_bytes: int


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a run failed, as far as its log tells."""

    kind: Kind
    code: str
    """The signature that told of it."""
    region: Region | None
    """None where the log does not say, or where it is no memory of a device."""
    rank: str
    line: int
    phase: Phase
    is_soft: bool
    """Whether the run goes on."""
    was_up: bool = False
    """Whether it served before: its pool was taken by then."""
    prompt_tokens: int | None = None
    """Of the prompt that was too long."""
    short_bytes: int | None = None
    """How much was missing."""
    asked_bytes: int | None = None
    """How much was asked for, in one piece."""
    others_bytes: int | None = None
    """What other processes held then."""
    others_before_bytes: int | None = None
    """What they held when the run started."""
    uneven: Uneven | None = None
    """Where ranks differ: which one holds less, and how much both hold."""
    balance: tuple[tuple[str, int], ...] = ()
    """Parts of the device at the failure, and its total last: ``mine``, ``others`` …"""


_BY_CODE: Mapping[str, tuple[Kind, Region | None]] = {
    "start_refused": (Kind.REFUSED, Region.FOREIGN),
    "context_too_long": (Kind.REFUSED, Region.KV_CACHE),
    "no_pool": (Kind.REFUSED, Region.WEIGHTS),
    "host_short": (Kind.REFUSED, None),
    "host_out": (Kind.HOST, None),
    "guard_rail": (Kind.REFUSED, None),
    "unbalanced": (Kind.REFUSED, Region.FOREIGN),
    "others_moved": (Kind.TAKEN, Region.FOREIGN),
    "others_hold": (Kind.TAKEN, Region.FOREIGN),
    "sampler": (Kind.PREFILL, Region.ACTIVATIONS),
    "pool_short": (Kind.CONCURRENCY, Region.KV_CACHE),
    "slots": (Kind.CONCURRENCY, Region.KV_CACHE),
    "tgi_warm_up": (Kind.CONCURRENCY, Region.KV_CACHE),
    "prompt_too_long": (Kind.CONCURRENCY, Region.KV_CACHE),
    "state_short": (Kind.CONCURRENCY, Region.RECURRENT_STATE),
    "collectives": (Kind.RUNTIME, Region.RUNTIME),
    "library": (Kind.RUNTIME, Region.RUNTIME),
    "killed": (Kind.KILLED, None),
    "killed_in_container": (Kind.KILLED, None),
    "killed_by_signal": (Kind.KILLED, None),
    "killed_other": (Kind.KILLED, None),
    "spilled": (Kind.SPILLED, Region.WEIGHTS),
    "on_cpu": (Kind.SPILLED, Region.WEIGHTS),
    "buffer_limit": (Kind.PREFILL, Region.ACTIVATIONS),
    "buffer_count": (Kind.PREFILL, Region.ACTIVATIONS),
    "driver_updated": (Kind.REFUSED, None),
    "driver_permission": (Kind.REFUSED, None),
    "runner_died": (Kind.DIED, None),
}
_BY_REGION = {
    Region.WEIGHTS: Kind.LOAD,
    Region.KV_CACHE: Kind.CONCURRENCY,
    Region.RECURRENT_STATE: Kind.CONCURRENCY,
    Region.ACTIVATIONS: Kind.PREFILL,
}
_BY_PHASE = {
    Phase.LOAD: (Kind.LOAD, Region.WEIGHTS),
    Phase.PROJECTOR: (Kind.LOAD, Region.WEIGHTS),
    Phase.PROFILE: (Kind.PREFILL, Region.ACTIVATIONS),
    Phase.PREFILL: (Kind.PREFILL, Region.ACTIVATIONS),
    Phase.SAMPLER: (Kind.PREFILL, Region.ACTIVATIONS),
    Phase.POOL: (Kind.CONCURRENCY, Region.KV_CACHE),
    Phase.CAPTURE: (Kind.GRAPHS, Region.CUDA_GRAPHS),
    # Pool and weights are taken by then: what grows is the work of a step.
    Phase.SERVE: (Kind.PREFILL, Region.ACTIVATIONS),
}
_KEPT_BYTES = 10 * GIB
"""Of the computer's memory SGLang leaves so much alone, and its text does not say so."""
_FULL = 0.97
"""From which share on a KV cache has no room for a further request."""


def diagnose(reading: LogReading) -> Cause | None:
    """The cause of the failure that ``reading`` tells of; None where it tells of none.

    A run that keeps layers in the host's memory is told of too, though it serves, and one whose
    metrics say that its KV cache is full.
    """
    failure = reading.failure
    if failure is None:
        return _without_pool(reading) or _spilled(reading) or _crowded(reading)
    free, asked = failure.bytes_of("free_now"), failure.bytes_of("requested")
    before = _others_before(reading, failure)
    others = _others(failure)
    kind, region = _kind(reading, failure, others, before)
    short = _short(failure)
    if short is None and asked is not None:
        is_load = free is None and region is Region.WEIGHTS
        left = _left(reading, failure) if is_load else free
        short = asked if left is None else max(0, asked - left) or (asked if is_load else 0)
    if kind is Kind.FRAGMENTATION:
        short = None
    if failure.code == "start_refused" and before is not None:
        others = before
    rank = failure.rank or _device_rank(reading, failure)
    uneven = None if kind in (Kind.REFUSED, Kind.TAKEN) else _uneven(reading, rank, region)
    return Cause(
        kind=Kind.RANK if uneven else kind,
        code=failure.code,
        region=region,
        rank=rank,
        line=failure.line,
        phase=failure.phase,
        is_soft=failure.is_soft,
        was_up=reading.phase is Phase.SERVE,
        prompt_tokens=failure.bytes_of("prompt_tokens"),
        short_bytes=short,
        asked_bytes=asked,
        others_bytes=others,
        others_before_bytes=before,
        uneven=uneven,
        balance=_balance(failure, others),
    )


def _kind(
    reading: LogReading, failure: Failure, others: int | None, before: int | None
) -> tuple[Kind, Region | None]:
    if failure.code in _BY_CODE:
        return _BY_CODE[failure.code]
    if failure.code == "torch":
        return _of_torch(reading, failure, others, before)
    region = failure.region
    if failure.phase is Phase.PROJECTOR:
        return Kind.LOAD, region or Region.WEIGHTS
    if region is None and failure.phase is not Phase.START:
        return _BY_PHASE.get(failure.phase, (Kind.UNKNOWN, None))
    return (_BY_REGION.get(region, Kind.UNKNOWN) if region else Kind.UNKNOWN), region


def _of_torch(
    reading: LogReading, failure: Failure, others: int | None, before: int | None
) -> tuple[Kind, Region | None]:
    """PyTorch's text is the same whatever ran out; its figures and the traceback tell."""
    asked, free = failure.bytes_of("requested"), failure.bytes_of("free_now")
    if asked is not None and free is not None and _lies_unused(failure, asked, free):
        return Kind.FRAGMENTATION, Region.ALLOCATOR
    if others is not None and asked is not None and free is not None:
        came = others - (before or 0)
        if others >= _OF_OTHERS_BYTES and came >= asked - free:
            return Kind.TAKEN, Region.FOREIGN
    if failure.phase is Phase.SERVE:
        if reading.runtime in _SERVERS:
            return Kind.PREFILL, Region.ACTIVATIONS
        return Kind.CONCURRENCY, Region.KV_CACHE
    return _BY_PHASE.get(failure.phase, (Kind.UNKNOWN, None))


def _lies_unused(failure: Failure, asked: int, free: int) -> bool:
    """Whether there was room enough, in pieces; a full device has a few unused ones too."""
    unused, total = unused_bytes(failure) or 0, failure.bytes_of("total") or 0
    return free >= asked or (free + unused >= asked and unused * _PIECES >= total)


def unused_bytes(failure: Failure) -> int | None:
    """What the allocator keeps and does not use; older texts say it by two figures."""
    reserved, allocated = failure.bytes_of("torch_reserved"), failure.bytes_of("torch_allocated")
    if reserved is not None and allocated is not None:
        return max(0, reserved - allocated)
    return failure.bytes_of("unallocated")


def _others(failure: Failure) -> int | None:
    """What others hold: what is neither free nor this process's; else what is named."""
    total, free = failure.bytes_of("total"), failure.bytes_of("free_now")
    mine = failure.bytes_of("process")
    if total is not None and free is not None and mine is not None and mine + free <= total:
        return total - free - mine
    named, allocated = failure.bytes_of("process_of_others"), failure.bytes_of("torch_allocated")
    if named is None or mine is not None or allocated is None:
        return named
    # A container hides which process is one's own: it is among those that are named.
    own = allocated + (unused_bytes(failure) or 0) + _CONTEXT_BYTES
    return max(0, named - own)


def _others_before(reading: LogReading, failure: Failure) -> int | None:
    """What others held when the run began to measure the device."""
    for facts in (failure.facts, *(rank.facts for rank in reading.ranks)):
        total, free = facts.get("total"), facts.get("free_at_start")
        if total is not None and free is not None:
            return max(0, total.size_bytes - free.size_bytes)
    return None


def _short(failure: Failure) -> int | None:
    """How much was missing, where the line says both sides."""
    for wanted, had in (
        ("budget", "free_at_start"),
        ("kv_needed", "kv_pool"),
        ("host_needed", "host_free"),
    ):
        need, have = failure.bytes_of(wanted), failure.bytes_of(had)
        if need is not None and have is not None:
            kept = _KEPT_BYTES if wanted == "host_needed" and need <= have else 0
            return max(0, need + kept - have)
    return None


def _left(reading: LogReading, failure: Failure) -> int | None:
    """What a device had for weights: what was free at the start, less the driver's own part."""
    name = failure.rank or _device_rank(reading, failure)
    there = [rank for rank in reading.ranks if not is_host(rank.name)]
    found = [rank for rank in there if rank.name == name] or (there if len(there) == 1 else [])
    start = found[0].bytes_of("free_at_start") if found else None
    return None if start is None else max(0, start - _CONTEXT_BYTES)


def _device_rank(reading: LogReading, failure: Failure) -> str:
    """The rank of the device that the line numbers, where the log has several."""
    device = failure.facts.get("device")
    if device is None or len(reading.ranks) < 2:
        return ""
    digits = "".join(c for c in str(device.value) if c.isdigit())
    named = [rank for rank in reading.ranks if rank.name == str(device.value)]
    numbered = [
        r for r in reading.ranks if digits and r.index == int(digits) and r.name[-1:].isdigit()
    ]
    found = named or numbered
    return found[0].name if found else ""


def _uneven(reading: LogReading, rank: str, region: Region | None) -> Uneven | None:
    """Whether the rank that failed holds more than another one: of its region, or of weights."""
    ranks = {each.name: stated_regions(each) for each in reading.ranks}
    if rank not in ranks:
        return None
    for looked_at in dict.fromkeys((region, Region.WEIGHTS)):
        held = {
            name: stated[looked_at].size_bytes
            for name, stated in ranks.items()
            if looked_at is not None and looked_at in stated and not is_host(name)
        }
        if rank not in held or looked_at is None or len(held) < 2:
            continue
        least = min(held, key=held.__getitem__)
        if held[rank] - held[least] >= _UNEVEN_BYTES:
            return Uneven(looked_at, held[rank], least, held[least])
    return None


def _balance(failure: Failure, others: int | None) -> tuple[tuple[str, int], ...]:
    total, free = failure.bytes_of("total"), failure.bytes_of("free_now")
    mine = failure.bytes_of("process")
    if total is None or free is None or mine is None or others is None:
        return ()
    return (("mine", mine), ("others", others), ("free", free), ("total", total))


def _spilled(reading: LogReading) -> Cause | None:
    """Layers that did not go to the GPU run from the host's memory: slower, and nobody says so."""
    for part, whole in (("offloaded", "layers"), ("loaded_on_gpu", "loaded")):
        there, all_of = reading.whole.get(part), reading.whole.get(whole)
        if there is None or all_of is None or not 0 <= there.size_bytes < all_of.size_bytes:
            continue
        if there.size_bytes == 0:
            return _goes_on(reading, Kind.SPILLED, "on_cpu", Region.WEIGHTS, there.line)
        return _goes_on(reading, Kind.SPILLED, "spilled", Region.WEIGHTS, there.line)
    return None


def _without_pool(reading: LogReading) -> Cause | None:
    """A pool of less than nothing: the log ends before the sentence that says so."""
    for rank in reading.ranks:
        pool = rank.facts.get("kv_pool")
        if pool is not None and pool.size_bytes < 0:
            return Cause(
                kind=Kind.REFUSED,
                code="no_pool",
                region=Region.WEIGHTS,
                rank=rank.name,
                line=pool.line,
                phase=reading.phase,
                is_soft=False,
                short_bytes=-pool.size_bytes,
            )
    return None


def _crowded(reading: LogReading) -> Cause | None:
    """What a page of metrics says of a pool that was too small for the requests that came."""
    lost, fill = reading.whole.get("preemptions"), reading.whole.get("kv_fill")
    waiting = reading.whole.get("waiting")
    if lost is not None and float(lost.value) > 0:
        return _goes_on(reading, Kind.CONCURRENCY, "pool_short", Region.KV_CACHE, lost.line)
    if fill is None or waiting is None or float(waiting.value) <= 0:
        return None
    if float(fill.value) < _FULL:
        return None  # They wait for a place among those that run, not for memory.
    return _goes_on(reading, Kind.CONCURRENCY, "pool_short", Region.KV_CACHE, fill.line)


def _goes_on(reading: LogReading, kind: Kind, code: str, region: Region, line: int) -> Cause:
    return Cause(
        kind=kind, code=code, region=region, rank="", line=line, phase=reading.phase, is_soft=True
    )
