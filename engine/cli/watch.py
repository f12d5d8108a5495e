"""``plimsoll watch``: the devices, sample after sample; recorded or replayed on request."""

from __future__ import annotations

import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli import streams
from engine.cli.encode import encode
from engine.cli.look import Look, fitted, wrapped
from engine.cli.runtimes_text import Seer, described
from engine.contract.machine import sample_answer
from engine.devices import elsewhere, plain
from engine.devices.here import this_machine
from engine.errors import UsageError
from engine.telemetry.probe import open_sampler, simulated_sampler
from engine.telemetry.record import Recorder, Replay
from engine.telemetry.snapshot import Missing
from engine.units import format_bytes, format_gib

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from engine.telemetry.probe import LiveSampler
    from engine.telemetry.snapshot import DeviceReading, ProcessReading, TelemetrySnapshot

_MOST_PROCESSES = 5
_USUAL = 100
"""Columns from which on the names of devices stand in one of their own."""
_KEPT_EVERY_S = 15.0
"""How often most servers look at their exporters."""


def run(options: argparse.Namespace) -> int:
    """Write samples until the count is reached, the recording ends, or Ctrl+C."""
    output = streams.output()
    look = Look.of(output)
    if (options.since or options.until) and not options.prometheus:
        message = "--since and --until are for --prometheus: only a server keeps what was."
        raise UsageError(message, field="since")
    if options.until and not options.since:
        raise UsageError("--until needs --since, the time to begin at.", field="until")
    if options.replay:
        samples = _replayed(options)
    else:
        samples = _kept(options) if options.since else _live(options)
    # What runs here now belongs to no recording and to no other computer.
    is_here = not (options.replay or options.prometheus or options.simulate)
    seer = Seer() if options.runtimes and is_here else None
    for number, snapshot in enumerate(samples, 1):
        seen = seer.look(snapshot) if seer is not None else None
        if options.jsonl:
            output.write(encode(sample_answer(snapshot, seen)) + "\n")
            output.flush()
        else:
            look.write(_describe(snapshot, look), output)
            look.write(described(seen, look) if seen else (), output)
        if options.count is not None and number >= options.count:
            break
    return 0


def _replayed(options: argparse.Namespace) -> Iterator[TelemetrySnapshot]:
    with closing(Replay(Path(options.replay))) as replay:
        yield from replay.snapshots()


def _kept(options: argparse.Namespace) -> Iterator[TelemetrySnapshot]:
    """What a Prometheus server has kept, recorded on request."""
    until_s = options.until or time.time()
    snapshots = elsewhere.adapter(options.prometheus).history(
        options.since, until_s, options.interval or _KEPT_EVERY_S
    )
    with _recorder(options, snapshots[-1]) as recorder:
        for snapshot in snapshots:
            if recorder is not None:
                recorder.write(snapshot)
            yield snapshot


def _recorder(
    options: argparse.Namespace, snapshot: TelemetrySnapshot
) -> AbstractContextManager[Recorder | None]:
    if not options.record:
        return nullcontext()
    machine = plain.to_dict(this_machine(snapshot))
    return closing(Recorder(Path(options.record), machine))


def _live(options: argparse.Namespace) -> Iterator[TelemetrySnapshot]:
    with closing(_sampler(options)) as sampler:
        snapshot = sampler.sample()
        due = time.monotonic()
        with _recorder(options, snapshot) as recorder:
            while True:
                if recorder is not None:
                    recorder.write(snapshot)
                yield snapshot
                pause_s = options.interval or sampler.interval_s
                due = max(due + pause_s, time.monotonic())
                time.sleep(max(due - time.monotonic(), 0))
                snapshot = sampler.sample()


def _sampler(options: argparse.Namespace) -> LiveSampler:
    if options.prometheus:
        return elsewhere.sampler(elsewhere.adapter(options.prometheus))
    return simulated_sampler() if options.simulate else open_sampler()


def _describe(snapshot: TelemetrySnapshot, look: Look) -> Iterator[str]:
    clock = time.strftime("%H:%M:%S", time.localtime(snapshot.wall_time_s))
    margin = " " * len(clock)
    for index, reading in enumerate(snapshot.devices):
        first, *more = wrapped(
            _line(reading, look), look.width, first=f"{margin}  ", rest=f"{margin}  "
        )
        yield look.faint(margin if index else clock) + first[len(clock) :]
        yield from more
        for used, process in _largest(reading):
            named = f"{process.name} ({process.pid})" if process.pid else process.name
            name = fitted(named, min(34, look.width - len(clock) - 4 - 13))
            yield look.faint(f"{margin}    {name}{fitted(format_bytes(used), 13, right=True)}")


def _largest(reading: DeviceReading) -> list[tuple[int, ProcessReading]]:
    """The processes that are known to hold most."""
    processes = () if isinstance(reading.processes, Missing) else reading.processes
    held = [(p.used_bytes, p) for p in processes if not isinstance(p.used_bytes, Missing)]
    return sorted(held, key=lambda pair: pair[0], reverse=True)[:_MOST_PROCESSES]


def _line(reading: DeviceReading, look: Look) -> str:
    figures = (("used", reading.used_bytes), ("free", reading.free_bytes))
    parts = [f"{word} {_shown(size)}" for word, size in figures]
    name = fitted(reading.name, 36) if look.width >= _USUAL else f"{reading.name} "
    return f"{name}{' · '.join(parts)} of {_shown(reading.total_bytes)}"


def _shown(size: int | Missing) -> str:
    return f"unknown ({size.reason})" if isinstance(size, Missing) else format_gib(size)
