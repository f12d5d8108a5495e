"""Take the pictures of the documents from the real window: ``python packaging/pictures.py``.

Wants a display of at least 1440 × 900 (``xvfb-run -a -s "-screen 0 1440x900x24"``), ``pdftoppm``,
and the tools of the tests: the picture of a run is a real llama.cpp server on this computer, with a
made model. Models and devices of the others come from the bundled catalogues. Names tell which to
take; without any, all are.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEventLoop, QTimer

from engine.architecture.read import read
from engine.cancel import CancelToken
from engine.formats.mix_rules import MixFacts
from engine.formats.mixes import mix_types
from engine.seen.load_driver import Load, LoadDriver
from engine.source import catalogue, files
from engine.telemetry.address import Address
from gui.app import App, Options, make_application
from tests.helpers import synthetic_gguf
from tests.helpers.llama_server import serving
from tests.helpers.logs import TAKEN

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = (1440, 900)
SETTLE_MS = 1500
_PNG_SMALLEST = 0
"""Qt's quality of a PNG is how little it is packed."""
_RUN = synthetic_gguf.Dense("llama", 16, 1024, 4096, 16, 8, 64, 32000, 131072)
_RUN_TOKENS = 131_072


def main(names: list[str]) -> int:
    """One window a picture, each with settings of its own."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    application = make_application(["plimsoll"])
    apps: list[App] = []
    for name, scheme, arrange in (
        ("window-light", "light", _fits),
        ("does-not-fit-dark", "dark", _does_not_fit),
        ("fit-map-light", "light", _fit_map),
        ("overlay-light", "light", _overlay),
        ("log-light", "light", _log),
    ):
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            options = Options(offline=True, scheme=scheme, settings_folder=Path(folder))
            app = App(application, options)
            # One that is let go while the next runs would still be called.
            apps.append(app)
            app.start()
            app.window.resize(*SIZE)
            app.window.move(0, 0)
            _wait(SETTLE_MS)
            arrange(app, lambda app=app, name=name: _take(app, name))
            app.window.close()
    if not names or "report" in names:
        _report()
    return 0


def _wait(milliseconds: int) -> None:
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def _take(app: App, name: str) -> None:
    app.window.grab().save(str(FOLDER / f"{name}.png"), "PNG", _PNG_SMALLEST)
    print(f"{name}.png")


def _load(app: App, name: str) -> None:
    entry = catalogue.find(name)
    if entry is None:
        message = f"{name} is not in the catalogue"
        raise SystemExit(message)
    app.model.load(read(catalogue.raw(entry)))


def _fits(app: App, take: Callable[[], None]) -> None:
    app.view.tabs.open(0)
    _wait(4 * SETTLE_MS)
    take()


def _does_not_fit(app: App, take: Callable[[], None]) -> None:
    _load(app, "meta-llama/Llama-3.1-8B-Instruct")
    app.model.choose_device("RTX 4090")
    app.model.choose_runtime("vllm", None)
    app.model.edit("context", max_model_len=8192)
    app.model.edit("concurrency", concurrency=16)
    app.view.tabs.open(0)
    _wait(SETTLE_MS)
    take()


def _fit_map(app: App, take: Callable[[], None]) -> None:
    _load(app, "Qwen/Qwen3-8B")
    app.model.choose_device("2 x RTX 3090")
    app.model.choose_runtime("sglang", None)
    app.model.edit("tp", tensor_parallel_size=2)
    app.view.tabs.open_page(app.view.fit_map)
    _wait(4 * SETTLE_MS)
    take()


def _overlay(app: App, take: Callable[[], None]) -> None:
    """A server is started, loads, answers, and is watched over its plan."""
    app.welcome.dismiss()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        path = Path("made-llama-0.3B-Q4_K_M.gguf")
        facts = MixFacts(_RUN.architecture, _RUN.layers, _RUN.heads, _RUN.kv_heads)
        types = mix_types("Q4_K_M", _RUN.tensors(), facts)
        synthetic_gguf.write(_RUN, types, path, speaks=True)
        app.model.load(read(files.read(path, CancelToken())))
        app.model.choose_runtime("llama.cpp", None)
        plan = {"n_ctx": _RUN_TOKENS, "n_parallel": 2, "concurrency": 2, "cache_ram_bytes": 0}
        app.model.edit("run", max_model_len=_RUN_TOKENS // 2, **plan)
        app.view.tabs.open_page(app.holds)
        _wait(20_000)
        with serving(path, Path(folder), "-c", str(_RUN_TOKENS), "-np", "2") as (_, port):
            _wait(12_000)
            load = Load(prompt_tokens=600, output_tokens=60, requests=8, concurrency=2)
            driver = LoadDriver(Address("127.0.0.1", port), path.stem, load)
            token = CancelToken()
            thread = threading.Thread(target=driver.run, args=(token,))
            thread.start()
            _wait(30_000)
            take()
            token.cancel()
            thread.join()


def _log(app: App, take: Callable[[], None]) -> None:
    _load(app, "meta-llama/Llama-3.1-8B-Instruct")
    app.model.choose_device("RTX 4090")
    app.model.choose_runtime("vllm", None)
    app.diagnosing.read(TAKEN)
    _wait(2 * SETTLE_MS)
    take()


def _report() -> None:
    """The first page of a report, as it is printed."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "plan.pdf"
        model = ["meta-llama/Llama-3.1-8B-Instruct", "--gpu", "RTX 4090", "--context", "8k"]
        command = [sys.executable, "-m", "gui", "report", *model, "--offline", "-o", str(made)]
        subprocess.run(command, check=True)
        page = ["-f", "1", "-l", "1", "-r", "90", "-singlefile", "-png"]
        subprocess.run(["pdftoppm", *page, str(made), str(FOLDER / "report-page1")], check=True)
    print("report-page1.png")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
