"""What stands in place of the list when there is nothing to list, and what can be done then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import HubOfflineError
from engine.source.resolve import nearest
from engine.words import tr, tr_later
from gui.browser.filters import Group
from gui.kit.format import count
from gui.kit.messages import sentence

if TYPE_CHECKING:
    from gui.browser.hub_search import HubSearch

SEARCH, AGAIN, FURTHER, LOOK, SHOW_ALL = (
    tr_later("Search the Hub"),
    tr_later("Try again"),
    tr_later("Look further"),
    tr_later("Look again"),
    tr_later("Show all"),
)
"""Words on the button of a message."""

LOOSEN = {
    Group.FIT: tr_later("Show what doesn’t fit"),
    Group.PARAMETERS: tr_later("Any number of parameters"),
    Group.WEIGHTS: tr_later("Any stored size"),
    Group.FORMAT: tr_later("Any weight format"),
    Group.QUANT: tr_later("Any quantisation"),
    Group.CONTEXT: tr_later("Any context"),
    Group.TAKES: tr_later("Whatever it takes in"),
    Group.ACCESS: tr_later("Open and gated"),
    Group.UPDATED: tr_later("However old"),
    Group.AUTHOR: tr_later("Any author"),
    Group.LICENCE: tr_later("Any licence"),
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
    tr_later("No models found on this computer"),
    tr_later(
        "Looked in the stores of Hugging Face, Ollama, LM Studio, llama.cpp, Jan and GPT4All. Add "
        "a folder with File, Search a folder; or drop a file here."
    ),
    LOOK,
    "hard-drive",
)
NO_OWN = Message(
    tr_later("No favourites yet"),
    tr_later("View, Favourite keeps the model in the window. What you open is listed here too."),
    picture="star",
)


PRESS_ENTER = Message(
    tr_later("Press Enter to open this"),
    tr_later("It reads like a path, a link, a tag, or a config, not like a word to search for."),
    picture="search",
)
IS_OPEN = Message(
    tr_later("This is open in the window"),
    tr_later("Clear the field to see the list again."),
    picture="check",
)


def unknown_name(query: str, *, may_ask: bool) -> Message:
    """Nothing here is called like ``query``; the Hub may be asked where it hasn't been."""
    near = ", ".join(name.rsplit("/", 1)[-1] for name in nearest(query))
    detail = (
        tr("Nearest: {names}").format(names=near)
        if near
        else tr("Nothing here is called like that.")
    )
    return Message(tr("No model of this name"), detail, SEARCH if may_ask else "", "search")


def nothing_left(title: str, detail: str, group: Group | None) -> Message:
    """The filters leave nothing; ``group`` is the one to loosen, where one is enough."""
    return Message(title, detail, SHOW_ALL if group is None else LOOSEN[group], "list-filter")


def of_the_hub(search: HubSearch, catalogued: int) -> Message:
    """In place of the list: why there is no answer of the Hub.

    Args:
        search: what was asked, and what came of it.
        catalogued: models of the catalogue, which is there all the same.
    """
    trouble = search.trouble
    if search.is_offline or isinstance(trouble, HubOfflineError):
        detail = sentence(trouble) if trouble else tr("Offline mode is on; nothing was sent.")
        title = tr("Off-line, catalogue of {number}").format(number=count(catalogued))
        return Message(title, detail, AGAIN, "cloud-off")
    if trouble is not None:
        return Message(tr("No answer from the Hub"), sentence(trouble), AGAIN, "triangle-alert")
    if search.asked is not None:
        detail = tr("The Hub knows nothing like {words}.").format(words=search.asked)
        return Message(tr("No model of this name"), detail, picture="search")
    detail = tr("Type a name: it is sent to {host}. Nothing is sent before you do.")
    return Message(
        tr("Search the Hugging Face Hub"), detail.format(host=search.host), picture="cloud"
    )


def end_of_list(search: HubSearch, *, is_asking: bool, last_page: int | None) -> Message | None:
    """Below the hits: what the Hub is at; None where there is nothing to say of it.

    Args:
        search: what was asked, and what came of it.
        is_asking: whether more is on its way into the list.
        last_page: how many models the newest page held, where none of them came into the list.
    """
    trouble = search.trouble
    if is_asking or not search.is_settled:
        return Message(tr("Asking the Hub…"), picture="cloud")
    if search.is_offline or isinstance(trouble, HubOfflineError):
        was_asked = search.page is not None
        words = (
            tr("Off-line: the Hub is asked no further")
            if was_asked
            else tr("Off-line: the Hub was not asked")
        )
        return Message(words, picture="cloud-off")
    if trouble is not None:
        return Message(sentence(trouble), "", AGAIN, "triangle-alert")
    if search.asked is None:
        words = tr("Known here. Enter sends these words to {host}")
        return Message(words.format(host=search.host), "", SEARCH, "cloud")
    if last_page is not None and search.has_more:
        words = tr("Nothing new in the Hub’s last {number}").format(number=count(last_page))
        return Message(words, "", FURTHER, "cloud")
    return None
