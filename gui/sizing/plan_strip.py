"""The strip of controls that make up the plan, a label over each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.report import terms
from engine.runtimes import registry
from engine.words import tr, tr_later
from gui.kit.controls import Choice, ElidedLabel, Ground
from gui.kit.fields import TOKENS, NumberField, NumberKind
from gui.kit.format import TIMES
from gui.kit.stop_slider import StopSlider
from gui.kit.wrap import WrapRow
from gui.sizing import plan as plans
from gui.sizing import present
from gui.sizing.context_chip import ContextChip
from gui.sizing.device_box import DeviceBox
from gui.sizing.model_button import ModelButton
from gui.sizing.plan_stops import CONTEXT_PARTS, PARTS, context_stops, stops_of
from gui.sizing.ram_chip import RamChip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from engine.devices.device import Device
    from gui.kit.theme import Theme
    from gui.sizing.view_model import SizingViewModel, State

_COMBO_FRAME = 40
"""Frame, gaps and arrow of a combo box."""
_WIDE = 1100
"""From this width the weight format says that it is the stored one."""
_GAP = 12
_TIGHT_GAP = 8
_NARROW = 950
"""Below this width of the strip the gaps shrink."""
_SLIDERS, _SLIDERS_SIMPLE, _ALL_SLIDERS = 1250, 900, 1500
"""From these widths the requests have a slider too, and the parallel sizes."""
_SLIDER = 88
_PARALLEL = ("tensor_parallel_size", "pipeline_parallel_size")
_SLID = {"concurrency": "concurrency", "tensor_parallel_size": "tp", "pipeline_parallel_size": "pp"}
"""Settings with a slider, and what their edits are called for undo."""

_TERMS = {
    "runtime": "Runtime",
    "weights": "Weights",
    "kv cache": "KV cache",
    "context": "Context",
    "at once": "At once",
    "tensor parallel": f"TP {TIMES} PP",
    "device": "Device",
}
"""Of the controls by their names."""


class PlanStrip(Ground):
    """Shows a ``State`` and sends the user's edits to the view model."""

    refused = Signal(str)
    """One sentence about a text that cannot be taken; empty when the trouble is over."""

    def __init__(self, model: SizingViewModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._captions: dict[str, ElidedLabel] = {}
        self._cells: dict[str, QWidget] = {}
        self._is_simple = False
        self._theme: Theme | None = None
        self.model_button = ModelButton()
        self.runtime = Choice("runtime")
        self.weights = Choice("weights")
        self.kv = Choice("kv cache")
        self.slider = StopSlider(context_stops(None, None))
        self.slider.setPageStep(CONTEXT_PARTS)
        self.context = NumberField(TOKENS)
        self.context.setObjectName("context")
        self.context.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self.slider.setObjectName("context slider")
        self.assumed = ContextChip(model)
        self.at_once = _count_field(tr_later("At once"), 100_000, "at once")
        self.sliders = {name: _slider(f"{word} slider") for name, word in _SLID.items()}
        """Of the numbers that have one where there is room, by their settings."""
        self.tp = _count_field(tr_later("Tensor parallel"), 1024, "tensor parallel")
        self.pp = _count_field(tr_later("Pipeline parallel"), 1024, "pipeline parallel")
        self._samples = {
            self.context: "1,048,576",
            self.at_once: "1,024",
            self.tp: "88",
            self.pp: "88",
        }
        self.device = DeviceBox()
        self.device.setObjectName("device")
        self.device.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.ram = RamChip(model)
        self._row = WrapRow(self)
        self._row.setContentsMargins(16, 8, 16, 12)
        self._build()
        self._connect()

    def _build(self) -> None:
        self._add(tr("Model"), self.model_button)
        self._add(tr("Runtime"), self.runtime)
        self._add(tr("Weights"), self.weights)
        self._add(tr("KV cache"), self.kv)
        pair = QWidget()
        row = QHBoxLayout(pair)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(self.slider, 1)
        row.addWidget(self.context)
        row.addSpacing(4 - row.spacing())
        row.addWidget(self.assumed)
        self._add(tr("Context, tokens per request"), pair, self.context)
        self._add(tr("At once"), _in_a_row(self.sliders["concurrency"], self.at_once), self.at_once)
        times = QLabel(TIMES)
        times.setProperty("role", "secondary")
        tensor, pipeline = (self.sliders[name] for name in _PARALLEL)
        pair = _in_a_row(tensor, self.tp, times, self.pp, pipeline)
        self._parallel = pair
        self._add(f"TP {TIMES} PP", pair, self.tp)
        pair = QWidget()
        row = QHBoxLayout(pair)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.device, 1)
        row.addWidget(self.ram)
        self._add(tr("Device"), pair, self.device)
        self.slider.setAccessibleName(tr("Context, tokens per request"))
        tensor.setAccessibleName(tr("Tensor parallel size"))
        pipeline.setAccessibleName(tr("Pipeline parallel size"))
        self.pp.setAccessibleName(tr("Pipeline parallel size"))
        self.tp.setAccessibleName(tr("Tensor parallel size"))
        self.set_simple(simple=False)

    def _add(self, caption: str, control: QWidget, buddy: QWidget | None = None) -> None:
        cell = QWidget()
        column = QVBoxLayout(cell)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        text = ElidedLabel("caption")
        target = buddy or control
        text.set_text(caption, _explained(target))
        text.setBuddy(target)
        target.setAccessibleName(caption)
        self._captions[target.objectName()] = text
        column.addWidget(text)
        column.addWidget(control)
        self._cells[target.objectName()] = cell
        self._row.add(cell)

    def _connect(self) -> None:
        model = self._model
        self.runtime.picked.connect(self._on_runtime)
        self.weights.picked.connect(self._on_weights)
        self.kv.picked.connect(self._on_kv)
        self.slider.moved_to.connect(self._on_context)
        for name, slider in self.sliders.items():
            slider.moved_to.connect(partial(self._on_slid, name))
        for slider in (self.slider, *self.sliders.values()):
            slider.held.connect(self._on_held)
        self.context.committed.connect(self._on_context)
        self.assumed.typing_wanted.connect(self.ask_context)
        self.at_once.committed.connect(self._on_at_once)
        self.tp.committed.connect(self._on_tp)
        self.pp.committed.connect(self._on_pp)
        self.device.picked.connect(model.choose_device)
        for field in (self.context, self.at_once, self.tp, self.pp, self.device):
            field.refused.connect(self.refused)

    def set_simple(self, *, simple: bool) -> None:
        """Show what a person plans with, in plain words, or all that a runtime asks for too."""
        self._is_simple = simple
        shown = {self.model_button: simple} | dict.fromkeys(
            (self.runtime, self.weights, self.kv, self._parallel), not simple
        )
        for control, is_shown in shown.items():
            buddy = self.tp if control is self._parallel else control
            self._cells[buddy.objectName()].setVisible(is_shown)
        for control, plain, full in (
            (self.device, tr("Machine"), tr("Device")),
            (self.at_once, tr("Users at once"), tr("At once")),
        ):
            caption = plain if simple else full
            self._captions[control.objectName()].set_text(caption, _explained(control))
            control.setAccessibleName(caption)
        self.sliders["concurrency"].setAccessibleName(self.at_once.accessibleName())
        if self._theme is not None:
            self.set_theme(self._theme)

    def ask_context(self) -> None:
        """Let a context be typed."""
        self.context.setFocus()
        self.context.selectAll()

    def set_devices(
        self, here: str, devices: Sequence[Device], *, place: str = "", corrected: bool = False
    ) -> None:
        """Fill the device box."""
        self.device.set_devices(here, devices, place=place, corrected=corrected)

    def set_theme(self, theme: Theme) -> None:
        """Take the fonts and colours of ``theme``."""
        self._theme = theme
        self.device.set_theme(theme)
        self.assumed.set_theme(theme)
        for field in self._samples:
            field.setFont(theme.font("body"))
            field.ensurePolished()
        self._fit_fields()
        self._want_widths()

    def _fit_fields(self) -> None:
        """Room for the usual number, and for a longer one too: none is ever cut."""
        for field, sample in self._samples.items():
            wanted = field.text_width(max(sample, field.text(), key=len))
            if field is self.at_once and self._is_simple:
                # There is room for all of the caption.
                caption = self._captions[field.objectName()].sizeHint().width()
                wanted = max(wanted, caption)
            field.setFixedWidth(wanted)

    def _want_widths(self) -> None:
        """Give the controls with long words the room they want where there is room."""
        is_wide = self._is_simple or self.width() >= self._grown(_WIDE)
        self.runtime.set_widths(*self._widths("llama.cpp 88", "SGLang 0.5.23"))
        self.kv.set_widths(*self._widths("BF16", "BF16"))
        self.weights.set_widths(*self._widths("BF16", "MXFP4_MOE GGUF" if is_wide else "MXFP4_MOE"))
        device = "H100 SXM 80GB" if is_wide else "RTX 4090"
        device = tr("{device}, {where}").format(device=device, where=tr("not this computer"))
        self.device.set_widths(*self._widths("RTX 409", device, icon=26))
        self.slider.want_width(150 if is_wide else 76)
        self.assumed.set_bare(bare=not is_wide)
        room = _SLIDERS_SIMPLE if self._is_simple else _SLIDERS
        self.sliders["concurrency"].setVisible(self.width() >= self._grown(room))
        for name in _PARALLEL:
            slider = self.sliders[name]
            is_roomy = self.width() >= self._grown(_ALL_SLIDERS)
            slider.setVisible(is_roomy and len(slider.stops) > 1)

    def _grown(self, pixels: int) -> int:
        return self._theme.grown(pixels) if self._theme else pixels

    def _widths(self, least: str, wanted: str, icon: int = 0) -> tuple[int, int]:
        frame = self._grown(_COMBO_FRAME + icon)
        measure = self.fontMetrics().horizontalAdvance
        return measure(least) + frame, measure(wanted) + frame

    def show_state(self, state: State) -> None:
        """Show the plan in force; tells nobody."""
        self.model_button.show_model(present.title(state.model) if state.model else "")
        deployment = state.plan.deployment
        runtime = registry.get(deployment.runtime)
        version = deployment.runtime_version or runtime.versions[0]
        self.runtime.set_items(plans.runtime_choices(), (runtime.name, version))
        if state.model is not None:
            self.weights.set_items(
                plans.format_choices(runtime, state.model), deployment.weight_format
            )
            filled = state.sizing.budget.deployment if state.sizing else deployment
            resolved = filled.cache_type_k or filled.kv_cache_dtype
            self.kv.set_items(
                plans.kv_choices(runtime, state.model, resolved), deployment.kv_cache_dtype
            )
        longest = state.model.spec.max_position_embeddings if state.model else None
        context = state.context
        self.slider.set_stops(context_stops(longest, context))
        if context:
            self.slider.set_number(context)
            self.context.set_value(context)
        self.assumed.show_state(state)
        self.at_once.set_value(deployment.concurrency)
        for name, slider in self.sliders.items():
            slider.set_stops(stops_of(name, state.plan, state.model, state.machine) or (1,))
            slider.set_number(getattr(deployment, name))
        self.tp.set_value(deployment.tensor_parallel_size)
        self.pp.set_value(deployment.pipeline_parallel_size)
        self._fit_fields()
        self._want_widths()
        self.device.show_choice(state.plan.device, present.where(state))
        self.ram.show_state(state)
        for control in (self.weights, self.kv):
            control.setEnabled(state.model is not None)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shrink gaps and wishes where the strip is narrow."""
        super().resizeEvent(event)
        narrow = self.width() < self._grown(_NARROW)
        self._row.set_gap(_TIGHT_GAP if narrow else _GAP)
        self._want_widths()

    def _on_runtime(self, choice: tuple[str, str]) -> None:
        self._model.choose_runtime(*choice)

    def _on_weights(self, key: str) -> None:
        self._model.edit("weights", weight_format=key)

    def _on_kv(self, key: str) -> None:
        self._model.edit("kv", kv_cache_dtype=key)

    def _on_context(self, tokens: int) -> None:
        self._model.edit("context", max_model_len=tokens)

    def _on_slid(self, name: str, count: int) -> None:
        self._model.edit(_SLID[name], **{name: count})

    def _on_held(self, held: bool) -> None:  # noqa: FBT001 - a signal's argument
        self._model.hold(held=held)

    def _on_at_once(self, count: int) -> None:
        self._model.edit("concurrency", concurrency=count)

    def _on_tp(self, count: int) -> None:
        self._model.edit("tp", tensor_parallel_size=count)

    def _on_pp(self, count: int) -> None:
        self._model.edit("pp", pipeline_parallel_size=count)


def _explained(control: QWidget) -> str:
    """What the term over ``control`` means, in one line."""
    term = _TERMS.get(control.objectName())
    return tr(terms.PLAN[term]) if term else ""


def _slider(name: str) -> StopSlider:
    made = StopSlider((1,))
    made.setObjectName(name)
    made.setPageStep(PARTS)
    made.want_width(_SLIDER)
    return made


def _in_a_row(*parts: QWidget) -> QWidget:
    made = QWidget()
    row = QHBoxLayout(made)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(4)
    for part in parts:
        row.addWidget(part)
    return made


def _count_field(name: str, maximum: int, object_name: str) -> NumberField:
    field = NumberField(NumberKind(name, 1, maximum, example="4"))
    field.setObjectName(object_name)
    return field
