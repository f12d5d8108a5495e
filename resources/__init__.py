"""Data, icons and fonts that travel with the app, reached by name."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def path(*names: str) -> Traversable:
    """The resource ``names[0]/names[1]/…`` below ``resources``."""
    return files("resources").joinpath(*names)


@cache
def data(name: str) -> Any:
    """The parsed JSON of ``data/<name>.json``, read once."""
    return json.loads(path("data", f"{name}.json").read_text(encoding="utf-8"))
