"""Asks the Hub for what is typed: never before the user has asked for it once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from PySide6.QtCore import QObject, Signal, Slot

from gui.browser import listing, sources
from gui.kit.latest import LatestOnly
from gui.kit.throttle import Debounce

if TYPE_CHECKING:
    from engine.source.hub import HubClient
    from engine.source.hub_models import HubPage
    from gui.kit.tasks import TaskRunner

TYPING_PAUSE_MS = 250


class HubSearch(QObject):
    """One question at a time; the answer to an older one is never heard."""

    answered = Signal(object)
    """A ``HubPage``: the first of an answer, or the next."""
    changed = Signal()
    """Whether it is asking, or what went wrong."""

    def __init__(self, runner: TaskRunner, hub: HubClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._hub = hub
        self.is_wanted = False
        """Whether the user has asked for it in this session: then typed words are sent too."""
        self.asked: str | None = None
        """The words of the newest question; None before there is one."""
        self.page: HubPage | None = None
        """The newest page of its answer."""
        self.trouble: BaseException | None = None
        self._words = ""
        self._latest = LatestOnly(runner, self)
        self._latest.succeeded.connect(self._on_page)
        self._latest.failed.connect(self._on_failed)
        self._latest.busy_changed.connect(self.changed)
        self._typing = Debounce(TYPING_PAUSE_MS, self._on_paused, self)

    @property
    def is_busy(self) -> bool:
        """Whether an answer is on its way."""
        return self._latest.is_busy

    @property
    def is_settled(self) -> bool:
        """Whether nothing is asked, nor about to be."""
        return not (self._latest.is_busy or self._typing.is_pending)

    @property
    def is_offline(self) -> bool:
        """Whether the Hub is never asked."""
        return self._hub.offline

    def words_of(self, query: str) -> str:
        """What is searched for; empty where something else than words was typed."""
        text = query.strip()
        return "" if listing.is_reference(text, self._hub.endpoint) else text

    @property
    def host(self) -> str:
        """Where the words go."""
        return urlsplit(self._hub.endpoint).netloc

    @property
    def has_more(self) -> bool:
        """Whether another page follows, and nothing speaks against asking for it."""
        return self.page is not None and self.page.has_more and self.trouble is None

    def type(self, words: str) -> None:
        """Ask for ``words`` once the typing pauses, if the user wants the Hub asked at all."""
        self.forget()
        if self.is_wanted and words and not self.is_offline:
            self._words = words
            self._typing.request()

    def ask(self, words: str) -> None:
        """Ask for ``words`` now, and from now on for what is typed."""
        self.is_wanted = True
        self._typing.cancel()
        self.asked, self.page, self.trouble = words, None, None
        self._latest.submit(partial(sources.ask, self._hub, words, None))

    def more(self) -> None:
        """Ask for the next page."""
        if self.page is not None and self.page.has_more and not self._latest.is_busy:
            self.trouble = None
            asked = self.asked or ""
            self._latest.submit(partial(sources.ask, self._hub, asked, self.page))

    def again(self, words: str) -> None:
        """Ask once more for what there was no answer to."""
        if self.page is not None:
            self.more()
        else:
            self.ask(words)

    def forget(self) -> None:
        """Other words are wanted: whatever comes for the old ones is not."""
        self._typing.cancel()
        self._latest.cancel()
        self.asked, self.page, self.trouble = None, None, None

    def _on_paused(self) -> None:
        self.ask(self._words)

    @Slot(object)
    def _on_page(self, page: HubPage) -> None:
        self.page = page
        self.answered.emit(page)

    @Slot(object)
    def _on_failed(self, error: BaseException) -> None:
        self.trouble = error
        self.changed.emit()
