"""About: the version, what it is built on, and under which licences."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

import resources
from engine.words import tr
from gui.kit.controls import label
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button
from gui.kit.icons import app_icon
from gui.kit.theme import text_scale

_BUILT_ON = ("PySide6-Essentials", "numpy", "pydantic", "huggingface_hub", "nvidia-ml-py", "psutil")
_WIDTH, _HEIGHT, _MARK = 520, 420, 48


def own_version() -> str:
    """The version of this program."""
    try:
        return version("plimsoll")
    except PackageNotFoundError:
        return "0.1.0"


class AboutDialog(GrowingDialog):
    """Opened with ``open()``; never blocks the window."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, _WIDTH, _HEIGHT)
        self.setObjectName("about")
        self.setWindowTitle(tr("About Plimsoll"))
        mark = QLabel()
        mark.setPixmap(app_icon().pixmap(QSize(_MARK, _MARK) * text_scale()))
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(label(f"Plimsoll {own_version()}", "title"))
        purpose = tr(
            "Will this model fit on this machine, where does every byte go, "
            "and is that what really happens?"
        )
        line = label(purpose, "secondary")
        line.setWordWrap(True)
        words.addWidget(line)
        promise = tr(
            "Apache License 2.0. Nothing is sent anywhere by itself: no telemetry, and no look for "
            "a newer version. The Hub is asked only when you search it or open a model of it."
        )
        told = label(promise, "small")
        told.setWordWrap(True)
        words.addWidget(told)
        head = QHBoxLayout()
        head.setSpacing(16)
        head.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)
        text = QPlainTextEdit(_versions_and_licences())
        text.setReadOnly(True)
        text.setAccessibleName(tr("Versions and licences"))
        column = QVBoxLayout()
        column.addLayout(head)
        column.addWidget(text, 1)
        self.lay_out(column, closing_row(leave_button(self, tr("Close"))))


def _versions_and_licences() -> str:
    lines = [f"Python {platform.python_version()}"]
    for name in _BUILT_ON:
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    lines += ["", tr("Qt for Python is used under the LGPL v3."), ""]
    folder = resources.path("licences")
    for licence in sorted(folder.iterdir(), key=lambda entry: entry.name):
        lines += [licence.name.removesuffix(".txt"), "", licence.read_text(encoding="utf-8"), ""]
    return "\n".join(lines)
