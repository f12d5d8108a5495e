"""What the browser shows and why: source, query, filters, order, badges, and what is loading."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Signal, Slot

from engine.source import catalogue, files
from engine.source.reference import is_hub_name
from gui.browser import listing, messages, sources
from gui.browser.badges import BadgeQueue
from gui.browser.filters import ALL, Filters, Group
from gui.browser.hub_search import HubSearch
from gui.browser.known import Known
from gui.browser.learning import Learning
from gui.browser.listing import Orders, Sort, Wanted
from gui.browser.opened import Opened
from gui.browser.repository_files import RepositoryFiles
from gui.browser.rows import Badge, Choice, Row, Source
from gui.browser.shelf import favourite_turned, folder_turned, forgotten
from gui.browser.state import State
from gui.browser.telling import ASKS, Teller
from gui.kit.latest import LatestOnly

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from engine.deployment.spec import Deployment
    from engine.devices.device import Machine
    from engine.source.hub import HubClient
    from engine.source.hub_models import HubPage
    from engine.units import UnitSystem
    from gui.browser.columns import Columns
    from gui.browser.shelf import Shelf
    from gui.kit.tasks import TaskRunner


class BrowserViewModel(QObject):
    """The room's state and its only way to change."""

    changed = Signal(object)
    """The new ``State``."""
    settled = Signal()
    """The badges of all rows are worked out."""
    badges_changed = Signal(object)
    """``dict`` of the badges that are new."""
    rested = Signal()
    """Some badges of many are worked out: a moment to ``let_go``, unless somebody is pointing."""
    chosen = Signal(object)
    """A ``Choice``."""
    commanded = Signal(str)
    """A start command in place of a name."""
    edited = Signal(str, object, object)
    """What the user did to the shelf, in words; the ``Shelf`` before and the one after."""

    def __init__(self, runner: TaskRunner, hub: HubClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state = State()
        self._hub = hub
        self._plan: tuple[Deployment, Machine] | None = None
        self._learning = Learning(runner, self)
        self._learning.learned.connect(self._on_learned)
        self._known = Known(lambda kept: self._learning.remembering(sources.own_row(kept, hub)))
        self._orders = Orders()
        self._asked_for: object = None
        """Source, words, filters and order of the list as the user wants it."""
        self._arranged_for: object = None
        """Those by which the rows were put in order; None to do it anew."""
        self._is_new = False
        """Whether the badges that are worked out are those of another plan."""
        self._arrived: tuple[Row, ...] = ()
        self._fruitless: int | None = None
        self._opened = Opened()
        self._queue = BadgeQueue(self)
        self._queue.ready.connect(self._on_badges)
        self._queue.finished.connect(self._on_all_badges)
        self._queue.rested.connect(self.rested)
        self._arriving = BadgeQueue(self)
        """Rows of the Hub get their badges before they are shown, so that none goes again."""
        self._arriving.ready.connect(self._on_badges)
        self._arriving.finished.connect(self._join)
        self._search = HubSearch(runner, hub, self)
        self._teller = Teller(self._known, self._search)
        self._search.answered.connect(self._on_page)
        self._search.changed.connect(self._publish)
        self.files = RepositoryFiles(runner, hub, self)
        """Those of the repository that is looked into."""
        self._look = LatestOnly(runner, self)
        self._look.succeeded.connect(self._on_local)
        self._look.busy_changed.connect(self._publish)
        self._acts: dict[str, Callable[[], None]] = {
            messages.SEARCH: self.search_hub,
            messages.AGAIN: self._ask_again,
            messages.FURTHER: self._look_further,
            messages.LOOK: self.refresh_local,
            messages.SHOW_ALL: partial(self.set_filters, ALL),
            **{said: partial(self._loosen, group) for group, said in messages.LOOSEN.items()},
        }
        self._publish()

    # --- what the user does

    def set_shelf(self, shelf: Shelf) -> None:
        """Keep ``shelf`` in place of what was kept."""
        before = self.state.shelf
        if shelf == before:
            return
        self.state = replace(self.state, shelf=shelf)
        if shelf.folders != before.folders and self._known.is_counted:
            self.refresh_local()
        if shelf.references != before.references:
            self._known.set_kept(shelf.references)
            self._queue.add([r for r in self._known.columns.rows if r.key not in self.badges])
        self._publish()

    def set_favourite(self, row: Row, kept: bool) -> None:  # noqa: FBT001 - a signal's argument
        """Keep ``row`` among the favourites, or no longer."""
        self.edit_shelf(*favourite_turned(self.state.shelf, row, kept=kept))

    def forget(self, row: Row) -> None:
        """Take ``row`` out of what was opened last."""
        self.edit_shelf(*forgotten(self.state.shelf, row))

    def set_folder(self, folder: str, *, searched: bool) -> None:
        """Search ``folder`` for models, or no longer."""
        self.edit_shelf(*folder_turned(self.state.shelf, folder, searched=searched))

    def edit_shelf(self, words: str, shelf: Shelf) -> None:
        """Keep ``shelf`` as the user's doing, which ``words`` name."""
        before = self.state.shelf
        if shelf != before:
            self.set_shelf(shelf)
            self.edited.emit(words, before, shelf)

    @property
    def chosen_row(self) -> Row | None:
        """The row of the model in the window, whether it is shown or not."""
        return self._known.columns.get(self.state.wanted.chosen)

    def set_source(self, source: Source) -> None:
        """Narrow the list to a source, or show all; who picks the Hub wants it asked."""
        if source is self.state.source:
            return
        self.state = replace(self.state, source=source)
        self.files.close()
        if source is Source.HUB:
            self._search.is_wanted = True
        if source in ASKS and self._search.asked is None:
            self._search.type(self._words)
        self.count_local()
        self._start_badges()
        self._publish()

    def set_query(self, query: str) -> None:
        """Narrow the list at once; the Hub's hits join once the typing pauses."""
        before = self._words
        self.state = replace(self.state, query=query)
        if self._words != before:
            self.files.close()
            self._arriving.stop()
            self._fruitless = None
            self._known.columns.forget_answer()
            self._search.type(self._words if self.state.source in ASKS else "")
        self._publish()

    @property
    def _words(self) -> str:
        return self._search.words_of(self.state.query)

    def submit(self) -> None:
        """Enter in the search field: open what was named, else search the Hub too, else the first.

        A whole name is opened as it is, even where more popular rows hold its words.
        """
        text = self.state.query.strip()
        if not text:
            return
        if sources.is_command(text):
            self.commanded.emit(text)
            return
        named = self._named(text)
        if named is not None:
            self.choose(named.key)
        elif not self._words or ("/" in text and is_hub_name(text)):
            self.open(text)
        elif self._can_ask and self._search.asked != text:
            self._ask()
        elif self.state.rows:
            self.choose(self.state.rows[0].key)
        else:
            self.open(text)

    def _named(self, text: str) -> Row | None:
        """The row of which ``text`` is the whole name."""
        entry = catalogue.find(text)
        return self.columns.get(entry.id if entry is not None else text)

    @property
    def _can_ask(self) -> bool:
        return self.state.source in ASKS and not self._search.is_offline

    def search_hub(self) -> None:
        """Ask the Hub for the words in the search field, and from now on for what is typed."""
        if self.state.source not in ASKS:
            self.state = replace(self.state, source=Source.ALL)
        self._ask()

    def _ask(self) -> None:
        self._known.columns.forget_answer()
        self._fruitless = None
        self._search.ask(self._words)
        self._publish()

    def _ask_again(self) -> None:
        self._search.again(self._words)
        self._publish()

    def _look_further(self) -> None:
        self._fruitless = None
        self._search.more()
        self._publish()

    def act_at_end(self) -> None:
        """Do what the line below the last row offers."""
        if self.state.end is not None and self.state.end.action:
            self._acts[self.state.end.action]()

    def act_on_message(self) -> None:
        """Do what the message in place of the list offers."""
        if self.state.message is not None:
            self._acts[self.state.message.action]()

    def set_filters(self, filters: Filters) -> None:
        """Show only rows that pass ``filters``."""
        self._want(replace(self.state.wanted, filters=filters))

    def set_sort(self, sort: Sort) -> None:
        """Sort by something else; the same again turns the order round.

        Where rows came later and stand below the others, the same again sorts them in.
        """
        wanted = self.state.wanted
        if sort is wanted.sort and self.state.rows.is_sorted:
            self._orders.turn(sort)
        self._arranged_for = None
        self.state = replace(
            self.state, wanted=replace(wanted, sort=sort, descending=self._orders.descends(sort))
        )
        self._publish()

    def restore_order(self, sort: str, turned: Collection[str]) -> None:
        """Sort as last time.

        Args:
            sort: the value of a ``Sort``; another text changes nothing.
            turned: those of the orders that were turned round.
        """
        self._orders.restore(turned)
        known = Sort(sort) if sort in set(Sort) else self.state.wanted.sort
        descends = self._orders.descends(known)
        self._want(replace(self.state.wanted, sort=known, descending=descends))

    @property
    def turned_orders(self) -> tuple[str, ...]:
        """The orders that the user turned round."""
        return self._orders.turned

    def _loosen(self, group: Group) -> None:
        self.set_filters(self.state.wanted.filters.without(group))

    def choose(self, key: str, *, beside: bool = False) -> None:
        """Open a row, or add it ``beside`` the model in the window."""
        row = self.columns.get(key)
        if row is not None:
            self._opened.wait_for(row.reference)
            self.set_chosen(key)
            is_hub = self.state.source is Source.HUB
            self.chosen.emit(row.choice(afresh=is_hub, beside=beside))

    def choose_file(self, row: Row) -> None:
        """Open one file of a repository."""
        self._opened.wait_for(row.key)
        self.chosen.emit(row.choice())

    @property
    def repository_in_window(self) -> Row | None:
        """The repository of which a file is in the window, where it may have others."""
        row = self._known.repository_of(self.state.wanted.chosen)
        return row if row is not None and self.files.may_have(row) else None

    def open(self, what: Path | str) -> None:
        """Open a file, a folder, or whatever a text refers to."""
        if isinstance(what, str) and sources.is_command(what):
            self.commanded.emit(what)
            return
        self._opened.wait_for(str(what).strip(), what.strip() if isinstance(what, str) else "")
        if isinstance(what, str):
            self.chosen.emit(
                Choice(what[:200], partial(sources.resolved, what, self._hub), said=what)
            )
        else:
            self.chosen.emit(Choice(what.name, partial(files.read, what), said=what))

    def fetch_more(self) -> None:
        """Ask the Hub for the next page."""
        if self.state.has_more:
            self._search.more()

    @property
    def columns(self) -> Columns:
        """All rows among which the source narrows."""
        return self._known.of(self.state.source)

    def count_local(self) -> None:
        """Look for models on this computer once, in the background, so that they are counted."""
        if not self._known.is_counted and not self._look.is_busy:
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
                self._teller.forget()
            self._plan = (deployment, machine)
            self._is_new = True
            self.files.set_plan(deployment, machine)
            if self._arriving.is_busy:
                self._arriving.start(self._known.arriving(self._arrived), *self._plan)
            self._start_badges()
            self._publish()

    def set_unit(self, unit: UnitSystem) -> None:
        """Write margins in ``unit``."""
        if unit is not self.state.unit:
            self.state = replace(self.state, unit=unit)
            self._publish()

    def set_chosen(self, key: str) -> None:
        """Mark the model that is in the window; a row of the Hub learns from what was read."""
        self._learning.learn(key, self._known.columns.get(key.partition(":")[0]))
        self._want(replace(self.state.wanted, chosen=key))

    def stay_with(self, key: str) -> None:
        """What was asked for last doesn't come into the window: the model ``key`` stays."""
        self._opened.give_up()
        self.set_chosen(key)

    def note_access(self) -> None:
        """Whether the Hub may be asked has changed."""
        self._publish()

    def note_opened(self) -> None:
        """What was asked for last is in the window now."""
        reference = self._opened.arrive()
        if reference:
            self.set_shelf(self.state.shelf.with_recent(reference))
        self._publish()

    @property
    def plan_words(self) -> str:
        """What "fits" is about: ``RTX 4090, 8,192 x 4, vLLM``; empty before there is a plan."""
        return "" if self._plan is None else listing.plan_words(*self._plan)

    def page_of(self, row: Row) -> str:
        """Address of the page of ``row`` on the Hub; empty for what this computer keeps."""
        return "" if row.path or not is_hub_name(row.key) else f"{self._hub.endpoint}/{row.key}"

    @Slot(object)
    def _on_learned(self, row: Row) -> None:
        if self._known.columns.get(row.key) is not None:
            self._known.replace(row)
            self._queue.add((row,))
            self._publish()

    def _want(self, wanted: Wanted) -> None:
        if wanted != self.state.wanted:
            self.state = replace(self.state, wanted=wanted)
            self._publish()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is still being worked out."""
        queues = (self._queue, self._arriving, self._look, self._learning)
        is_asking = not (self._search.is_settled and self.files.is_settled)
        return not (is_asking or any(part.is_busy for part in queues))

    # --- badges

    @property
    def badges(self) -> Mapping[str, Badge]:
        """Badges by row key."""
        return self._known.badges

    def _start_badges(self) -> None:
        if self._plan is None:
            return
        shown = self.state.rows
        # What the user looks at comes first.
        rows = sorted(self._known.columns.rows, key=lambda row: shown.place(row.key) is None)
        self._queue.start(rows, *self._plan)

    @Slot(object)
    def _on_badges(self, made: dict[str, Badge]) -> None:
        self._known.set_badges(made)
        self.badges_changed.emit(made)

    def let_go(self) -> None:
        """Take out of the list what by now doesn't fit; what fits now comes in with the last."""
        if self.state.wanted.filters.narrows(Group.FIT):
            self._publish(lets_in=False)

    @Slot()
    def _on_all_badges(self) -> None:
        if self._is_new:
            # By another plan other rows fit, and in another order.
            self._is_new, self._arranged_for = False, None
        self._publish()
        self.settled.emit()

    # --- the Hub

    @Slot(object)
    def _on_page(self, page: HubPage) -> None:
        rows = (sources.hub_row(model, self._hub) for model in page.models)
        self._arrived = tuple(map(self._learning.remembering, rows))
        if self._plan is None:
            self._join()
        else:
            self._arriving.start(self._known.arriving(self._arrived), *self._plan)
            self._publish()

    @Slot()
    def _join(self) -> None:
        """The newest page comes into the list, below what is there."""
        before = len(self.state.rows)
        self._known.add_found(self._arrived)
        self._publish()
        if len(self.state.rows) == before:
            self._fruitless = len(self._arrived)
            self._publish()

    # --- this computer

    @Slot(object)
    def _on_local(self, found: object) -> None:
        rows = cast("tuple[Row, ...]", found)
        self._known.set_here(rows)
        self._arranged_for = None
        self._queue.add([row for row in self._known.columns.rows if row.path])
        self._publish()

    # --- the state

    @Slot()
    def _publish(self, *, lets_in: bool = True) -> None:
        state = self.state
        wanted = state.wanted
        query = state.query.strip()
        asked_for = (state.source, query, wanted.filters, wanted.sort, wanted.descending)
        is_same = asked_for == self._arranged_for
        # What a person looks at keeps its place until they ask for something else.
        after = state.rows if is_same else None
        rows = self.columns.arranged(query, wanted, state.source, after, lets_in=lets_in)
        if not (rows or lets_in):
            # That nothing fits cannot be said before all is worked out.
            return
        changed = self._asked_for != asked_for
        self._arranged_for = self._asked_for = asked_for
        asks = state.source in ASKS
        has_more = asks and self._search.has_more and self._fruitless is None
        is_asking = asks and (self._search.is_busy or self._arriving.is_busy)
        is_looking = state.source is Source.LOCAL and self._look.is_busy
        is_empty = not (rows or is_asking or is_looking)
        self.state = replace(
            state,
            rows=rows,
            arrangement=state.arrangement + changed,
            counts=self._known.counts,
            has_more=has_more and not is_asking,
            is_busy=is_asking or is_looking,
            summary=self._teller.summary(
                state, rows, self._plan, has_more=has_more, is_counting=self._queue.is_busy
            ),
            message=self._teller.message(state, rows, self._opened.words) if is_empty else None,
            end=self._teller.end(state, is_asking=is_asking, last_page=self._fruitless),
            sends_to=self._search.host if self._search.is_wanted and self._can_ask else "",
        )
        self.changed.emit(self.state)
