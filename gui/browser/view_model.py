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
from gui.browser.listing import Filters, Sort, Wanted
from gui.browser.rows import Badge, Choice, Row, Source
from gui.kit.latest import LatestOnly
from gui.kit.messages import sentence
from gui.kit.throttle import Debounce

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.source.hub import HubClient
    from engine.source.hub_models import HubPage
    from engine.source.raw import RawModel
    from gui.kit.tasks import TaskRunner

TYPING_PAUSE_MS = 250
SEARCH, AGAIN, LOOK, SHOW_ALL = "Search the Hub", "Try again", "Look again", "Show all"
"""Words on the button of a message."""
ALL = Filters(fits_here=False)
"""Filters that let everything through."""


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
    rows: Sequence[Row] = ()
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
        self._all: dict[Source, tuple[Row, ...]] = {
            Source.CATALOGUE: tuple(sources.catalogue_row(entry) for entry in catalogue.entries())
        }
        self._read: dict[str, RawModel] = {}
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
        turned = not wanted.descending if sort is wanted.sort else sort is not Sort.NAME
        self._want(replace(wanted, sort=sort, descending=turned))

    def choose(self, key: str) -> None:
        """Open a row."""
        self._opening = ""
        row = next((r for r in self.state.rows if r.key == key), None)
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

    def formats(self) -> tuple[str, ...]:
        """Weight formats among the rows of this source, by name."""
        rows = self._all.get(self.state.source, ())
        return tuple(sorted({row.weight_format for row in rows if row.weight_format}))

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

    def _learn(self, key: str, raw: RawModel) -> None:
        row = next((r for r in self._all.get(Source.HUB, ()) if r.key == key), None)
        if row is not None and row.model is None:
            self._learning.submit(lambda _token: sources.learned(row, raw))

    @Slot(object)
    def _on_learned(self, row: Row) -> None:
        rows = self._all.get(Source.HUB, ())
        self._all[Source.HUB] = tuple(row if old.key == row.key else old for old in rows)
        if self.state.source is Source.HUB:
            self._start_badges()
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
        shown = {row.key for row in self.state.rows}
        rows = self._all.get(self.state.source, ())
        # What the user looks at comes first.
        self._queue.start(sorted(rows, key=lambda r: r.key not in shown), *self._plan)

    @Slot(object)
    def _on_badges(self, made: dict[str, Badge]) -> None:
        self._badges[self.state.source].update(made)
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
        known = self._all.get(Source.HUB, ())
        seen = {row.key for row in known}
        found = (sources.hub_row(m, self._hub) for m in page.models if m.id not in seen)
        new = [sources.remembering(row, self._read) for row in found]
        self._page, self._trouble = page, None
        self._all[Source.HUB] = (*known, *new)
        self._start_badges()
        self._publish()

    @Slot(object)
    def _on_search_failed(self, error: BaseException) -> None:
        self._trouble = error
        self._publish()

    # --- this computer

    @Slot(object)
    def _on_local(self, found: object) -> None:
        rows = cast("tuple[Row, ...]", found)
        self._all[Source.LOCAL] = rows
        if self.state.source is Source.LOCAL:
            self._start_badges()
        self._publish()

    # --- the state

    @Slot()
    def _publish(self) -> None:
        state = self.state
        everything = self._all.get(state.source, ())
        # The Hub has searched; narrowing its answer again would hide what it found otherwise.
        query = "" if state.source is Source.HUB else state.query
        rows = listing.arranged(everything, self.badges, query, state.wanted)
        counts = {k: len(v) for k, v in self._all.items() if k is not Source.HUB}
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
            message=None if rows or is_busy else self._message(everything),
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

    def _message(self, everything: Sequence[Row]) -> Message:
        state = self.state
        if state.source is Source.HUB:
            return self._hub_message()
        query = state.query.strip()
        if not everything:
            where = "the caches of Hugging Face, Ollama, LM Studio and llama.cpp"
            detail = f"Looked in {where}. Open a file or folder with Ctrl+O, or drop it here."
            return Message("No models found on this computer", detail, LOOK, "hard-drive")
        if query and listing.is_reference(query, self._hub.endpoint):
            if query == self._opened:
                detail = "Clear the field to see the list again."
                return Message("This is open in the window", detail, picture="check")
            detail = "It reads like a path, a link, or a config, not like a word to search for."
            return Message("Press Enter to open this", detail, picture="search")
        if query and not listing.arranged(everything, self.badges, query, Wanted(ALL)):
            near = ", ".join(name.rsplit("/", 1)[-1] for name in nearest(query))
            detail = f"Nearest: {near}" if near else "Nothing here is called like that."
            return Message("No model of this name", detail, SEARCH, "search")
        return Message(
            *listing.nothing_fits(everything, self.badges, state.wanted.filters, state.unit),
            SHOW_ALL,
            "list-filter",
        )

    def _hub_message(self) -> Message:
        trouble = self._trouble
        if isinstance(trouble, HubOfflineError) or self._hub.offline:
            count = len(self._all[Source.CATALOGUE])
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
