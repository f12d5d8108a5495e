"""One table for both ways: which words a runtime has for a setting, and what they mean.

A row is read and written by the same codec, so that a command that is written here is understood
here. A release range says where a row may be written; every spelling is read, whatever its release.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from engine.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Version = tuple[int, ...]

_HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_POWERS = "kmgt"


@dataclass(frozen=True, slots=True)
class Codec:
    """How a value is spelled. ``read`` raises ``ValueError`` for what is no such value."""

    write: Callable[[Any], str | None]
    """None where there is no word for this value."""
    read: Callable[[str], Any]


def _human(text: str) -> int:
    """A whole number as vLLM and SGLang take it: 32k is 32,000 and 32K is 32,768."""
    found = _HUMAN.fullmatch(text.strip())
    if found is None:
        return int(text)
    number, letter = found.groups()
    power = _POWERS.index(letter.lower()) + 1
    return int(float(number) * 1000**power) if letter.islower() else int(number) * 1024**power


def _decimal(value: float) -> str:
    # Every digit, so that the same number is read back; 1 and not 1.0.
    return repr(float(value)).removesuffix(".0")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _list_of(read: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(read(part) for part in re.split(r"[,;/]", text))


def _object(text: str) -> dict[str, Any]:
    found: object = json.loads(text)
    if isinstance(found, dict):
        return cast("dict[str, Any]", found)
    raise ValueError(text)


INTEGER = Codec(str, int)
HUMAN = Codec(str, _human)
LENGTH = Codec(str, lambda text: -1 if text.lower() == "auto" else _human(text))
NUMBER = Codec(_decimal, _finite)
TEXT = Codec(str, str)
INTEGERS = Codec(lambda value: ",".join(map(str, value)), _list_of(int))
NUMBERS = Codec(lambda value: ",".join(map(_decimal, value)), _list_of(_finite))
MEBIBYTES = Codec(
    lambda value: str(value // MIB) if value % MIB == 0 else None, lambda text: int(text) * MIB
)
OBJECT = Codec(json.dumps, _object)


def choice(words: Mapping[Any, str], aliases: Mapping[str, Any] | None = None) -> Codec:
    """One of some words: ``words`` by our value, and further ones that are read as well.

    A word that stands for several values is read as the first of them.
    """
    back = {word: value for value, word in reversed([*words.items()])} | dict(aliases or {})

    def read(text: str) -> Any:
        if text not in back:
            raise ValueError(text)
        return back[text]

    return Codec(words.get, read)


@dataclass(frozen=True, slots=True)
class Flag:
    """One row: a setting and its words."""

    setting: str
    """Field of the deployment, or a setting that only this runtime's module knows."""
    names: tuple[str, ...]
    """The first is written; all are read."""
    codec: Codec | None = INTEGER
    """None for a switch that takes no value."""
    means: Any = True
    """What a switch says by being there."""
    opposite: tuple[str, ...] = ()
    """Names that say the opposite of a switch."""
    since: Version = ()
    until: Version = ()
    """The first release without it; empty while it is there."""
    first: Mapping[Any, Version] = field(default_factory=dict[Any, Version])
    """Values that came later than the flag -> their first release."""

    def words(self, value: Any) -> tuple[str, ...] | None:
        """The words that state ``value``; None where the row has none for it."""
        if self.codec is not None:
            written = self.codec.write(value)
            return None if written is None else (self.names[0], written)
        if value == self.means:
            return (self.names[0],)
        return (self.opposite[0],) if self.opposite else None

    def is_of(self, version: Version, value: Any) -> bool:
        """Whether ``version`` takes this row with ``value``."""
        late = self.first.get(value, ()) if isinstance(value, str | bool | int) else ()
        return max(self.since, late) <= version and (not self.until or version < self.until)


@dataclass(frozen=True, slots=True)
class Written:
    """The words of a plan, and the settings for which there are none."""

    groups: tuple[tuple[str, ...], ...]
    """Each flag with its value."""
    unsaid: tuple[str, ...]
    """Settings."""


@dataclass(frozen=True, slots=True)
class Stray:
    """A word of a command that is not in the table, or whose value is none."""

    word: str
    value: str = ""
    is_value: bool = False
    """Whether the flag is known and its value is what isn't."""

    @property
    def text(self) -> str:
        """As it stood in the command."""
        return f"{self.word} {self.value}".strip()


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the words of a command say."""

    values: dict[str, Any]
    positionals: tuple[str, ...]
    strays: tuple[Stray, ...]
    harmless: tuple[str, ...]
    """Flags that are known to change no memory."""


def write(flags: Iterable[Flag], values: Mapping[str, Any], version: Version) -> Written:
    """The words for ``values`` in the order of the table."""
    groups: list[tuple[str, ...]] = []
    said: set[str] = set()
    for flag in flags:
        if flag.setting not in values or flag.setting in said:
            continue
        value = values[flag.setting]
        found = flag.words(value) if flag.is_of(version, value) else None
        if found is not None:
            groups.append(found)
            said.add(flag.setting)
    return Written(tuple(groups), tuple(name for name in values if name not in said))


def parse(
    flags: Iterable[Flag],
    words: Sequence[str],
    harmless: Mapping[str, int],
    *,
    dashes: bool = False,
) -> Parsed:
    """What ``words`` say by the table.

    Args:
        flags: the table.
        words: flags, their values and positional words.
        harmless: flags that change no memory -> how many values each takes.
        dashes: whether the runtime reads ``--max_model_len`` as ``--max-model-len``.
    """
    rows: dict[str, list[tuple[Flag, bool]]] = {}
    for flag in flags:
        for name in flag.names:
            rows.setdefault(name, []).append((flag, True))
        for name in flag.opposite:
            rows.setdefault(name, []).append((flag, False))
    reader = _Reader(rows, harmless, dashes=dashes)
    reader.read(list(words))
    return Parsed(
        reader.values, tuple(reader.positionals), tuple(reader.strays), tuple(reader.harmless)
    )


class _Reader:
    """Goes through the words of a command once."""

    def __init__(
        self,
        rows: Mapping[str, list[tuple[Flag, bool]]],
        harmless: Mapping[str, int],
        *,
        dashes: bool,
    ) -> None:
        self._rows, self._arity, self._dashes = rows, harmless, dashes
        self.values: dict[str, Any] = {}
        self.positionals: list[str] = []
        self.strays: list[Stray] = []
        self.harmless: list[str] = []

    def read(self, words: list[str]) -> None:
        while words:
            word = words.pop(0)
            if not _is_flag(word):
                self.positionals.append(word)
                continue
            name, has_value, value = word.partition("=")
            if self._dashes and name.startswith("--"):
                name = name.replace("_", "-")
            given = [value] if has_value else None
            if name in self._rows:
                self._take(name, given, words)
            elif name in self._arity:
                self.harmless.append(name)
                if given is None:
                    del words[: self._arity[name]]
            elif name.startswith("--no-") and self._arity.get(f"--{name[5:]}") == 0:
                self.harmless.append(name)
            else:
                own = given or ([words.pop(0)] if words and not _is_flag(words[0]) else [])
                self.strays.append(Stray(name, own[0] if own else ""))

    def _take(self, name: str, given: list[str] | None, words: list[str]) -> None:
        """Read the flag ``name``: by its row with a value, else as the switch it once was."""
        rows = self._rows[name]
        text = given[0] if given is not None else words[0] if words else None
        for flag, _ in rows:
            if flag.codec is None or text is None:
                continue
            try:
                self.values[flag.setting] = flag.codec.read(text)
            except (ValueError, OverflowError, RecursionError):
                continue
            if given is None:
                words.pop(0)
            return
        for flag, straight in rows:
            if flag.codec is None:
                self.values[flag.setting] = flag.means if straight else not flag.means
                return
        if given is None and text is not None:
            words.pop(0)
        self.strays.append(Stray(name, text or "", is_value=True))


def _is_flag(word: str) -> bool:
    """Whether it is a flag; a negative number is a value."""
    return word.startswith("-") and len(word) > 1 and not re.fullmatch(r"-[\d.]+", word)
