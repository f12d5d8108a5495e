"""Bookmarks for a PDF that Qt has written: Qt draws pages, and knows of no outline.

They are appended as PDF's own incremental update (ISO 32000-1, 7.5.6): the file stays as Qt wrote
it, and a further catalogue, cross-reference table and trailer follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROOT = re.compile(rb"/Root\s+(\d+)\s+0\s+R")
_SIZE = re.compile(rb"/Size\s+(\d+)")
_INFO = re.compile(rb"/Info\s+\d+\s+0\s+R")
_START = re.compile(rb"startxref\s+(\d+)\s+%%EOF\s*$")
_PAGES = re.compile(rb"/Pages\s+(\d+)\s+0\s+R")
_KIDS = re.compile(rb"/Kids\s*\[([^\]]*)\]")
_REFERENCE = re.compile(rb"(\d+)\s+0\s+R")


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a heading stands."""

    title: str
    page: int
    """From 0."""
    top: float
    """Points from the lower edge of the page, as PDF counts."""
    is_part: bool
    """Whether what follows, up to the next part, lies below it."""


def with_outline(pdf: bytes, marks: Sequence[Mark], language: str) -> bytes:
    """``pdf`` with a bookmark for each of ``marks`` and its language; unchanged without any.

    Raises:
        ValueError: it is no PDF as Qt writes them.
    """
    if not marks:
        return pdf
    start = _found(_START, pdf)
    tail = pdf[pdf.rindex(b"trailer") :]
    root, first_new = int(_found(_ROOT, tail)), int(_found(_SIZE, tail))
    catalogue = _object(pdf, root)
    kids = _found(_KIDS, _object(pdf, int(_found(_PAGES, catalogue))))
    pages = [int(number) for number in _REFERENCE.findall(kids)]
    extra = f"/Outlines {first_new} 0 R /PageMode /UseOutlines /Lang ({language})"
    objects = {root: catalogue.rstrip()[:-2].rstrip() + b"\n" + extra.encode() + b"\n>>"}
    objects |= _outline(marks, pages, first_new)
    made = bytearray(pdf if pdf.endswith(b"\n") else pdf + b"\n")
    places: dict[int, int] = {}
    for number, body in sorted(objects.items()):
        places[number] = len(made)
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(made)
    made += b"xref\n"
    for number, place in places.items():
        made += b"%d 1\n%010d 00000 n \n" % (number, place)
    info = _INFO.search(tail)
    kept = info[0] + b"\n" if info else b""
    size = first_new + len(marks) + 1
    made += b"trailer\n<<\n/Size %d\n%s/Root %d 0 R\n" % (size, kept, root)
    made += b"/Prev %s\n>>\nstartxref\n%d\n%%%%EOF\n" % (start, table)
    return bytes(made)


def _found(pattern: re.Pattern[bytes], text: bytes) -> bytes:
    match = pattern.search(text)
    if match is None:
        message = f"the PDF has no {pattern.pattern!r}"
        raise ValueError(message)
    return match[1]


def _object(pdf: bytes, number: int) -> bytes:
    """The body of the object ``number``."""
    match = re.search(rb"(?:^|[\r\n])%d 0 obj\s*(.*?)\s*endobj" % number, pdf, re.DOTALL)
    if match is None:
        message = f"the PDF has no object {number}"
        raise ValueError(message)
    return match[1]


def _outline(marks: Sequence[Mark], pages: Sequence[int], root: int) -> dict[int, bytes]:
    """The outline's objects by number: its root, then one for each mark."""
    numbers = [root + 1 + place for place in range(len(marks))]
    parents: list[int] = []
    part = root
    for mark, number in zip(marks, numbers, strict=True):
        parents.append(root if mark.is_part else part)
        part = number if mark.is_part else part
    children: dict[int, list[int]] = {}
    for number, parent in zip(numbers, parents, strict=True):
        children.setdefault(parent, []).append(number)
    tops = children[root]
    made = {root: b"<< /Type /Outlines %s /Count %d >>" % (_ends(tops), len(tops))}
    for mark, number, parent in zip(marks, numbers, parents, strict=True):
        siblings = children[parent]
        place = siblings.index(number)
        links = b"/Parent %d 0 R" % parent
        if place:
            links += b" /Prev %d 0 R" % siblings[place - 1]
        if place + 1 < len(siblings):
            links += b" /Next %d 0 R" % siblings[place + 1]
        if below := children.get(number):
            # Closed: a reader shows the parts first.
            links += b" %s /Count -%d" % (_ends(below), len(below))
        title = (b"\xfe\xff" + mark.title.encode("utf-16-be")).hex().encode()
        where = b"[%d 0 R /XYZ 0 %.1f null]" % (pages[mark.page], mark.top)
        made[number] = b"<< /Title <%s> %s /Dest %s >>" % (title, links, where)
    return made


def _ends(numbers: Sequence[int]) -> bytes:
    return b"/First %d 0 R /Last %d 0 R" % (numbers[0], numbers[-1])
