"""Which range of releases a record falls into."""

from __future__ import annotations

import re

_EDGES: dict[str, tuple[tuple[tuple[int, ...], str], ...]] = {
    "vllm": (
        ((0, 0), "0.2 to 0.5"),
        ((0, 6), "0.6 to 0.10"),
        ((0, 11), "0.11 to 0.16"),
        ((0, 17), "0.17 to 0.19"),
        ((0, 20), "0.20 to 0.33"),
    ),
    "sglang": (((0, 0), "0.4"), ((0, 5), "0.5")),
}
_RELEASE = re.compile(r"v?(\d+)\.(\d+)")
UNSTATED = "not stated"
_ORDER = [name for edges in _EDGES.values() for _, name in edges]


def range_of(runtime: str, version: str) -> str:
    """The range, or ``not stated``; runtimes without ranges have one for all."""
    edges = _EDGES.get(runtime)
    if edges is None:
        return "all"
    match = _RELEASE.match(version)
    if match is None or int(match[1]) > 1:
        return UNSTATED
    stated = (int(match[1]), int(match[2]))
    return next(name for since, name in reversed(edges) if since <= stated)


def order_of(versions: str) -> tuple[int, str]:
    """Sorts ranges from old to new, and what is not stated last."""
    return (_ORDER.index(versions) if versions in _ORDER else len(_ORDER), versions)


def release_of(version: str) -> str:
    """The release without its patch level, or a build's whole name; ``not stated`` if empty."""
    match = _RELEASE.match(version)
    return f"{int(match[1])}.{int(match[2])}" if match else version or UNSTATED
