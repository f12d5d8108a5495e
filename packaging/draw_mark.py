"""Draw the app's mark: one SVG for scaling, and PNGs on the pixel grid of each small size.

Run ``python packaging/draw_mark.py`` after a change of the table; the results are committed.
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

ICONS = Path(__file__).resolve().parents[1] / "resources" / "icons"
# size: ring radius, ring width, top of the water line, its width, border, corner radius
GEOMETRY = {
    16: (4, 2, 7, 2, 1, 3.5),
    32: (8.5, 3, 15, 2, 1, 7),
    48: (13, 4, 22, 3, 1, 10.5),
    128: (34, 9, 60, 8, 1.5, 28),
    512: (136, 36, 242, 28, 4, 112),
}


def drawing(size: int) -> str:
    """The mark of one size as SVG: light above the water line, blue below it."""
    radius, ring, top, line, border, corner = GEOMETRY[size]
    half, below = size / 2, top + line
    edge = border / 2
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" \
viewBox="0 0 {size} {size}">
<path d="M0 {top}V{corner}A{corner} {corner} 0 0 1 {corner} 0H{size - corner}\
A{corner} {corner} 0 0 1 {size} {corner}V{top}Z" fill="#f3f6fc"/>
<path d="M0 {top}H{size}V{size - corner}A{corner} {corner} 0 0 1 {size - corner} {size}\
H{corner}A{corner} {corner} 0 0 1 0 {size - corner}Z" fill="#1d4ed8"/>
<path d="M{half - radius} {half}A{radius} {radius} 0 0 1 {half + radius} {half}" fill="none" \
stroke="#122042" stroke-width="{ring}"/>
<path d="M{half - radius} {half}A{radius} {radius} 0 0 0 {half + radius} {half}" fill="none" \
stroke="#ffffff" stroke-width="{ring}"/>
<rect x="{edge}" y="{edge}" width="{size - border}" height="{size - border}" \
rx="{corner - edge}" fill="none" stroke="#122042" stroke-opacity="0.18" \
stroke-width="{border}"/>
<rect y="{top}" width="{size}" height="{below - top}" fill="#122042"/>
</svg>
"""


def main() -> None:
    """Write the SVG and the PNGs."""
    _app = QGuiApplication([])
    (ICONS / "app.svg").write_text(drawing(512), encoding="utf-8")
    for size in GEOMETRY:
        picture = QImage(size, size, QImage.Format.Format_ARGB32)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        QSvgRenderer(QByteArray(drawing(size).encode())).render(painter)
        painter.end()
        picture.save(str(ICONS / f"app-{size}.png"))


if __name__ == "__main__":
    main()
