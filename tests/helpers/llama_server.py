"""The HTTP server of a real llama.cpp, in a process that looks like ``llama-server``.

The wheel ``xllamacpp`` has the server as a library. A Python under the name ``llama-server`` runs
it as it starts, before it would look at its own options, so that the command line is the one that
the program itself would have.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

from tests.helpers.synthetic_gguf import Dense

if TYPE_CHECKING:
    from collections.abc import Iterator

TINY = Dense("llama", 4, 256, 512, 8, 4, 32, 512, 8192)
"""Small enough to be loaded and run in a moment on one core."""
_STARTS_WITHIN_S = 90
_CUSTOMIZE = """\
import os, sys, threading
words = sys.orig_argv[1:]
if words[:1] == ["-m"]:
    import xllamacpp
    given = dict(zip(words[0::2], words[1::2]))
    p = xllamacpp.CommonParams()
    p.model.path = given["-m"]
    p.n_ctx = int(given.get("-c", 1024))
    p.n_parallel = int(given.get("-np", 1))
    p.port = int(given["--port"])
    p.endpoint_metrics = p.endpoint_slots = p.endpoint_props = True
    p.warmup = False
    p.fit_params = False
    if "-lv" in given:
        p.verbosity = int(given["-lv"])
    if "--api-key" in given:
        p.api_keys = [given["--api-key"]]
    p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(p)
    threading.Event().wait()
"""


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(
    gguf: Path, folder: Path, *options: str, log: Path | None = None
) -> Iterator[tuple[int, int]]:
    """A server of ``gguf`` until the end of the block: its process and its port.

    What it prints goes to ``log``, all of it that llama.cpp has with ``-lv 4``.
    """
    port = free_port()
    program = _program(folder)
    command = [str(program), "-m", str(gguf), "--port", str(port), *options]
    paths = os.pathsep.join((str(folder), sysconfig.get_path("purelib")))
    with (log or Path(os.devnull)).open("wb") as printed:
        child = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
            stdout=printed, stderr=printed,
        )  # fmt: skip
    try:
        _wait(child, port)
        yield child.pid, port
    finally:
        child.kill()
        child.wait()


def _program(folder: Path) -> Path:
    (folder / "sitecustomize.py").write_text(_CUSTOMIZE, encoding="utf-8")
    (folder / "bin").mkdir(exist_ok=True)
    program = folder / "bin" / "llama-server"
    if not program.exists():
        program.symlink_to(Path(sys.executable).resolve())
    return program


def _wait(child: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < until:
        if child.poll() is not None:
            raise RuntimeError(f"llama-server ended with {child.returncode}")
        connection = HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.05)
    raise TimeoutError("llama-server did not answer")
