"""The terminal commands. Nothing below this package imports Qt or waits for a network."""

from __future__ import annotations

from engine.cli.entry import main

__all__ = ["main"]
