"""Machines elsewhere, watched through the address of an exporter or a Prometheus server."""

from __future__ import annotations

from engine.devices import catalogue
from engine.telemetry.adapters.prometheus import PrometheusAdapter
from engine.telemetry.probe import LiveSampler

_DEADLINE_S = 6.0
"""A scrape is bounded to 5 s; nothing else waits for it."""


def sampler(address: str) -> LiveSampler:
    """A sampler over what the server at ``address`` tells.

    Raises:
        TelemetryError: it is no address.
    """
    return LiveSampler((adapter(address),), _DEADLINE_S, _DEADLINE_S)


def adapter(address: str) -> PrometheusAdapter:
    """What reads the server at ``address``.

    Raises:
        TelemetryError: it is no address.
    """
    return PrometheusAdapter(address, card_total_bytes)


def card_total_bytes(name: str, seen_bytes: int) -> int | None:
    """A card's total from the catalogue, where that has it and it is not less than was seen."""
    known = catalogue.match(name, seen_bytes)
    return known.total_bytes if known and known.total_bytes >= seen_bytes else None
