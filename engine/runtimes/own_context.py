"""Whether a runtime has a context of its own for a plan that asks for none."""

from __future__ import annotations

from engine.deployment.spec import Deployment
from engine.runtimes import front_ends
from engine.runtimes.llama_cpp.settings import chosen_cells

_STATED = frozenset({"ollama"})
"""Runtimes whose documents name one, whatever the model: Ollama's goes by the GPUs' memory."""
_NONE = frozenset({"transformers", "mlx"})
"""Runtimes without a context setting: they reserve nothing ahead."""


def has_own_context(name: str, version: str | None) -> bool:
    """Whether the length is the runtime's own, and not the most that the model takes.

    vLLM, SGLang and TGI reserve for the model's whole length where nobody says otherwise, and
    llama.cpp does since it has ``--fit``; before, it took 4,096 tokens.

    Raises:
        DeploymentError: the version is no build of llama.cpp.
    """
    if name == "llama.cpp":
        return chosen_cells(Deployment(runtime=name, runtime_version=version)) is not None
    return name in _STATED or name in _NONE or front_ends.states(name, "max_model_len")


def is_stated(name: str) -> bool:
    """Whether that length is the runtime's word, and not an assumption for want of one."""
    return name not in _NONE
