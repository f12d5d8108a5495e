"""What two spellings of one device have in common."""

from __future__ import annotations

import re

_NOISE = frozenset({
    "nvidia", "geforce", "rtx", "gtx", "tesla", "amd", "radeon", "instinct", "intel", "apple",
    "mac", "mini", "studio", "corporation", "graphics", "gpu", "tensor", "core", "generation",
    "class", "tm", "r", "c",
})  # fmt: skip
_WORD = re.compile(r"[a-z]+\d+[a-z]*|\d+[a-z]*|[a-z]+\+?")
_SIZE = re.compile(r"\b(\d+) ?g(?:i?b)?\b")
_ENDING = re.compile(r"_\d+gb$")
_SERIES = re.compile(r"^[rg]tx(?=\d)")
_ASIDE = re.compile(r"\([^()]*\)|,.*$")
_LONGEST = 200


def key(text: str) -> str:
    """``text`` without case, punctuation and words that tell no two devices apart."""
    words = _WORD.findall(text[:_LONGEST].casefold())
    joined = " ".join(_SERIES.sub("", word) for word in words if word not in _NOISE)
    return _SIZE.sub(r"_\1gb", joined).replace(" ", "")


def keys(text: str) -> tuple[str, ...]:
    """Keys to try for a name as a person or a log wrote it: whole, then without its asides."""
    found = (key(text), key(_ASIDE.sub(" ", text[:_LONGEST])))
    return tuple(dict.fromkeys(k for k in found if k and not _ENDING.fullmatch(k)))


def spellings(name: str, label: str) -> set[str]:
    """Keys under which a catalogue name is found: as it is, with its size, and without."""
    whole = key(name)
    bare = _ENDING.sub("", whole)
    return {whole, bare, bare + key(label)} - {""}
