"""llama.cpp's buffer lines: passes that are only tried, and models that stand side by side.

Where it looks for what fits, llama.cpp prints a whole set of lines, with weights of 0 MiB, before
the set that counts; a draft model prints one too, which adds to the first. The file that is read
tells them apart: the same file begins a new pass, another file a second model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.logs.reading import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator

_KINDS = {
    "model": "weights",
    "KV": "kv_pool",
    "RS": "state",
    "compute": "compute",
    "output": "output",
}
_LOADING = frozenset({"llm_load_tensors", "load_tensors"})
_ADDING = frozenset({"kv_pool", "state"})
"""Kinds of which one context may have several on a device: full and sliding layers."""
_SUFFIXES = ("_Mapped", "_Private", "_Split")
_HOST = frozenset({"CPU", "BLAS", "AMX", "Host"})

Key = tuple[str, str, str]


def device_of(name: str) -> str:
    """The device that a buffer of ``name`` lies on: ``CPU_Mapped`` is the CPU's."""
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def is_host(device: str) -> bool:
    """Whether ``device`` is the computer's own memory."""
    return device in _HOST or device.startswith("CPU_") or device.endswith("_Host")


class Buffers:
    """Takes the lines in order, keeps one set a model."""

    def __init__(self) -> None:
        self._models: list[dict[Key, Fact]] = []
        self._file = ""
        self._is_new = True
        self._other_file = True
        self._last: Key | None = None

    def read_file(self, name: str) -> None:
        """A model file is opened."""
        self._other_file = name != self._file
        self._file = name
        self._is_new = True

    def take(self, component: str, device: str, kind: str | None, found: Fact) -> None:
        """One line: ``load_tensors: CUDA0 model buffer size = 5,120 MiB``."""
        name = _KINDS.get(kind or "", "weights" if component in _LOADING else "compute")
        key = (device_of(device), name, component)
        # Of a model in several files each is a line of its own, one after the other.
        is_next_file = key == self._last and not self._is_new
        if component in _LOADING and (
            self._is_new or (self._models and key in self._current and not is_next_file)
        ):
            self._begin()
        self._last = key
        if not self._models:
            self._models.append({})
        known = self._current.get(key)
        if known is not None and (name in _ADDING or (is_next_file and component in _LOADING)):
            size = known.size_bytes + found.size_bytes
            found = Fact(name, size, found.line, known.half_bytes + found.half_bytes)
        self._current[key] = Fact(name, found.value, found.line, found.half_bytes)

    @property
    def is_known(self) -> bool:
        """Whether there was any."""
        return bool(self._models)

    def _begin(self) -> None:
        if self._models and not (self._is_new and self._other_file):
            self._models.pop()
        self._models.append({})
        self._is_new = False
        self._other_file = False

    @property
    def _current(self) -> dict[Key, Fact]:
        return self._models[-1]

    def totals(self) -> Iterator[tuple[str, str, Fact]]:
        """Device, kind and sum over all models and components."""
        sums: dict[tuple[str, str], Fact] = {}
        for model in self._models:
            for (device, name, _), fact in model.items():
                known = sums.get((device, name))
                size, half = fact.size_bytes, fact.half_bytes
                if known is not None:
                    size, half = size + known.size_bytes, half + known.half_bytes
                sums[device, name] = Fact(name, size, fact.line, half)
        for (device, name), fact in sums.items():
            yield device, name, fact
