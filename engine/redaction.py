"""Text made fit to keep and to pass on: without secrets, and without whose computer it is from."""

from __future__ import annotations

import getpass
import platform
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

MASK = "***"

_KNOWN_TOKENS = re.compile(
    r"\b(?:hf_|sk-|ghp_|gho_|github_pat_|glpat-|xox[abp]-|AKIA|nvapi-)[\w-]{6,}"
)
_SENSITIVE = (
    r"[\w.-]{0,64}(?:api[_-]?key|apikey|token|secret|passw(?:or)?d|credential|auth)[\w.-]{0,64}"
)
"""Bounded, since the search over a long word would take the square of its length."""
_OPTION = re.compile(rf"(?i)^--?{_SENSITIVE}$")
_ASSIGNED_WORD = re.compile(rf"(?i)^(-{{0,2}}{_SENSITIVE}[=:]).+")
_ASSIGNED = re.compile(
    rf"(?i)(?<![\w.-])({_SENSITIVE}['\"]?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&]+)"
)
_HARMLESS = re.compile(
    r"(?i)tokens|tokenizer|max[_-]?token|token[_-]?(?:size|limit|len)|author(?!i[sz])"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w+/=.~-]+")
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_HOME = re.compile(r"(?:/home|/Users|[A-Za-z]:\\+Users)[/\\]+[^/\\\s\"']+")
_SHORTEST_NAME = 3
"""A shorter one stands in too many words."""
_COMMON_NAMES = frozenset({"root", "user", "admin", "localhost"})
"""They say nothing of whose computer it is."""


def word(text: str) -> str:
    """One word of a command line without tokens, passwords and names of home folders."""
    return _plain(_ASSIGNED_WORD.sub(_masked, text))


def redacted(text: str) -> str:
    """``text`` without secrets, this user's home folder and name, and this computer's name."""
    home = str(Path.home())
    if len(home) > _SHORTEST_NAME:
        text = text.replace(home, "~")
    text = _plain(_ASSIGNED.sub(_masked, _BEARER.sub(rf"\g<1> {MASK}", text)))
    for pattern, stand_in in _names():
        text = pattern.sub(stand_in, text)
    return text


def asks_for_secret(option: str) -> bool:
    """Whether the word after ``option`` on a command line is a secret."""
    return bool(_OPTION.match(option)) and not _HARMLESS.search(option)


def _plain(text: str) -> str:
    text = _KNOWN_TOKENS.sub(MASK, text)
    text = _BEARER.sub(rf"\g<1> {MASK}", text)
    text = _USERINFO.sub(MASK, text)
    return _HOME.sub("~", text)


def _masked(found: re.Match[str]) -> str:
    return found[0] if _HARMLESS.search(found[1]) else f"{found[1]}{MASK}"


@cache
def _names() -> tuple[tuple[re.Pattern[str], str], ...]:
    users, hosts = set[str](), {platform.node(), platform.node().partition(".")[0]}
    with suppress(OSError, KeyError, ImportError):
        users.add(getpass.getuser())
    found = [(name, "<host>") for name in hosts] + [(name, "<user>") for name in users]
    return tuple(
        (re.compile(rf"(?<!\w){re.escape(name)}(?!\w)"), stand_in)
        for name, stand_in in sorted(found, key=lambda pair: -len(pair[0]))
        if len(name) >= _SHORTEST_NAME and name not in _COMMON_NAMES
    )
