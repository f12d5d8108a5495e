"""What the picture shows, as a file: a picture of pixels, one of lines, or the figures."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QBuffer, QRectF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgGenerator

from engine.errors import UsageError
from engine.words import tr
from gui.kit.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from gui.kit.charts.picture import MemoryPicture

_SHARPNESS = 2
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_KINDS = ("in use", "held by this plan", "KV cache in use")
"""Rows of a series after the time; a file's headings are English, like those of the terminal."""


class Figures:
    """The samples of a window, apart from the picture: may be written on another thread."""

    def __init__(self, picture: MemoryPicture) -> None:
        """Copy what ``picture`` shows.

        Raises:
            UsageError: nothing was measured in it.
        """
        seen, kept = picture.seen, picture.kept
        window = picture.window_now()
        self._offset_s = kept.wall_offset_s or 0.0
        self._names: list[str] = []
        self._columns: list[NDArray[np.float64]] = []
        for uuid in picture.uuids:
            series = kept.series.get(uuid)
            if series is None or seen.window is None:
                continue
            values = series.window(window.start_s, window.end_s)
            inside = values[0] >= window.start_s
            if inside.any():
                self._names.append(f"{kept.names.get(uuid, '')} {uuid}".strip())
                self._columns.append(values[:, inside].copy())
        self._markers = [
            (at, marker.words(seen.unit))
            for at, marker in kept.markers
            if window.start_s <= at <= window.end_s
        ]
        if not self._names:
            raise UsageError(tr("Nothing was measured in the time that is shown."))

    def lines(self) -> Iterator[list[str]]:
        """Heading and rows: time, and each device's sizes in bytes; empty where unknown."""
        sizes = [f"{name}: {kind} (bytes)" for name in self._names for kind in _KINDS]
        yield ["time (UTC)", "seconds", *map(_harmless, sizes), "marker"]
        times = np.unique(np.concatenate([c[0] for c in self._columns]))
        places = [np.searchsorted(c[0], times) for c in self._columns]
        marked = list(self._markers)
        for row, at in enumerate(times.tolist()):
            while marked and marked[0][0] < at:
                yield self._marker_row(*marked.pop(0))
            cells: list[str] = []
            for values, place in zip(self._columns, places, strict=True):
                index = int(place[row])
                is_there = index < values.shape[1] and values[0, index] == at
                cells += [_size(v) for v in values[1:, index]] if is_there else [""] * len(_KINDS)
            word = marked.pop(0)[1] if marked and marked[0][0] == at else ""
            yield [*self._moment(at), *cells, _harmless(word)]
        for rest in marked:
            yield self._marker_row(*rest)

    def _marker_row(self, at: float, words: str) -> list[str]:
        cells = [""] * (len(_KINDS) * len(self._names))
        return [*self._moment(at), *cells, _harmless(words)]

    def _moment(self, at: float) -> tuple[str, str]:
        clock = datetime.fromtimestamp(at + self._offset_s, tz=UTC)
        return clock.isoformat(timespec="milliseconds").replace("+00:00", "Z"), f"{at:.3f}"

    def write(self, path: Path) -> None:
        """Write the rows as CSV.

        Raises:
            OSError: the file can't be written; one that was there is as it was.
        """
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.lines())
        write_whole(path, text.getvalue())


def _size(value: float) -> str:
    return "" if np.isnan(value) else str(int(value))


def _harmless(text: str) -> str:
    """A cell that no spreadsheet takes for a formula, wherever the name came from."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def write_png(picture: MemoryPicture, path: Path) -> None:
    """Write what ``picture`` shows, twice as sharp as it stands on the screen.

    Raises:
        OSError: the file can't be written; one that was there is as it was.
    """
    image = QImage(picture.size() * _SHARPNESS, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SHARPNESS)
    painter = QPainter(image)
    picture.paint_whole(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QBuffer.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # pyright: ignore[reportCallIssue, reportArgumentType]  # it takes a device
    write_whole(path, bytes(buffer.data().data()))


def write_svg(picture: MemoryPicture, path: Path) -> None:
    """Write what ``picture`` shows as lines and text.

    Raises:
        OSError: the file can't be written; one that was there is as it was.
    """
    buffer = QBuffer()
    buffer.open(QBuffer.OpenModeFlag.WriteOnly)
    made = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)
    made.setOutputDevice(buffer)
    made.setSize(picture.size())
    made.setViewBox(QRectF(picture.rect()))
    made.setTitle(picture.accessibleName())
    made.setDescription(picture.accessibleDescription())
    painter = QPainter(made)
    picture.paint_whole(painter, paper=True)
    painter.end()
    write_whole(path, bytes(buffer.data().data()))
