"""llama.cpp: every buffer it allocates, from a GGUF header or from a mix."""

from __future__ import annotations

from engine.runtimes.llama_cpp.runtime import LlamaCpp, file_bytes, placements, shape_of

__all__ = ["LlamaCpp", "file_bytes", "placements", "shape_of"]
