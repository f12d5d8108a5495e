"""Why a run failed, in whole sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.logs.buffers import is_host
from engine.logs.diagnosis import Cause, Kind, Uneven, unused_bytes
from engine.logs.reading import Phase
from engine.units import UnitSystem, format_gib
from engine.words import figures, grouped, tr, tr_later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.logs.reading import Failure, LogReading

_WHY: Mapping[str, str] = {
    "start_refused": tr_later(
        "It asks for its share of the whole device at start, and checks that so much is free. "
        "The model is not to blame: others held the rest."
    ),
    "context_too_long": tr_later(
        "It starts only if one request of the full context fits its KV cache. A shorter context, a "
        "smaller cache format or a larger share makes it start."
    ),
    "no_pool": tr_later(
        "Weights and working memory take its whole share of the device: nothing is left for a KV "
        "cache."
    ),
    "host_short": tr_later("The computer’s own memory, not a device’s, was too small for it."),
    "host_out": tr_later(
        "The computer’s own memory ran out, not a device’s: weights pass through it while they are "
        "loaded, and what is kept off the device stays there."
    ),
    "guard_rail": tr_later(
        "LM Studio’s own estimate is above what it lets a model take. With a shorter context it "
        "asks for less."
    ),
    "others_moved": tr_later(
        "Another process took or gave back memory while it measured the device."
    ),
    "others_hold": tr_later("Weights that others hold count against its share."),
    "sampler": tr_later(
        "Choosing tokens for many sequences at once takes one row of logits each, over the whole "
        "vocabulary. Fewer sequences a step take less."
    ),
    "pool_short": tr_later(
        "The tokens of all requests at once filled the KV cache. Their number, how a token is "
        "stored and how many requests are let in decide, not the weights."
    ),
    "slots": tr_later("More requests came at once than it has slots for."),
    "tgi_warm_up": tr_later(
        "The batch that it was told to hold did not fit beside the weights at warm-up."
    ),
    "prompt_too_long": tr_later("One prompt is longer than all the KV cache holds. Others go on."),
    "state_short": tr_later(
        "A hybrid model keeps a state for every sequence, whatever its length; there was no room "
        "for enough of them."
    ),
    "collectives": tr_later(
        "The library that joins the devices found no room: it allocates beside the pool, at its "
        "first use."
    ),
    "library": tr_later(
        "A library found no room for its workspace: it allocates beside the pool, at its first use."
    ),
    "killed": tr_later(
        "The system ended the process when the computer’s own memory ran out: while it loads, "
        "weights pass through it, and what is kept off the device stays there."
    ),
    "killed_in_container": tr_later(
        "The container’s memory limit was reached, and the system ended the process. The files it "
        "reads count towards the limit."
    ),
    "killed_by_signal": tr_later(
        "Signal 9 ended it, which the system sends when the computer’s own memory runs out. "
        "Whether it was so stands in the kernel’s log (dmesg); a person or another program can "
        "send it too."
    ),
    "killed_other": tr_later(
        "The system ends whatever holds most when the computer’s own memory runs out. This time "
        "it was another program; what is short stays short, and the next may be this run."
    ),
    "unbalanced": tr_later(
        "It shares a model evenly, and refuses where one device has a tenth less free than the "
        "others: another program holds part of it, or the cards differ."
    ),
    "spilled": tr_later(
        "Part of the model is in the computer’s own memory, or on disk. It runs, but every token "
        "waits for that part."
    ),
    "on_cpu": tr_later(
        "All of the model is in the computer’s own memory: no GPU was used, or none had room."
    ),
    "buffer_limit": tr_later(
        "macOS limits the size of a single buffer, however much memory is free. A shorter prompt, "
        "or one that is read in smaller steps, asks for smaller ones."
    ),
    "buffer_count": tr_later(
        "macOS limits how many buffers a process holds, however small they are. A shorter prompt "
        "or answer, or one that is read in smaller steps, takes fewer."
    ),
    "driver_updated": tr_later(
        "The driver was updated and the old one still runs: restart the computer. No memory was "
        "short."
    ),
    "driver_permission": tr_later(
        "The driver refused the question, as it does for a GPU that is divided (MIG) or from "
        "within a container. No memory was short."
    ),
    "runner_died": tr_later(
        "The process ended. What stopped it stands in its own log, before this line: look for the "
        "end of the traceback, or for the system’s log of processes that it ended."
    ),
    "working_set": tr_later(
        "macOS gives the GPU only a part of the memory; the run asked for more than that part."
    ),
}
_WHY_BY_KIND: Mapping[Kind, str] = {
    Kind.LOAD: tr_later(
        "The weights did not fit: their precision, what the format adds (scales, zero points), and "
        "how they are shared between devices decide."
    ),
    Kind.PREFILL: tr_later(
        "What a step needs for a moment did not fit: it grows with the tokens of a pass, the "
        "length of the prompt and the attention kernel."
    ),
    Kind.CONCURRENCY: tr_later(
        "The KV cache did not fit: the tokens of all requests at once and the cache’s precision "
        "decide."
    ),
    Kind.FRAGMENTATION: tr_later(
        "There was memory, but no piece large enough: it lies in the allocator’s reserves, in "
        "graphs’ pools or in blocks of other sizes."
    ),
    Kind.GRAPHS: tr_later(
        "Graphs are captured after the pool is taken, with memory of their own: the share left too "
        "little beside it."
    ),
    Kind.TAKEN: tr_later("Another process took memory that the run had counted on."),
    Kind.UNKNOWN: tr_later(
        "The log does not say what was being allocated. The lines before the failure would: the "
        "end of the traceback, or what it was loading."
    ),
}
_OF_THE_PROJECTOR = tr_later(
    "The model itself was loaded: the projector of images did not fit beside it. Without images it "
    "can be left out."
)
_HELD_BY_OTHERS = tr_later(
    "Other processes hold memory that the run needed. Whether they already did when it started, "
    "its log does not say."
)
_LOOKS_FIRST = frozenset({"vllm", "sglang"})
"""Runtimes that look at what is free before they take it."""
_ROOMY = 0.9
"""Below this share of a pool there is room for a further request."""
_FREE_PIECES = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
_LEAST_VERBOSITY = 4
"""From which on llama.cpp prints its buffers, since May 2026."""


def happened(cause: Cause | None, reading: LogReading, unit: UnitSystem) -> tuple[str, ...]:
    """What happened, in whole sentences."""
    if cause is None:
        return _not_failed(reading)
    found = [_why(cause, reading)]
    if cause.uneven is not None:
        found = [_about_shards(cause.rank, cause.uneven, unit)]
    elif cause.rank and not cause.is_soft and _devices(reading) > 1:
        found.append(tr("{rank} was the first to fail.").format(rank=cause.rank))
    if cause.others_bytes is not None and cause.region is Region.FOREIGN:
        found.append(_about_others(cause, unit))
    if reading.failure is None:
        found += _about_load(reading)
    else:
        found += _about_figures(cause, reading, reading.failure, unit)
    return tuple(sentence for sentence in found if sentence)


def _why(cause: Cause, reading: LogReading) -> str:
    if cause.phase is Phase.PROJECTOR:
        return tr(_OF_THE_PROJECTOR)
    if cause.kind is Kind.TAKEN and not _checked_at_start(cause, reading):
        return tr(_HELD_BY_OTHERS)
    return tr(_WHY.get(cause.code, "") or _WHY_BY_KIND.get(cause.kind, ""))


def _about_figures(
    cause: Cause, reading: LogReading, failure: Failure, unit: UnitSystem
) -> Iterator[str]:
    """What the failing line says beside its cause."""
    limit, there = failure.bytes_of("host_limit"), reading.whole.get("host_total")
    if limit is not None and there is not None and limit < there.size_bytes:
        words = tr(
            "The container may take {limit} of the computer’s {total}; files that it has read "
            "count."
        )
        total = format_gib(there.size_bytes, unit)
        yield words.format(limit=format_gib(limit, unit), total=total)
    unused = unused_bytes(failure)
    if cause.kind is Kind.FRAGMENTATION and unused:
        words = tr(
            "{unused} lay reserved and unused. {setting} lets the allocator join such pieces."
        )
        yield words.format(unused=format_gib(unused, unit), setting=_FREE_PIECES)
    if longest := failure.bytes_of("longest"):
        words = tr("By its own figures a context of {tokens} tokens fits.")
        yield words.format(tokens=grouped(longest))


def _checked_at_start(cause: Cause, reading: LogReading) -> bool:
    """Whether the memory was free when the run began: stated, or looked at by the runtime."""
    return (
        cause.others_before_bytes is not None
        or reading.runtime in _LOOKS_FIRST
        or cause.code != "torch"
    )


def _devices(reading: LogReading) -> int:
    return sum(bool(rank.name) and not is_host(rank.name) for rank in reading.ranks)


def _about_shards(rank: str, uneven: Uneven, unit: UnitSystem) -> str:
    words = tr(
        "The shards are uneven, and the fullest decides. {region}: {held} on {rank}, {less} on "
        "{other}."
    )
    return words.format(
        region=uneven.region.label,
        held=format_gib(uneven.held_bytes, unit),
        rank=rank,
        less=format_gib(uneven.other_bytes, unit),
        other=uneven.other or tr("the others"),
    )


def _about_others(cause: Cause, unit: UnitSystem) -> str:
    now = format_gib(cause.others_bytes or 0, unit)
    if cause.kind is Kind.TAKEN and cause.others_before_bytes is not None:
        words = tr("Others held {before} when it measured the device, and {now} when it failed.")
        return words.format(before=format_gib(cause.others_before_bytes, unit), now=now)
    return tr("Others held {now}.").format(now=now)


def _not_failed(reading: LogReading) -> tuple[str, ...]:
    if loaded := _about_load(reading):
        return loaded
    if reading.understood:
        quiet = reading.whole.get("verbosity")
        if quiet is None or quiet.size_bytes >= _LEAST_VERBOSITY or _has_buffers(reading):
            return ()
        return (
            tr(
                "llama.cpp prints what it allocates only with -lv 4, or with "
                "LLAMA_ARG_LOG_VERBOSITY=4."
            ),
        )
    return (
        tr(
            "Known are start-up logs, metrics pages and out-of-memory texts of vLLM, SGLang, "
            "llama.cpp, Ollama, TGI, Transformers, LM Studio and MLX."
        ),
    )


def _about_load(reading: LogReading) -> tuple[str, ...]:
    """What a page of metrics says of requests and of the pool."""
    running, waiting = _number(reading, "running"), _number(reading, "waiting")
    fill, lost = _number(reading, "kv_fill"), _number(reading, "preemptions")
    found: list[str] = []
    if fill is not None:
        words = tr("{share} % of the KV cache is in use.")
        found.append(words.format(share=figures(f"{100 * fill:.0f}")))
    if running is not None and waiting is not None:
        words = tr("{running} requests run, {waiting} wait.")
        found.append(words.format(running=grouped(int(running)), waiting=grouped(int(waiting))))
        if waiting and fill is not None and fill < _ROOMY:
            found.append(tr("They wait for a place among those that run at once, not for memory."))
    if lost:
        words = tr("{count} times a request had to give up its cache and begin again.")
        found.append(words.format(count=grouped(int(lost))))
    if not found and "tokens_read" in reading.whole:
        found.append(
            tr("This page tells of tokens and nothing of memory: the log of llama-server does.")
        )
    return tuple(found)


def _number(reading: LogReading, name: str) -> float | None:
    fact = reading.whole.get(name)
    return None if fact is None else float(fact.value)


def _has_buffers(reading: LogReading) -> bool:
    devices = (rank for rank in reading.ranks if not is_host(rank.name))
    return any(rank.facts.keys() & {"weights", "kv_pool"} for rank in devices)
