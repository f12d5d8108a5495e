"""Foreign text made safe to print: no control, bidirectional or unassigned characters."""

from __future__ import annotations

import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def printable(text: str, limit: int = 2000) -> str:
    """``text`` with every character that could steer a terminal or reorder a line escaped.

    At most ``limit`` characters are kept; a cut is shown as an ellipsis.
    """
    shown = text if len(text) <= limit else text[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return "".join(
        c if unicodedata.category(c) not in _HIDDEN else c.encode("unicode_escape").decode("ascii")
        for c in shown
    )
