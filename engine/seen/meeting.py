"""What answers at an address that was typed: machines to watch, or a runtime to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.devices import elsewhere
from engine.errors import TelemetryError
from engine.seen import identify
from engine.seen.asker import Asker, KeyWantedError
from engine.seen.model import Reach
from engine.telemetry.address import Address, parsed
from engine.telemetry.wire import Asking

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.cancel import CancelToken
    from engine.telemetry.probe import LiveSampler
    from engine.telemetry.snapshot import TelemetrySnapshot


@dataclass(frozen=True, slots=True)
class Met:
    """Of the three, one: a machine's sampler with its first sample, several machines, a runtime."""

    address: Address
    sampler: LiveSampler | None = None
    first: TelemetrySnapshot | None = None
    machines: tuple[str, ...] = ()
    """Names of the machines that it tells of, where there are several to choose from."""
    runtime: str = ""
    """What is to be read of a runtime: its label."""


def meet(
    typed: str, token: CancelToken, is_offline: Callable[[], bool], machine: str | None = None
) -> Met:
    """Ask an address for the first time. Takes up to ten seconds.

    Args:
        typed: the address as its user wrote it.
        token: asks the meeting to stop.
        is_offline: whether nothing but this computer may be asked now.
        machine: the one of several that is meant, which may have no name; None for all.

    Raises:
        EndpointError: it is no address.
        TelemetryError: nothing answers there, or nothing that could be watched.
        JobCancelledError: the token was cancelled.
    """
    address = parsed(typed)
    token.raise_if_cancelled()
    adapter = elsewhere.adapter(typed, is_offline, machine)
    sampler = elsewhere.sampler(adapter)
    try:
        first = sampler.sample()
        token.raise_if_cancelled()
    except TelemetryError:
        sampler.close()
        runtime = ""
        if adapter.has_answered:
            runtime = _runtime(Asker(address, Asking(token, offline=is_offline())))
        if not runtime:
            raise
        return Met(address, runtime=runtime)
    except BaseException:
        sampler.close()
        raise
    names = sorted({device.machine for device in first.devices})
    if len(names) > 1:
        sampler.close()
        return Met(address, machines=tuple(names))
    return Met(address, sampler, first)


def _runtime(asker: Asker) -> str:
    """The name of the runtime that answers; empty where none does."""
    try:
        rows = identify.read(asker)
    except KeyWantedError:
        return ""
    heard = [row for row in rows if row.reach in {Reach.ANSWERS, Reach.LOADING}]
    return heard[0].label if heard else ""
