"""The kinds of file that a report is written as, and how one is written whole or not at all."""

from __future__ import annotations

import os
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.errors import PlimsollError, UsageError
from engine.report import csv_rows, html, markdown
from engine.text import printable
from engine.words import tr

if TYPE_CHECKING:
    from pathlib import Path

    from engine.report.document import ReportDocument


class Kind(StrEnum):
    """A kind of report by the suffix of its file."""

    PDF = "pdf"
    HTML = "html"
    MARKDOWN = "md"
    CSV = "csv"
    JSON = "json"


_BEGINNINGS = {
    Kind.PDF: "%PDF-",
    Kind.HTML: html.BEGINNING,
    Kind.MARKDOWN: markdown.BEGINNING,
    Kind.CSV: ",".join(csv_rows.COLUMNS[:3]),
    Kind.JSON: '{"schema":"plimsoll.budget/',
}
"""How a report begins, by which an older one is told from a file that nobody may lose."""
SUFFIXES = ", ".join(f".{kind}" for kind in Kind)


def kind_of(path: Path) -> Kind:
    """The kind of report that is written to ``path``.

    Raises:
        UsageError: no report ends like this.
    """
    try:
        return Kind(path.suffix[1:].lower())
    except ValueError:
        message = tr("{name} isn’t the name of a report: let it end in {suffixes}.").format(
            name=printable(path.name, 80), suffixes=SUFFIXES
        )
        raise UsageError(message, field="output") from None


def may_be_replaced(path: Path) -> bool:
    """Whether nothing is lost at ``path`` but an older report of its kind."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        begun = file.read(64)
    try:
        return not begun or begun.startswith(_BEGINNINGS[kind_of(path)].encode())
    except UsageError:
        return False


def text(kind: Kind, document: ReportDocument) -> str:
    """``document`` as HTML or Markdown, which need neither fonts nor pages."""
    return html.html(document) if kind is Kind.HTML else markdown.markdown(document)


def write(path: Path, data: bytes) -> None:
    """Write ``data``; a file that exists is replaced only by a whole one.

    Raises:
        PlimsollError: the file cannot be written.
    """
    partial = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        with partial.open("xb") as file:
            file.write(data)
        partial.replace(path)
    except OSError as error:
        if not isinstance(error, FileExistsError):
            with suppress(OSError):
                partial.unlink()
        reason = error.strerror or type(error).__name__
        message = tr("{path} could not be written: {reason}.").format(
            path=printable(str(path), 300), reason=reason
        )
        raise PlimsollError(message, field="output") from error
