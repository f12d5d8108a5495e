"""All settings of the plan's runtime, beside the plan: each edit is answered at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.deployment.spec import Deployment
from engine.errors import UsageError
from engine.runtimes import registry
from engine.words import tr
from gui.kit.controls import Choice, Ground, label, running_text
from gui.kit.dialogs import GrowingDialog, closing_row, leave_button
from gui.kit.setting_rows import Said
from gui.kit.stop_slider import StopSlider
from gui.kit.theme import text_scale
from gui.kit.wrap import WrapRow
from gui.sizing import all_settings
from gui.sizing.plan_stops import PARTS, stops_of

if TYPE_CHECKING:
    from gui.sizing.all_settings import Setting
    from gui.sizing.view_model import SizingViewModel, State

_PLAIN = Deployment()
_WIDTH, _HEIGHT = 560, 620
_FIELD = 132
_GAP = 12


class AllSettingsDialog(GrowingDialog):
    """Stays open beside the window; shows the runtime's own value where none is chosen."""

    def __init__(self, model: SizingViewModel, parent: QWidget) -> None:
        super().__init__(parent, _WIDTH, _HEIGHT)
        self.setObjectName("all settings")
        self._model = model
        self._shown: tuple[str, tuple[Setting, ...]] = ("", ())
        self.rows: dict[str, SettingRow] = {}
        self._title = label("", "title")
        self.words = running_text("trouble")
        self.words.setObjectName("settings trouble")
        self.reset = QPushButton(tr("Back to defaults"))
        self.reset.setAutoDefault(False)
        self.reset.clicked.connect(self._on_reset)
        self._roll = QScrollArea()
        self._roll.setFrameShape(QScrollArea.Shape.NoFrame)
        self._roll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._roll.setWidgetResizable(True)
        self._roll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        leave = leave_button(self, tr("Close"))
        leave.setDefault(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 16, 16)
        column.setSpacing(12)
        column.addWidget(self._title)
        column.addWidget(self._roll, 1)
        column.addWidget(self.words)
        column.addLayout(closing_row(leave, first=(self.reset,)))
        model.changed.connect(self.show_state)
        self.show_state(model.state)

    def show_state(self, state: State) -> None:
        """Show the plan in force; other rows where the runtime is another."""
        runtime = state.plan.deployment.runtime
        wanted = (runtime, all_settings.settings_of(runtime))
        if wanted != self._shown:
            self._shown = wanted
            self._fill(runtime, wanted[1])
        settled = state.sizing.budget.deployment if state.sizing else state.plan.deployment
        for row in self.rows.values():
            name = row.setting.name
            stops = stops_of(name, state.plan, state.model, state.machine)
            row.show_value(getattr(state.plan.deployment, name), getattr(settled, name), stops)

    def _fill(self, runtime: str, settings: tuple[Setting, ...]) -> None:
        name = registry.get(runtime).label
        self.setWindowTitle(tr("All settings of {name}").format(name=name))
        self._title.setText(tr("All settings of {name}").format(name=name))
        body = Ground(window=True)
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 12, 0)
        column.setSpacing(10)
        self.rows = {}
        for setting in settings:
            row = SettingRow(setting, self)
            self.rows[setting.name] = row
            row.fit()
            column.addLayout(row.line)
        column.addStretch(1)
        self._roll.setWidget(body)
        self.words.clear()

    @override
    def take_room(self) -> None:
        for row in self.rows.values():
            row.fit()
        super().take_room()

    def hold(self, held: bool) -> None:  # noqa: FBT001 - a signal's argument
        """While a slider is held, all its moves are one step of undo."""
        self._model.hold(held=held)

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
        own = {setting.name for setting in self._shown[1]} - all_settings.ON_BOTH
        self._model.edit("all settings", **{name: getattr(_PLAIN, name) for name in own})


class SettingRow:
    """One setting: its name over its help, a slider where it has stops, and a field."""

    def __init__(self, setting: Setting, owner: AllSettingsDialog) -> None:
        self.setting = setting
        self._owner = owner
        words = tr(setting.field.help)
        self.control = self._choice() if setting.choices else self._field()
        self.control.setAccessibleName(setting.name)
        self.control.setAccessibleDescription(words)
        self.control.setToolTip(words)
        self.slider = self._made_slider()
        pair = QWidget()
        row = QHBoxLayout(pair)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(_GAP)
        row.addWidget(self.slider)
        row.addWidget(self.control)
        self.line = WrapRow(keeps_widths=True)
        self.line.set_gap(_GAP)
        self.line.add(Said(setting.name, words, self.control), 1)
        self.line.add(pair, 0, Qt.AlignmentFlag.AlignTop)

    def _choice(self) -> Choice:
        made = Choice(self.setting.name)
        made.picked.connect(self._on_picked)
        return made

    def _field(self) -> QLineEdit:
        made = QLineEdit()
        made.setObjectName(self.setting.name)
        made.editingFinished.connect(self._on_typed)
        return made

    def _made_slider(self) -> StopSlider:
        made = StopSlider((0,))
        made.setObjectName(f"{self.setting.name} slider")
        made.setAccessibleName(self.setting.name)
        made.setPageStep(PARTS)
        made.hide()
        made.moved_to.connect(self._on_slid)
        made.held.connect(self._owner.hold)
        return made

    def fit(self) -> None:
        """Take the widths that belong to the size of the text."""
        for part in (self.control, self.slider):
            part.setFixedWidth(round(_FIELD * text_scale()))

    def show_value(self, chosen: object, settled: object, stops: tuple[float, ...]) -> None:
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
        self.slider.setVisible(bool(stops))
        if stops:
            self.slider.set_stops(stops)
            is_number = isinstance(settled, int | float)
            # Below nothing are words: all layers, the whole prompt. Unstated is no limit.
            self.slider.set_number(settled if is_number and settled >= 0 else stops[-1])

    def _on_picked(self, word: str) -> None:
        self._owner.take(self.setting, word)

    def _on_typed(self) -> None:
        field = self.control
        if isinstance(field, QLineEdit) and field.isModified():
            field.setModified(False)
            self._owner.take(self.setting, field.text())

    def _on_slid(self, number: float) -> None:
        self._owner.take(
            self.setting, f"{number:.2f}" if isinstance(number, float) else f"{number}"
        )
