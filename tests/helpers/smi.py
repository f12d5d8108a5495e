"""Builds the stand-in for AMD's and Intel's management libraries, and the state that drives it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("smi_stubs.c")
STATE = "SMI_STUB_STATE"


def build(folder: Path) -> Path:
    """Compile the library into ``folder``."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("the stand-in for AMD's and Intel's libraries needs a C compiler")
    target = folder / "libsmi_stubs.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", target, SOURCE], check=True)
    return target


class Smi:
    """The library's path and what it answers from; every change is seen by the next call."""

    def __init__(self, library: Path, state: Path) -> None:
        self.path = str(library)
        self._state = state
        self._keys: dict[str, object] = {}
        self.set()

    @property
    def calls(self) -> int:
        """How often it was opened or asked for its GPUs, since it was loaded."""
        return ctypes.CDLL(self.path).stub_calls()

    def set(self, **keys: object) -> None:
        """Change keys of the library as a whole (``init``, ``hang``)."""
        self._keys.update(keys)
        text = "".join(f"{key} {value}\n" for key, value in self._keys.items())
        whole = self._state.with_suffix(".new")
        whole.write_text(text, encoding="utf-8")
        whole.replace(self._state)

    def gpu(self, index: int, address: str, **fields: object) -> None:
        """Add or change a GPU; ``vram`` and ``gtt`` are ``total:used`` in bytes."""
        domain, bus, place = address.split(":")
        device, function = place.split(".")
        bdf = int(domain, 16) << 16 | int(bus, 16) << 8 | int(device, 16) << 3 | int(function, 16)
        named = {f"gpu{index}.{key}": value for key, value in {"bdf": bdf, **fields}.items()}
        self.set(gpus=max(int(str(self._keys.get("gpus", 0))), index + 1), **named)
