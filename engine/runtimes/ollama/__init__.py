"""Ollama: what it hands to llama-server, and what that allocates."""

from __future__ import annotations

from engine.runtimes.ollama.runtime import Ollama

__all__ = ["Ollama"]
