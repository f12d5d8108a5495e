"""What the commands of view and plan do, and what the window says of the state."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Slot

from engine.devices.catalogue import devices
from engine.source import catalogue
from engine.units import UnitSystem
from engine.words import tr
from gui import watch
from gui.kit.command_palette import CommandPalette
from gui.kit.throttle import Debounce
from gui.sizing import present

if TYPE_CHECKING:
    from pathlib import Path

    from PySide6.QtWidgets import QWidget

    from engine.telemetry.snapshot import TelemetrySnapshot
    from gui.app import App
    from gui.browser.rows import Choice
    from gui.kit.settings import Settings
    from gui.sizing.view_model import State

_BADGE_PAUSE_MS = 80
"""The browser's badges are for the plan at which an edit comes to rest."""


class Desk(QObject):
    """Connects the commands of the window with the rooms."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        self._unit: UnitSystem | None = None
        self._chosen = ""
        self._badges = Debounce(_BADGE_PAUSE_MS, self._tell_plan, self)
        self._connect_view()
        self._connect_plan()

    def _connect_view(self) -> None:
        app, commands = self._app, self._app.window.commands
        commands["search"].triggered.connect(self._on_search)
        commands["commands"].triggered.connect(self._on_commands)
        commands["tabs"].triggered.connect(app.view.tabs.toggle)
        app.view.tabs.folded_changed.connect(self._on_tabs_folded)
        for key, page in self.pages().items():
            commands[key].triggered.connect(partial(app.view.tabs.open_page, page))
        for unit in UnitSystem:
            commands[f"unit {unit.value}"].triggered.connect(self._on_unit_action)
        app.window.status_line.unit.picked.connect(app.model.set_unit)
        app.holds.balance_changed.connect(self._on_balance)
        app.holds.count_changed.connect(self._on_holders_counted)
        commands["hold"].triggered.connect(app.view.picture.toggle_hold)
        # Space presses the focused button everywhere else.
        commands["hold"].setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        app.view.picture.addAction(commands["hold"])
        app.view.picture.held.connect(commands["hold"].setChecked)
        # A letter is typed everywhere else.
        commands["lens"].setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        commands["lens"].setChecked(True)
        commands["lens"].triggered.connect(app.view.picture.toggle_lens)
        app.view.picture.addAction(commands["lens"])

    def _connect_plan(self) -> None:
        app, commands = self._app, self._app.window.commands
        commands["context"].triggered.connect(app.view.strip.ask_context)
        commands["halve"].triggered.connect(self._on_halve)
        commands["double"].triggered.connect(self._on_double)
        commands["now"].triggered.connect(self._on_now)
        commands["emptied"].triggered.connect(self._on_emptied)
        app.loader.abandoned.connect(self._on_abandoned)
        app.watch.aged.connect(self._on_aged)
        app.watch.regained.connect(app.trouble.withdraw)
        app.welcome.closed.connect(self._on_welcome_closed)
        app.window.set_areas(
            (app.browser, app.view.strip, app.view.verdict, app.view.picture, app.view.tabs)
        )
        app.window.set_closers(
            (
                app.loader.cancel,
                self._stop_picking,
                app.view.close_floating,
                app.trouble.dismiss,
                app.note.dismiss,
            )
        )

    def take_machine(self) -> None:
        """Plan for the watched computer as it is now."""
        app = self._app
        app.model.set_here(app.replacing.machine())
        self.offer_devices()
        app.view.strip.show_state(app.model.state)

    def offer_devices(self) -> None:
        """Fill the device box: this computer first, then the catalogue."""
        here = self._app.model.state.here
        name = here.slots[0].device.name
        place = here.place or (tr("recorded") if self._app.watch.replay is not None else "")
        self._app.view.strip.set_devices(name, devices(), place=place, corrected=here.is_corrected)

    def settings_now(self) -> Settings:
        """What to remember."""
        app = self._app
        return app.settings.with_(
            unit=app.model.state.unit,
            tabs_folded=app.view.folded_by_user,
            geometry=bytes(app.window.saveGeometry().data()),
            splitters=app.window.splitter_states(),
            order=app.browser.model.state.wanted.sort.value,
            turned_orders=app.browser.model.turned_orders,
            **app.shelving.settings_now(),
            **app.compact.settings_now(),
        )

    def welcome(self) -> None:
        """The strip of the first start: what was found, how it is known, and what was sent.

        And a word about settings that are lost.
        """
        aside = self._app.unread
        if aside is not None:
            self._app.trouble.report_sentence(
                tr(
                    "The settings could not be read: they are as at the first "
                    "start, and the old file is kept as {name}."
                ).format(name=aside.name)
            )
        app = self._app
        app.correcting.show_state(app.model.state)
        is_found = app.watch.is_here and not app.model.state.here.is_corrected
        if is_found and not app.settings.welcome_closed:
            self._app.correcting.tell_found()
            self._app.view.picture.explain(explains=True)
            self._app.model.undo_stack.indexChanged.connect(self._stop_explaining)

    @Slot(object)
    def on_state_changed(self, state: State) -> None:
        """Say of the state what belongs to no room."""
        app, window = self._app, self._app.window
        name = present.title(state.model) if state.model else state.awaited or "Plimsoll"
        if state.model or state.awaited:
            is_corrected = state.machine is not None and state.machine.is_corrected
            words = (
                tr("{model} on {device}, corrected") if is_corrected else tr("{model} on {device}")
            )
            if app.watch.replay is not None and state.plan.device is None:
                words = tr("{model} on {device}, recorded")
            place = state.machine.place if state.machine else ""
            if place:
                words = tr("{model} on {device}, {place}")
            device = present.device_name(state)
            name = words.format(model=name, device=device, place=place)
        if not window.is_covered:
            window.set_heading(name)
        window.status_line.unit.set_current(state.unit)
        window.commands[f"unit {state.unit.value}"].setChecked(True)
        window.commands["emptied" if state.plan.emptied else "now"].setChecked(True)
        for key in ("now", "emptied"):
            window.commands[key].setEnabled(state.plan.device is None)
        has_answer = state.sizing is not None and not state.is_stale
        for key in ("report", "copy"):
            window.commands[key].setEnabled(has_answer)
        for key in ("halve", "double", "context"):
            window.commands[key].setEnabled(state.model is not None)
        self._badges.request()
        window.status_line.device.tell(self._device_words(state))
        offline = app.hub.offline
        count = len(catalogue.entries())
        away = tr("Off-line, catalogue of {count}").format(count=count)
        read_on = tr("The catalogue was read from the Hub on {day}")
        window.status_line.hub.tell(
            away if offline else tr("Hub: asked only when you search"),
            read_on.format(day=f"{catalogue.read_on():%Y-%m-%d}"),
            picture="cloud-off" if offline else "cloud",
        )
        self._tell_unit(state)
        if state.plan.device is not None:
            # Another machine is planned for: what was found here is no longer the plan's.
            app.welcome.hide()
        name = state.model.id if state.model else ""
        if name != self._chosen:
            self._chosen = name
            app.browser.set_chosen(name)
        self.on_sampled(app.watch.last)

    def _tell_unit(self, state: State) -> None:
        app = self._app
        if state.unit is self._unit:
            return
        self._unit = state.unit
        app.holds.set_unit(state.unit)
        app.browser.set_unit(state.unit)
        if app.welcome.isVisible():
            app.correcting.tell_found()

    def _tell_plan(self) -> None:
        state = self._app.model.state
        if state.machine is not None and not state.is_stale:
            self._app.browser.set_plan(state.plan.deployment, state.machine)

    @Slot(object)
    def on_sampled(self, snapshot: TelemetrySnapshot) -> None:
        """Show the sample in the status line and the rooms."""
        app, state = self._app, self._app.model.state
        words = (
            watch.sampling_words(snapshot, app.watch.interval_s, app.watch.elsewhere)
            if app.watch.is_sampling
            else tr("Not sampling")
        )
        app.window.status_line.sampling.tell(words)
        machine = state.machine or state.here
        uuid = machine.slots[0].uuid if machine.is_here else state.here.slots[0].uuid
        app.holds.show_snapshot(snapshot, uuid)
        if machine.is_here and app.watch.replay is None:
            app.view.picture.append(snapshot)

    @Slot(object)
    def on_chosen(self, choice: Choice) -> None:
        """Load what was picked in the browser."""
        if self._app.adjoining.take(choice):
            return
        self._app.trouble.dismiss()
        self._stop_explaining()
        self._app.loader.load(choice.fetch, choice.said)

    @Slot(object)
    def on_dropped(self, what: Path | str) -> None:
        """Take a file, folder, link, name, config or log that was dropped on the window."""
        self._app.filing.take(what)

    def _device_words(self, state: State) -> str:
        here = state.here.slots[0].device
        source = here.source.split(",")[0].split(";")[0]
        note = f", {source}" if source else ""
        return f"{here.name}{note}"

    def _on_aged(self, age: str) -> None:
        if age:
            self._app.window.status_line.sampling.tell(tr("Last sample {age}").format(age=age))

    @Slot()
    def _on_abandoned(self) -> None:
        """The list marked what was picked; the model in the window is still the one before."""
        self._app.browser.model.stay_with(self._chosen)

    def _stop_picking(self) -> bool:
        return self._app.adjoining.give_up()

    def _stop_explaining(self) -> None:
        """The first change of the plan, or the first model of the user's own."""
        self._app.view.picture.explain(explains=False)

    def _on_welcome_closed(self) -> None:
        self._stop_explaining()
        self._app.settings = self._app.settings.with_(welcome_closed=True)

    def _on_commands(self) -> None:
        window, stack = self._app.window, self._app.model.undo_stack
        undo = [action for action in window.edit_actions if stack.count()]
        others = [a for a in window.commands.all if a is not window.commands["commands"]]
        palette = CommandPalette([*others, *undo], self._app.themes.current, window)
        palette.finished.connect(palette.deleteLater)
        palette.open()

    def _on_search(self) -> None:
        if self._app.expanding.focus_search():
            return
        self._app.window.show_browser()
        self._app.browser.focus_search()

    def _on_tabs_folded(self, folded: bool) -> None:  # noqa: FBT001 - a signal's argument
        self._app.window.commands["tabs"].setChecked(not folded)

    def _on_balance(self, text: str) -> None:
        line = self._app.window.status_line
        changed = len(text) != len(line.balance.full_text)
        line.balance.set_text(text)
        if changed:
            line.make_room()

    def _on_holders_counted(self, count: str) -> None:
        self._app.view.tabs.set_count(self._app.holds, count)

    def pages(self) -> dict[str, QWidget]:
        """The tabs' pages by the command that opens each."""
        app = self._app
        return {
            "tab regions": app.view.regions,
            "tab map": app.view.fit_map,
            "tab compare": app.compare_view,
            "tab holds": app.holds,
            "tab checklist": app.checking.view,
        }

    def _on_unit_action(self) -> None:
        commands = self._app.window.commands
        binary = commands[f"unit {UnitSystem.BINARY.value}"].isChecked()
        self._app.model.set_unit(UnitSystem.BINARY if binary else UnitSystem.DECIMAL)

    def _on_halve(self) -> None:
        self._app.model.scale_context(-1)

    def _on_double(self) -> None:
        self._app.model.scale_context(1)

    def _on_now(self) -> None:
        self._app.model.set_emptied(emptied=False)

    def _on_emptied(self) -> None:
        self._app.model.set_emptied(emptied=True)
