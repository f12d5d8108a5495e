"""All settings of the plan's runtime, beside the plan: each edit is answered at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from engine.deployment.spec import Deployment
from engine.errors import UsageError
from engine.runtimes import registry
from engine.words import tr
from gui.kit.controls import Choice, Ground, label, running_text
from gui.kit.focus import Dialog
from gui.sizing import all_settings

if TYPE_CHECKING:
    from gui.sizing.all_settings import Setting, Slider
    from gui.sizing.view_model import SizingViewModel, State

_PLAIN = Deployment()
_WIDTH, _HEIGHT = 560, 620
_TITLE_BAR = 40
_FIELD = 132


class AllSettingsDialog(Dialog):
    """Stays open beside the window; shows the runtime's own value where none is chosen."""

    def __init__(self, model: SizingViewModel, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("all settings")
        # A low window's dialog has room for its title bar, and its buttons stay on the screen.
        self.resize(_WIDTH, min(_HEIGHT, parent.window().height() - _TITLE_BAR))
        self._model = model
        self._shown: tuple[str, tuple[Setting, ...]] = ("", ())
        self.rows: dict[str, SettingRow] = {}
        self._title = label("", "title")
        self.words = running_text("trouble")
        self.words.setObjectName("settings trouble")
        self.reset = QPushButton(tr("Back to defaults"))
        self.reset.setAutoDefault(False)
        self.reset.clicked.connect(self._on_reset)
        leave = QPushButton(tr("Close"))
        leave.setDefault(True)
        leave.clicked.connect(self.reject)
        self._roll = QScrollArea()
        self._roll.setFrameShape(QScrollArea.Shape.NoFrame)
        self._roll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._roll.setWidgetResizable(True)
        self._roll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.reset)
        buttons.addStretch(1)
        buttons.addWidget(leave)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 16, 16)
        column.setSpacing(12)
        column.addWidget(self._title)
        column.addWidget(self._roll, 1)
        column.addWidget(self.words)
        column.addLayout(buttons)
        model.changed.connect(self.show_state)
        self.show_state(model.state)

    def show_state(self, state: State) -> None:
        """Show the plan in force; other rows where the runtime or the model is another."""
        runtime = state.plan.deployment.runtime
        wanted = (runtime, all_settings.settings_of(runtime, state.model))
        if wanted != self._shown:
            self._shown = wanted
            self._fill(runtime, wanted[1])
        settled = state.sizing.budget.deployment if state.sizing else state.plan.deployment
        for row in self.rows.values():
            name = row.setting.name
            row.show_value(getattr(state.plan.deployment, name), getattr(settled, name))

    def _fill(self, runtime: str, settings: tuple[Setting, ...]) -> None:
        name = registry.get(runtime).label
        self.setWindowTitle(tr("All settings of {name}").format(name=name))
        self._title.setText(tr("All settings of {name}").format(name=name))
        body = Ground(window=True)
        grid = QGridLayout(body)
        grid.setContentsMargins(0, 0, 12, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(10)
        grid.setColumnStretch(0, 1)
        self.rows = {}
        for place, setting in enumerate(settings):
            row = SettingRow(setting, self)
            self.rows[setting.name] = row
            grid.addLayout(row.words, place, 0)
            grid.addWidget(row.slider or QWidget(), place, 1)
            grid.addWidget(row.control, place, 2, Qt.AlignmentFlag.AlignTop)
        grid.setRowStretch(len(settings), 1)
        self._roll.setWidget(body)
        self.words.clear()

    def take(self, setting: Setting, text: str) -> None:
        """Put what was typed or chosen into the plan, or say why it can't be."""
        try:
            value = all_settings.read(setting, text, _PLAIN)
        except UsageError as error:
            self.words.setText(error.message)
            return
        self.words.clear()
        self._model.edit(setting.name, **{setting.name: value})

    def _on_reset(self) -> None:
        names = (setting.name for setting in self._shown[1])
        self._model.edit("all settings", **{name: getattr(_PLAIN, name) for name in names})


class SettingRow:
    """One setting: its name over its help, a field, and where there is a range a slider."""

    def __init__(self, setting: Setting, owner: AllSettingsDialog) -> None:
        self.setting = setting
        self._owner = owner
        name = label(setting.name, "strong")
        name.setWordWrap(True)
        text = label(tr(setting.field.help), "small")
        text.setWordWrap(True)
        text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.words = QVBoxLayout()
        self.words.setSpacing(0)
        self.words.addWidget(name)
        self.words.addWidget(text)
        self.control = self._choice() if setting.choices else self._field()
        self.control.setFixedWidth(_FIELD)
        self.control.setAccessibleName(setting.name)
        self.control.setAccessibleDescription(tr(setting.field.help))
        self.control.setToolTip(tr(setting.field.help))
        name.setBuddy(self.control)
        self.slider = self._made_slider(setting.slider) if setting.slider else None

    def _choice(self) -> Choice:
        made = Choice(self.setting.name)
        made.picked.connect(self._on_picked)
        return made

    def _field(self) -> QLineEdit:
        made = QLineEdit()
        made.setObjectName(self.setting.name)
        made.editingFinished.connect(self._on_typed)
        return made

    def _made_slider(self, span: Slider) -> QSlider:
        made = QSlider(Qt.Orientation.Horizontal)
        made.setObjectName(f"{self.setting.name} slider")
        made.setAccessibleName(self.setting.name)
        made.setRange(0, round((span.most - span.least) / span.step))
        made.setFixedWidth(_FIELD)
        made.valueChanged.connect(self._on_slid)
        return made

    def show_value(self, chosen: object, settled: object) -> None:
        """Show what the user chose, and as the default what the runtime takes."""
        text = all_settings.shown(self.setting, chosen, getattr(_PLAIN, self.setting.name))
        own = all_settings.shown(self.setting, settled, None)
        if isinstance(self.control, Choice):
            items = [(all_settings.in_words(word), word) for word in self.setting.choices]
            if own not in ("", "None", items[0][1]):
                shown = tr("default, {own}").format(own=all_settings.in_words(own))
                items[0] = (shown, items[0][1])
            self.control.set_items(items, text)
        elif not self.control.isModified():
            self.control.setText(text)
            self.control.setPlaceholderText(tr("default") if settled is None else own)
        span = self.setting.slider
        if self.slider is not None and span is not None and isinstance(settled, int | float):
            with QSignalBlocker(self.slider):
                value = span.most if settled < 0 else settled
                self.slider.setValue(round((value - span.least) / span.step))

    def _on_picked(self, word: str) -> None:
        self._owner.take(self.setting, word)

    def _on_typed(self) -> None:
        field = self.control
        if isinstance(field, QLineEdit) and field.isModified():
            field.setModified(False)
            self._owner.take(self.setting, field.text())

    def _on_slid(self, place: int) -> None:
        span = self.setting.slider
        if span is not None:
            value = span.least + place * span.step
            self._owner.take(self.setting, f"{value:.2f}" if span.step < 1 else f"{value:.0f}")
