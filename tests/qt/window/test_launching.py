"""The start command of the plan in the window, and the plan of a pasted command."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QLineEdit

from gui.kit.fields import NumberField
from gui.sizing.command_dialog import CommandDialog

VLLM = "vllm serve Qwen/Qwen3-8B --max-model-len 16384 --kv-cache-dtype fp8"


def _bare(dialog):
    return [line for line in dialog.text.toPlainText().splitlines() if not line.startswith("#")]


def _settled(qtbot, app):
    qtbot.waitUntil(lambda: app.model.is_settled, timeout=20_000)


@pytest.fixture
def planned(app, qtbot):
    """The app with a plan for vLLM on a card."""
    app.model.choose_runtime("vllm", None)
    app.model.choose_device("L40S")
    app.model.edit("context", max_model_len=4096)
    _settled(qtbot, app)
    return app


@pytest.fixture
def launched(planned, qtbot):
    planned.window.commands["launch"].trigger()
    qtbot.waitUntil(planned.launching.dialog.isVisible)
    return planned.launching.dialog


@pytest.fixture
def pasted(app, qtbot):
    app.window.commands["from command"].trigger()
    found = app.window.findChild(CommandDialog)
    qtbot.waitUntil(found.isVisible)
    return found


def test_that_the_command_of_the_plan_is_shown_and_copied_with_its_remarks(
    planned, launched, qtbot
):
    name = planned.model.state.model.id
    assert _bare(launched) == [f"vllm serve {name} --max-model-len 4096"]
    qtbot.mouseClick(launched.copy, Qt.MouseButton.LeftButton)
    copied = QGuiApplication.clipboard().text()
    assert copied == launched.text.toPlainText()
    assert copied.startswith("# Planned for 4 requests of 4,096 tokens each at once on L40S.")


def test_that_an_edit_of_the_plan_changes_the_command(planned, launched, qtbot):
    planned.model.edit("context", max_model_len=2048)
    assert _bare(launched)[0].endswith("--max-model-len 2048")
    planned.model.choose_runtime("sglang", None)
    _settled(qtbot, planned)
    assert _bare(launched)[0].startswith("python3 -m sglang.launch_server")


def test_that_a_chosen_form_stays_where_the_next_plan_has_it(planned, launched, qtbot):
    titles = [launched.tabs.tabText(i) for i in range(launched.tabs.count())]
    assert titles == ["Command", "Docker", "Compose", "Kubernetes"]
    launched.tabs.setCurrentIndex(3)
    assert "nvidia.com/gpu: 1" in launched.text.toPlainText()
    planned.model.choose_runtime("sglang", None)
    assert launched.tabs.currentIndex() == 3
    planned.model.choose_runtime("ollama", None)
    assert launched.tabs.tabText(launched.tabs.currentIndex()) == "Command"
    planned.model.choose_runtime("vllm", None)
    assert launched.tabs.tabText(launched.tabs.currentIndex()) == "Kubernetes"


def _titles(dialog):
    return [dialog.tabs.tabText(i) for i in range(dialog.tabs.count())]


def _typed_per_node(dialog, qtbot, text):
    field = dialog.findChild(NumberField, "launch node devices")
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    return field


def test_that_nodes_of_another_size_bring_and_take_the_forms_for_several(planned, launched, qtbot):
    field = launched.findChild(NumberField, "launch node devices")
    assert not field.isVisible()
    planned.model.choose_device("4 x L40S")
    planned.model.edit("tp", tensor_parallel_size=2, pipeline_parallel_size=2)
    _settled(qtbot, planned)
    assert field.isVisible()
    assert _titles(launched)[3:] == ["Kubernetes"]
    _typed_per_node(launched, qtbot, "2")
    assert _titles(launched) == ["Multi-node", "Docker", "Compose", "Kubernetes", "Ray Serve"]
    assert [line for line in launched.text.toPlainText().splitlines() if "# Node" in line] == [
        "# Node 0 – ranks: 0–1; pipeline stages: 0",
        "# Node 1 – ranks: 2–3; pipeline stages: 1",
    ]
    # What was said of the nodes still holds when the window is opened again.
    launched.close()
    qtbot.waitUntil(lambda: planned.launching.dialog is None)
    planned.window.commands["launch"].trigger()
    again = planned.launching.dialog
    assert _titles(again) == ["Multi-node", "Docker", "Compose", "Kubernetes", "Ray Serve"]
    _typed_per_node(again, qtbot, "4")
    assert _titles(again)[3:] == ["Kubernetes"]


def test_that_a_node_without_devices_is_refused_in_one_sentence(planned, launched, qtbot):
    planned.model.choose_device("2 x L40S")
    planned.model.edit("tp", tensor_parallel_size=2)
    _settled(qtbot, planned)
    assert _typed_per_node(launched, qtbot, "0").is_wrong
    shown = [found.text() for found in launched.findChildren(QLabel)]
    assert "GPUs per node: 0 is outside 1 to 1,024." in shown


def test_that_no_old_command_stands_beside_an_impossible_plan(planned, launched):
    planned.model.edit("tp", tensor_parallel_size=7)
    assert planned.model.state.is_stale
    assert launched.text.toPlainText() == ""
    assert not launched.copy.isEnabled()
    words = launched.findChild(QLabel, "launch words")
    assert words.text() == planned.model.state.problem
    planned.model.undo_stack.undo()
    assert launched.copy.isEnabled()


def test_that_a_pasted_command_is_explained_and_opened(app, pasted, qtbot):
    assert not pasted.confirm.isEnabled()
    pasted.text.setPlainText(f"{VLLM} --foo 3 --port 80")
    assert pasted.meaning.text() == "vLLM, Qwen/Qwen3-8B, 16,384 tokens, 1 more setting"
    assert pasted.rest.text() == "Not understood: --foo 3. Without effect on memory: --port."
    qtbot.mouseClick(pasted.confirm, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: app.model.state.model.id == "Qwen/Qwen3-8B", timeout=20_000)
    qtbot.waitUntil(lambda: app.model.state.plan.deployment.runtime == "vllm", timeout=20_000)
    plan = app.model.state.plan
    assert (plan.deployment.max_model_len, plan.deployment.kv_cache_dtype) == (16384, "fp8")
    assert not plan.assumes_context


def test_that_another_device_leaves_the_commands_context_alone(app, qtbot):
    app.launching.take(VLLM)
    qtbot.waitUntil(lambda: app.model.state.plan.deployment.runtime == "vllm", timeout=20_000)
    app.model.choose_device("L40S")
    assert app.model.state.plan.deployment.max_model_len == 16384


def test_that_a_command_for_the_model_in_the_window_is_a_step_that_can_be_undone(planned, qtbot):
    name = planned.model.state.model.id
    before = planned.model.state.plan
    planned.launching.take(f"vllm serve {name} --max-model-len 512")
    assert planned.model.state.plan.deployment.max_model_len == 512
    planned.model.undo_stack.undo()
    assert planned.model.state.plan == before


def test_that_what_is_no_command_is_told_where_it_was_pasted(pasted):
    pasted.text.setPlainText("ls -la")
    assert pasted.meaning.text().startswith("Nothing here starts a model")
    assert not pasted.confirm.isEnabled()


def test_that_a_command_in_the_search_field_is_opened_as_a_plan(app, qtbot):
    field = app.browser.findChild(QLineEdit, "search")
    field.setFocus()
    field.setText(VLLM)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: app.model.state.plan.deployment.runtime == "vllm", timeout=20_000)
    assert app.model.state.model.id == "Qwen/Qwen3-8B"
    assert app.model.state.plan.deployment.max_model_len == 16384


def test_that_a_model_opened_meanwhile_keeps_its_own_plan(app, qtbot):
    app.launching.take("vllm serve Qwen/Qwen3-0.6B --max-model-len 123")
    app.browser.open("Qwen/Qwen3-4B")
    qtbot.waitUntil(lambda: app.model.state.model.id == "Qwen/Qwen3-4B", timeout=20_000)
    _settled(qtbot, app)
    assert app.model.state.plan.deployment.max_model_len != 123


def test_that_a_model_that_does_not_exist_is_told_and_changes_nothing(app, qtbot):
    before = app.model.state
    with qtbot.waitSignal(app.loader.failed, timeout=20_000):
        app.launching.take("vllm serve ./no/such/folder --max-model-len 4096")
    assert app.model.state.model is before.model
    assert app.model.state.plan == before.plan
    qtbot.waitUntil(app.trouble.isVisible)


COMPOSE = """
services:
  llm:
    image: vllm/vllm-openai:v0.11.0
    command: --model Qwen/Qwen3-8B --max-model-len 16384 --kv-cache-dtype fp8
"""


def test_that_a_compose_file_that_is_dropped_opens_its_plan(app, qtbot, tmp_path):
    file = tmp_path / "docker-compose.yml"
    file.write_text(COMPOSE)
    app.desk.on_dropped(file)
    qtbot.waitUntil(lambda: app.model.state.plan.deployment.max_model_len == 16384, timeout=20_000)
    state = app.model.state
    assert state.model.id == "Qwen/Qwen3-8B"
    plan = state.plan.deployment
    assert (plan.runtime_version, plan.kv_cache_dtype) == ("0.11.0", "fp8")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("services: {a: {image: nginx}}", "Nothing here starts a model"),
        ("services: [", "This YAML can’t be read: line 1 breaks off."),
        ("services:\n" + "# much\n" * 5_000, "This is too long to be a command."),
    ],
)
def test_that_a_file_that_starts_nothing_is_told(app, qtbot, tmp_path, content, why):
    file = tmp_path / "a.yaml"
    file.write_text(content)
    before = app.model.state.model
    app.desk.on_dropped(file)
    qtbot.waitUntil(
        lambda: any(why in found.text() for found in app.window.findChildren(QLabel)),
        timeout=20_000,
    )
    assert app.model.state.model is before


def test_that_a_file_for_several_nodes_may_be_pasted(pasted):
    pasted.text.setPlainText(COMPOSE)
    (meaning,) = pasted.findChildren(QLabel, "command meaning")
    assert meaning.text() == "vLLM 0.11.0, Qwen/Qwen3-8B, 16,384 tokens, 1 more setting"
    assert pasted.confirm.isEnabled()
