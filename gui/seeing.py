"""The runtimes that are seen: looked for while somebody looks, told to the rooms, made the plan."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from engine.errors import EndpointError
from engine.seen import modelled
from engine.seen.keys import Keys
from engine.seen.look import Here, Looker
from engine.seen.matched import of_processes
from engine.seen.model import NO_MODEL, Reach, RuntimeSeen
from engine.seen.unloads import unloaded
from engine.telemetry.address import Address, parsed
from engine.telemetry.commands import recognise
from engine.telemetry.snapshot import Missing
from engine.telemetry.wire import Asking
from engine.words import tr
from gui.live.address_dialog import AddressDialog

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from engine.architecture.model import Model
    from engine.launch.read import Understood
    from engine.telemetry.snapshot import TelemetrySnapshot
    from gui.app import App
    from gui.kit.tasks import Task

PAUSE_MS = 5000
"""Between looks: the slow tier, since a look goes through all processes."""


class Seeing(QObject):
    """Looks for runtimes in a worker while a page that shows them is to be seen."""

    changed = Signal(object)
    """A tuple of ``RuntimeSeen``."""
    plan_told = Signal(object)
    """What the plan's own runtime says, a ``RuntimeSeen``, at each look and each change of the
    plan; None where none is seen."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self.keys = Keys()
        self.looker = Looker(key_of=self.keys.of)
        self.far_looker = Looker(Here(tuple, lambda _pids: ()), key_of=self.keys.of)
        """For a machine elsewhere: what runs on this computer is not looked at."""
        self._pages: list[QWidget] = [app.holds]
        self._task: Task | None = None
        self._matching: Task | None = None
        self.seen: tuple[RuntimeSeen, ...] = ()
        self._given_up: RuntimeSeen | None = None
        """The plan's runtime since it said that it unloaded the plan's model."""
        self._timer = QTimer(self)
        self._timer.setInterval(PAUSE_MS)
        self._timer.timeout.connect(self.look)
        app.holds.match_wanted.connect(self.match)
        app.holds.add_wanted.connect(self.ask_address)
        app.view.tabs.current_changed.connect(self._on_page)
        app.view.tabs.folded_changed.connect(self._on_page)
        app.model.changed.connect(self._tell_plan)
        self.changed.connect(app.holds.show_runtimes)

    def start(self) -> None:
        """Look now and again from now on."""
        self._timer.start()
        self.look()

    def stop(self) -> None:
        """Look no more."""
        self._timer.stop()
        for task in (self._task, self._matching):
            if task is not None:
                task.cancel()

    def show_on(self, page: QWidget) -> None:
        """Look while ``page`` is to be seen as well."""
        self._pages.append(page)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Those that the user added."""
        found: list[Address] = []
        for text in self._app.settings.addresses:
            with suppress(EndpointError):
                found.append(parsed(text))
        return tuple(found)

    @property
    def of_plan(self) -> RuntimeSeen | None:
        """The one that runs the plan's model with the plan's runtime, if exactly one does."""
        state = self._app.model.state
        if state.model is None:
            return None
        runtime, model = state.plan.deployment.runtime, state.model
        rows = [r for r in self.seen if r.runtime == runtime and modelled.is_of(r, model)]
        return rows[0] if len(rows) == 1 else None

    @Slot()
    def look(self) -> None:
        """Look once, unless a look is going on or there is nothing to look for.

        That is a page that shows it, or a runtime among the processes that the drivers list: its
        requests say in which phase the run is. What was typed is asked for a page alone.
        """
        app = self._app
        is_shown = any(page.isVisible() for page in self._pages)
        is_wanted = is_shown or _runs(app.watch.last)
        if self._task is not None:
            return
        if not is_wanted or app.watch.replay is not None:
            self._on_seen(())
            return
        snapshot, offline = app.watch.last, app.hub.offline
        added = self.addresses if is_shown else ()
        far, looker = app.watch.elsewhere, self.looker
        if far is not None:
            added, looker = tuple(a for a in added if a.host == far.host), self.far_looker
        look = partial(looker.look, snapshot, added=added)
        model = app.model.state.model
        self._task = app.runner.submit(
            lambda token: _with_pools(look(asking=Asking(token, offline=offline)), model)
        )
        self._task.succeeded.connect(self._on_seen)
        self._task.failed.connect(app.trouble.report)
        self._task.ended.connect(self._on_ended)

    @Slot(object)
    def _on_seen(self, rows: object) -> None:
        found = cast("tuple[RuntimeSeen, ...]", rows)
        model = self._app.model.state.model
        for row, server in unloaded(self.seen, found):
            name = "" if isinstance(row.model, Missing) else row.model.name
            self._app.watch.tell_unload(f"{row.label}, {name}")
            if model is not None and modelled.is_of(row, model):
                self._given_up = replace(server, model=NO_MODEL)
        is_other, self.seen = found != self.seen, found
        if is_other:
            self.changed.emit(found)
        self._tell_plan()

    @Slot()
    def _tell_plan(self) -> None:
        """What the plan's runtime says, which may be that it gave the plan's model up."""
        told = self.of_plan
        if told is not None or not self.seen:
            self._given_up = None
        self.plan_told.emit(told or self._given_up or self._empty)

    @property
    def _empty(self) -> RuntimeSeen | None:
        """The plan's runtime, if it is there once and says that it holds no model at all."""
        runtime = self._app.model.state.plan.deployment.runtime
        rows = [row for row in self.seen if row.runtime == runtime]
        return rows[0] if len(rows) == 1 and rows[0].model == NO_MODEL else None

    @Slot()
    def _on_ended(self) -> None:
        self._task = None

    @Slot()
    def _on_page(self) -> None:
        # The page is shown after the signal that says so; in a safe start nothing is looked for.
        if self._timer.isActive():
            QTimer.singleShot(0, self, self.look)

    # --- a runtime's plan

    @Slot(object)
    def match(self, seen: RuntimeSeen) -> None:
        """Make what runs the plan in the window."""
        app = self._app
        app.trouble.dismiss()
        if seen.reach is Reach.WANTS_KEY:
            self.ask_address(str(seen.address))
            return
        self._matching = app.runner.submit(lambda _token: of_processes(seen))
        self._matching.succeeded.connect(self._on_matched)
        self._matching.failed.connect(app.trouble.report)

    @Slot(object)
    def _on_matched(self, found: Understood) -> None:
        self._app.launching.open(found)

    # --- addresses

    @Slot()
    def ask_address(self, wanting: str = "") -> None:
        """Ask for another address, or for the key of one."""
        dialog = AddressDialog(self.addresses, self._app.window, wanting)
        dialog.added.connect(self._on_added)
        dialog.removed.connect(self._on_removed)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    @Slot(object, str)
    def _on_added(self, address: Address, key: str) -> None:
        app = self._app
        self._keep(address)
        if key.strip():
            task = app.runner.submit(lambda _token: self.keys.keep(address, key))
            task.succeeded.connect(partial(self._on_key_kept, address))
            task.failed.connect(app.trouble.report)
            return
        self._look_again(address)

    def add(self, address: Address) -> None:
        """Ask ``address`` from now on as well: its user typed it."""
        self._keep(address)
        self._look_again(address)

    def _keep(self, address: Address) -> None:
        app = self._app
        if not self._is_found(address) and str(address) not in app.settings.addresses:
            app.settings = app.settings.with_(addresses=(*app.settings.addresses, str(address)))

    def _look_again(self, address: Address) -> None:
        for looker in (self.looker, self.far_looker):
            looker.ask_again(address)
        self.look()

    def _is_found(self, address: Address) -> bool:
        """Whether its process is found without its being added."""
        return any(row.address == address and row.pids for row in self.seen)

    def _on_key_kept(self, address: Address, is_in_keyring: object) -> None:
        if not is_in_keyring:
            told = tr("This system has no keyring: the key lasts until Plimsoll ends.")
            self._app.filing.tell(tr("The key is used"), told)
        self._look_again(address)

    @Slot(object)
    def _on_removed(self, address: Address) -> None:
        app = self._app
        kept = tuple(text for text in app.settings.addresses if text != str(address))
        app.settings = app.settings.with_(addresses=kept)
        app.runner.submit(lambda _token: self.keys.forget(address))
        self.look()


def _with_pools(rows: tuple[RuntimeSeen, ...], model: Model | None) -> tuple[RuntimeSeen, ...]:
    """``rows``, the pool of one that runs ``model`` in bytes."""
    return rows if model is None else tuple(modelled.with_pool_bytes(r, model) for r in rows)


def _runs(snapshot: TelemetrySnapshot) -> bool:
    """Whether a runtime is among the processes of ``snapshot``."""
    return any(
        recognise(process.name, process.command).runtime
        for device in snapshot.devices
        if not isinstance(device.processes, Missing)
        for process in device.processes
    )
