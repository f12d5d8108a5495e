"""Machines elsewhere, watched through the address of an exporter or a Prometheus server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.devices import catalogue
from engine.telemetry.adapters.prometheus import PrometheusAdapter
from engine.telemetry.probe import LiveSampler

if TYPE_CHECKING:
    from collections.abc import Callable


def sampler(address: str, is_offline: Callable[[], bool] = lambda: False) -> LiveSampler:
    """A sampler over what the server at ``address`` tells.

    Args:
        address: as its user typed it.
        is_offline: whether nothing but this computer may be asked now.

    Raises:
        EndpointError: it is no address.
    """
    made = adapter(address, is_offline)
    return LiveSampler((made,), opening_s=made.patience_s)


def adapter(address: str, is_offline: Callable[[], bool] = lambda: False) -> PrometheusAdapter:
    """What reads the server at ``address``.

    Raises:
        EndpointError: it is no address.
    """
    return PrometheusAdapter(address, card_total_bytes, is_offline)


def card_total_bytes(name: str, seen_bytes: int) -> int | None:
    """A card's total from the catalogue, where that has it and it is not less than was seen."""
    known = catalogue.match(name, seen_bytes)
    return known.total_bytes if known and known.total_bytes >= seen_bytes else None
