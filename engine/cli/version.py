"""Which version this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def program_version() -> str:
    """The installed version, or the one of an unpacked source tree."""
    try:
        return version("plimsoll")
    except PackageNotFoundError:
        return "0.1.0"
