"""Which module patterns of a foreign config are matched: plain ones, and only quick expressions.

A hostile expression can keep the matcher busy for hours. Checkpoint tools write simple ones;
what repeats a group, or repeats very often, is answered as not understood.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_EXPRESSIONS = 1_000
_LONGEST = 2_000
_MOST_REPEATS = 6
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_REPEAT = re.compile(r"[*+}]")


def first_not_understood(patterns: Iterable[str]) -> str | None:
    """The first pattern that will not be matched; None where all will be."""
    expressions = 0
    for pattern in patterns:
        if not pattern.startswith("re:"):
            if pattern.count("*") > _MOST_REPEATS:
                return pattern
            continue
        expressions += 1
        if expressions > _MOST_EXPRESSIONS or not _is_quick(pattern.removeprefix("re:")):
            return pattern
    return None


def _is_quick(text: str) -> bool:
    if len(text) > _LONGEST or _REPEATED_GROUP.search(text):
        return False
    if len(_REPEAT.findall(text)) > _MOST_REPEATS:
        return False
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
