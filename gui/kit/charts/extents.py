"""Least, average and most of what was measured: words, and the quiet line below the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget
from typing_extensions import override

from engine.units import format_gib
from engine.words import figures, tr
from gui.kit.controls import label

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

    from engine.units import UnitSystem
    from gui.kit.charts.kept import Extent
    from gui.kit.charts.picture import MemoryPicture
    from gui.kit.theme import Theme

_LEAST_PICTURE = 220
"""A picture that would become lower than this keeps the line's room."""
_EDGE, _GAP = 16, 8
_MOVED = (
    QEvent.Type.Resize, QEvent.Type.ShowToParent, QEvent.Type.HideToParent,
)  # fmt: skip


def lines(picture: MemoryPicture, unit: UnitSystem) -> tuple[str, ...]:
    """``Least 0.41, average 12.30, most 23.24 GiB since 12:04``, device by device."""
    found = _found(picture)
    said: list[str] = []
    for title, extent in found:
        words = tr("{figures} since {time}").format(
            figures=_figures(extent, unit), time=picture.clock_words(extent.since_s)
        )
        said.append(f"{title}: {words}" if len(found) > 1 else words)
    return tuple(said)


def wordings(picture: MemoryPicture, unit: UnitSystem, interval_s: float | None) -> tuple[str, ...]:
    """The same in one line, longest wording first.

    Args:
        picture: whose devices are told.
        unit: GiB or GB.
        interval_s: seconds from sample to sample; None where nothing is sampled now.
    """
    found = _found(picture)
    if not found:
        return (tr("Nothing was measured since the reset"),)
    if len(found) == 1:
        ((_, extent),) = found
        short = (_figures(extent, unit), tr("Most {size}").format(size=_size(extent, unit)))
    else:
        title, fullest = max(found, key=lambda one: one[1].most_bytes)
        most = ", ".join(f"{name} {_size(one, unit, with_unit=False)}" for name, one in found)
        all_of = "; ".join(f"{name}: {_figures(one, unit)}" for name, one in found)
        short = (
            all_of,
            tr("Most: {sizes} {unit}").format(sizes=most, unit=unit.value),
            tr("Most {size}, {device}").format(size=_size(fullest, unit), device=title),
        )
    since = picture.clock_words(min(extent.since_s for _, extent in found))
    whole = tr("{figures} since {time}").format(figures=short[0], time=since)
    if interval_s is None:
        return whole, *short
    seconds = figures(format(interval_s, "g"))
    sampled = tr("{figures}, sampled every {seconds} s").format(figures=whole, seconds=seconds)
    return sampled, whole, *short


def _found(picture: MemoryPicture) -> list[tuple[str, Extent]]:
    extents = picture.kept.extents
    return [(title, extents[uuid]) for uuid, title in picture.titles.items() if uuid in extents]


def _figures(extent: Extent, unit: UnitSystem) -> str:
    return tr("Least {least}, average {average}, most {most}").format(
        least=format_gib(extent.least_bytes, unit, unit=False),
        average=format_gib(extent.average_bytes, unit, unit=False),
        most=_size(extent, unit),
    )


def _size(extent: Extent, unit: UnitSystem, *, with_unit: bool = True) -> str:
    return format_gib(extent.most_bytes, unit, unit=with_unit)


class ExtentStrip(QWidget):
    """One line below ``picture``; it folds away where that has no room to give."""

    def __init__(self, picture: MemoryPicture, reset: QAction) -> None:
        super().__init__()
        self.setObjectName("extents")
        self._chart = picture
        self._wordings: tuple[str, ...] = ()
        self._least = _LEAST_PICTURE
        self.words = label("", "small", "extent words")
        # It never asks for width: what has no room is said more shortly.
        self.words.setMinimumWidth(1)
        self.reset = QToolButton()
        self.reset.setText(tr("Reset"))
        self.reset.setAutoRaise(True)
        self.reset.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.reset.setAccessibleName(reset.text().replace("&", ""))
        self.reset.setToolTip(reset.toolTip())
        self.reset.clicked.connect(reset.trigger)
        row = QHBoxLayout(self)
        row.setContentsMargins(_EDGE, 0, _EDGE, 0)
        row.setSpacing(_GAP)
        row.addWidget(self.words)
        row.addWidget(self.reset)
        row.addStretch(1)
        picture.installEventFilter(self)
        self.hide()

    def tell(self, wordings: tuple[str, ...], further: str, *, can_reset: bool) -> None:
        """Show the longest of ``wordings`` that has room; none hides the line.

        Args:
            wordings: longest first.
            further: all of it, for the tooltip.
            can_reset: whether counting can begin anew.
        """
        self._wordings = wordings
        self.words.setToolTip(further)
        self.reset.setVisible(can_reset)
        self._settle()

    def set_theme(self, theme: Theme) -> None:
        """Take fonts and the height of ``theme``."""
        self.words.setFont(theme.font("caption.num"))
        self.reset.setFont(theme.font("caption"))
        height = max(theme.grown(24), self.reset.sizeHint().height())
        self.setFixedHeight(height)
        self.reset.setFixedHeight(height)
        self._least = theme.grown(_LEAST_PICTURE)
        self._settle()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _MOVED:
            self._settle()
        return super().eventFilter(watched, event)

    def _settle(self) -> None:
        """Choose the wording, and whether there is room for the line at all."""
        button = 0 if self.reset.isHidden() else self.reset.sizeHint().width() + _GAP
        room = self._chart.width() - 2 * _EDGE - button
        width = self.words.fontMetrics().horizontalAdvance
        text = next((words for words in self._wordings if width(words) <= room), "")
        if text != self.words.text():
            self.words.setText(text)
            self.words.setAccessibleName(text)
        # As high as the picture is without the line, so that one state follows from each height.
        height = self._chart.height() + (0 if self.isHidden() else self.height())
        is_roomy = height - self.height() >= self._least
        self.setVisible(bool(text) and is_roomy and not self._chart.isHidden())
