"""Text made fit to keep and to pass on: without secrets, and without whose computer it is from."""

from __future__ import annotations

import getpass
import platform
import re
from collections import deque
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK = "***"

_KNOWN_TOKENS = re.compile(
    r"\b(?:hf_|sk-|ghp_|gho_|github_pat_|glpat-|xox[abp]-|AKIA|nvapi-)[\w-]{6,}"
    r"|\beyJ[\w-]{6,4096}\.[\w-]{2,4096}(?:\.[\w-]{0,4096})?"
)
_KEY_BLOCK = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)([^-]{1,20000})")
_SENSITIVE = (
    r"(?:[\w.-]{0,64}(?:api[ _-]?key|(?:access|secret|private|admin|hf|master|signing|account)"
    r"[_-]?key|token|secret|passw(?:or)?d|passphrase|credential|auth|jwt|cookie)[\w.-]{0,64}|hft)"
)
"""Bounded, since the search over a long word would take the square of its length."""
_VALUE = (
    r"(?:\"(?:\\.|[^\"\\\n]){0,2000}\"|'(?:\\.|[^'\\\n]){0,2000}'|\[[^\]\n]{0,2000}\]"
    r"|[^\s,;&]{0,2000}[^\s,;&'\")\]}])"
)
_KEY = r"--?key"
"""``--key`` alone; a bare ``key`` is a word of every other text."""
_OPTION = re.compile(rf"(?i)^(?:(?:--?|PARAMETER ){_SENSITIVE}|{_KEY})$")
_ASSIGNED_WORD = re.compile(rf"(?i)^((?:-{{0,2}}{_SENSITIVE}|{_KEY})[=:])(.+)", re.DOTALL)
_ASSIGNED = re.compile(rf"(?i)(?<![\w.-])({_SENSITIVE}['\"]?\s{{0,40}}[=:]\s{{0,40}})({_VALUE})")
_GIVEN = re.compile(
    rf"(?i)(?<![\w-])((?:--?{_SENSITIVE}|{_KEY})"
    rf"(?:['\"]?,\s{{0,40}}|\s{{1,40}}(?:[\\`^]\s{{1,40}})?|(?<=key)=))(?!-)({_VALUE})"
)
"""The option and its value as two words, on the next line too, or as two parts of a list."""
_SET = re.compile(rf"(?i)\b((?:ENV|setenv)\s{{1,40}}{_SENSITIVE}\s{{1,40}})({_VALUE})")
_NAMED = re.compile(
    rf"(?i)(name['\"]?\s{{0,40}}[:=]\s{{0,40}}['\"]?{_SENSITIVE}['\"]?\s{{0,40}},?\s{{0,40}}['\"]?"
    rf"value['\"]?\s{{0,40}}[:=]\s{{0,40}})({_VALUE})"
)
"""As Kubernetes and its like have a variable: ``name: HF_TOKEN``, ``value: …``."""
_HEADER = re.compile(
    rf"(?i)((?:authorization|cookie)['\"]?\s{{0,40}}[:=]\s{{0,40}}['\"]?)"
    rf"(?:(?:bearer|basic|digest|token|api[_-]?key)[ \t]{{1,40}})?({_VALUE})"
)
_BEARER = re.compile(
    r"\b([Bb]earer|BEARER|[Bb]asic(?=[ \t]{1,40}[a-z]{0,40}[^a-z\s]))[ \t]{1,40}[\w+/=.~-]{1,4096}"
)
"""``basic`` before a word of small letters alone is prose."""
_LOGIN = re.compile(
    rf"(?<![\w-])((?:-u|--user)[ =]['\"]?(?!\d{{1,9}}:\d)[^\s:'\"]{{1,100}}:)(?!//)({_VALUE})"
)
_GAP = r"(?:['\"]?,[ \t]{0,40}['\"]?|[ \t]{1,40}(?:[\\`^]\s{1,40})?['\"]?)"
"""Between two words of a command, or two parts of a list."""
_SIGNING_IN = (
    rf"(?:login\b(?:[^\n|;&]|\\\n){{0,300}}?[\s'\"]-p|sshpass{_GAP}-p)(?:=|{_GAP})"
    rf"|wandb{_GAP}login(?:{_GAP}--(?:host[ =][^\s]{{1,200}}|(?!host\b)[\w-]{{1,40}})){{0,8}}{_GAP}"
)
"""``docker login -p``, ``wandb login``: a password with no name to it."""
_SIGNED_IN = re.compile(rf"(?<![\w-])({_SIGNING_IN})(?!-)({_VALUE})")
_SIGNS_IN = re.compile(rf"(?<![\w-])(?:{_SIGNING_IN})$")
_PIPED = re.compile(
    rf"((?<![\w-])(?:echo|printf)[ \t]{{1,40}}(?:-n[ \t]{{1,40}})?)({_VALUE})"
    r"(?=[ \t]{0,40}\|[^\n|;&]{0,200}--password-stdin)"
)
_HARMLESS = re.compile(
    r"(?i)(?<!api.)(?<!access.)(?<!auth.)tokens|tokeni[sz]|max[_-]?token"
    r"|token[ _-]?(?:size|limit|len|id|ind|count|usage|cap|type|emb|budget|bytes|ratio)"
    r"|(?:[be]o[stm]|pad|unk|sep|cls|mask|per|image|audio|video|special|fim\w{0,12}|lf|nl)[_-]?token"
    r"|author(?!i[sz])|(?:file|path|dir)\b['\"]?[\s=:,]*$"
)
_NO_SECRET = re.compile(r"(?i:none|null|nil|true|false|auto)?|\$\{?[A-Z][A-Z0-9_]*\}?|%[A-Z_]+%")
_NO_TOKEN = re.compile(r"-?\d{1,7}(?:\.\d{1,9})?|<[|/]?\w{1,40}[|]?>")
"""A number or word of a vocabulary, which is called a token too."""
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_HOME = re.compile(r"(?:/home|/Users|[A-Za-z]:\\+Users)[/\\]+[^/\\\s\"']+")
_MOST_BEFORE = 12
"""Words of a command line that may stand before a password without a name."""
_SHORTEST_NAME = 3
"""A shorter one stands in too many words."""
_COMMON_NAMES = frozenset({"root", "user", "admin", "localhost"})
"""They say nothing of whose computer it is."""


def word(text: str) -> str:
    """One word of a command line without tokens, passwords and names of home folders.

    A word may be a whole command, as after ``bash -c``.
    """
    return _HOME.sub("~", without_secrets(_ASSIGNED_WORD.sub(_masked, text)))


def without_secrets(text: str) -> str:
    """``text`` without tokens and passwords, in whatever form a command or a log has them.

    It keeps its lines, as many as there were.
    """
    text = _KEY_BLOCK.sub(_block_masked, text)
    for form in (_HEADER, _NAMED, _ASSIGNED, _GIVEN, _SET, _LOGIN, _SIGNED_IN, _PIPED):
        text = form.sub(_masked, text)
    return _plain(text)


def redacted(text: str) -> str:
    """``text`` without secrets, this user's home folder and name, and this computer's name."""
    home = str(Path.home())
    if len(home) > _SHORTEST_NAME:
        text = text.replace(home, "~")
    text = _HOME.sub("~", without_secrets(text))
    for pattern, stand_in in _names():
        text = pattern.sub(stand_in, text)
    return text


def command(arguments: Iterable[str]) -> Iterator[str]:
    """The words of a command line, each without what ``word`` leaves out and without secrets."""
    said: deque[str] = deque(maxlen=_MOST_BEFORE)
    hides = False
    for argument in arguments:
        yield MASK if hides and not argument.startswith("-") else word(argument)
        said.append(argument)
        hides = asks_for_secret(argument) or bool(_SIGNS_IN.search(" ".join((*said, ""))))


def asks_for_secret(option: str) -> bool:
    """Whether the word after ``option`` on a command line is a secret."""
    return bool(_OPTION.match(option)) and not _HARMLESS.search(option)


def _plain(text: str) -> str:
    text = _KNOWN_TOKENS.sub(MASK, text)
    text = _BEARER.sub(rf"\g<1> {MASK}", text)
    return _USERINFO.sub(MASK, text)


def _block_masked(found: re.Match[str]) -> str:
    # A text keeps its lines.
    return f"{found[1]}{MASK}" + "\n" * found[2].count("\n")


def _masked(found: re.Match[str]) -> str:
    name, value = found[1], found[2].strip("'\"")
    is_word = "token" in name.lower() and _NO_TOKEN.fullmatch(value)
    if _HARMLESS.search(name) or _NO_SECRET.fullmatch(value) or is_word:
        return found[0]
    return f"{name}{MASK}"


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
