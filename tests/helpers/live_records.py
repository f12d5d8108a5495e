"""The fault records of other tools in ../shared/live, by number."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def fault(shared: Path, number: str) -> dict[str, Any]:
    """One fault of other tools: ``input`` and ``right`` in words."""
    text = (shared / "live/bugs_open.json").read_text(encoding="utf-8")
    records: list[dict[str, Any]] = json.loads(text)
    return next(record for record in records if record["id"] == number)
