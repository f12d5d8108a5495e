"""Mappings as lines of JSON that are safe to print."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def encode(mapping: Mapping[str, object]) -> str:
    """One line of JSON in ASCII: no control or bidirectional character survives in it."""
    text = json.dumps(mapping, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f")
