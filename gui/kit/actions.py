"""Every command of the window in one table: words, shortcut, where it stands in the menus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QActionGroup, QKeySequence

if TYPE_CHECKING:
    from PySide6.QtCore import QObject
    from PySide6.QtWidgets import QMenuBar


@dataclass(frozen=True, slots=True)
class Command:
    """One command. ``group`` makes it one of several exclusive choices."""

    key: str
    menu: str
    text: str
    shortcut: str = ""
    tip: str = ""
    also: str = ""
    """A second shortcut."""
    group: str = ""
    checkable: bool = False
    section: bool = False
    """Whether a line separates it from the command before."""
    role: QAction.MenuRole = QAction.MenuRole.NoRole

    @property
    def title(self) -> str:
        """Its words without what a menu adds."""
        return self.text.replace("&", "").removesuffix("…")

    @property
    def keys(self) -> tuple[QKeySequence, ...]:
        """The shortcuts it is delivered with."""
        return tuple(QKeySequence(text) for text in (self.shortcut, self.also) if text)


COMMANDS = (
    Command("open", "&File", "&Open…", "Ctrl+O", "Read a config.json, a .safetensors or a .gguf"),
    Command("open folder", "&File", "Open model &folder…", "", "Read a model's folder"),
    Command(
        "by hand", "&File", "Enter a model by &hand…", "Ctrl+N", "Size a model without a config"
    ),
    Command(
        "open recording", "&File", "Open re&cording…", "", "Play a recording of measured memory"
    ),
    Command(
        "open log",
        "&File",
        "Read a &log…",
        "Ctrl+Shift+R",
        "What a run really held, and why it failed",
    ),
    Command("paste log", "&File", "&Paste a log", "Ctrl+Shift+V", "Read the log in the clipboard"),
    Command(
        "record",
        "&File",
        "&Record",
        "Ctrl+R",
        "Write what is measured to a file",
        checkable=True,
        section=True,
    ),
    Command(
        "search folder",
        "&File",
        "&Search a folder for models…",
        "",
        "List the models of a folder under This computer",
    ),
    Command("report", "&File", "Export &report…", "Ctrl+E", "Write a PDF", section=True),
    Command("access", "&File", "&Access to the Hub…", "", "A token for gated models", section=True),
    Command("offline", "&File", "Stay o&ff-line", "", "Never ask the Hub", checkable=True),
    Command("network", "&File", "Net&work…", "", "Proxy, certificates, mirror, and what was sent"),
    Command(
        "preferences",
        "&File",
        "Se&ttings…",
        "Ctrl+,",
        "Units, appearance, shortcuts",
        section=True,
        role=QAction.MenuRole.PreferencesRole,
    ),
    Command("quit", "&File", "&Quit", "Ctrl+Q", section=True, role=QAction.MenuRole.QuitRole),
    Command("copy", "&Edit", "&Copy as Markdown", "Ctrl+Shift+C", "Copy the answer", section=True),
    Command("search", "&View", "&Find a model", "Ctrl+F"),
    Command("browser", "&View", "&Models", "Ctrl+B", checkable=True),
    Command(
        "all models",
        "&View",
        "&All models and filters",
        "Ctrl+Shift+F",
        "All filters, and every model with its figures",
        checkable=True,
    ),
    Command(
        "favourite",
        "&View",
        "Fa&vourite",
        "Ctrl+Shift+D",
        "Keep the model in the window among the favourites",
        checkable=True,
    ),
    Command(
        "view simple",
        "&View",
        "&Simple view",
        "",
        "Model, machine, context and users, and the answer",
        group="view",
        checkable=True,
        section=True,
    ),
    Command(
        "view full",
        "&View",
        "F&ull view",
        "",
        "Every setting of the plan, and the figures behind the answer",
        group="view",
        checkable=True,
    ),
    Command("tabs", "&View", "Figures &below the picture", "Ctrl+J", checkable=True, section=True),
    Command("tab regions", "&View", "&Regions", "Ctrl+1"),
    Command("tab map", "&View", "F&it map", "Ctrl+2"),
    Command("tab compare", "&View", "Co&mpare", "Ctrl+3"),
    Command("tab holds", "&View", "What &holds it", "Ctrl+4"),
    Command("tab log", "&View", "Lo&g", "Ctrl+6"),
    Command("next area", "&View", "&Next area", "F6"),
    Command(
        "scheme system", "&View", "As the s&ystem", group="scheme", checkable=True, section=True
    ),
    Command("scheme light", "&View", "&Light", group="scheme", checkable=True),
    Command("scheme dark", "&View", "&Dark", group="scheme", checkable=True),
    Command(
        "scheme contrast-light",
        "&View",
        "High contrast, ligh&t",
        group="scheme",
        checkable=True,
    ),
    Command(
        "scheme contrast-dark", "&View", "High contrast, dar&k", group="scheme", checkable=True
    ),
    Command(
        "unit GiB",
        "&View",
        "&GiB (1 GiB = 1,073,741,824 bytes)",
        group="unit",
        checkable=True,
        section=True,
    ),
    Command("unit GB", "&View", "G&B (1 GB = 1,000,000,000 bytes)", group="unit", checkable=True),
    Command("full screen", "&View", "F&ull screen", "F11", checkable=True, section=True),
    Command("menu", "&View", "Op&en the menu", "F10"),
    Command("hold", "&View", "H&old the picture", "Space", checkable=True, section=True),
    Command("context", "&Plan", "&Context…", "Ctrl+L", "Type a context"),
    Command("settings", "&Plan", "All &settings…", "Ctrl+.", "Every setting of the plan's runtime"),
    Command("halve", "&Plan", "&Halve the context", "["),
    Command("double", "&Plan", "&Double the context", "]"),
    Command(
        "now", "&Plan", "Beside what runs &now", group="baseline", checkable=True, section=True
    ),
    Command("emptied", "&Plan", "As if nothing else &ran", group="baseline", checkable=True),
    Command(
        "compare", "&Plan", "Add to com&pare", "Ctrl+D", "Put this plan beside others", section=True
    ),
    Command(
        "beside",
        "&Plan",
        "Add a model &beside it…",
        "",
        "Let another model run on the same machine",
    ),
    Command(
        "launch",
        "&Plan",
        "&Launch command…",
        "Ctrl+Shift+L",
        "The command that starts this plan, to copy",
        section=True,
    ),
    Command(
        "from command",
        "&Plan",
        "&Plan from a command…",
        "Ctrl+Shift+O",
        "Size what a start command would start",
    ),
    Command("verify", "&Plan", "&Verify the parameters…", section=True),
    Command("measure", "&Plan", "&Measure this computer again", "F5", section=True),
    Command("terms", "&Help", "&What the words mean", "F1", "Each term of the window in one line"),
    Command("keys", "&Help", "&Keyboard shortcuts", "Ctrl+?", "All of them", also="?"),
    Command("commands", "&Help", "&Commands…", "Ctrl+K", "Find a command by its name"),
    Command("about", "&Help", "&About Plimsoll", role=QAction.MenuRole.AboutRole),
)
EDIT = "&Edit"
MENUS = ("&File", EDIT, "&View", "&Plan", "&Help")


class Actions:
    """The table's actions, by key."""

    def __init__(self, owner: QObject) -> None:
        self._actions: dict[str, QAction] = {}
        self._groups: dict[str, QActionGroup] = {}
        self._own_words: dict[str, str] = {}
        self._words: dict[str, str] = {}
        for command in COMMANDS:
            action = QAction(command.text, owner)
            action.setObjectName(command.key)
            action.setCheckable(command.checkable)
            action.setMenuRole(command.role)
            action.setShortcuts(list(command.keys))
            action.setStatusTip("")
            if command.group:
                group = self._groups.setdefault(command.group, QActionGroup(owner))
                group.addAction(action)
            self._actions[command.key] = action
            self._own_words[command.key] = command.tip or command.title
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
        menus = {title: bar.addMenu(title) for title in MENUS}
        menus[EDIT].addActions(list(edit))
        for command in COMMANDS:
            if command.section:
                menus[command.menu].addSeparator()
            menus[command.menu].addAction(self._actions[command.key])
