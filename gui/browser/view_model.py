"""What the browser shows and why: source, query, filters, order, badges, and what is loading."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Signal, Slot

from engine.errors import HubOfflineError
from engine.source import catalogue, files
from engine.source.reference import is_hub_name
from engine.units import UnitSystem
from gui.browser import listing, messages, sources
from gui.browser.badges import BadgeQueue
from gui.browser.columns import Columns
from gui.browser.filters import ALL, Filters, Group
from gui.browser.listing import Sort, Wanted
from gui.browser.rows import Badge, Choice, Row, Source
from gui.browser.shelf import Shelf
from gui.kit.latest import LatestOnly
from gui.kit.throttle import Debounce

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.source.hub import HubClient
    from engine.source.hub_models import HubPage
    from engine.source.raw import RawModel
    from gui.browser.columns import Arranged
    from gui.browser.messages import Message
    from gui.kit.tasks import TaskRunner

TYPING_PAUSE_MS = 250
NOTHING = Columns(())
_LONGEST_REFERENCE = 500


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
    shelf: Shelf = field(default_factory=Shelf)


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
    edited = Signal(str, object, object)
    """What the user did to the shelf, in words; the ``Shelf`` before and the one after."""

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
        self._reference = ""
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
            messages.SEARCH: self.search_hub,
            messages.AGAIN: self._ask_hub,
            messages.LOOK: self.refresh_local,
            messages.SHOW_ALL: partial(self.set_filters, ALL),
        }
        self._acts |= {
            words: partial(self._loosen, group) for group, words in messages.LOOSEN.items()
        }
        self._typing = Debounce(TYPING_PAUSE_MS, self._on_typing_paused, self)
        self._publish()

    # --- what the user does

    def set_shelf(self, shelf: Shelf) -> None:
        """Keep ``shelf`` in place of what was kept."""
        before = self.state.shelf
        if shelf == before:
            return
        self.state = replace(self.state, shelf=shelf)
        if shelf.folders != before.folders and Source.LOCAL in self._all:
            self.refresh_local()
        self._fill_own()
        self._publish()

    def set_favourite(self, row: Row, kept: bool) -> None:  # noqa: FBT001 - a signal's argument
        """Keep ``row`` among the favourites, or no longer."""
        words = f"{'Add' if kept else 'Remove'} favourite {row.name}"
        self._edit(words, self.state.shelf.with_favourite(row.reference, kept=kept))

    def forget(self, row: Row) -> None:
        """Take ``row`` out of what was opened last."""
        words = f"Forget {row.name}"
        self._edit(words, self.state.shelf.without_recent(row.reference))

    def set_folder(self, folder: str, *, searched: bool) -> None:
        """Search ``folder`` for models, or no longer."""
        words = f"{'Search' if searched else 'Stop searching'} {Path(folder).name or folder}"
        self._edit(words, self.state.shelf.with_folder(folder, kept=searched))

    def _edit(self, words: str, shelf: Shelf) -> None:
        before = self.state.shelf
        if shelf != before:
            self.set_shelf(shelf)
            self.edited.emit(words, before, shelf)

    def _fill_own(self) -> None:
        here = {row.path: row for row in self._all.get(Source.LOCAL, NOTHING).rows}
        self._all[Source.OWN] = Columns(
            sources.own_row(reference, here, self._hub) for reference in self.state.shelf.references
        )
        if self.state.source is Source.OWN:
            self._start_badges()

    @property
    def chosen_row(self) -> Row | None:
        """The row of the model in the window, whichever list it is in."""
        key = self.state.wanted.chosen
        rows = (columns.get(key) for columns in (self.columns, *self._all.values()))
        return next((row for row in rows if row is not None), None)

    def set_source(self, source: Source) -> None:
        """Show another source; this computer is searched when it is first asked for."""
        if source is self.state.source:
            return
        self.state = replace(self.state, source=source)
        if source in {Source.LOCAL, Source.OWN}:
            self.count_local()
        if source is Source.OWN:
            self._fill_own()
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
            self._reference = row.reference
            self.set_chosen(key)
            said = Path(row.path) if row.path else row.key
            self.chosen.emit(Choice(row.key, row.fetch, said))

    def open(self, what: Path | str) -> None:
        """Open a file, a folder, or whatever a text refers to."""
        self._opening = what.strip() if isinstance(what, str) else ""
        self._reference = str(what).strip()
        if isinstance(what, str):
            self.chosen.emit(Choice(what[:200], partial(sources.resolved, what, self._hub), what))
        else:
            self.chosen.emit(Choice(what.name, partial(files.read, what), what))

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
        self._look.submit(partial(sources.look_here, self.state.shelf.folders))

    # --- what the rest of the window tells

    def set_plan(self, deployment: Deployment, machine: Machine) -> None:
        """Work out the badges for another plan; the old ones stay until the new ones come."""
        if self._plan != (deployment, machine):
            if self._plan and not listing.is_told_apart(self._plan[0], deployment):
                # Its words would pass for those of the plan that is not counted yet.
                self._summaries.clear()
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
        reference, self._reference = self._reference, ""
        # A pasted config has no name under which it could be found again.
        if reference and reference[0] != "{" and len(reference) <= _LONGEST_REFERENCE:
            self.set_shelf(self.state.shelf.with_recent(reference))
        self._publish()

    @property
    def plan_words(self) -> str:
        """What "fits" is about: ``RTX 4090, 8,192 x 4, vLLM``; empty before there is a plan."""
        return "" if self._plan is None else listing.plan_words(*self._plan)

    def page_of(self, row: Row) -> str:
        """Address of the page of ``row`` on the Hub; empty for what this computer keeps."""
        return "" if row.path or not is_hub_name(row.key) else f"{self._hub.endpoint}/{row.key}"

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
        if self.state.source is Source.OWN:
            self._fill_own()
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
        counted = (Source.CATALOGUE, Source.LOCAL)
        counts = {k: len(self._all[k].rows) for k in counted if k in self._all}
        has_more = state.source is Source.HUB and bool(self._page and self._page.has_more)
        is_busy = {
            Source.CATALOGUE: False,
            Source.HUB: self._search.is_busy,
            Source.LOCAL: self._look.is_busy,
            Source.OWN: False,
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
            is_offline = isinstance(self._trouble, HubOfflineError) or self._hub.offline
            asked = self._asked if self._page is not None else None
            number = len(self._all[Source.CATALOGUE].rows)
            return messages.of_the_hub(self._trouble, asked, number if is_offline else None)
        query = state.query.strip()
        if query and listing.is_reference(query, self._hub.endpoint):
            return messages.IS_OPEN if query == self._opened else messages.PRESS_ENTER
        if not self.columns.rows:
            return messages.NO_OWN if state.source is Source.OWN else messages.NO_LOCAL
        if query and not rows.answering:
            return messages.unknown_name(query)
        filters = state.wanted.filters
        title, detail, group = listing.nothing_left(rows, self.badges, filters, state.unit)
        return messages.nothing_left(title, detail, group)
