"""Which patterns a line may hold, found once for all lines that differ in their numbers alone.

A server prints the same few lines a million times. So a line is looked up by its text without
digits; only a text that was not met before is searched for every needle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.logs.patterns import patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.logs.patterns import Pattern

_NO_DIGITS = str.maketrans("", "", "0123456789")
_MOST_KNOWN = 8_192
_LONGEST_KNOWN = 400
"""Characters: longer lines are searched each time, so that what is remembered stays small."""

_Found = tuple["Pattern", ...]


class Needles:
    """The patterns of every line, block by block."""

    def __init__(self) -> None:
        self._rows = tuple((p.needle.translate(_NO_DIGITS), p) for p in patterns())
        self._known: dict[str, _Found] = {}

    def hits(self, block: str) -> Iterator[tuple[str, list[Pattern]]]:
        """The lines of ``block``, each with the patterns whose needles it holds."""
        bare = block.translate(_NO_DIGITS).split("\n")
        self._learn(bare)
        for line, text in zip(block.split("\n"), bare, strict=True):
            found = self._known.get(text)
            if found is None:
                found = self._searched(text, self._rows)
            yield line, [p for p in found if p.may_be_in(line)] if found else []

    def _learn(self, texts: list[str]) -> None:
        """Search what was not met before, all of it at once and then line by line."""
        new = {text for text in texts if len(text) <= _LONGEST_KNOWN} - self._known.keys()
        if not new:
            return
        if len(self._known) + len(new) > _MOST_KNOWN:
            self._known.clear()
            new = {text for text in texts if len(text) <= _LONGEST_KNOWN}
        whole = "\n".join(new)
        rows = tuple(row for row in self._rows if row[0] in whole)
        for text in new:
            self._known[text] = self._searched(text, rows)

    @staticmethod
    def _searched(text: str, rows: tuple[tuple[str, Pattern], ...]) -> _Found:
        return tuple(pattern for needle, pattern in rows if needle in text)
