"""The whole window and a runtime that answers: seen, matched, asked for its key, left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDialog, QLineEdit, QPushButton

from engine.seen.groups import Process
from engine.seen.keys import Keys
from engine.seen.look import Here, Looker
from engine.seen.model import Reach
from engine.seen.sockets import Listening
from engine.telemetry.snapshot import Missing
from gui import seeing
from tests.helpers.readings import host, moment
from tests.helpers.runtime_server import serving

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
ANSWERS = {
    "/metrics": (
        'vllm:num_requests_running{engine="0"} 3\nvllm:num_requests_waiting{engine="0"} 1\n'
        'vllm:kv_cache_usage_perc{engine="0"} 0.25\n'
        'vllm:cache_config_info{engine="0",kv_cache_size_tokens="40000",cache_dtype="auto"} 1\n'
    ),
    "/version": {"version": "0.32.0"},
    "/v1/models": {"data": [{"id": MODEL, "max_model_len": 16384, "owned_by": "vllm"}]},
}
PID = 2**22 + 7
"""No process has it."""


@pytest.fixture
def runtime():
    with serving(dict(ANSWERS)) as found:
        yield found


@pytest.fixture
def watching(app, runtime, qtbot):
    """The window with the page open, and a look that finds that one runtime."""
    command = ("vllm", "serve", MODEL, "--port", str(runtime.address.port))
    here = Here(
        lambda: [Process(PID, 1, "vllm", command)], lambda _pids: (Listening(runtime.address, PID),)
    )
    app.seeing.looker = Looker(here, key_of=app.seeing.keys.of)
    app.view.tabs.open_page(app.holds)
    qtbot.waitUntil(lambda: bool(app.seeing.seen), timeout=20_000)
    return app


def button(app, text: str) -> QPushButton:
    return next(b for b in app.holds.findChildren(QPushButton) if b.text() == text)


def test_that_nothing_is_asked_where_nothing_runs_and_nobody_looks(app, runtime, qtbot):
    app.seeing.looker = Looker(Here(lambda: (), lambda _p: (Listening(runtime.address, None),)))
    app.view.tabs.open_page(app.view.regions)
    app.watch.stop()
    app.watch.last = moment(host(processes=()))
    app.seeing.look()
    assert app.seeing._task is None
    assert runtime.asked == []


def test_that_a_runtime_is_seen_with_what_it_says(watching):
    (seen,) = watching.seeing.seen
    assert (seen.runtime, seen.running, seen.waiting) == ("vllm", 3, 1)
    assert seen.pool.used_tokens == 10_000
    assert isinstance(seen.pool.size_bytes, Missing)


def test_that_it_becomes_the_plan_by_one_button_which_tells_the_bytes_of_its_pool(watching, qtbot):
    button(watching, "Match with a plan").click()
    qtbot.waitUntil(
        lambda: watching.model.state.plan.deployment.max_model_len == 16_384, timeout=20_000
    )
    deployment = watching.model.state.plan.deployment
    assert (deployment.runtime, deployment.runtime_version) == ("vllm", "0.32.0")
    assert watching.model.state.model.id == MODEL
    qtbot.waitUntil(lambda: watching.seeing._task is None, timeout=20_000)
    watching.seeing.look()
    # 32 layers x 8 heads x 128 x 2 x 2 B are 131,072 B for each of 40,000 tokens.
    qtbot.waitUntil(
        lambda: watching.seeing.seen[0].pool.size_bytes == 40_000 * 131_072, timeout=20_000
    )


def test_that_a_key_is_asked_for_only_when_it_is_wanted(app, qtbot):
    with serving(dict(ANSWERS), key="k-1") as runtime:
        app.seeing.looker = Looker(Here(lambda: (), lambda _p: ()), key_of=app.seeing.keys.of)
        app.view.tabs.open_page(app.holds)
        button(app, "Add address…").click()
        dialog = app.window.findChild(QDialog, "addresses")
        dialog.findChild(QLineEdit, "address").setText(str(runtime.address))
        dialog.add.click()
        dialog.reject()
        qtbot.waitUntil(
            lambda: [s.reach for s in app.seeing.seen] == [Reach.WANTS_KEY], timeout=20_000
        )
        assert set(runtime.keys) == {""}
        button(app, "Enter its key…").click()
        dialog = next(d for d in app.window.findChildren(QDialog, "addresses") if d.isVisible())
        assert dialog.findChild(QLineEdit, "address").text() == str(runtime.address)
        dialog.findChild(QLineEdit, "key").setText("k-1")
        dialog.add.click()
        dialog.reject()
        qtbot.waitUntil(
            lambda: [s.reach for s in app.seeing.seen] == [Reach.ANSWERS], timeout=20_000
        )
        assert app.settings.addresses == (str(runtime.address),)
        assert "k-1" not in repr(app.desk.settings_now())


def test_that_a_running_engine_is_asked_while_another_page_is_open(app, runtime, qtbot):
    command = f"llama-server -m a.gguf --port {runtime.address.port}"
    here = Here(
        lambda: [Process(PID, 1, "llama-server", tuple(command.split()))],
        lambda _pids: (Listening(runtime.address, PID),),
    )
    app.seeing.looker = Looker(here)
    app.settings = app.settings.with_(addresses=("http://127.0.0.1:1",))
    app.view.tabs.open_page(app.view.regions)
    app.watch.stop()
    app.watch.last = moment(host())  # a llama-server of 3 GiB is among its processes
    app.seeing.look()
    qtbot.waitUntil(lambda: bool(app.seeing.seen), timeout=20_000)
    # What was typed is asked for the page alone.
    assert [row.pids for row in app.seeing.seen] == [(PID,)]


def test_that_the_plans_own_runtime_is_known(watching, qtbot):
    assert watching.seeing.of_plan is None
    told = []
    watching.seeing.plan_told.connect(told.append)
    button(watching, "Match with a plan").click()
    qtbot.waitUntil(lambda: bool(told) and told[-1] is not None, timeout=20_000)
    assert told[-1] == watching.seeing.of_plan
    assert told[-1].requests_running == 3
    watching.view.tabs.open_page(watching.view.regions)
    qtbot.waitUntil(lambda: watching.seeing._task is None, timeout=20_000)
    watching.watch.stop()
    watching.watch.last = moment(host(processes=()))
    watching.seeing.look()
    # Nothing runs and nobody looks: what was said before holds no more.
    assert (told[-1], watching.seeing.seen) == (None, ())


def test_that_a_recording_is_not_mixed_with_what_runs_now(watching, tmp_path, runtime):
    watching.watch.replay = tmp_path / "run.jsonl"
    before = len(runtime.asked)
    watching.seeing.look()
    assert watching.seeing._task is None
    assert len(runtime.asked) == before
    watching.watch.replay = None


@pytest.mark.parametrize("is_safe", [True, False])
def test_that_a_safe_start_looks_for_nothing(start, qtbot, is_safe):
    app = start(safe=is_safe)
    looked, turned = [], []
    app.seeing.looker = Looker(Here(lambda: looked.append(1) or (), lambda _pids: ()))
    qtbot.waitUntil(lambda: app.seeing._task is None, timeout=20_000)
    app.view.tabs.open_page(app.view.regions)
    app.view.tabs.open_page(app.holds)
    QTimer.singleShot(0, app, lambda: turned.append(1))
    qtbot.waitUntil(lambda: bool(turned) and app.seeing._task is None, timeout=20_000)
    assert bool(looked) is not is_safe


def test_that_looks_are_far_apart():
    assert seeing.PAUSE_MS >= 5000


def test_that_a_key_lasts_for_the_session_where_there_is_no_keyring(runtime):
    keys = Keys()
    assert keys.of(runtime.address) == ""
    assert keys.keep(runtime.address, " k-2 ") is False
    assert keys.of(runtime.address) == "k-2"
    keys.forget(runtime.address)
    assert keys.of(runtime.address) == ""


def test_that_overlay_and_load_dialog_begin_with_what_runs_the_plan(watching, qtbot):
    button(watching, "Match with a plan").click()
    qtbot.waitUntil(lambda: watching.seeing.of_plan is not None, timeout=20_000)
    made = watching.checking._made_dialog()
    qtbot.addWidget(made)
    texts = [field.text() for field in made.findChildren(QLineEdit)]
    assert str(watching.seeing.of_plan.address) in texts
    assert MODEL in texts
    assert watching.overlaying._state is not None


def test_that_a_model_that_ollama_gives_up_is_marked_and_ends_its_run(app, qtbot):
    held = {"name": "llama3.1:8b", "size": 6 * 2**30, "size_vram": 6 * 2**30}
    with serving({"/api/version": {"version": "0.33.0"}, "/api/ps": {"models": [held]}}) as runtime:
        here = Here(
            lambda: [Process(PID, 1, "ollama", ("ollama", "serve"))],
            lambda _pids: (Listening(runtime.address, PID),),
        )
        app.seeing.looker = Looker(here)
        app.view.tabs.open_page(app.holds)
        qtbot.waitUntil(lambda: bool(app.seeing.seen), timeout=20_000)
        app.watch.stop()
        app.model.edit("runtime", runtime="ollama")
        told, marked = [], []
        app.seeing.plan_told.connect(told.append)
        app.watch.marked.connect(marked.append)
        runtime.answers["/api/ps"] = {"models": []}
        app.seeing.look()
        qtbot.waitUntil(lambda: bool(told) and told[-1] is not None, timeout=20_000)
        assert told[-1].is_loaded is False
        later = app.watch.last.monotonic_s + 15
        app.watch._on_sampled(replace(app.watch.last, monotonic_s=later))
        assert [marker.words() for marker in marked] == ["Unload: Ollama, llama3.1:8b"]
