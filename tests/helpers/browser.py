"""What tests of the browser ask of it."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel

from gui.browser.rows import ROW_ROLE


def settle(qtbot, view):
    qtbot.waitUntil(lambda: view.model.is_settled, timeout=20_000)


def shown(view):
    model = view.list.model()
    return [model.index(n).data(ROW_ROLE).key for n in range(model.rowCount())]


def words(view):
    message = view.findChild(QLabel, "title"), view.findChild(QLabel, "detail")
    return " | ".join(part.text() for part in message)
