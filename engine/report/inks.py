"""The light colours and hatches of the pictures in a web page, from the window's own tokens."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import resources
from engine.budget.model import Region

if TYPE_CHECKING:
    from collections.abc import Mapping

_IDS = {
    Region.WEIGHTS: "weights",
    Region.KV_CACHE: "kv",
    Region.RECURRENT_STATE: "state",
    Region.ACTIVATIONS: "activations",
    Region.CUDA_GRAPHS: "graphs",
    Region.RUNTIME: "runtime",
    Region.ALLOCATOR: "slack",
    Region.HEADROOM: "headroom",
    Region.FOREIGN: "foreign",
}
_STROKES: Mapping[str, str] = {
    "solid": "",
    "fdiag": "M0 0L8 8M-2 6L2 10M6 -2L10 2",
    "bdiag": "M0 8L8 0M-2 2L2 -2M6 10L10 6",
    "bdiag-dense": "M0 4L4 0M0 8L8 0M4 8L8 4",
    "horizontal": "M0 2H8M0 6H8",
    "vertical": "M2 0V8M6 0V8",
    "cross": "M0 4H8M4 0V8",
    "diagcross": "M0 0L8 8M0 8L8 0",
    "dots": "M1 2H3M5 6H7",
}
"""Each hatch on a tile of 8 × 8, so that regions differ where nothing has a colour."""


@cache
def _tokens() -> dict[str, Any]:
    return json.loads(resources.path("styles", "tokens.json").read_text(encoding="utf-8"))


def color(name: str) -> str:
    """``#14171C`` for ``text.primary``; paper is always light."""
    return _tokens()["color"]["light"][name]


def fill(region: Region) -> str:
    """What a shape of ``region`` is filled with, where ``patterns`` are defined."""
    return f"url(#ink-{_IDS[region]})"


def patterns() -> str:
    """The fills of all regions, once a page."""
    hatches = {entry["id"]: entry["hatch.contrast"] for entry in _tokens()["region"]}
    made = [_pattern(name, hatches[name]) for name in _IDS.values()]
    return f'<svg width="0" height="0" aria-hidden="true"><defs>{"".join(made)}</defs></svg>'


def _pattern(name: str, hatch: str) -> str:
    ground, ink = color(f"region.{name}"), color("surface.base")
    if name == "headroom":
        ground, ink = color("region.headroom.fill"), ground
    strokes = _STROKES[hatch]
    path = f'<path d="{strokes}" stroke="{ink}" stroke-opacity="0.6" stroke-width="1.2"/>'
    return (
        f'<pattern id="ink-{name}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect width="8" height="8" fill="{ground}"/>{path if strokes else ""}</pattern>'
    )
