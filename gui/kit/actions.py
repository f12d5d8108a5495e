"""Every command of the window in one table: words, shortcut, where it stands in the menus."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QActionGroup, QKeySequence

from engine.words import tr, tr_later
from gui.kit.command import Command
from gui.kit.live_commands import LIVE

if TYPE_CHECKING:
    from PySide6.QtCore import QObject
    from PySide6.QtWidgets import QMenuBar


_WINDOW = tr_later("&Window")
_ZOOM = tr_later("&Zoom") if sys.platform == "darwin" else tr_later("Ma&ximise")
COMMANDS = (
    Command(
        "open",
        "&File",
        tr_later("&Open…"),
        "Ctrl+O",
        tr_later("Read a model, a workspace, a recording or a log"),
    ),
    Command(
        "open folder",
        "&File",
        tr_later("Open model &folder…"),
        "",
        tr_later("Read a model's folder"),
    ),
    Command(
        "by hand",
        "&File",
        tr_later("Enter a model by &hand…"),
        "Ctrl+N",
        tr_later("Size a model without a config"),
    ),
    Command(
        "open recording",
        "&File",
        tr_later("Open re&cording…"),
        "",
        tr_later("Play a recording of measured memory"),
    ),
    Command(
        "open log",
        "&File",
        tr_later("Read a &log…"),
        "Ctrl+Shift+R",
        tr_later("What a run really held, and why it failed"),
    ),
    Command(
        "paste log",
        "&File",
        tr_later("&Paste a log"),
        "Ctrl+Shift+V",
        tr_later("Read the log in the clipboard"),
    ),
    Command(
        "close log",
        "&File",
        tr_later("Close &the log"),
        "",
        tr_later("Put the log away and go back to the plan"),
    ),
    Command(
        "save",
        "&File",
        tr_later("Sa&ve workspace"),
        "Ctrl+S",
        tr_later("Keep plan and comparison in a file"),
        section=True,
    ),
    Command(
        "save as",
        "&File",
        tr_later("Save &workspace as…"),
        "Ctrl+Shift+S",
        tr_later("Keep plan and comparison in another file"),
    ),
    Command(
        "new",
        "&File",
        tr_later("Clear the &desk"),
        "",
        tr_later("A plan as new, nothing compared, and no file; the model stays"),
    ),
    Command(
        "record",
        "&File",
        tr_later("&Record"),
        "Ctrl+R",
        tr_later("Write what is measured to a file"),
        checkable=True,
        section=True,
    ),
    Command(
        "search folder",
        "&File",
        tr_later("&Search a folder for models…"),
        "",
        tr_later("List the models of a folder under This computer"),
    ),
    Command(
        "import shelf",
        "&File",
        tr_later("I&mport favourites…"),
        "",
        tr_later("Add the favourites, recents and folders of a file to your own"),
    ),
    Command(
        "export shelf",
        "&File",
        tr_later("&Export favourites…"),
        "",
        tr_later("Write favourites, recents and folders to a file"),
    ),
    Command(
        "report",
        "&File",
        tr_later("E&xport report…"),
        "Ctrl+E",
        tr_later("Write a PDF"),
        section=True,
    ),
    Command(
        "access",
        "&File",
        tr_later("&Access to the Hub…"),
        "",
        tr_later("A token for gated models"),
        section=True,
    ),
    Command(
        "offline",
        "&File",
        tr_later("Stay off-li&ne"),
        "",
        tr_later("Never ask the Hub"),
        checkable=True,
    ),
    Command(
        "network",
        "&File",
        tr_later("Networ&k…"),
        "",
        tr_later("Proxy, certificates, mirror, and what was sent"),
    ),
    Command(
        "preferences",
        "&File",
        tr_later("Settin&gs…"),
        "Ctrl+,",
        tr_later("Units, appearance, shortcuts"),
        section=True,
        role=QAction.MenuRole.PreferencesRole,
    ),
    Command(
        "quit", "&File", tr_later("&Quit"), "Ctrl+Q", section=True, role=QAction.MenuRole.QuitRole
    ),
    Command(
        "copy",
        "&Edit",
        tr_later("&Copy as Markdown"),
        "Ctrl+Shift+C",
        tr_later("Copy the answer"),
        section=True,
    ),
    Command("search", "&View", tr_later("&Find a model"), "Ctrl+F"),
    Command(
        "favourite",
        "&View",
        tr_later("Fa&vourite"),
        "Ctrl+Shift+D",
        tr_later("Keep the model in the window among the favourites"),
        checkable=True,
    ),
    Command(
        "view simple",
        "&View",
        tr_later("&Simple view"),
        "",
        tr_later("Model, machine, context and users, and the answer"),
        group="view",
        checkable=True,
        section=True,
    ),
    Command(
        "view full",
        "&View",
        tr_later("F&ull view"),
        "",
        tr_later("Every setting of the plan, and the figures behind the answer"),
        group="view",
        checkable=True,
    ),
    Command(
        "tabs",
        "&View",
        tr_later("Figures belo&w the picture"),
        "Ctrl+J",
        checkable=True,
        section=True,
    ),
    Command(
        "scheme system",
        "&View",
        tr_later("As the s&ystem"),
        group="scheme",
        checkable=True,
        section=True,
    ),
    Command("scheme light", "&View", tr_later("&Light"), group="scheme", checkable=True),
    Command("scheme dark", "&View", tr_later("&Dark"), group="scheme", checkable=True),
    Command(
        "scheme contrast-light",
        "&View",
        tr_later("High contrast, ligh&t"),
        group="scheme",
        checkable=True,
    ),
    Command(
        "scheme contrast-dark",
        "&View",
        tr_later("High contrast, dar&k"),
        group="scheme",
        checkable=True,
    ),
    Command(
        "unit GiB",
        "&View",
        tr_later("Gi&B (1 GiB = 1,073,741,824 bytes)"),
        group="unit",
        checkable=True,
        section=True,
    ),
    Command(
        "unit GB",
        "&View",
        tr_later("GB (&1 GB = 1,000,000,000 bytes)"),
        group="unit",
        checkable=True,
    ),
    Command("hold", "&View", tr_later("H&old the picture"), "Space", checkable=True, section=True),
    Command(
        "lens",
        "&View",
        tr_later("&Zoom into thin regions"),
        "Z",
        tr_later("Show the thin regions of the picture larger beside it"),
        checkable=True,
    ),
    Command("context", "&Plan", tr_later("&Context…"), "Ctrl+L", tr_later("Type a context")),
    Command(
        "settings",
        "&Plan",
        tr_later("All &settings…"),
        "Ctrl+.",
        tr_later("Every setting of the plan's runtime"),
    ),
    Command("halve", "&Plan", tr_later("&Halve the context"), "["),
    Command("double", "&Plan", tr_later("&Double the context"), "]"),
    Command(
        "now",
        "&Plan",
        tr_later("Beside what runs &now"),
        group="baseline",
        checkable=True,
        section=True,
    ),
    Command(
        "emptied", "&Plan", tr_later("As if nothing else &ran"), group="baseline", checkable=True
    ),
    Command(
        "compare",
        "&Plan",
        tr_later("Add to com&pare"),
        "Ctrl+D",
        tr_later("Put this plan beside others"),
        section=True,
    ),
    Command(
        "beside",
        "&Plan",
        tr_later("Add a model &beside it…"),
        "",
        tr_later("Let another model run on the same machine"),
    ),
    Command(
        "launch",
        "&Plan",
        tr_later("&Launch command…"),
        "Ctrl+Shift+L",
        tr_later("The command that starts this plan, to copy"),
        section=True,
    ),
    Command(
        "from command",
        "&Plan",
        tr_later("Plan &from a command…"),
        "Ctrl+Shift+O",
        tr_later("Size what a start command would start"),
    ),
    Command(
        "plan log",
        "&Plan",
        tr_later("Plan the lo&g’s run"),
        "",
        tr_later("Size the run that the open log tells of"),
    ),
    Command("verify", "&Plan", tr_later("&Verify the parameters…"), section=True),
    Command("measure", "&Plan", tr_later("&Measure this computer again"), "F5", section=True),
    Command(
        "hardware",
        "&Plan",
        tr_later("Hard&ware of this computer…"),
        tip=tr_later("Correct what was detected"),
    ),
    Command("minimise", _WINDOW, tr_later("Mi&nimise"), "Ctrl+M"),
    Command("zoom", _WINDOW, _ZOOM, "", tr_later("As large as the screen, or as before")),
    Command("full screen", _WINDOW, tr_later("Full s&creen"), "F11", checkable=True),
    Command("browser", _WINDOW, tr_later("&Models"), "Ctrl+B", checkable=True, section=True),
    Command(
        "all models",
        _WINDOW,
        tr_later("&All models and filters"),
        "Ctrl+Shift+F",
        tr_later("All filters, and every model with its figures"),
        checkable=True,
    ),
    Command("tab regions", _WINDOW, tr_later("&Regions"), "Ctrl+1", section=True),
    Command("tab map", _WINDOW, tr_later("F&it map"), "Ctrl+2"),
    Command("tab compare", _WINDOW, tr_later("Com&pare"), "Ctrl+3"),
    Command("tab holds", _WINDOW, tr_later("What &holds it"), "Ctrl+4"),
    Command("tab checklist", _WINDOW, tr_later("Chec&klist"), "Ctrl+5"),
    Command("tab log", _WINDOW, tr_later("Lo&g"), "Ctrl+6"),
    Command("next area", _WINDOW, tr_later("Nex&t area"), "F6", section=True),
    Command("menu", _WINDOW, tr_later("Op&en the menu"), "F10"),
    *LIVE,
    Command(
        "terms",
        "&Help",
        tr_later("&What the words mean"),
        "F1",
        tr_later("Each term of the window in one line"),
    ),
    Command(
        "keys",
        "&Help",
        tr_later("&Keyboard shortcuts"),
        "Ctrl+?",
        tr_later("All of them"),
        also="?",
    ),
    Command(
        "commands",
        "&Help",
        tr_later("&Commands…"),
        "Ctrl+K",
        tr_later("Find a command by its name"),
    ),
    Command(
        "hardware report",
        "&Help",
        tr_later("Copy hardware &report"),
        tip=tr_later("What the sources say of this computer, without names and serial numbers"),
        section=True,
    ),
    Command("about", "&Help", tr_later("&About Plimsoll"), role=QAction.MenuRole.AboutRole),
)
EDIT = tr_later("&Edit")
MENUS = (
    tr_later("&File"),
    EDIT,
    tr_later("&View"),
    tr_later("&Plan"),
    tr_later("&Live"),
    _WINDOW,
    tr_later("&Help"),
)


class Actions:
    """The table's actions, by key."""

    def __init__(self, owner: QObject) -> None:
        self._actions: dict[str, QAction] = {}
        self._groups: dict[str, QActionGroup] = {}
        self._own_words: dict[str, str] = {}
        self._words: dict[str, str] = {}
        for command in COMMANDS:
            action = QAction(tr(command.text), owner)
            action.setObjectName(command.key)
            action.setCheckable(command.checkable)
            action.setMenuRole(command.role)
            action.setShortcuts(list(command.keys))
            action.setStatusTip("")
            if command.group:
                group = self._groups.setdefault(command.group, QActionGroup(owner))
                group.addAction(action)
            self._actions[command.key] = action
            self._own_words[command.key] = tr(command.tip) or command.title
            self.tell(command.key)

    def tell(self, key: str, words: str = "") -> None:
        """Let a command's tooltip say ``words``, or its own where there are none, and its key."""
        self._words[key] = words or self._own_words[key]
        self.refresh()

    def refresh(self) -> None:
        """Say in every tooltip the key the command has now."""
        for key, words in self._words.items():
            hint = self._actions[key].shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            self._actions[key].setToolTip(f"{words} ({hint})" if hint else words)

    def __getitem__(self, key: str) -> QAction:
        return self._actions[key]

    @property
    def all(self) -> tuple[QAction, ...]:
        """Every command, in the order of the menus."""
        return tuple(self._actions.values())

    def fill(self, bar: QMenuBar, edit: tuple[QAction, ...]) -> None:
        """Build the menus; ``edit`` is the Edit menu."""
        menus = {title: bar.addMenu(tr(title)) for title in MENUS}
        menus[EDIT].addActions(list(edit))
        for command in COMMANDS:
            if command.section:
                menus[command.menu].addSeparator()
            menus[command.menu].addAction(self._actions[command.key])
