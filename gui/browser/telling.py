"""What the room says of its rows: the count line, what stands in their place, what below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.source import catalogue
from gui.browser import listing, messages
from gui.browser.rows import Source

if TYPE_CHECKING:
    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from gui.browser.columns import Arranged
    from gui.browser.hub_search import HubSearch
    from gui.browser.known import Known
    from gui.browser.messages import Message
    from gui.browser.state import State

ASKS = frozenset({Source.ALL, Source.HUB})
"""Sources in which the Hub's hits are shown."""


class Teller:
    """Chooses the words; keeps the last count of each source while a new one is worked out."""

    def __init__(self, known: Known, search: HubSearch) -> None:
        self._known = known
        self._search = search
        self._summaries: dict[Source, str] = {}

    def forget(self) -> None:
        """The counts no longer tell of which plan they are."""
        self._summaries.clear()

    def summary(
        self,
        state: State,
        rows: Arranged,
        plan: tuple[Deployment, Machine] | None,
        *,
        has_more: bool,
        is_counting: bool,
    ) -> str:
        """The count line; while badges are worked out, that of the plan before."""
        source = state.source
        if source in ASKS and self._search.page is not None:
            return listing.answer_summary(rows, source, has_more=has_more)
        if source is Source.HUB and not rows:
            return ""
        everything = self._known.of(source).standing(source)
        if not is_counting:
            self._summaries[source] = listing.summary(everything, self._known.badges, plan)
        return self._summaries.get(source) or listing.summary(everything, {}, None)

    def message(self, state: State, rows: Arranged, opened: str) -> Message:
        """In place of a list without rows; ``opened`` is the text that opened what is shown."""
        query = state.query.strip()
        if query and not self._search.words_of(query):
            return messages.IS_OPEN if query == opened else messages.PRESS_ENTER
        if not rows.answering:
            return self._no_answer(state.source, query)
        filters = state.wanted.filters
        title, detail, group = listing.nothing_left(rows, self._known.badges, filters, state.unit)
        return messages.nothing_left(title, detail, group)

    def _no_answer(self, source: Source, query: str) -> Message:
        """Why nothing of this source answers to the words."""
        search = self._search
        if source is Source.HUB or (source is Source.ALL and (search.asked or search.trouble)):
            return messages.of_the_hub(search, len(catalogue.entries()))
        if not self._known.of(source).standing(source):
            return messages.NO_OWN if source is Source.OWN else messages.NO_LOCAL
        return messages.unknown_name(query, may_ask=not search.is_offline)

    def end(self, state: State, *, is_asking: bool, last_page: int | None) -> Message | None:
        """Below the last row; see ``messages.end_of_list``."""
        is_searched = self._search.words_of(state.query) or self._search.asked is not None
        if state.source not in ASKS or not is_searched:
            return None
        return messages.end_of_list(self._search, is_asking=is_asking, last_page=last_page)
