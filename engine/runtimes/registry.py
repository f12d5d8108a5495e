"""The runtimes that can be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.errors import DeploymentError
from engine.words import tr

if TYPE_CHECKING:
    from engine.runtimes.base import Runtime


def _vllm() -> Runtime:
    from engine.runtimes.vllm import Vllm  # noqa: PLC0415 - see _Runtimes

    return Vllm()


def _sglang() -> Runtime:
    from engine.runtimes.sglang import Sglang  # noqa: PLC0415 - see _Runtimes

    return Sglang()


def _llama_cpp() -> Runtime:
    from engine.runtimes.llama_cpp import LlamaCpp  # noqa: PLC0415 - see _Runtimes

    return LlamaCpp()


def _ollama() -> Runtime:
    from engine.runtimes.ollama import Ollama  # noqa: PLC0415 - see _Runtimes

    return Ollama()


def _front_end(name: str) -> Callable[[], Runtime]:
    def made() -> Runtime:
        from engine.runtimes.front_ends import FrontEnd  # noqa: PLC0415 - see _Runtimes

        return FrontEnd(name)

    return made


def _transformers() -> Runtime:
    from engine.runtimes.transformers import Transformers  # noqa: PLC0415 - see _Runtimes

    return Transformers()


def _mlx() -> Runtime:
    from engine.runtimes.mlx import Mlx  # noqa: PLC0415 - see _Runtimes

    return Mlx()


_FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "ollama": "llama.cpp",
        "lmstudio": "llama.cpp",
        "jan": "llama.cpp",
        "koboldcpp": "llama.cpp",
        "llamafile": "llama.cpp",
        "ik_llama.cpp": "llama.cpp",
        "tgi": "vllm",
    }
)
"""Runtimes that run another one, or are made from it -> the one whose rules they have."""
_FRONT_ENDS = tuple(name for name in _FAMILIES if name != "ollama")
_MAKERS: Mapping[str, Callable[[], Runtime]] = MappingProxyType(
    {
        "vllm": _vllm,
        "sglang": _sglang,
        "llama.cpp": _llama_cpp,
        "ollama": _ollama,
        "transformers": _transformers,
        "mlx": _mlx,
    }
    | {name: _front_end(name) for name in _FRONT_ENDS}
)


@cache
def _made(name: str) -> Runtime:
    return _MAKERS[name]()


class _Runtimes(Mapping[str, "Runtime"]):
    """Loads a runtime's rules when they are first asked for: one sizing needs one of them."""

    def __getitem__(self, name: str) -> Runtime:
        return _made(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_MAKERS)

    def __len__(self) -> int:
        return len(_MAKERS)


RUNTIMES: Mapping[str, Runtime] = _Runtimes()
"""Every runtime by its key in the machine contract."""


def family(name: str) -> str:
    """The runtime whose rules ``name`` follows: ``llama.cpp`` for what runs it, else itself."""
    return _FAMILIES.get(name, name)


def get(name: str) -> Runtime:
    """The runtime called ``name``.

    Raises:
        DeploymentError: there is no such runtime.
    """
    found = RUNTIMES.get(name)
    if found is not None:
        return found
    choices = ", ".join(RUNTIMES)
    message = tr("{name!r} is no runtime known here; choose one of {choices}.").format(
        name=name, choices=choices
    )
    raise DeploymentError(message, field="runtime")
