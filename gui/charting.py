"""What one can do with the measured part of the picture: its tools, its menu, its files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QLineEdit, QMenu, QVBoxLayout

from engine.errors import PlimsollError
from engine.telemetry.markers import LONGEST_TEXT
from engine.words import tr, tr_later
from gui.kit.charts import extents
from gui.kit.charts.export import Figures, write_png, write_svg
from gui.kit.charts.tools import ChartTools
from gui.kit.controls import label
from gui.kit.dialogs import closing_row, leave_button, primary_button
from gui.kit.focus import Dialog

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from engine.cancel import CancelToken
    from engine.telemetry.markers import Marker
    from engine.telemetry.snapshot import TelemetrySnapshot
    from gui.app import App

_PICTURES = tr_later("Sharp at every size (*.svg);;Picture (*.png)")
_FIGURES = tr_later("Figures (*.csv)")
_PAN_SHARE = 0.5
_MOST_LISTED = 40


class Charting(QObject):
    """Commands of the menu Live, the chart's own buttons, and its context menu."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self._app = app
        picture, commands = app.view.picture, app.window.commands
        self.tools = ChartTools(
            picture, commands["zoom in"], commands["zoom out"], commands["hold"]
        )
        self.tools.more.setMenu(QMenu(self.tools.more))
        self.tools.more.menu().aboutToShow.connect(lambda: self.fill(self.tools.more.menu()))
        app.themes.changed.connect(self.tools.set_theme)
        self.tools.set_theme(app.themes.current)
        self.extents = extents.ExtentStrip(picture, commands["reset extent"])
        app.view.add_below_picture(self.extents)
        app.themes.changed.connect(self.extents.set_theme)
        self.extents.set_theme(app.themes.current)
        app.watch.sampled.connect(self._tell_extents)
        app.model.changed.connect(self._tell_extents)
        picture.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        picture.customContextMenuRequested.connect(self._on_menu_wanted)
        picture.measured_changed.connect(self._on_measured_changed)
        app.watch.marked.connect(self._on_marked)
        app.watch.source_changed.connect(self._on_measured_changed)
        ways = {
            "zoom in": partial(picture.zoom, -1),
            "zoom out": partial(picture.zoom, 1),
            "earlier": partial(picture.pan, -_PAN_SHARE),
            "later": partial(picture.pan, _PAN_SHARE),
            "newest": picture.follow_newest,
            "mark": self._on_mark,
            "reset extent": self._on_reset,
            "export picture": self._on_export_picture,
            "export figures": self._on_export_figures,
        }
        for key, way in ways.items():
            commands[key].triggered.connect(lambda _=False, way=way: way())
        self._on_measured_changed()

    @Slot()
    def _on_measured_changed(self) -> None:
        app = self._app
        has_time = app.view.picture.has_time
        for key in ("zoom in", "zoom out", "earlier", "later", "newest", "export figures"):
            app.window.commands[key].setEnabled(has_time)
        app.window.commands["reset extent"].setEnabled(has_time and app.watch.replay is None)
        self._tell_extents()

    @Slot()
    def _tell_extents(self) -> None:
        """Show least, average and most below the picture, where something is measured."""
        app, picture = self._app, self._app.view.picture
        if not picture.has_time:
            self.extents.tell((), "", can_reset=False)
            return
        unit, is_live = app.model.state.unit, app.watch.replay is None
        interval_s = app.watch.interval_s if is_live and app.watch.is_sampling else None
        missed = tr("What was higher between two samples is not seen.")
        self.extents.tell(
            extents.wordings(picture, unit, interval_s),
            "\n".join((*extents.lines(picture, unit), missed)),
            can_reset=is_live,
        )

    def _on_reset(self) -> None:
        self._app.view.picture.kept_anew()
        self._tell_extents()

    def fill(self, menu: QMenu) -> None:
        """Put into ``menu`` what can be done with the chart now."""
        commands, picture = self._app.window.commands, self._app.view.picture
        menu.clear()
        for words in extents.lines(picture, self._app.model.state.unit):
            menu.addAction(words).setEnabled(False)
        if menu.actions():
            menu.addAction(commands["reset extent"])
            menu.addSeparator()
        menu.addAction(commands["hold"])
        for key in ("zoom in", "zoom out", "earlier", "later", "newest"):
            menu.addAction(commands[key])
        menu.addMenu(self.tools.spans_menu(menu))
        menu.addSeparator()
        menu.addAction(commands["mark"])
        marked = picture.kept.markers[-_MOST_LISTED:]
        if marked:
            listed = menu.addMenu(tr("Go to a mar&ker"))
            for at, marker in marked:
                text = f"{picture.clock_words(at)}  {marker.words(self._app.model.state.unit)}"
                listed.addAction(text.replace("&", "&&")).triggered.connect(
                    lambda _=False, at=at: self._go_to(at)
                )
        menu.addSeparator()
        menu.addAction(commands["export picture"])
        menu.addAction(commands["export figures"])

    def _go_to(self, at_s: float) -> None:
        self._app.view.picture.go_to(at_s)
        self._app.view.picture.setFocus()

    @Slot(QPoint)
    def _on_menu_wanted(self, place: QPoint) -> None:
        picture = self._app.view.picture
        menu = QMenu(picture)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.fill(menu)
        menu.popup(picture.mapToGlobal(place))

    @Slot(object)
    def _on_marked(self, marker: Marker) -> None:
        self._app.view.picture.mark(marker)

    def _on_mark(self) -> None:
        """The moment is that of the key; the words may take their time."""
        if self._app.watch.replay is not None:
            told = tr(
                "A recording that plays takes no further markers: they are set while it is made."
            )
            self._app.filing.tell(told)
            return
        dialog = MarkerDialog(self._app.watch.last, self._app.window)
        dialog.worded.connect(self._app.watch.mark)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _on_export_picture(self) -> None:
        self._app.filing.ask_where(
            tr("Export the picture"), tr(_PICTURES), "memory.svg", self._export_picture
        )

    def _export_picture(self, name: str) -> None:
        path, picture = Path(name), self._app.view.picture
        write = write_png if path.suffix.lower() == ".png" else write_svg
        try:
            write(picture, path)
        except OSError as error:
            self._app.trouble.report(error)
            return
        self._tell(path)

    def _on_export_figures(self) -> None:
        self._app.filing.ask_where(
            tr("Export the figures"), tr(_FIGURES), "memory.csv", self._export_figures
        )

    def _export_figures(self, name: str) -> None:
        path = Path(name)
        try:
            figures = Figures(self._app.view.picture)
        except PlimsollError as error:
            self._app.trouble.report(error)
            return

        def job(_token: CancelToken) -> Path:
            figures.write(path)
            return path

        task = self._app.runner.submit(job)
        task.succeeded.connect(self._tell)
        task.failed.connect(self._app.trouble.report)

    @Slot(object)
    def _tell(self, path: Path) -> None:
        self._app.filing.tell(tr("Written to {path}").format(path=path), written=path)


class MarkerDialog(Dialog):
    """Asks for the words of a marker; without any it is one all the same."""

    worded = Signal(str, object)
    """The words, and the snapshot they are about."""

    def __init__(self, snapshot: TelemetrySnapshot, parent: QWidget) -> None:
        super().__init__(parent)
        self._snapshot = snapshot
        self.setWindowTitle(tr("Set a marker"))
        self.words = QLineEdit()
        self.words.setObjectName("marker words")
        self.words.setMaxLength(LONGEST_TEXT)
        self.words.setMinimumWidth(320)
        said = label(tr("What happens at this &moment?"), "plain")
        said.setBuddy(self.words)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(8)
        column.addWidget(said)
        column.addWidget(self.words)
        done = primary_button(tr("Set it"))
        done.clicked.connect(self.accept)
        row = closing_row(leave_button(self, tr("Cancel")), done)
        row.setContentsMargins(0, 8, 0, 0)
        column.addLayout(row)
        self.accepted.connect(self._on_accepted)

    @Slot()
    def _on_accepted(self) -> None:
        self.worded.emit(self.words.text(), self._snapshot)
