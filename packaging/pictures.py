"""Take the pictures of the README from the real window: ``python packaging/pictures.py``.

Wants a display of at least 1440 × 900 (``xvfb-run -a -s "-screen 0 1440x900x24"``). Models and
devices come from the bundled catalogues; the live picture shows this computer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PySide6.QtCore import QTimer

from engine.architecture.read import read
from engine.source import catalogue
from gui.app import App, Options, make_application

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
SIZE = (1440, 900)
SETTLE_MS = 1500


def main() -> int:
    """One window a picture, each with settings of its own."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    application = make_application(["plimsoll"])
    apps: list[App] = []
    for name, scheme, arrange, wait_ms in (
        ("window-light", "light", _fits, 6000),
        ("does-not-fit-dark", "dark", _does_not_fit, SETTLE_MS),
        ("fit-map-light", "light", _fit_map, 6000),
        ("live-light", "light", _live, 6000),
    ):
        with tempfile.TemporaryDirectory() as folder:
            options = Options(offline=True, scheme=scheme, settings_folder=Path(folder))
            app = App(application, options)
            # One that is let go while the next runs would still be called.
            apps.append(app)
            app.start()
            app.window.resize(*SIZE)
            app.window.move(0, 0)
            QTimer.singleShot(SETTLE_MS, app, lambda app=app, arrange=arrange: arrange(app))
            QTimer.singleShot(SETTLE_MS + wait_ms, app, application.quit)
            application.exec()
            app.window.grab().save(str(FOLDER / f"{name}.png"))
            app.window.close()
            print(f"{name}.png")
    return 0


def _load(app: App, name: str) -> None:
    entry = catalogue.find(name)
    if entry is None:
        message = f"{name} is not in the catalogue"
        raise SystemExit(message)
    app.model.load(read(catalogue.raw(entry)))


def _fits(app: App) -> None:
    app.view.tabs.open(0)


def _does_not_fit(app: App) -> None:
    _load(app, "meta-llama/Llama-3.1-8B-Instruct")
    app.model.choose_device("RTX 4090")
    app.model.choose_runtime("vllm", None)
    app.model.edit("context", max_model_len=8192)
    app.model.edit("concurrency", concurrency=16)
    app.view.tabs.open(0)


def _fit_map(app: App) -> None:
    _load(app, "Qwen/Qwen3-8B")
    app.model.choose_device("2 x RTX 3090")
    app.model.choose_runtime("sglang", None)
    app.model.edit("tp", tensor_parallel_size=2)
    app.view.tabs.open_page(app.view.fit_map)


def _live(app: App) -> None:
    app.view.tabs.open_page(app.holds)


if __name__ == "__main__":
    raise SystemExit(main())
