"""The release of vLLM or SGLang that a record was made with: as stated, or the one of its day."""

from __future__ import annotations

import re
from typing import Any

_SGLANG = (
    ("2024-12-03", "0.4.0"), ("2024-12-25", "0.4.1"), ("2025-01-27", "0.4.2"),
    ("2025-02-14", "0.4.3"), ("2025-03-13", "0.4.4"), ("2025-04-07", "0.4.5"),
    ("2025-04-27", "0.4.6"), ("2025-06-10", "0.4.7"), ("2025-06-24", "0.4.8"),
    ("2025-07-06", "0.4.9"), ("2025-07-31", "0.4.10"), ("2025-08-23", "0.5.1"),
    ("2025-09-11", "0.5.2"), ("2025-10-06", "0.5.3"), ("2025-10-24", "0.5.4"),
    ("2025-11-06", "0.5.5"), ("2025-12-03", "0.5.6"), ("2026-01-01", "0.5.7"),
    ("2026-01-23", "0.5.8"), ("2026-02-23", "0.5.9"), ("2026-04-05", "0.5.10"),
    ("2026-05-07", "0.5.11"), ("2026-05-16", "0.5.12"), ("2026-06-11", "0.5.13"),
    ("2026-06-26", "0.5.14"), ("2026-07-10", "0.5.15"), ("2026-07-25", "0.5.16"),
    ("2026-08-08", "0.5.17"), ("2026-08-21", "0.5.18"), ("2026-09-04", "0.5.19"),
    ("2026-09-18", "0.5.20"), ("2026-10-01", "0.5.21"), ("2026-10-15", "0.5.22"),
    ("2026-10-30", "0.5.23"),
)  # fmt: skip
"""Day on which a wheel was made -> SGLang's release."""
_VLLM = (
    ("2024-09-05", "0.6.0"), ("2024-10-15", "0.6.3"), ("2024-11-16", "0.6.4"),
    ("2024-12-18", "0.6.5"), ("2025-01-28", "0.7.0"), ("2025-02-21", "0.7.3"),
    ("2025-03-20", "0.8.1"), ("2025-04-29", "0.8.5"), ("2025-05-29", "0.9.0"),
    ("2025-07-08", "0.9.2"), ("2025-07-25", "0.10.0"), ("2025-09-14", "0.10.2"),
    ("2025-10-04", "0.11.0"), ("2025-12-04", "0.12.0"), ("2025-12-19", "0.13.0"),
    ("2026-02-01", "0.15.0"), ("2026-03-10", "0.17.0"), ("2026-03-22", "0.18.0"),
    ("2026-04-03", "0.19.0"), ("2026-04-29", "0.20.0"), ("2026-06-22", "0.23.0"),
    ("2026-07-01", "0.24.0"), ("2026-07-13", "0.25.0"), ("2026-08-10", "0.26.0"),
    ("2026-08-20", "0.27.0"), ("2026-08-27", "0.28.0"), ("2026-09-30", "0.30.0"),
    ("2026-10-05", "0.31.0"),
)  # fmt: skip
"""Day by which vLLM's release was out, as pages of others show."""
_BY_DAY = {"sglang": _SGLANG, "vllm": _VLLM}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NAMED_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})[a-z]* (20\d\d)")


def stated_release(raw: dict[str, Any]) -> str | None:
    """The release: as printed, as named in brackets behind a day, or the newest of that day.

    A pull request of SGLang's own runs what becomes the next release.
    """
    text = raw.get("engine_version") or ""
    printed = re.match(r"v?(\d+\.\d+(?:\.\d+)?)", text)
    if printed and not printed[1].startswith("20"):
        return printed[1]
    line = re.search(r"\(.*?\b(0\.\d+)(?: line|\.x)", text)
    if line and raw["engine"] == "vllm":
        return f"{line[1]}.0"
    day = _day(text)
    if day is None:
        return None
    releases = _BY_DAY[raw["engine"]]
    if "sgl-project/sglang/pull" in raw["source_url"]:
        return next((name for made, name in releases if made >= day), None)
    return next((name for made, name in reversed(releases) if made <= day), None)


def _day(text: str) -> str | None:
    """A day as stated, or the middle of a month."""
    stated = re.search(r"20\d\d-\d\d(-\d\d)?", text)
    if stated:
        return stated[0] if stated[1] else f"{stated[0]}-15"
    named = _NAMED_MONTH.search(text)
    return f"{named[2]}-{_MONTHS.index(named[1]) + 1:02}-15" if named else None
