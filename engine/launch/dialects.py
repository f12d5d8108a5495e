"""The dialect of each runtime that is started by a command, loaded when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.launch.dialect import Dialect

_MODULES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llama.cpp": "llama_cpp",
    "ollama": "ollama",
    "mlx": "mlx",
    "transformers": "transformers",
}


def of(runtime: str) -> Dialect | None:
    """How ``runtime`` is started; None where it is a program with settings of its own."""
    module = _MODULES.get(runtime)
    if module is None:
        return None
    dialect: Dialect = import_module(f"engine.launch.{module}").DIALECT
    return dialect
