"""The one window: menus, the rooms side by side, the status line, and the order of leaving."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, QObject, QRect, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QMouseEvent
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QMainWindow,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from gui.kit.actions import Actions
from gui.kit.controls import Ground, Hairline
from gui.kit.focus import go_on, reading_order
from gui.kit.icons import app_icon, icon
from gui.kit.placing import on_screen
from gui.kit.progress import ProgressLine
from gui.kit.status import StatusLine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from PySide6.QtCore import QUrl
    from PySide6.QtGui import (
        QAction,
        QCloseEvent,
        QDragEnterEvent,
        QDropEvent,
        QKeyEvent,
        QResizeEvent,
    )

    from gui.kit.theme import Theme

RAIL_BELOW = 1100
"""Window width below which the browser is a rail that opens over the centre."""
_WELCOME = (".plimsoll", ".gguf", ".safetensors", "config.json", ".jsonl", ".jsonl.gz")
_NEXT_BEST = (".log", ".txt", ".yaml", ".yml")
_RAIL = 44
_BROWSER_WIDTH = 296
_BROWSER_LEAST = 260


class Rail(Ground):
    """The browser's stand-in on small windows."""

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__(parent, window=True)
        self.setObjectName("rail")
        column = QVBoxLayout(self)
        column.setContentsMargins(6, 8, 6, 8)
        column.setSpacing(4)
        self._buttons: list[tuple[QToolButton, str]] = []
        for key, picture in (("browser", "panel-left-open"), ("search", "search")):
            button = QToolButton()
            button.setAutoRaise(True)
            button.setAccessibleName(actions[key].text().replace("&", ""))
            button.clicked.connect(actions[key].trigger)
            actions[key].changed.connect(partial(self._say, button, actions[key]))
            self._say(button, actions[key])
            column.addWidget(button)
            self._buttons.append((button, picture))
        column.addStretch(1)

    @staticmethod
    def _say(button: QToolButton, action: QAction) -> None:
        button.setToolTip(action.toolTip())

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self.setFixedWidth(theme.grown(_RAIL))
        for button, picture in self._buttons:
            button.setFixedSize(theme.grown(32), theme.grown(32))
            button.setIconSize(QSize(theme.grown(18), theme.grown(18)))
            button.setIcon(icon(picture, theme.color("text.secondary"), theme.grown(18)))


class MainWindow(QMainWindow):
    """Holds the rooms; knows how much room they have, and nothing of what they say."""

    dropped = Signal(object)
    """A ``Path`` or a ``str`` (link or pasted config) dropped anywhere on the window."""
    closing = Signal()
    narrow_changed = Signal()
    covered = Signal(bool)
    """Another room lies over browser and centre, or no longer does."""

    def __init__(
        self,
        application: QApplication,
        browser: QWidget,
        centre: QWidget,
        edit: tuple[QAction, ...],
    ) -> None:
        super().__init__()
        self._application = application
        self.setObjectName("plimsoll")
        self._heading = "Plimsoll"
        self._document: tuple[str, bool] | None = None
        self.setWindowTitle(self._heading)
        self.setWindowIcon(app_icon())
        self.setAcceptDrops(True)
        self.setMinimumSize(960, 600)
        self.commands = Actions(self)
        self.edit_actions = edit
        self.browser = browser
        self.centre = centre
        self.progress = ProgressLine(self)
        self.status_line = StatusLine()
        self.rail = Rail(self.commands)
        self._theme: Theme | None = None
        self._is_narrow: bool | None = None
        self._browser_wanted = True
        self._areas: tuple[QWidget, ...] = ()
        self._closers: tuple[Callable[[], bool], ...] = ()
        self._build(edit)

    def _build(self, edit: tuple[QAction, ...]) -> None:
        self.commands.fill(self.menuBar(), edit)
        self._side = Ground(window=True)
        row = QHBoxLayout(self._side)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.browser)
        self._side_row = row
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setObjectName("browser and centre")
        self.splitter.setHandleWidth(1)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(self._side)
        self.splitter.addWidget(_rolled(self.centre))
        self.splitter.setStretchFactor(0, 0)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.setSizes([_BROWSER_WIDTH, 1440 - _BROWSER_WIDTH])
        menu_line = Hairline()
        self._body = body = Ground()
        beside = QWidget()
        across = QHBoxLayout(beside)
        across.setContentsMargins(0, 0, 0, 0)
        across.setSpacing(0)
        across.addWidget(self.rail)
        self._rail_line = Hairline(upright=True)
        across.addWidget(self._rail_line)
        across.addWidget(self.splitter, 1)
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(menu_line)
        self._pages = QStackedWidget()
        self._pages.addWidget(beside)
        column.addWidget(self._pages, 1)
        self.setCentralWidget(body)
        self._overlay_edge = Hairline(body, upright=True)
        self.setStatusBar(self.status_line)
        self._connect()

    def _connect(self) -> None:
        self.commands["browser"].triggered.connect(self._on_browser_action)
        self.commands["minimise"].triggered.connect(self.showMinimized)
        self.commands["zoom"].triggered.connect(self._on_zoom)
        self.commands["full screen"].triggered.connect(self._on_full_screen)
        # A system's own menu bar has a key of its own.
        self.commands["menu"].setVisible(not self.menuBar().isNativeMenuBar())
        self.commands["menu"].triggered.connect(self._on_menu)

    @property
    def areas(self) -> tuple[QWidget, ...]:
        """The areas that F6 goes through."""
        return self._areas

    def set_areas(self, areas: tuple[QWidget, ...]) -> None:
        """The areas that F6 goes through, in order."""
        self._areas = areas
        self.commands["next area"].triggered.connect(self._on_next_area)

    def set_closers(self, closers: tuple[Callable[[], bool], ...]) -> None:
        """What Escape tries in order; the first that had something to close ends the search."""
        self._closers = closers

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.rail.set_theme(theme)
        self.browser.setMinimumWidth(self._browser_width(_BROWSER_LEAST))
        self._look_at_width()
        self.status_line.set_theme(theme)

    def set_heading(self, words: str) -> None:
        """Say in the title what is to be seen."""
        self._heading = words
        self._entitle()

    def set_document(self, path: Path | None, *, modified: bool) -> None:
        """Name the open workspace in the title, marked the platform's way where it was edited."""
        self._document = (path.name, modified) if path else None
        self._entitle()
        self.setWindowFilePath(str(path) if path else "")

    def _entitle(self) -> None:
        heading = self._heading.replace("[*]", "[*][*]")
        name, modified = self._document or ("", False)
        self.setWindowModified(False)
        self.setWindowTitle(f"{name}[*] – {heading}" if name else heading)
        self.setWindowModified(modified)

    @property
    def is_narrow(self) -> bool:
        """Whether the browser is a rail."""
        return self.width() < (self._theme.grown(RAIL_BELOW) if self._theme else RAIL_BELOW)

    def _browser_width(self, wanted: int) -> int:
        """``wanted`` at this size of text, but a part of the window stays beside it."""
        return min(self._theme.grown(wanted), self.width() * 3 // 4) if self._theme else wanted

    def show_browser(self, *, shown: bool = True) -> None:
        """Bring the browser to sight, or put it away."""
        self._browser_wanted = shown
        self._lay_out()

    @property
    def is_covered(self) -> bool:
        """Whether another room lies over browser and centre."""
        return self._pages.currentIndex() > 0

    def cover(self, room: QWidget) -> None:
        """Put ``room`` over browser and centre until ``uncover``; F6 goes to it too."""
        if self._pages.indexOf(room) < 0:
            self._pages.addWidget(room)
            self._areas += (room,)
        if self.is_narrow:
            self.show_browser(shown=False)
        self._pages.setCurrentWidget(room)
        self.covered.emit(True)  # noqa: FBT003 - a signal's argument

    def uncover(self) -> bool:
        """Show browser and centre again. Returns whether they were covered."""
        was_covered = self.is_covered
        self._pages.setCurrentIndex(0)
        if was_covered:
            self.covered.emit(False)  # noqa: FBT003 - a signal's argument
        return was_covered

    def restore(self, geometry: bytes, splitters: Mapping[str, bytes]) -> None:
        """Place the window as it was, or where the screens of now have room for it."""
        if not geometry or not self.restoreGeometry(QByteArray(geometry)):
            self.resize(1440, 900)
        if not self.isMaximized() and not self.isFullScreen():
            frame = self.frameGeometry()
            place = on_screen(frame, [s.availableGeometry() for s in QGuiApplication.screens()])
            self.move(place.topLeft())
            self.resize(self.size() + place.size() - frame.size())
        for splitter in self.findChildren(QSplitter):
            state = splitters.get(splitter.objectName(), b"")
            if state:
                splitter.restoreState(QByteArray(state))

    def splitter_states(self) -> dict[str, bytes]:
        """What ``restore`` takes."""
        return {
            s.objectName(): bytes(s.saveState().data())
            for s in self.findChildren(QSplitter)
            if s.objectName()
        }

    @override
    def changeEvent(self, arg__1: QEvent) -> None:
        super().changeEvent(arg__1)
        if arg__1.type() == QEvent.Type.WindowStateChange:
            self.commands["full screen"].setChecked(self.isFullScreen())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._look_at_width()

    def _look_at_width(self) -> None:
        narrow = self.is_narrow
        if narrow != self._is_narrow:
            self._is_narrow = narrow
            self._browser_wanted = not narrow
            self._lay_out()
            self.narrow_changed.emit()
        self._place_overlays()

    def _lay_out(self) -> None:
        narrow = self.is_narrow
        self.rail.setVisible(narrow)
        self._rail_line.setVisible(narrow)
        self._side.setVisible(not narrow and self._browser_wanted)
        body = self._body
        if narrow and self.browser.parentWidget() is not body:
            self._side_row.removeWidget(self.browser)
            self.browser.setParent(body)
            self._application.installEventFilter(self)
        elif not narrow and self.browser.parentWidget() is not self._side:
            self._application.removeEventFilter(self)
            self._side_row.addWidget(self.browser)
        self.browser.setVisible(self._browser_wanted)
        self.commands["browser"].setChecked(self._browser_wanted)
        self._place_overlays()

    def _place_overlays(self) -> None:
        body = self._body
        floats = self.is_narrow and self._browser_wanted
        self._overlay_edge.setVisible(floats)
        if floats:
            width = self._browser_width(_BROWSER_WIDTH)
            self.browser.setGeometry(QRect(0, 0, width, body.height()))
            self.browser.raise_()
            self._overlay_edge.setGeometry(width, 0, 1, body.height())
            self._overlay_edge.raise_()
        self.progress.setGeometry(0, body.y(), self.width(), 2)
        self.progress.raise_()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        pressed = event.type() == QEvent.Type.MouseButtonPress
        if pressed and isinstance(event, QMouseEvent) and self.is_narrow and self._browser_wanted:
            inside = self.browser.rect().contains(
                self.browser.mapFromGlobal(event.globalPosition().toPoint())
            )
            is_ours = isinstance(watched, QWidget) and watched.window() is self
            if is_ours and not inside and not self.rail.underMouse():
                self.show_browser(shown=False)
        return super().eventFilter(watched, event)

    def _on_browser_action(self) -> None:
        self.show_browser(shown=not self._browser_wanted)

    def _on_full_screen(self) -> None:
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    def _on_zoom(self) -> None:
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowMaximized)

    def _on_menu(self) -> None:
        self.menuBar().setActiveAction(self.menuBar().actions()[0])

    def _on_next_area(self) -> None:
        shown = [a for a in self._areas if a.isVisible()]
        focus = QApplication.focusWidget()
        current = next(
            (i for i, a in enumerate(shown) if focus and (focus is a or a.isAncestorOf(focus))), -1
        )
        target = shown[(current + 1) % len(shown)]
        first = target if target.focusPolicy() != Qt.FocusPolicy.NoFocus else None
        if first is None:
            first = next(iter(reading_order(target)), target)
        first.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._leave_browser()

    @override
    def focusNextPrevChild(self, next: bool) -> bool:
        gone_on = go_on(self, forwards=next)
        self._leave_browser()
        return gone_on

    def _leave_browser(self) -> None:
        """Where it lies over the centre it goes with the keyboard, as with a click beside it."""
        focus = QApplication.focusWidget()
        floats = self.is_narrow and self._browser_wanted
        if floats and focus is not None and not self.browser.isAncestorOf(focus):
            self.show_browser(shown=False)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._close_nearest():
            event.accept()
            return
        super().keyPressEvent(event)

    def _close_nearest(self) -> bool:
        if self.is_narrow and self._browser_wanted:
            self.show_browser(shown=False)
            return True
        return self.uncover() or any(close() for close in self._closers)

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls() or event.mimeData().hasText():
            event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        what = dropped(event)
        if what is not None:
            event.acceptProposedAction()
            self.dropped.emit(what)

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        self.closing.emit()
        event.accept()


def _rolled(room: QWidget) -> QScrollArea:
    """``room`` in what scrolls where large text leaves it too little space."""
    made = QScrollArea()
    made.setObjectName("centre")
    made.setFrameShape(QScrollArea.Shape.NoFrame)
    made.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    made.setWidgetResizable(True)
    made.setWidget(room)
    return made


def dropped(event: QDropEvent) -> Path | str | None:
    """What lies in a drop: of several files the first that may be a model, else the text."""
    from pathlib import Path  # noqa: PLC0415 - its name is needed here only

    mime = event.mimeData()
    urls = mime.urls()

    def unlikely(url: QUrl) -> tuple[bool, bool]:
        name = url.fileName()
        return not name.endswith(_WELCOME), not name.endswith(_NEXT_BEST)

    for url in sorted(urls, key=unlikely):
        return Path(url.toLocalFile()) if url.isLocalFile() else url.toString()
    text = mime.text().strip()
    return text or None
