"""The icon in the forms of Windows and macOS, both of which hold PNG pictures as they are."""

from __future__ import annotations

import struct
from pathlib import Path

ICONS = Path(__file__).resolve().parent.parent / "resources" / "icons"
_ICO_SIZES = (16, 32, 48, 128)
_ICNS_TYPES = {32: b"ic11", 128: b"ic07", 512: b"ic09"}
"""Size in pixels -> kind of entry that holds a PNG (Apple's icns; ic11 is 16 points at 2x)."""


def ico(target: Path) -> Path:
    """Write a Windows icon: a directory of 16 bytes an entry, then the pictures."""
    pictures = [(size, _png(size)) for size in _ICO_SIZES]
    offset = 6 + 16 * len(pictures)
    entries, data = b"", b""
    for size, picture in pictures:
        entries += struct.pack(
            "<BBBBHHII", size, size, 0, 0, 1, 32, len(picture), offset + len(data)
        )
        data += picture
    return _written(target, struct.pack("<HHH", 0, 1, len(pictures)) + entries + data)


def icns(target: Path) -> Path:
    """Write a macOS icon: entries of kind, length and picture under one header."""
    body = b"".join(
        kind + struct.pack(">I", 8 + len(picture)) + picture
        for size, kind in _ICNS_TYPES.items()
        for picture in [_png(size)]
    )
    return _written(target, b"icns" + struct.pack(">I", 8 + len(body)) + body)


def _png(size: int) -> bytes:
    return (ICONS / f"app-{size}.png").read_bytes()


def _written(target: Path, data: bytes) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target
