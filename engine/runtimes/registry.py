"""The runtimes that can be chosen."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.runtimes.llama_cpp import LlamaCpp
from engine.runtimes.transformers import Transformers
from engine.runtimes.vllm import Vllm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.runtimes.base import Runtime

_RUNTIMES: tuple[Runtime, ...] = (Vllm(), LlamaCpp(), Transformers())
RUNTIMES: Mapping[str, Runtime] = MappingProxyType({r.name: r for r in _RUNTIMES})
"""Every runtime by its key in the machine contract."""

_LATER = MappingProxyType({"sglang": "SGLang", "ollama": "Ollama", "mlx": "MLX"})


def get(name: str) -> Runtime:
    """The runtime called ``name``.

    Raises:
        DeploymentError: there is no such runtime, or it can't be planned yet.
    """
    found = RUNTIMES.get(name)
    if found is not None:
        return found
    choices = ", ".join(RUNTIMES)
    if name in _LATER:
        message = f"{_LATER[name]} can't be planned yet; choose one of {choices}."
    else:
        message = f"{name!r} is no runtime known here; choose one of {choices}."
    raise DeploymentError(message, field="runtime")
