"""Data, icons and fonts that travel with the app, reached by name."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

# Not importlib.resources: it costs 4 ms of a start, and the data always lies in a folder.
_FOLDER = Path(__file__).parent


def path(*names: str) -> Path:
    """The resource ``names[0]/names[1]/…`` below ``resources``."""
    return _FOLDER.joinpath(*names)


@cache
def data(name: str) -> Any:
    """The parsed JSON of ``data/<name>.json``, read once."""
    return json.loads(path("data", f"{name}.json").read_text(encoding="utf-8"))
