"""What a screen reader, a keyboard and a weak eye meet in a window: found by walking it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QColor, QImage, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QKeySequenceEdit,
    QLabel,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QSlider,
    QTabBar,
    QTextBrowser,
    QWidget,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

Role = QAccessible.Role
LEAST_TARGET = 24
_COMPOUND = (QAbstractSpinBox, QComboBox, QKeySequenceEdit)
"""Their parts are announced as the whole."""
_ROLES = (
    (QTabBar, {Role.PageTabList}),
    (QAbstractButton, {Role.Button, Role.CheckBox, Role.RadioButton, Role.ButtonMenu}),
    (QComboBox, {Role.ComboBox}),
    (QAbstractSpinBox, {Role.SpinBox}),
    (QSlider, {Role.Slider}),
    (QKeySequenceEdit, {Role.HotkeyField}),
    (QLineEdit, {Role.EditableText}),
    (QTextBrowser, {Role.StaticText, Role.Document, Role.EditableText}),
    (QPlainTextEdit, {Role.EditableText}),
    (QListView, {Role.List}),
    (QAbstractItemView, {Role.Table, Role.Tree, Role.List}),
    # Qt has no other role for a pane that scrolls.
    (QAbstractScrollArea, {Role.Client, Role.ScrollBar, Role.Pane}),
    (QLabel, {Role.StaticText, Role.Graphic}),
)


def shown(root: QWidget) -> Iterator[QWidget]:
    """Every widget of the window that can be seen, in no order."""
    for widget in root.findChildren(QWidget):
        if widget.isVisible() and widget.window() is root and not widget.visibleRegion().isEmpty():
            yield widget


def operable(root: QWidget) -> list[QWidget]:
    """What takes the focus or a click."""
    return [w for w in shown(root) if _is_operable(w)]


def _is_operable(widget: QWidget) -> bool:
    if _is_part(widget):
        return False
    if isinstance(widget, QLabel) and not widget.text():
        return False
    return widget.focusPolicy() != Qt.FocusPolicy.NoFocus or isinstance(widget, QAbstractButton)


def _is_part(widget: QWidget) -> bool:
    parent = widget.parentWidget()
    # The picture in a field is no button, although Qt makes it one: its action has no words.
    is_picture = isinstance(parent, QLineEdit) and not any(a.text() for a in widget.actions())
    return isinstance(parent, _COMPOUND) or is_picture


def name(widget: QWidget) -> str:
    """What is announced: the name, or the label that belongs to it."""
    found = QAccessible.queryAccessibleInterface(widget)
    said = found.text(QAccessible.Text.Name) if found else ""
    if isinstance(widget, QComboBox):
        # There the name is the choice; what is chosen stands in its label or description.
        labels = [other for other, _kind in found.relations(QAccessible.RelationFlag.Label)]
        about = found.text(QAccessible.Text.Description)
        has_words = bool(labels) or (bool(about) and about != widget.toolTip())
        said = widget.accessibleName() if has_words else ""
    return said.replace("&", "").strip()


def role(widget: QWidget) -> QAccessible.Role:
    """As what it is announced."""
    return QAccessible.queryAccessibleInterface(widget).role()


def is_named(widget: QWidget) -> bool:
    """Whether it has a name for people: no name of a class, nor ours where no label shows it."""
    said = name(widget)
    if not said or said in (type(widget).__name__, widget.metaObject().className()):
        return False
    return said != widget.objectName() or _is_labelled(widget) or _shows(widget, said)


def _is_labelled(widget: QWidget) -> bool:
    return any(label.buddy() is widget for label in widget.window().findChildren(QLabel))


def _shows(widget: QWidget, said: str) -> bool:
    return getattr(widget, "text", str)().replace("&", "") == said


def has_fitting_role(widget: QWidget) -> bool:
    """Whether it is announced as what it is; of our own making, as anything but a plain pane."""
    for kind, roles in _ROLES:
        if isinstance(widget, kind):
            return role(widget) in roles
    return role(widget) not in {Role.Client, Role.NoRole, Role.Window, Role.Grouping}


def is_large_enough(widget: QWidget) -> bool:
    """Whether a finger finds it, or what it says is running text."""
    if isinstance(widget, (QLabel, QAbstractScrollArea)):
        return True
    return min(widget.width(), widget.height()) >= LEAST_TARGET


def told(widget: QWidget) -> str:
    """A widget for the words of a failed test."""
    chain, here = [], widget
    while here is not None and not here.isWindow():
        if here.objectName() and not here.objectName().startswith("qt_"):
            chain.append(here.objectName())
        here = here.parentWidget()
    size = "{}x{}".format(*widget.size().toTuple())
    return f"{type(widget).__name__} {name(widget)!r} {size} in {' < '.join(chain)}"


def contrast(one: QColor, other: QColor) -> float:
    """The ratio of WCAG 2.2."""
    lights = sorted(_luminance(color) + 0.05 for color in (one, other))
    return lights[1] / lights[0]


def _luminance(color: QColor) -> float:
    channels = (color.redF(), color.greenF(), color.blueF())
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in channels]
    return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def ground(widget: QWidget, picture: QImage) -> QColor:
    """The colour that most of a widget's own place has in a picture of its window."""
    ratio = picture.devicePixelRatio()
    corner = widget.mapTo(widget.window(), QPoint(0, 0))
    across = range(round(corner.x() * ratio), round((corner.x() + widget.width()) * ratio))
    down = range(round(corner.y() * ratio), round((corner.y() + widget.height()) * ratio))
    seen = Counter(
        picture.pixel(x, y)
        for x in across[:: max(1, len(across) // 60)]
        for y in down[:: max(1, len(down) // 24)]
        if picture.valid(x, y)
    )
    return QColor(seen.most_common(1)[0][0])


def ink(widget: QWidget) -> QColor:
    """The colour of its words."""
    kinds = (
        (QLabel, QPalette.ColorRole.WindowText),
        (QCheckBox, QPalette.ColorRole.WindowText),
        (QAbstractButton, QPalette.ColorRole.ButtonText),
    )
    found = next((r for kind, r in kinds if isinstance(widget, kind)), QPalette.ColorRole.Text)
    return widget.palette().color(found)


def worded(root: QWidget) -> Iterator[QWidget]:
    """What shows words of its own and is in force."""
    for widget in shown(root):
        words = getattr(widget, "text", None) or getattr(widget, "currentText", None)
        if widget.isEnabled() and callable(words) and words():
            yield widget


def backwards(stops: list[QWidget]) -> list[tuple[str, str]]:
    """Neighbours in one box of which the later stands above the earlier, or before it.

    Where all is in one box, there is one: from the last back to the first.
    """
    return [
        (told(one), told(other))
        for one, other in pairwise([*stops, stops[0]])
        if one.parentWidget() is other.parentWidget() and not _goes_on(one, other)
    ]


def _goes_on(one: QWidget, other: QWidget) -> bool:
    here, there = one.geometry(), other.geometry()
    is_below = there.center().y() > here.bottom()
    on_one_line = here.top() <= there.center().y() <= here.bottom()
    return is_below or here == there or (on_one_line and there.left() >= here.left())


def tab_stops(root: QWidget, press) -> list[QWidget]:
    """Where Tab leads, from the focus on until it comes round; ``press`` presses it."""
    stops: list[QWidget] = []
    press()
    while (here := QApplication.focusWidget()) is not None and here not in stops:
        stops.append(here)
        press()
    assert QApplication.focusWidget() is stops[0], f"Tab is caught at {told(stops[-1])}"
    return stops
