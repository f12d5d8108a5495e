"""What stands in place of the list when there is nothing to list, and what can be done then."""

from __future__ import annotations

from dataclasses import dataclass

from engine.source.resolve import nearest
from gui.browser.filters import Group
from gui.kit.messages import sentence

SEARCH, AGAIN, LOOK, SHOW_ALL = "Search the Hub", "Try again", "Look again", "Show all"
"""Words on the button of a message."""

LOOSEN = {
    Group.FIT: "Show what doesn’t fit",
    Group.PARAMETERS: "Any number of parameters",
    Group.WEIGHTS: "Any stored size",
    Group.FORMAT: "Any weight format",
    Group.CONTEXT: "Any context",
    Group.TAKES: "Whatever it takes in",
    Group.ACCESS: "Open and gated",
    Group.UPDATED: "However old",
    Group.AUTHOR: "Any author",
    Group.LICENCE: "Any licence",
}
"""Words on the button that loosens one filter."""


@dataclass(frozen=True, slots=True)
class Message:
    """What stands in place of the list, or of its end."""

    title: str
    detail: str = ""
    action: str = ""
    """Words on a button; empty for none."""
    picture: str = "info"


NO_LOCAL = Message(
    "No models found on this computer",
    "Looked in the stores of Hugging Face, Ollama, LM Studio, llama.cpp, Jan and GPT4All. Add a "
    "folder with File, Search a folder; or drop a file here.",
    LOOK,
    "hard-drive",
)
NO_OWN = Message(
    "No favourites yet",
    "Ctrl+Shift+D keeps the model in the window. What you open is listed here too.",
    picture="star",
)


PRESS_ENTER = Message(
    "Press Enter to open this",
    "It reads like a path, a link, a tag, or a config, not like a word to search for.",
    picture="search",
)
IS_OPEN = Message(
    "This is open in the window", "Clear the field to see the list again.", picture="check"
)


def unknown_name(query: str) -> Message:
    """Nothing here is called like ``query``."""
    near = ", ".join(name.rsplit("/", 1)[-1] for name in nearest(query))
    detail = f"Nearest: {near}" if near else "Nothing here is called like that."
    return Message("No model of this name", detail, SEARCH, "search")


def nothing_left(title: str, detail: str, group: Group | None) -> Message:
    """The filters leave nothing; ``group`` is the one to loosen, where one is enough."""
    return Message(title, detail, SHOW_ALL if group is None else LOOSEN[group], "list-filter")


def of_the_hub(trouble: BaseException | None, asked: str | None, catalogued: int | None) -> Message:
    """Why there is no answer of the Hub.

    Args:
        trouble: what went wrong, if anything did.
        asked: the words it answered with an empty page; None before it has answered.
        catalogued: models of the catalogue where the Hub can't be reached; None where it can.
    """
    if catalogued is not None:
        detail = sentence(trouble) if trouble else "Offline mode is on; nothing was sent."
        return Message(f"Off-line, catalogue of {catalogued}", detail, AGAIN, "cloud-off")
    if trouble is not None:
        return Message("No answer from the Hub", sentence(trouble), AGAIN, "triangle-alert")
    if asked is not None:
        detail = f"The Hub knows nothing like {asked}."
        return Message("No model of this name", detail, picture="search")
    detail = "Type a name. Nothing is sent before you do."
    return Message("Search the Hugging Face Hub", detail, picture="cloud")
