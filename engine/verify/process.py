"""Another Python's process: started with its own libraries, ended when it is left."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "LIBPATH")


@contextmanager
def started(command: list[str], streams: int) -> Generator[subprocess.Popen[str]]:
    """Start ``command`` with stdin and stdout at ``streams``; it is killed at the end.

    Raises:
        OSError: it cannot be started.
    """
    with subprocess.Popen(  # noqa: S603 - a Python that the user named or has on the path
        command,
        stdin=streams,
        stdout=streams,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=_environment(os.environ),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Ours, less the libraries of a packaged program, which it puts before the system's own."""
    given = dict(ours)
    if getattr(sys, "frozen", False):
        for name in _LIBRARY_PATHS:
            given.pop(name, None)
            if original := given.pop(f"{name}_ORIG", ""):
                given[name] = original
    return given
