"""A run in words: the sentence above all, and what is said of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.budget.model import Region
from engine.logs.diagnosis import Cause, Kind
from engine.logs.reading import Phase
from engine.runtimes import registry
from engine.units import UnitSystem, format_bytes, format_gib
from engine.words import grouped, tr, tr_count, tr_later

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.logs.reading import LogReading

_DOING: Mapping[Phase, str] = {
    Phase.START: "",
    Phase.LOAD: tr_later("while loading the weights"),
    Phase.PROJECTOR: tr_later("while loading the projector of images"),
    Phase.PROFILE: tr_later("in its trial pass"),
    Phase.PREFILL: tr_later("while reading a prompt"),
    Phase.SAMPLER: tr_later("while choosing tokens"),
    Phase.POOL: tr_later("while taking its KV cache"),
    Phase.CAPTURE: tr_later("while capturing graphs"),
    Phase.SERVE: tr_later("while serving"),
}
_WHOLE: Mapping[Kind, str] = {
    Kind.KILLED: tr_later("This run was killed: the computer’s memory ran out"),
    Kind.SPILLED: tr_later("This run is partly in system memory"),
    Kind.FRAGMENTATION: tr_later("This run ran out, though memory was free"),
    Kind.HOST: tr_later("This run ran out of system memory"),
    Kind.DIED: tr_later("This run ended, and its log does not say why"),
}
_BY_CODE: Mapping[str, str] = {
    "killed_by_signal": tr_later(
        "This run was killed, as the system does when the computer’s memory runs out"
    ),
    "killed_other": tr_later(
        "The computer’s memory ran out, and the system ended another program than this run"
    ),
    "on_cpu": tr_later("This run is wholly in system memory"),
    "others_moved": tr_later("Another process moved memory while this run measured the device"),
}
_OF_THE_DRIVER = frozenset({"driver_updated", "driver_permission"})
_RAN_OUT: Mapping[Kind, str] = {
    Kind.LOAD: tr_later("while loading the weights"),
    Kind.GRAPHS: tr_later("while capturing graphs"),
    Kind.CONCURRENCY: tr_later("in the KV cache"),
    Kind.PREFILL: tr_later("in the working memory of a step"),
    Kind.RUNTIME: tr_later("beside the pool, for libraries"),
}


def headline(cause: Cause | None, reading: LogReading, unit: UnitSystem) -> str:
    """One sentence without a full stop."""
    if cause is None:
        return _no_failure(reading)
    amount = _amount(cause, unit)
    if cause.kind is Kind.REFUSED:
        return _refused(cause, runtime_name(reading.runtime), amount)
    whole = _BY_CODE.get(cause.code) or _WHOLE.get(cause.kind)
    if whole is not None:
        return tr(whole)
    return _went_on(cause) if cause.is_soft else _ran_out(cause, amount)


def _went_on(cause: Cause) -> str:
    if cause.region is Region.KV_CACHE:
        return tr("This run was short of KV cache, and went on")
    return tr("This run came to the limit of its memory, and went on")


def _ran_out(cause: Cause, amount: str) -> str:
    if cause.uneven is not None:
        words = tr("This run ran out on {rank} first, which holds more than {other}")
        return words.format(rank=cause.rank, other=cause.uneven.other or tr("the others"))
    where = _RAN_OUT.get(cause.kind, "") or _DOING[cause.phase]
    where = tr(_DOING[cause.phase] if cause.phase is Phase.PROJECTOR else where)
    if not amount:
        return tr("This run ran out {where}").format(where=where).rstrip()
    return (
        tr("This run ran out: {amount} short {where}").format(amount=amount, where=where).rstrip()
    )


def _no_failure(reading: LogReading) -> str:
    if not reading.understood:
        return tr("No line of this log is known")
    if reading.phase is Phase.SERVE:
        return tr("This run came up")
    return tr("This run shows no failure")


def _refused(cause: Cause, name: str, amount: str) -> str:
    if cause.code in _OF_THE_DRIVER:
        words = tr("{runtime} could not use the driver")
    elif cause.region is Region.FOREIGN and amount:
        words = tr("{runtime} refused to start: {amount} less was free than it asks for")
    elif cause.region is Region.KV_CACHE and amount:
        words = tr("{runtime} refused to start: {amount} of KV cache short")
    elif cause.region is Region.KV_CACHE:
        words = tr("{runtime} refused to start: the context is too long for its KV cache")
    elif cause.region is Region.WEIGHTS:
        words = tr("{runtime} refused to start: nothing is left for a KV cache")
    elif amount:
        words = tr("{runtime} refused to start: {amount} of system memory short")
    else:
        words = tr("{runtime} refused to start")
    return words.format(runtime=name or tr("The runtime"), amount=amount)


def _amount(cause: Cause, unit: UnitSystem) -> str:
    """What was short: in the unit of everything, or smaller where that would round to nothing."""
    short = cause.short_bytes
    if not short:
        return ""
    if short < unit.factor // 10:
        return format_bytes(short, unit, digits=0)
    return format_gib(short, unit, digits=1)


def balance(cause: Cause, unit: UnitSystem) -> str:
    """``At the failure: this process 21.59 + others 2.03 + free 0.01 = 23.63 GiB``."""
    if not cause.balance:
        return ""
    figures = {k: format_gib(v, unit, unit=False) for k, v in cause.balance}
    words = tr(
        "At the failure: this process {mine} + others {others} + free {free} = {total} {unit}"
    )
    return words.format(**figures, unit=unit.value)


def about(reading: LogReading) -> str:
    """``vLLM 0.33.0, 27 lines, 9 understood``."""
    lines = tr_count("{lines} line", "{lines} lines", reading.line_count)
    parts = [lines.format(lines=grouped(reading.line_count))]
    understood = tr("{lines} understood").format(lines=grouped(reading.understood))
    name = runtime_name(reading.runtime)
    if name:
        parts.insert(0, tr("{name} {release}").format(name=name, release=release(reading)).rstrip())
    if reading.runs > 1:
        parts.append(tr("the last of {runs} starts").format(runs=reading.runs))
    return ", ".join([*parts, understood])


def release(reading: LogReading) -> str:
    """The release, or the window of releases that print such lines."""
    if reading.version:
        return reading.version
    if reading.since and reading.until:
        return tr("{since} to {until}").format(since=reading.since, until=reading.until)
    if reading.since:
        return tr("{since} or later").format(since=reading.since)
    return tr("{until} or earlier").format(until=reading.until) if reading.until else ""


def runtime_name(key: str) -> str:
    """The runtime as its makers write it."""
    if key in registry.RUNTIMES:
        return registry.get(key).label
    return {"tensorrt-llm": "TensorRT-LLM", "lmstudio": "LM Studio"}.get(key, key)
