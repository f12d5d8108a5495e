"""Words as a person pastes them into a terminal: quoted, broken into lines, with remarks above."""

from __future__ import annotations

import re
import shlex
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_WIDE = 88
_INDENT = "  "
_PLAIN_IN_POWERSHELL = re.compile(r"[A-Za-z0-9_./:=+-]+")


def remarks(sentences: Iterable[str]) -> list[str]:
    """Lines of comment; the same sign begins one in a shell, YAML, Python and a Modelfile."""
    return [
        line
        for sentence in sentences
        for line in textwrap.wrap(
            sentence, _WIDE, initial_indent="# ", subsequent_indent="#   ",
            break_long_words=False, break_on_hyphens=False,
        )
    ]  # fmt: skip


def posix(groups: Sequence[Sequence[str]], environment: Mapping[str, str]) -> str:
    """A command for bash, zsh and sh."""
    start = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
    written = [shlex.join(group) for group in groups]
    return _lines([" ".join([*start, written[0]]), *written[1:]], "\\")


def powershell(groups: Sequence[Sequence[str]], environment: Mapping[str, str]) -> str:
    """A command for PowerShell."""
    set_first = [f"$env:{name} = {_powershell(value)}" for name, value in environment.items()]
    written = [" ".join(map(_powershell, group)) for group in groups]
    return "\n".join([*set_first, _lines(written, "`")])


def _powershell(word: str) -> str:
    if _PLAIN_IN_POWERSHELL.fullmatch(word):
        return word
    return "'" + word.replace("'", "''") + "'"


def _lines(parts: list[str], continued: str) -> str:
    whole = " ".join(parts)
    return whole if len(whole) <= _WIDE else f" {continued}\n{_INDENT}".join(parts)
