"""SGLang: weights and pool take a fixed share of the free memory, the rest is for its work."""

from __future__ import annotations

from engine.runtimes.sglang.runtime import Sglang

__all__ = ["Sglang"]
