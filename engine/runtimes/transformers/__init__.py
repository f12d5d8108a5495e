"""Transformers: allocates as it goes, so the plan is the peak of a generation."""

from __future__ import annotations

from engine.runtimes.transformers.runtime import Transformers

__all__ = ["Transformers"]
