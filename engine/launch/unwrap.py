"""What lies around a command: a prompt sign, remarks, variables, a container. Peeled off here."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.words import tr

if TYPE_CHECKING:
    from collections.abc import Iterable

_CONTINUED = re.compile(r"(?<![ \t])[ \t]*[\\`^][ \t]{0,40}\r?\n[ \t]*")
_PROMPT = re.compile(
    r"^[ \t]*(?:In \[\d{0,5}\]:[ \t]*)?"
    r"(?:(?:%%?(?:bash|sh|shell|cmd|powershell|system|sx|time|script[ \t]+\w+)\b|!!?)"
    r"|(?:\([\w.-]{1,60}\)[ \t]*)?[\w.-]{1,60}@[\w.-]{1,60}[^\s$#]{0,200}[$#](?=\s)"
    r"|\$(?=\s)|>(?=\s)|PS [^>\n]{0,300}>(?=\s)|%(?=\s)|)[ \t]*",
    re.MULTILINE,
)
"""Signs of shells; and of a notebook, whose cells hold commands behind ``!`` and ``%``."""
_OF_A_CELL = re.compile(
    r"^[ \t]*(?:In \[\d{0,5}\]:[ \t]*)?(?:!|%(?:set_env|env|sx|system)\b)"
    r"(?:[^\n]*\\\r?\n)*[^\n]*",
    re.MULTILINE,
)
_NOTEBOOK_VARIABLE = re.compile(r"^[ \t]*%(?:set_)?env[ \t]+(\w+)(?:=|[ \t]+)", re.MULTILINE)
_WINDOWS = re.compile(r"(?:^|[\s\"'])(?:[A-Za-z]:|\.{1,2})\\")
_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_POWERSHELL_VARIABLE = re.compile(
    r"^[ \t]*\$env:([A-Za-z_]\w*)[ \t]*=[ \t]*([^\n]*)$", re.MULTILINE
)
_BEFORE = frozenset({"sudo", "exec", "time", "nohup", "env", "uv", "uvx", "export", "set", "run"})
_SWITCHES = frozenset({
    "-d", "--detach", "-i", "--interactive", "-t", "--tty", "-it", "-ti", "-dit", "-itd", "--rm",
    "--init", "--privileged", "-P", "--publish-all", "--read-only", "--no-healthcheck",
})  # fmt: skip
"""Options of ``docker run`` that take no value; all others do."""
_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_ENTRY = "--entrypoint"
_LINE = re.compile(r"-[a-z]{0,5}c")
"""``-c``, alone or among other switches of a shell: the next word is a whole line."""
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})


@dataclass(slots=True)
class Bare:
    """One command without what lay around it."""

    words: list[str]
    environment: dict[str, str] = field(default_factory=dict[str, str])
    image: str = ""
    """The container image it runs in, with its tag."""
    devices: int | None = None
    """How many devices each node is given, where it says so."""
    nodes: int = 1
    """How many nodes run it together, where what lay around it says so."""
    mounts: dict[str, str] = field(default_factory=dict[str, str])
    """Folders inside its container -> where they lie outside."""
    is_entry: bool = False
    """Whether its words begin with a program, and the image's own is not run."""


def commands(text: str) -> list[Bare]:
    """The commands of ``text``, each peeled; a pasted block may hold several.

    Raises:
        UsageError: a quotation mark that isn't closed.
    """
    variables = {name: _unquoted(value) for name, value in _POWERSHELL_VARIABLE.findall(text)}
    if _OF_A_CELL.search(text):
        # The rest of the cell is Python.
        text = "\n".join(found[0] for found in _OF_A_CELL.finditer(text))
    joined = _CONTINUED.sub(" ", _POWERSHELL_VARIABLE.sub("", without_prompts(text)))
    words = split(joined)
    found: list[Bare] = []
    for part in filter(None, words):
        one = _peeled(part, variables)
        if one.words or one.environment:
            found += opened(one)
        if not one.words:
            # Set on a line of its own, it holds for what follows.
            variables = one.environment
    return found


def mounted(volumes: Iterable[str]) -> dict[str, str]:
    """Folders inside a container by where they lie outside, of volumes as Docker takes them."""
    found: dict[str, str] = {}
    for volume in volumes:
        outside, _, inside = re.sub(r":(?:ro|rw|[zZ])(?:,[a-zA-Z]+)*$", "", volume).rpartition(":")
        if outside.startswith(("/", ".", "~")) or re.match(r"[A-Za-z]:[\\/]", outside):
            found[inside.rstrip("/")] = outside
    return found


def opened(bare: Bare) -> list[Bare]:
    """The commands in the line of a shell that ``bare`` starts; else ``bare`` itself.

    Raises:
        UsageError: a quotation mark in the line that isn't closed.
    """
    words = bare.words
    if not words or name(words[0]) not in _SHELLS:
        return [bare]
    line = next((at for at, word in enumerate(words) if _LINE.fullmatch(word)), len(words)) + 1
    if line >= len(words):
        return [bare]
    return [
        replace(
            bare, words=one.words, environment=bare.environment | one.environment, is_entry=True,
            devices=bare.devices or one.devices,
        )
        for one in commands(words[line])
    ]  # fmt: skip


def without_prompts(text: str) -> str:
    """``text`` without what a shell or a notebook puts before a command."""
    return _PROMPT.sub("", _NOTEBOOK_VARIABLE.sub(r"export \1=", text))


def split(text: str) -> list[list[str]]:
    """The words of each command; a new line, ``&&``, ``;`` and ``|`` end one.

    Raises:
        UsageError: a quotation mark that isn't closed.
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = "#"
    if _WINDOWS.search(text):
        lexer.escape = ""  # There a backslash parts folders.
    parts: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word and set(word) <= set(";&|\n"):
                parts.append([])
            else:
                parts[-1].append(word)
    except ValueError as error:
        message = tr("A quotation mark in the command isn’t closed.")
        raise UsageError(message, field="command") from error
    return parts


def _unquoted(text: str) -> str:
    return text.strip().strip("'\"")


def _peeled(words: list[str], variables: dict[str, str]) -> Bare:
    bare = Bare(list(words), dict(variables))
    _peel_variables(bare)
    if bare.words and name(bare.words[0]) in _CONTAINERS:
        _peel_container(bare)
        _peel_variables(bare)
    visible = bare.environment.get("CUDA_VISIBLE_DEVICES") or bare.environment.get(
        "HIP_VISIBLE_DEVICES"
    )
    if visible and bare.devices is None:
        bare.devices = len([part for part in visible.split(",") if part.strip()])
    return bare


def name(word: str) -> str:
    """The program that a word of a command names, without its folder."""
    path = PureWindowsPath(word) if "\\" in word else PurePosixPath(word)
    return path.name.removesuffix(".exe").lower()


def _peel_variables(bare: Bare) -> None:
    """Take variables and words like ``sudo`` from the front."""
    while bare.words:
        found = _VARIABLE.fullmatch(bare.words[0])
        if found is not None:
            bare.environment[found[1]] = found[2]
        elif bare.words[0] not in _BEFORE:
            return
        bare.words.pop(0)


def _peel_container(bare: Bare) -> None:
    words = bare.words[1:]
    if words[:1] == ["container"]:
        words.pop(0)
    if words[:1] != ["run"]:
        return
    words.pop(0)
    while words and words[0].startswith("-"):
        option, has_value, value = words.pop(0).partition("=")
        if option in _SWITCHES:
            continue
        if not has_value:
            value = words.pop(0) if words else ""
        _take_option(bare, option, value)
    bare.image = words.pop(0) if words else ""
    entry = bare.environment.pop(_ENTRY, None)
    bare.is_entry = entry is not None
    bare.words = [entry, *words] if entry else words


def _take_option(bare: Bare, option: str, value: str) -> None:
    if option in ("-e", "--env"):
        key, _, said = value.partition("=")
        if said:
            bare.environment[key] = said
    elif option == "--gpus":
        stated = value.strip("\"'")
        if stated.isdigit():
            bare.devices = int(stated)
        elif stated.startswith("device="):
            bare.devices = len(stated.removeprefix("device=").split(","))
    elif option in ("-v", "--volume"):
        bare.mounts |= mounted([value])
    elif option == _ENTRY:
        bare.environment[_ENTRY] = value
