"""Every place of the window that can be opened, by name: rooms, tabs and dialogs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from engine.architecture.read import read
from engine.source import catalogue
from gui.browser.state import Source
from tests.helpers import logs
from tests.helpers.fake_hub import Repo
from tests.helpers.synthetic_gguf import Dense, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPOSITORY = "someone/tiny-GGUF"
_TINY = Dense("llama", 2, 256, 512, 4, 2, 64, 1024, 8192)
_PAGES = ("General", "Appearance", "Shortcuts", "Network", "Network activity", "Learned runs")


def _seen(qtbot, widget: QWidget) -> QWidget:
    qtbot.waitUntil(widget.isVisible, timeout=20_000)
    return widget


def _window(app, _qtbot) -> QWidget:
    return app.window


def _tab(key: str) -> Callable[..., QWidget]:
    def opened(app, qtbot) -> QWidget:
        app.window.commands[f"tab {key}"].trigger()
        _seen(qtbot, app.view.tabs.stack.currentWidget())
        return app.window

    return opened


def _dialog(key: str) -> Callable[..., QWidget]:
    """The dialog that a command opens."""

    def opened(app, qtbot) -> QWidget:
        before = _dialogs(app)
        app.window.commands[key].trigger()
        qtbot.waitUntil(lambda: bool(_dialogs(app) - before), timeout=20_000)
        return next(iter(_dialogs(app) - before))

    return opened


def _dialogs(app) -> set[QWidget]:
    return {d for d in app.window.findChildren(QDialog) if d.isVisible()}


def _page(title: str) -> Callable[..., QWidget]:
    def opened(app, qtbot) -> QWidget:
        app.preferring.dialog.open_page(title)
        return _seen(qtbot, app.preferring.dialog)

    return opened


def _simple(app, qtbot) -> QWidget:
    app.window.commands["view simple"].trigger()
    _seen(qtbot, app.view.strip.model_button)
    return app.window


def _map(app, qtbot) -> QWidget:
    root = _tab("map")(app, qtbot)
    _seen(qtbot, app.view.fit_map.map)
    return root


def _curve(app, qtbot) -> QWidget:
    root = _map(app, qtbot)
    app.view.fit_map.choice.buttons[-1].click()
    _seen(qtbot, app.view.fit_map.curve)
    return root


def _map_table(app, qtbot) -> QWidget:
    root = _map(app, qtbot)
    app.view.fit_map.as_table.click()
    return root


def _compared(app, qtbot) -> QWidget:
    app.window.commands["compare"].trigger()
    app.window.commands["double"].trigger()
    app.window.commands["compare"].trigger()
    _tab("compare")(app, qtbot)
    qtbot.waitUntil(lambda: len(app.compare.entries) == 2, timeout=20_000)
    return app.window


def _log(app, qtbot) -> QWidget:
    app.diagnosing.read(logs.TAKEN)
    qtbot.waitUntil(lambda: app.diagnosing.model.state is not None, timeout=20_000)
    _seen(qtbot, app.diagnosing.view)
    return app.window


def _beside(app, qtbot) -> QWidget:
    model = app.model.state.model.id
    other = next(row for row in app.browser.model.state.rows if row.key != model)
    app.window.commands["beside"].trigger()
    app.browser.model.choose(other.key)
    qtbot.waitUntil(lambda: bool(app.model.state.beside), timeout=20_000)
    _seen(qtbot, app.view.beside)
    return app.window


def _rail(app, qtbot) -> QWidget:
    app.window.resize(960, 600)
    _seen(qtbot, app.window.rail)
    return app.window


def _over(app, qtbot) -> QWidget:
    _rail(app, qtbot)
    app.window.show_browser()
    _seen(qtbot, app.browser)
    return app.window


def _expanded(app, qtbot) -> QWidget:
    app.window.commands["all models"].trigger()
    view = app.expanding.view
    _seen(qtbot, view)
    return app.window


def _found(app, qtbot):
    """The only repository of the Hub that ``a_repository`` fills, in the list."""
    app.browser.focus_search()
    app.browser.search.setText("")
    qtbot.keyClicks(app.browser.search, REPOSITORY)
    app.browser.model.set_source(Source.HUB)
    qtbot.waitUntil(lambda: _keys(app) == [REPOSITORY], timeout=20_000)
    qtbot.waitUntil(lambda: app.browser.model.is_settled, timeout=20_000)


def _keys(app) -> list[str]:
    return [row.key for row in app.browser.model.state.rows]


def _files(app, qtbot) -> QWidget:
    _found(app, qtbot)
    qtbot.keyClick(app.browser.search, Qt.Key.Key_Down)
    qtbot.keyClick(app.browser.list, Qt.Key.Key_Right)
    _seen(qtbot, app.browser.files.list)
    qtbot.waitUntil(lambda: app.browser.model.is_settled, timeout=20_000)
    return app.window


def _files_of_all(app, qtbot) -> QWidget:
    _found(app, qtbot)
    _expanded(app, qtbot)
    view = app.expanding.view
    view.table.look_at(REPOSITORY)
    block = view.detail.files
    _seen(qtbot, block.list_files)
    block.list_files.click()
    _seen(qtbot, block.panel.list)
    qtbot.waitUntil(lambda: app.browser.model.is_settled, timeout=20_000)
    return app.window


def a_repository(folder: Path) -> Repo:
    """Two quants of a small model, and a projector."""
    files = {"mmproj-F16.gguf": b"GGUF" + bytes(100)}
    for mix in ("Q4_0", "Q8_0"):
        types = {n: "F32" if n.endswith("norm.weight") else mix for n, _ in _TINY.tensors()}
        path = write(_TINY, types, folder / f"tiny-{mix}.gguf")
        files[path.name] = path.read_bytes()
    return Repo(REPOSITORY, files, facts={"gguf": {"total": 10**6}})


def _trouble(app, qtbot) -> QWidget:
    app.trouble.report_sentence("The file could not be read.")
    _seen(qtbot, app.trouble)
    return app.window


def _verify(app, qtbot) -> QWidget:
    app.model.load(read(catalogue.raw(catalogue.find("meta-llama/Llama-3.1-8B-Instruct"))))
    return _dialog("verify")(app, qtbot)


def _load(app, qtbot) -> QWidget:
    _tab("checklist")(app, qtbot)
    app.checking.view.buttons[1].click()
    return _seen(qtbot, app.checking.dialog)


PLACES: dict[str, Callable[..., QWidget]] = {
    "first start": _window,
    "regions": _tab("regions"),
    "rail": _rail,
    "browser over the centre": _over,
    "simple view": _simple,
    "fit map": _map,
    "curve": _curve,
    "fit map as table": _map_table,
    "compare, empty": _tab("compare"),
    "compare": _compared,
    "what holds it": _tab("holds"),
    "checklist": _tab("checklist"),
    "load": _load,
    "log, empty": _tab("log"),
    "log": _log,
    "beside": _beside,
    "expanded browser": _expanded,
    "trouble": _trouble,
    "all settings": _dialog("settings"),
    "launch command": _dialog("launch"),
    "command": _dialog("from command"),
    "by hand": _dialog("by hand"),
    "hardware": _dialog("hardware"),
    "verify": _verify,
    "access": _dialog("access"),
    "about": _dialog("about"),
    "commands": _dialog("commands"),
    "keys": _dialog("keys"),
    "terms": _dialog("terms"),
    **{f"settings, {title}": _page(title) for title in _PAGES},
}
"""What opens each place and returns the window it is in."""


ON_THE_HUB: dict[str, Callable[..., QWidget]] = {
    "files of a repository": _files,
    "files in all models": _files_of_all,
}
"""Those that need a Hub with ``a_repository``."""


def close(app) -> None:
    """Close the dialog that is open."""
    for dialog in _dialogs(app):
        dialog.close()
    QApplication.processEvents()
