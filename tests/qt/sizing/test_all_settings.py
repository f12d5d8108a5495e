"""Every setting of a runtime: offered by name, read in words, refused in a sentence."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from engine.deployment.spec import Deployment
from engine.errors import UsageError
from engine.runtimes import registry
from gui.sizing import all_settings
from gui.sizing.all_settings_dialog import AllSettingsDialog


@pytest.fixture
def dialog(qtbot, loaded):
    parent = QWidget()
    qtbot.addWidget(parent)
    loaded.choose_runtime("vllm", "0.19.0")
    made = AllSettingsDialog(loaded, parent)
    made.show()
    yield made
    parent.close()


def _setting(runtime, name):
    return next(s for s in all_settings.settings_of(runtime) if s.name == name)


@pytest.mark.parametrize("runtime", list(registry.RUNTIMES))
def test_that_every_runtime_has_settings_of_its_own(runtime):
    names = {setting.name for setting in all_settings.settings_of(runtime)}
    assert names
    assert not names & {"max_model_len", "gpu", "model"}


def test_that_a_runtime_offers_no_foreign_ones():
    ollama = {setting.name for setting in all_settings.settings_of("ollama")}
    assert {"n_gpu_layers", "gpu_overhead_bytes"} <= ollama
    assert "gpu_memory_utilization" not in ollama


@pytest.mark.parametrize(
    ("runtime", "name", "text", "value"),
    [
        ("vllm", "max_num_batched_tokens", "32k", 32_768),
        ("vllm", "gpu_memory_utilization", "0.85", 0.85),
        ("vllm", "gpu_memory_utilization", "0,85", 0.85),
        ("vllm", "enforce_eager", "on", True),
        ("vllm", "kv_cache_memory_bytes", "4 GiB", 4 * 2**30),
        ("llama.cpp", "n_gpu_layers", "-2", -2),
        ("llama.cpp", "tensor_split", "3,1", (3.0, 1.0)),
        ("llama.cpp", "flash_attn", "off", "off"),
        ("llama.cpp", "mmap", "default", True),
        ("vllm", "max_num_seqs", "", None),
    ],
)
def test_that_texts_are_read_as_they_are_meant(runtime, name, text, value):
    assert all_settings.read(_setting(runtime, name), text, Deployment()) == value


@pytest.mark.parametrize(
    ("runtime", "name", "text"),
    [
        ("vllm", "max_num_seqs", "many"),
        ("vllm", "gpu_memory_utilization", "2"),
        ("llama.cpp", "tensor_split", "3;1"),
        ("llama.cpp", "n_cpu_moe", "-1"),
    ],
)
def test_that_what_cannot_be_is_refused_by_name(runtime, name, text):
    with pytest.raises(UsageError, match=name):
        all_settings.read(_setting(runtime, name), text, Deployment())


def test_that_an_edit_reaches_the_plan_and_can_be_undone(dialog, loaded, qtbot):
    field = dialog.rows["max_num_batched_tokens"].control
    assert field.text() == ""
    # vLLM 0.19's default for a server on a card of this size.
    assert field.placeholderText() == "2048"
    qtbot.keyClicks(field, "8k")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert loaded.state.plan.deployment.max_num_batched_tokens == 8192
    assert field.text() == "8192"
    loaded.undo_stack.undo()
    assert loaded.state.plan.deployment.max_num_batched_tokens is None
    assert field.text() == ""


def test_that_a_slider_moves_the_share_of_the_device(dialog, loaded):
    before = loaded.state.sizing.verdict.margin_bytes
    row = dialog.rows["gpu_memory_utilization"]
    # 0.9 is vLLM 0.19's own.
    assert row.slider.value() == 85
    row.slider.setValue(75)
    assert loaded.state.plan.deployment.gpu_memory_utilization == pytest.approx(0.8)
    assert loaded.state.sizing.verdict.margin_bytes < before
    assert row.control.text() == "0.8"


def test_that_a_wrong_text_is_told_and_changes_nothing(dialog, loaded, qtbot):
    before = loaded.state.plan
    field = dialog.rows["max_num_seqs"].control
    qtbot.keyClicks(field, "many")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert "max_num_seqs" in dialog.words.text()
    assert loaded.state.plan == before


def test_that_another_runtime_has_other_rows_and_all_can_be_put_back(dialog, loaded, qtbot):
    loaded.choose_runtime("llama.cpp", None)
    assert "n_gpu_layers" in dialog.rows
    assert "max_num_seqs" not in dialog.rows
    row = dialog.rows["n_gpu_layers"]
    row.slider.setValue(20)
    assert loaded.state.plan.deployment.n_gpu_layers == 20
    qtbot.mouseClick(dialog.reset, Qt.MouseButton.LeftButton)
    assert loaded.state.plan.deployment.n_gpu_layers is None


def test_that_its_buttons_stay_in_sight_of_a_low_window(qtbot, loaded):
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.resize(960, 600)
    made = AllSettingsDialog(loaded, parent)
    made.open()
    assert made.height() == 560
    made.close()
    parent.resize(1440, 900)
    made.open()
    assert made.height() == 620
    made.close()


def test_that_users_and_batches_have_sliders_of_round_numbers(dialog, loaded, qtbot):
    users = dialog.rows["concurrency"].slider
    assert users.stops[:10] == (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
    users.set_number(8)
    qtbot.keyClick(users, Qt.Key.Key_PageUp)
    assert loaded.state.plan.deployment.concurrency == 16
    assert dialog.rows["concurrency"].control.text() == "16"
    tokens = dialog.rows["max_num_batched_tokens"].slider
    # It stands at vLLM 0.19's own 2,048; a quarter of that is the step to the next stop.
    qtbot.keyClick(tokens, Qt.Key.Key_Right)
    assert loaded.state.plan.deployment.max_num_batched_tokens == 2560
    assert not dialog.rows["kv_pool_bytes"].slider.isVisible()


def test_that_parallel_sizes_stop_where_model_and_machine_allow_it(dialog, loaded):
    tensor, pipeline = (
        dialog.rows[f"{kind}_parallel_size"].slider for kind in ("tensor", "pipeline")
    )
    assert (tensor.stops, tensor.isEnabled()) == ((1,), False)
    # Llama 3.1 8B has 32 heads, 8 KV heads, 32 layers and a width of 14,336 = 2^11 * 7: 16 and
    # 32 divide them too, the KV heads being copied.
    loaded.choose_device("8 x RTX 4090")
    assert tensor.stops == (1, 2, 4, 8)
    assert pipeline.stops == tuple(range(1, 9))
    loaded.edit("pp", pipeline_parallel_size=2)
    assert tensor.stops == (1, 2, 4)
    loaded.edit("pp", pipeline_parallel_size=1)
    loaded.choose_device("RTX 4090")
    assert tensor.stops == (1, 2, 4, 8, 16, 32)
    tensor.setValue(2)
    assert loaded.state.plan.deployment.tensor_parallel_size == 4


def test_that_a_drag_is_one_step_of_undo_however_long_it_rests(dialog, loaded, monkeypatch):
    slider = dialog.rows["gpu_memory_utilization"].slider
    before, steps = loaded.state.plan, loaded.undo_stack.index()
    now = iter(range(0, 10**6, 5000))
    monkeypatch.setattr(loaded, "_clock", type("Clock", (), {"elapsed": lambda _: next(now)})())
    slider.setSliderDown(True)
    for place in (80, 70, 60):
        slider.setSliderPosition(place)
    slider.setSliderDown(False)
    assert loaded.state.plan.deployment.gpu_memory_utilization == pytest.approx(0.65)
    assert loaded.undo_stack.index() == steps + 1
    loaded.undo_stack.undo()
    assert loaded.state.plan == before


def test_that_the_defaults_leave_the_plan_on_the_strip_alone(dialog, loaded, qtbot):
    loaded.edit("concurrency", concurrency=12)
    qtbot.mouseClick(dialog.reset, Qt.MouseButton.LeftButton)
    assert loaded.state.plan.deployment.concurrency == 12
