"""A new user's walk: start, search, pick, does it fit, change, compare, export.

Through real widgets, found by their name or label, each act of the hand counted: a click, a key,
or words typed in one go.
"""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QTabBar,
    QTableView,
    QToolButton,
    QWidget,
)

from engine.architecture.read import read
from engine.fit.verdict import Fit
from engine.sizing import size
from engine.source import catalogue
from gui.browser.rows import ROW_ROLE

MOST_ACTIONS = 15
MODEL = "Qwen/Qwen3-8B"


class Hand:
    """Does what a person does, and counts it."""

    def __init__(self, qtbot, app) -> None:
        self._qtbot, self._app = qtbot, app
        self.actions = 0

    def rest(self):
        app = self._app
        self._qtbot.waitUntil(lambda: app.model.is_settled, timeout=20_000)
        self._qtbot.waitUntil(lambda: not app.loader.is_busy, timeout=20_000)
        self._qtbot.waitUntil(lambda: app.browser.model.is_settled, timeout=20_000)

    def find(self, kind, name: str) -> QWidget:
        """The one visible widget of this name, accessible name or label."""
        found = [
            part
            for part in self._app.window.findChildren(kind)
            if part.isVisible()
            and name in {part.objectName(), part.accessibleName(), getattr(part, "text", str)()}
        ]
        assert len(found) == 1, (name, found)
        return found[0]

    def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        self.actions += 1
        place = at or widget.rect().center()
        self._qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=place)

    def key(self, key: Qt.Key) -> None:
        self.actions += 1
        self._qtbot.keyClick(self._taker(), key)
        QApplication.processEvents()

    def type(self, words: str) -> None:
        self.actions += 1
        QApplication.processEvents()
        for letter in words:
            self._qtbot.keyClicks(self._taker(), letter)

    def _taker(self) -> QWidget:
        """Where a real keyboard's keys go: to a list that has popped up, else to the focus."""
        return QApplication.activePopupWidget() or QApplication.focusWidget()


@pytest.fixture
def hand(qtbot, app):
    made = Hand(qtbot, app)
    made.rest()
    return made


def search_and_pick(app, hand, qtbot) -> None:
    """The hits are there while typing."""
    hand.click(hand.find(QLineEdit, "Find a model"))
    hand.type("qwen3-8b")
    models = hand.find(QTableView, "models")
    first = models.model().index(0, 0)
    assert first.data(ROW_ROLE).key == MODEL
    hand.click(models.viewport(), models.visualRect(first).center())
    qtbot.waitUntil(lambda: app.model.state.model.id == MODEL, timeout=20_000)
    hand.rest()


def see_whether_it_fits(app, hand) -> None:
    """On a card of one's own choice, as long as the model goes."""
    hand.click(hand.find(QComboBox, "device").lineEdit())
    hand.type("rtx 4090")
    hand.key(Qt.Key.Key_Return)
    hand.rest()
    hand.click(hand.find(QToolButton, "context chip"))
    menu = QApplication.activePopupWidget()
    longest = next(a for a in menu.actions() if a.text().startswith("40,960: "))
    hand.click(menu, menu.actionGeometry(longest).center())
    hand.rest()
    state = app.model.state
    assert state.plan.deployment.max_model_len == 40_960
    assert state.machine.slots[0].device.name == "RTX 4090"
    model = read(catalogue.raw(catalogue.find(MODEL)))
    verdict = size(model, state.plan.deployment, state.machine).verdict
    assert verdict.fit is Fit.DOES_NOT_FIT
    texts = [part.text() for part in app.view.verdict.findChildren(QLabel) if part.isVisible()]
    assert any(text.startswith(verdict.headline) for text in texts)


def take_a_change_and_compare(app, hand) -> None:
    """The plan as it is, then with the first change that is offered."""
    hand.click(hand.find(QPushButton, "compare button"))
    change = app.model.state.changes[0]
    offered = [b for b in app.view.verdict.findChildren(QAbstractButton) if b.isVisible()]
    hand.click(next(b for b in offered if b.text() == change.label))
    hand.rest()
    assert app.model.state.sizing.verdict.headline == change.verdict.headline
    hand.click(hand.find(QPushButton, "compare button"))
    tabs = hand.find(QTabBar, "Explanations of the picture")
    compare = next(n for n in range(tabs.count()) if tabs.tabText(n).startswith("Compare"))
    hand.click(tabs, tabs.tabRect(compare).center())
    assert app.compare_view.isVisible()
    assert len(app.compare.entries) == 2


def export(app, hand, qtbot, folder) -> None:
    """A report in a folder of one's own."""
    hand.click(hand.find(QPushButton, "report button"))
    dialog = next(d for d in app.window.findChildren(QFileDialog) if d.isVisible())
    dialog.setDirectory(str(folder))
    dialog.selectFile("walk.pdf")
    hand.click(dialog.findChild(QDialogButtonBox).button(QDialogButtonBox.StandardButton.Save))
    written = folder / "walk.pdf"
    qtbot.waitUntil(written.is_file, timeout=20_000)
    assert written.read_bytes().startswith(b"%PDF")


def test_that_a_new_user_comes_from_the_start_to_a_report_in_fewer_than_fifteen_actions(
    app, hand, qtbot, tmp_path
):
    search_and_pick(app, hand, qtbot)
    see_whether_it_fits(app, hand)
    take_a_change_and_compare(app, hand)
    export(app, hand, qtbot, tmp_path)
    assert hand.actions < MOST_ACTIONS
