"""How the commands reach the Hub: only when asked for a model that is nowhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from engine.source.hub import HubClient


def opener(options: argparse.Namespace) -> Callable[[], HubClient] | None:
    """What opens the Hub when it is needed; None where the user said ``--offline``."""
    if options.offline or os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes"}:
        return None

    def open_hub() -> HubClient:
        from engine.source.access import Access  # noqa: PLC0415 - slow, and seldom needed
        from engine.source.hub import HubClient  # noqa: PLC0415 - see above

        client = HubClient(endpoint=options.endpoint or os.environ.get("HF_ENDPOINT") or None)
        # A login goes to the Hub that it is for, never to whatever address the user names here.
        client.access = Access(client.endpoint)
        return client

    return open_hub
