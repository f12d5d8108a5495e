"""Machines elsewhere, watched through the address of an exporter or a Prometheus server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.devices import catalogue
from engine.telemetry.adapters.prometheus import PrometheusAdapter
from engine.telemetry.probe import LiveSampler

if TYPE_CHECKING:
    from collections.abc import Callable


def sampler(adapter: PrometheusAdapter) -> LiveSampler:
    """A sampler over what ``adapter`` reads."""
    return LiveSampler((adapter,), opening_s=adapter.patience_s)


def adapter(
    address: str, is_offline: Callable[[], bool] = lambda: False, machine: str | None = None
) -> PrometheusAdapter:
    """What reads the server at ``address``.

    Args:
        address: as its user typed it.
        is_offline: whether nothing but this computer may be asked now.
        machine: the one of several that is meant, which may have no name; None for all.

    Raises:
        EndpointError: it is no address.
    """
    return PrometheusAdapter(address, card_total_bytes, is_offline, machine)


def card_total_bytes(name: str, seen_bytes: int) -> int | None:
    """A card's total from the catalogue, where that has it and it is not less than was seen."""
    known = catalogue.match(name, seen_bytes)
    return known.total_bytes if known and known.total_bytes >= seen_bytes else None
