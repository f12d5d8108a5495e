"""What the browser shows and why: source, query, filters, order, badges, and what is loading."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Signal, Slot

from engine.errors import HubOfflineError
from engine.source import catalogue, files
from engine.source.resolve import nearest
from engine.units import UnitSystem
from gui.browser import listing, sources
from gui.browser.badges import BadgeQueue
from gui.browser.columns import Columns
from gui.browser.filters import ALL, Filters, Group
from gui.browser.listing import Sort, Wanted
from gui.browser.rows import Badge, Choice, Row, Source
from gui.kit.latest import LatestOnly
from gui.kit.messages import sentence
from gui.kit.throttle import Debounce

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.source.hub import HubClient
    from engine.source.hub_models import HubPage
    from engine.source.raw import RawModel
    from gui.browser.columns import Arranged
    from gui.kit.tasks import TaskRunner

TYPING_PAUSE_MS = 250
SEARCH, AGAIN, LOOK, SHOW_ALL = "Search the Hub", "Try again", "Look again", "Show all"
"""Words on the button of a message."""
NOTHING = Columns(())
LOOSEN = {
    Group.FIT: "Show what doesn’t fit",
    Group.PARAMETERS: "Any number of parameters",
    Group.WEIGHTS: "Any stored size",
    Group.FORMAT: "Any weight format",
    Group.CONTEXT: "Any context",
    Group.TAKES: "Whatever it takes in",
    Group.ACCESS: "Open and gated",
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


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """All that the room shows."""

    source: Source = Source.CATALOGUE
    query: str = ""
    wanted: Wanted = field(default_factory=Wanted)
    rows: Arranged = field(default_factory=lambda: NOTHING.arranged("", Wanted()))
    has_more: bool = False
    counts: Mapping[Source, int] = field(default_factory=dict[Source, int])
    """Known numbers only."""
    summary: str = ""
    message: Message | None = None
    is_busy: bool = False
    unit: UnitSystem = UnitSystem.BINARY


class BrowserViewModel(QObject):
    """The room's state and its only way to change."""

    changed = Signal(object)
    """The new ``State``."""
    settled = Signal()
    """The badges of all rows are worked out."""
    badges_changed = Signal(object)
    """``dict`` of the badges that are new."""
    chosen = Signal(object)
    """A ``Choice``."""

    def __init__(self, runner: TaskRunner, hub: HubClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state = State()
        self._badges: dict[Source, dict[str, Badge]] = {source: {} for source in Source}
        self._hub = hub
        self._plan: tuple[Deployment, Machine] | None = None
        self._all: dict[Source, Columns] = {
            Source.CATALOGUE: Columns(sources.catalogue_row(e) for e in catalogue.entries())
        }
        self._read: dict[str, RawModel] = {}
        self._turned: set[Sort] = set()
        self._summaries: dict[Source, str] = {}
        self._page: HubPage | None = None
        self._asked = ""
        self._opening = ""
        self._opened = ""
        self._trouble: BaseException | None = None
        self._queue = BadgeQueue(self)
        self._queue.ready.connect(self._on_badges)
        self._queue.finished.connect(self._publish)
        self._queue.finished.connect(self.settled)
        self._search = LatestOnly(runner, self)
        self._search.succeeded.connect(self._on_page)
        self._search.failed.connect(self._on_search_failed)
        self._search.busy_changed.connect(self._publish)
        self._learning = LatestOnly(runner, self)
        self._learning.succeeded.connect(self._on_learned)
        self._look = LatestOnly(runner, self)
        self._look.succeeded.connect(self._on_local)
        self._look.busy_changed.connect(self._publish)
        self._acts: dict[str, Callable[[], None]] = {
            SEARCH: self.search_hub,
            AGAIN: self._ask_hub,
            LOOK: self.refresh_local,
            SHOW_ALL: partial(self.set_filters, ALL),
        }
        self._acts |= {words: partial(self._loosen, group) for group, words in LOOSEN.items()}
        self._typing = Debounce(TYPING_PAUSE_MS, self._on_typing_paused, self)
        self._publish()

    # --- what the user does

    def set_source(self, source: Source) -> None:
        """Show another source; this computer is searched when it is first asked for."""
        if source is self.state.source:
            return
        self.state = replace(self.state, source=source)
        if source is Source.LOCAL:
            self.count_local()
        if source is Source.HUB and self.state.query:
            self._typing.request()
        self._start_badges()
        self._publish()

    def set_query(self, query: str) -> None:
        """Narrow the list; on the Hub ask for it once the typing pauses."""
        self.state = replace(self.state, query=query)
        if self.state.source is Source.HUB:
            self._typing.request()
        self._publish()

    def submit(self) -> None:
        """Enter in the search field: open what was typed if it is a reference, else search."""
        text = self.state.query.strip()
        if not text:
            return
        if listing.is_reference(text, self._hub.endpoint):
            self.open(text)
        elif self.state.source is Source.HUB:
            self._typing.cancel()
            self._ask_hub()
        elif self.state.rows:
            self.choose(self.state.rows[0].key)
        else:
            self.open(text)

    def search_hub(self) -> None:
        """Ask the Hub for the words in the search field."""
        self.state = replace(self.state, source=Source.HUB)
        self._ask_hub()

    def act_on_message(self) -> None:
        """Do what the message in place of the list offers."""
        if self.state.message is not None:
            self._acts[self.state.message.action]()

    def set_filters(self, filters: Filters) -> None:
        """Show only rows that pass ``filters``."""
        self._want(replace(self.state.wanted, filters=filters))

    def set_sort(self, sort: Sort) -> None:
        """Sort by something else; the same again turns the order round."""
        wanted = self.state.wanted
        if sort is wanted.sort:
            self._turned ^= {sort}
        self._want(replace(wanted, sort=sort, descending=self._descends(sort)))

    def restore_order(self, sort: str, turned: Collection[str]) -> None:
        """Sort as last time.

        Args:
            sort: the value of a ``Sort``; another text changes nothing.
            turned: those of the orders that were turned round.
        """
        self._turned = {known for known in Sort if known.value in turned}
        known = sort if sort in set(Sort) else self.state.wanted.sort
        self._want(
            replace(self.state.wanted, sort=Sort(known), descending=self._descends(Sort(known)))
        )

    @property
    def turned_orders(self) -> tuple[str, ...]:
        """The orders that the user turned round."""
        return tuple(sort.value for sort in Sort if sort in self._turned)

    def _descends(self, sort: Sort) -> bool:
        return sort.is_descending_first ^ (sort in self._turned)

    def _loosen(self, group: Group) -> None:
        self.set_filters(self.state.wanted.filters.without(group))

    def choose(self, key: str) -> None:
        """Open a row."""
        self._opening = ""
        row = self.columns.get(key)
        if row is not None:
            self.set_chosen(key)
            self.chosen.emit(Choice(row.key, row.fetch))

    def open(self, what: Path | str) -> None:
        """Open a file, a folder, or whatever a text refers to."""
        self._opening = what.strip() if isinstance(what, str) else ""
        if isinstance(what, str):
            self.chosen.emit(Choice(what[:200], partial(sources.resolved, what, self._hub)))
        else:
            self.chosen.emit(Choice(what.name, partial(files.read, what)))

    def fetch_more(self) -> None:
        """Ask the Hub for the next page."""
        page = self._page
        if page is not None and page.has_more and not self._search.is_busy:
            self._search.submit(partial(sources.ask, self._hub, self._asked, page))

    @property
    def columns(self) -> Columns:
        """All rows of the source that is shown."""
        return self._all.get(self.state.source, NOTHING)

    def count_local(self) -> None:
        """Look for models on this computer once, in the background, so that they are counted."""
        if Source.LOCAL not in self._all and not self._look.is_busy:
            self.refresh_local()

    def refresh_local(self) -> None:
        """Look again for models on this computer."""
        self._look.submit(sources.look_here)

    # --- what the rest of the window tells

    def set_plan(self, deployment: Deployment, machine: Machine) -> None:
        """Work out the badges for another plan; the old ones stay until the new ones come."""
        if self._plan != (deployment, machine):
            self._plan = (deployment, machine)
            self._start_badges()
            self._publish()

    def set_unit(self, unit: UnitSystem) -> None:
        """Write margins in ``unit``."""
        if unit is not self.state.unit:
            self.state = replace(self.state, unit=unit)
            self._publish()

    def set_chosen(self, key: str) -> None:
        """Mark the model that is in the window; a row of the Hub learns from what was read."""
        raw = self._read.pop(key, None) or self._read.pop(key.partition(":")[0], None)
        if raw is not None:
            self._learn(key.partition(":")[0], raw)
        self._want(replace(self.state.wanted, chosen=key))

    def note_opened(self) -> None:
        """What was asked for last is in the window now."""
        self._opened, self._opening = self._opening, ""
        self._publish()

    @property
    def plan_words(self) -> str:
        """What "fits" is about: ``RTX 4090, 8,192 x 4, vLLM``; empty before there is a plan."""
        return "" if self._plan is None else listing.plan_words(*self._plan)

    def page_of(self, row: Row) -> str:
        """Address of the page of ``row`` on the Hub; empty for what this computer keeps."""
        is_there = self.state.source is not Source.LOCAL
        return f"{self._hub.endpoint}/{row.key}" if is_there else ""

    def _learn(self, key: str, raw: RawModel) -> None:
        row = self._all.get(Source.HUB, NOTHING).get(key)
        if row is not None and row.model is None:
            self._learning.submit(lambda _token: sources.learned(row, raw))

    @Slot(object)
    def _on_learned(self, row: Row) -> None:
        found = self._all.get(Source.HUB, NOTHING)
        if row.key not in found.places:
            return
        found.replace(row)
        if self.state.source is Source.HUB:
            self._queue.add((row,))
        self._publish()

    def _want(self, wanted: Wanted) -> None:
        if wanted != self.state.wanted:
            self.state = replace(self.state, wanted=wanted)
            self._publish()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is still being worked out."""
        waiting = self._queue.is_busy or self._typing.is_pending
        jobs = (self._search, self._look, self._learning)
        return not (waiting or any(job.is_busy for job in jobs))

    # --- badges

    @property
    def badges(self) -> Mapping[str, Badge]:
        """Badges of the source that is shown, by row key."""
        return self._badges[self.state.source]

    def _start_badges(self) -> None:
        if self._plan is None:
            return
        shown = self.state.rows
        # What the user looks at comes first.
        rows = sorted(self.columns.rows, key=lambda row: shown.place(row.key) is None)
        self._queue.start(rows, *self._plan)

    @Slot(object)
    def _on_badges(self, made: dict[str, Badge]) -> None:
        self._badges[self.state.source].update(made)
        self.columns.set_badges(made)
        self.badges_changed.emit(made)

    # --- the Hub

    def _on_typing_paused(self) -> None:
        if self.state.source is not Source.HUB:
            return
        query = self.state.query.strip()
        if query and not listing.is_reference(query, self._hub.endpoint):
            self._ask_hub()

    def _ask_hub(self) -> None:
        self._asked = self.state.query.strip()
        self._page, self._trouble = None, None
        self._all.pop(Source.HUB, None)
        self._search.submit(partial(sources.ask, self._hub, self._asked, None))
        self._publish()

    @Slot(object)
    def _on_page(self, page: HubPage) -> None:
        found = self._all.setdefault(Source.HUB, Columns(()))
        rows = (sources.hub_row(model, self._hub) for model in page.models)
        new = tuple(
            sources.remembering(row, self._read) for row in rows if row.key not in found.places
        )
        found.extend(new)
        # A model that an earlier search brought has its badge, if it is for this plan.
        found.set_badges(self._badges[Source.HUB])
        self._page, self._trouble = page, None
        self._publish()
        if self.state.source is Source.HUB and self._plan is not None:
            self._queue.add(new) if self._queue.is_busy else self._queue.start(new, *self._plan)

    @Slot(object)
    def _on_search_failed(self, error: BaseException) -> None:
        self._trouble = error
        self._publish()

    # --- this computer

    @Slot(object)
    def _on_local(self, found: object) -> None:
        self._all[Source.LOCAL] = Columns(cast("tuple[Row, ...]", found))
        if self.state.source is Source.LOCAL:
            self._start_badges()
        self._publish()

    # --- the state

    @Slot()
    def _publish(self) -> None:
        state = self.state
        everything = self.columns.rows
        # The Hub has searched; narrowing its answer again would hide what it found otherwise.
        query = "" if state.source is Source.HUB else state.query
        rows = self.columns.arranged(query, state.wanted)
        counts = {k: len(v.rows) for k, v in self._all.items() if k is not Source.HUB}
        has_more = state.source is Source.HUB and bool(self._page and self._page.has_more)
        is_busy = {
            Source.CATALOGUE: False,
            Source.HUB: self._search.is_busy,
            Source.LOCAL: self._look.is_busy,
        }[state.source]
        self.state = replace(
            state,
            rows=rows,
            counts=counts,
            has_more=has_more,
            is_busy=is_busy,
            summary=self._summary(everything, has_more=has_more),
            message=None if rows or is_busy else self._message(rows),
        )
        self.changed.emit(self.state)

    def _summary(self, everything: Sequence[Row], *, has_more: bool) -> str:
        """The count line; while badges are worked out, that of the plan before."""
        source = self.state.source
        if not self._queue.is_busy:
            self._summaries[source] = listing.summary(
                everything, self.badges, source, self._plan, has_more
            )
        return self._summaries.get(source) or listing.summary(
            everything, {}, source, None, has_more
        )

    def _message(self, rows: Arranged) -> Message:
        state = self.state
        if state.source is Source.HUB and not rows.answering:
            return self._hub_message()
        query = state.query.strip()
        if not self.columns.rows:
            where = "the caches of Hugging Face, Ollama, LM Studio and llama.cpp"
            detail = f"Looked in {where}. Open a file or folder with Ctrl+O, or drop it here."
            return Message("No models found on this computer", detail, LOOK, "hard-drive")
        if query and listing.is_reference(query, self._hub.endpoint):
            if query == self._opened:
                detail = "Clear the field to see the list again."
                return Message("This is open in the window", detail, picture="check")
            detail = "It reads like a path, a link, a tag, or a config, not like a word to search for."
            return Message("Press Enter to open this", detail, picture="search")
        if query and not rows.answering:
            near = ", ".join(name.rsplit("/", 1)[-1] for name in nearest(query))
            detail = f"Nearest: {near}" if near else "Nothing here is called like that."
            return Message("No model of this name", detail, SEARCH, "search")
        filters = state.wanted.filters
        title, detail, group = listing.nothing_left(rows, self.badges, filters, state.unit)
        action = SHOW_ALL if group is None else LOOSEN[group]
        return Message(title, detail, action, "list-filter")

    def _hub_message(self) -> Message:
        trouble = self._trouble
        if isinstance(trouble, HubOfflineError) or self._hub.offline:
            count = len(self._all[Source.CATALOGUE].rows)
            detail = sentence(trouble) if trouble else "Offline mode is on; nothing was sent."
            return Message(f"Off-line, catalogue of {count}", detail, AGAIN, "cloud-off")
        if trouble is not None:
            return Message("No answer from the Hub", sentence(trouble), AGAIN, "triangle-alert")
        if self._page is not None:
            return Message(
                "No model of this name",
                f"The Hub knows nothing like {self._asked}.",
                picture="search",
            )
        detail = "Type a name. Nothing is sent before you do."
        return Message("Search the Hugging Face Hub", detail, picture="cloud")
