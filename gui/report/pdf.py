"""Writes a report as a PDF: vectors, real text, embedded fonts, always the light colours."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QIODevice
from PySide6.QtGui import QGuiApplication

from engine.errors import UsageError
from engine.report import files
from engine.text import printable
from engine.words import chosen, tr
from gui.kit.theme import load_theme
from gui.report import blocks
from gui.report.outline import Mark, with_outline
from gui.report.sheet import PAGES, Draft, Sheet

if TYPE_CHECKING:
    from pathlib import Path

    from engine.report.document import ReportDocument

_TOP_OF_PAGE = 1000.0
"""Above any page, in points."""
_application: QGuiApplication | None = None


def write_pdf(document: ReportDocument, path: Path, page: str = "A4") -> None:
    """Write ``document``; a file that exists is replaced only by a whole one.

    Works without a window too: where there is no Qt application yet, one without a screen is
    made.

    Args:
        document: what to print.
        path: the file to write.
        page: ``A4`` or ``Letter``.

    Raises:
        UsageError: there is no such page size.
        PlimsollError: the file cannot be written.
    """
    if page not in PAGES:
        message = tr("{page!r} is no page size: choose {sizes}.").format(
            page=printable(page, 40), sizes=tr(" or ").join(PAGES)
        )
        raise UsageError(message, field="page")
    _ensure_application()
    first = _rendered(document, page, Draft())[1]
    pages = _rendered(document, page, first)[1].pages
    data, _ = _rendered(document, page, replace(first, pages=pages))
    files.write(path, data)


def _rendered(document: ReportDocument, page: str, draft: Draft) -> tuple[bytes, Draft]:
    """The file, and what came of it, when it is written by what came of an earlier one."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    sheet = Sheet(buffer, document, page, load_theme("light", is_paper=True), draft)
    sheet.paragraph(document.subject, sheet.font("small"), "text.tertiary")
    sheet.y += 3
    sheet.paragraph(document.headline, sheet.font("verdict", 27), "text.primary")
    sheet.y += 4
    sheet.paragraph(document.detail, sheet.font("body"), "text.secondary", sheet.width - 40)
    blocks.place_all(sheet, document.blocks)
    made = sheet.finish()
    buffer.close()
    marks = [Mark(document.headline, 0, _TOP_OF_PAGE, is_part=True), *sheet.marks]
    return with_outline(bytes(buffer.data().data()), marks, chosen().code), made


def _ensure_application() -> None:
    global _application  # noqa: PLW0603 - Qt keeps one application a process; so do we
    if QGuiApplication.instance() is None:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        _application = QGuiApplication([])
