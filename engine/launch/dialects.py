"""The dialect of each runtime that is started by a command, loaded when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.launch.dialect import Dialect


def _vllm() -> Dialect:
    from engine.launch.vllm import DIALECT  # noqa: PLC0415 - see _MAKERS

    return DIALECT


def _sglang() -> Dialect:
    from engine.launch.sglang import DIALECT  # noqa: PLC0415 - see _MAKERS

    return DIALECT


def _llama_cpp() -> Dialect:
    from engine.launch.llama_cpp import DIALECT  # noqa: PLC0415 - see _MAKERS

    return DIALECT


def _ollama() -> Dialect:
    from engine.launch.ollama import DIALECT  # noqa: PLC0415 - see _MAKERS

    return DIALECT


def _mlx() -> Dialect:
    from engine.launch.mlx import DIALECT  # noqa: PLC0415 - see _MAKERS

    return DIALECT


def _transformers() -> Dialect:
    from engine.launch.transformers import DIALECT  # noqa: PLC0415 - see _MAKERS

    return DIALECT


_MAKERS: Mapping[str, Callable[[], Dialect]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "llama.cpp": _llama_cpp,
    "ollama": _ollama,
    "mlx": _mlx,
    "transformers": _transformers,
}
"""Each loads its runtime's rules, of which one command needs those of one."""


def of(runtime: str) -> Dialect | None:
    """How ``runtime`` is started; None where it is a program with settings of its own."""
    make = _MAKERS.get(runtime)
    return make() if make is not None else None
