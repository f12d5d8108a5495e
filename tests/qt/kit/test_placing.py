"""A window comes back where it was, or whole onto a screen that is still there."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect

from gui.kit.placing import on_screen

MAIN = QRect(0, 0, 1920, 1040)
LEFT = QRect(-1280, 0, 1280, 1024)
SECOND = QRect(1920, 0, 2560, 1400)


@pytest.mark.parametrize(
    ("window", "screens", "placed"),
    [
        # Where it was, on the main screen and on the second one.
        ((100, 80, 1200, 800), [MAIN, SECOND], (100, 80, 1200, 800)),
        ((2500, 100, 1440, 900), [MAIN, SECOND], (2500, 100, 1440, 900)),
        ((-1200, 40, 960, 600), [MAIN, LEFT], (-1200, 40, 960, 600)),
        # The second screen is gone: at the edge of the first, on the side where it was.
        ((2500, 100, 1440, 900), [MAIN], (480, 100, 1440, 900)),
        ((-1200, 40, 960, 600), [MAIN], (0, 40, 960, 600)),
        # Larger than the screen that is left.
        ((1920, 0, 2560, 1400), [MAIN], (0, 0, 1920, 1040)),
        # A corner of it was to be seen.
        ((1900, 1020, 960, 600), [MAIN], (960, 440, 960, 600)),
        # Between two screens: on the one that shows more of it.
        ((1720, 100, 1000, 600), [MAIN, SECOND], (1920, 100, 1000, 600)),
        # The title bar was above the screen.
        ((100, -300, 960, 600), [MAIN], (100, 0, 960, 600)),
    ],
)
def test_that_a_window_is_whole_on_one_screen(window, screens, placed):
    assert on_screen(QRect(*window), screens) == QRect(*placed)
