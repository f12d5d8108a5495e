"""Builds the stand-in for NVIDIA's library and puts nvidia-ml-py, unmodified, on it."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pynvml
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 2**20
SOURCE = Path(__file__).with_name("nvml_stub.c")
STATE = "NVML_STUB_STATE"


def build(folder: Path, *flags: str) -> Path:
    """Compile the library into ``folder``."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("the stand-in for NVIDIA's library needs a C compiler")
    target = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", *flags, "-o", target, SOURCE], check=True)
    return target


class Gpus:
    """The state that the library answers from; every change is seen by the next call."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._keys: dict[str, object] = {"driver": "580.126.09", "gpus": 0}

    def set(self, **keys: object) -> None:
        """Change keys of the library as a whole (``init``, ``hang``, ``generation``, ``v2``)."""
        self._keys.update(keys)
        self._write()

    def remove(self, *keys: str) -> None:
        """Forget keys of the library."""
        for key in keys:
            self._keys.pop(key, None)
        self._write()

    def card(self, index: int, **fields: object) -> None:
        """Add or change a card; sizes in bytes."""
        self._keys["gpus"] = max(int(str(self._keys["gpus"])), index + 1)
        self._keys.update({f"gpu{index}.{name}": value for name, value in fields.items()})
        self._write()

    def rtx4090(self, index: int = 0, used: object = 0, **fields: object) -> None:
        """A card of 24,564 MiB of which the driver keeps 370."""
        given = {
            "name": "NVIDIA GeForce RTX 4090",
            "total": 24564 * MIB,
            "reserved": 370 * MIB,
            "used": used,
            "cc": 89,
            "cores": 16384,
        }
        self.card(index, **(given | fields))

    def _write(self) -> None:
        text = "".join(f"{key} {value}\n" for key, value in self._keys.items())
        whole = self._state.with_suffix(".new")
        whole.write_text(text, encoding="utf-8")
        whole.replace(self._state)


@contextmanager
def loaded(library: Path, folder: Path) -> Iterator[Gpus]:
    """nvidia-ml-py on ``library`` in this process, and the state to drive it."""
    state = folder / "nvml-state"
    gpus = Gpus(state)
    gpus.set()
    before = pynvml.nvmlLib
    os.environ[STATE] = str(state)
    pynvml._nvmlGetFunctionPointer_cache.clear()
    pynvml.nvmlLib = ctypes.CDLL(str(library))
    try:
        yield gpus
    finally:
        gpus.remove("hang")
        pynvml.nvmlLib = before
        pynvml._nvmlGetFunctionPointer_cache.clear()
        del os.environ[STATE]
