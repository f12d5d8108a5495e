"""vLLM: takes a share of the device at start, and what is left of it becomes the KV pool."""

from __future__ import annotations

from engine.runtimes.vllm.runtime import Vllm

__all__ = ["Vllm"]
