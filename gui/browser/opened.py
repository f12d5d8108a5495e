"""What was asked for, until it is in the window. No Qt."""

from __future__ import annotations

_LONGEST_REFERENCE = 500


class Opened:
    """The text that opened what is in the window, and how what is awaited is found again."""

    def __init__(self) -> None:
        self.words = ""
        """What a person typed to open what is shown; empty where a row was picked."""
        self._awaited = ("", "")

    def wait_for(self, reference: str, words: str = "") -> None:
        """``reference``, or ``words`` that mean it, was asked for."""
        self._awaited = (words, reference)

    def give_up(self) -> None:
        """What was asked for last doesn't come."""
        self._awaited = ("", "")

    def arrive(self) -> str:
        """What was asked for last is here: its reference, empty where it has none to keep."""
        (self.words, reference), self._awaited = self._awaited, ("", "")
        # A pasted config has no name under which it could be found again.
        is_name = reference[:1] != "{" and len(reference) <= _LONGEST_REFERENCE
        return reference if is_name else ""
