"""Text of any origin as whole lines: in blocks, so that a log of any size takes little memory."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from engine.cancel import CancelToken

LONGEST = 32 * 1024
"""Characters of a line that are looked at; the settings of a server take some thousand."""
_BLOCK_BYTES = 256 * 1024
_TEXT_FROM = 3
"""Where more than one character in so many is none, a block is a picture or weights: its lines are
counted, and nothing is looked for in them."""
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WRAPPED = re.compile(
    r'^\{"log":"((?:\\.|[^"\\\n]){0,32000})","stream":[^\n]{0,400}$', re.MULTILINE
)
"""A line as Docker keeps it on disk."""
_COLOURS = re.compile(
    r"\x1b(?:\[[0-9;?]{0,20}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[@-Z\\-_])"
)


_COMMA = re.compile(
    r"(?<![\d.,])(-?\d{1,12}),(\d{1,2}|\d{4,9})(?=(?: ?[KMGT]i?B\b|/\d{1,12},\d{1,2} ?[KMGT]i?B))"
)
"""A size with a decimal comma, as a program prints it in some countries; three digits after a
comma are thousands."""
_NARROW = str.maketrans("\u00a0\u202f\u2007", "   ")
"""Spaces that pages put between a figure and its unit, so that they stay on one line."""


def with_points(line: str) -> str:
    """``line`` with sizes as most programs print them: a point, and a plain space before units."""
    line = line if line.isascii() else line.translate(_NARROW)
    return _COMMA.sub(r"\1.\2", line) if "," in line else line


def blocks(stream: BinaryIO, token: CancelToken) -> Iterator[str]:
    """The text of ``stream`` in blocks of whole lines, none of them ending in a line feed.

    Colours are taken out, bytes that are no text replaced, and of a line that is longer than
    ``LONGEST`` only the beginning is kept. A carriage return stays where no line feed follows:
    a progress bar writes over itself with it.

    Raises:
        JobCancelledError: asked to stop.
    """
    first = stream.read(_BLOCK_BYTES)
    decoder = codecs.getincrementaldecoder(_encoding(first))(errors="replace")
    rest, is_cut = "", False
    chunk = first
    while chunk:
        token.raise_if_cancelled()
        text = decoder.decode(chunk)
        chunk = stream.read(_BLOCK_BYTES)
        if not chunk:
            text += decoder.decode(b"", final=True)
        if text.count("\ufffd") * _TEXT_FROM > len(text):
            text = "\n" * text.count("\n")
        if is_cut:
            # The remainder of a line of which enough was seen.
            _, found, text = text.partition("\n")
            is_cut = not found
            if is_cut:
                continue
        whole, found, rest = (rest + text).rpartition("\n")
        if found:
            yield _clean(whole)
        if len(rest) > LONGEST:
            yield _clean(rest[:LONGEST])
            rest, is_cut = "", True
    if rest:
        yield _clean(rest)


def _encoding(first: bytes) -> str:
    """UTF-8, or what Windows makes of a redirected log: every second byte is 0 then."""
    looked_at = first[:4096]
    if first.startswith(_WIDE_MARKS) and 4 * looked_at.count(0) > len(looked_at):
        return "utf-16"
    even, odd = looked_at[::2].count(0), looked_at[1::2].count(0)
    if 8 * even < odd and 3 * odd > len(looked_at):
        return "utf-16-le"
    return "utf-16-be" if 8 * odd < even and 3 * even > len(looked_at) else "utf-8-sig"


def _clean(text: str) -> str:
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    if '{"log":"' in text:
        text = _COLOURS.sub("", _WRAPPED.sub(_unwrapped, text))
    return text.replace("\r\n", "\n").removesuffix("\r")


def _unwrapped(found: re.Match[str]) -> str:
    try:
        text: str = json.loads(f'"{found[1]}"', strict=False)
    except ValueError:
        return found[0]
    text = text.encode("utf-8", "replace").decode()  # no halves of a pair
    # One line stays one line.
    return text.rstrip("\r\n").replace("\n", " ")


def shown(line: str) -> str:
    """What is to be seen of ``line`` at last: a progress bar's last state, and what follows it."""
    if "\r" in line:
        line = next((part for part in reversed(line.split("\r")) if part.strip()), "")
    return line
