"""A Modelfile of Ollama told from everything else that has a line with FROM, and read.

Source:
    Ollama ``docs/modelfile.mdx`` and ``parser/parser.go``: instructions in any case, one a line,
    whose texts may go over several lines between three quotation marks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_INSTRUCTIONS = frozenset({
    "from", "parameter", "template", "system", "adapter", "license", "message", "renderer",
    "parser", "requires",
})  # fmt: skip
_WRITTEN = re.compile(r"<<-?[ \t]*['\"]?(\w{1,40})['\"]?[^\n]{0,400}\n(.*?)\n[ \t]*\1\b", re.DOTALL)
"""A file that a shell writes from the lines after it."""
_CELL = "%%writefile"
_QUOTES = '"""'
_IMPORT = re.compile(r"\S+ import\b")


@dataclass(frozen=True, slots=True)
class Modelfile:
    """What it states."""

    source: str
    """The model it starts from; of several the first, since a projector stands after it."""
    parameters: tuple[tuple[str, str], ...]
    """Name in small letters and value of each, as it stood."""


def heard(text: str) -> Modelfile | None:
    """The Modelfile that ``text`` is, or that a command in it writes; None for any other text."""
    at = text.find("<<")
    written = _WRITTEN.match(text, at) if at >= 0 else None
    if written is not None:
        return heard(written[2])
    source = ""
    parameters: list[tuple[str, str]] = []
    for instruction, value in _lines(text):
        if instruction not in _INSTRUCTIONS or not value:
            return None
        if instruction == "from" and not source:
            if _IMPORT.match(value):  # Python's.
                return None
            source = value
        elif instruction == "parameter":
            name, _, said = value.partition(" ")
            parameters.append((name.lower(), said.strip().strip('"')))
    return Modelfile(source, tuple(parameters)) if source else None


def _lines(text: str) -> list[tuple[str, str]]:
    """First word in small letters and the rest of every line outside of a long text."""
    found: list[tuple[str, str]] = []
    is_quoted = False
    for line in text.splitlines():
        stripped = line.strip()
        if not is_quoted and stripped and not stripped.startswith(("#", _CELL)):
            word, *rest = stripped.split(maxsplit=1)
            found.append((word.lower(), "".join(rest)))
        if stripped.count(_QUOTES) % 2:
            is_quoted = not is_quoted
    return found
