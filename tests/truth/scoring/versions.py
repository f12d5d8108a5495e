"""Which release a record was measured on, and which range of releases that falls into."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.truth.scoring.records import Record

_EDGES: dict[str, tuple[tuple[tuple[int, ...], str], ...]] = {
    "vllm": (
        ((0, 0), "0.2 to 0.5"),
        ((0, 6), "0.6 to 0.10"),
        ((0, 11), "0.11 to 0.16"),
        ((0, 17), "0.17 to 0.19"),
        ((0, 20), "0.20 to 0.33"),
    ),
    "sglang": (((0, 0), "0.4"), ((0, 5), "0.5")),
    "llama.cpp": (
        ((0,), "before b4798"),
        ((4798,), "b4798 to b5912"),
        ((5913,), "b5913 to b11549"),
    ),
    "transformers": (((0, 0), "4"), ((5, 0), "5")),
    "mlx": (((0, 0), "before 0.22"), ((0, 22), "0.22 to 0.31")),
}
"""Where rules changed much: first release of a range, and its name."""
_RELEASE = re.compile(r"v?(\d+)\.(\d+)|b(\d{3,6})\b")
_NAMED = re.compile(r"(?:mlx-lm|transformers) (\d+\.\d+)")
_YEARS = 2000
UNSTATED = "not stated"
_ORDER = [name for edges in _EDGES.values() for _, name in edges]


def version_of(record: Record) -> str:
    """What a record says of its release; empty where it says nothing."""
    stated = record.request.get("runtime_version")
    if stated:
        return str(stated)
    named = _NAMED.search(record.version)
    return named[1] if named else record.version


def range_of(runtime: str, version: str) -> str:
    """The range, or ``not stated``; runtimes without ranges have one for all."""
    edges = _EDGES.get(runtime)
    if edges is None:
        return "all"
    release = _parsed(version)
    if release is None or len(release) != len(edges[0][0]):
        return UNSTATED
    return next(name for since, name in reversed(edges) if since <= release)


def release_of(version: str) -> str:
    """The release without its patch level, or all that is said; ``not stated`` if nothing is."""
    release = _parsed(version)
    if release is None:
        return version or UNSTATED
    return f"b{release[0]}" if len(release) == 1 else f"{release[0]}.{release[1]}"


def order_of(versions: str) -> tuple[int, str]:
    """Sorts ranges from old to new, and what is not stated last."""
    return (_ORDER.index(versions) if versions in _ORDER else len(_ORDER), versions)


def _parsed(version: str) -> tuple[int, ...] | None:
    """(major, minor), or the number of a build; None where ``version`` is neither."""
    match = _RELEASE.match(version)
    if match is None:
        return None
    if match[3]:
        return (int(match[3]),)
    release = int(match[1]), int(match[2])
    return release if release[0] < _YEARS else None
