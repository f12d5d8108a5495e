"""The checklist in the window: it fills itself, its actions lead somewhere, a load can be sent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QPushButton

from engine.overlay.seen import Seen
from engine.overlay.state import Stated
from engine.overlay.steps import Status
from engine.seen.model import ModelSeen, PoolSeen, Reach, RuntimeSeen
from engine.telemetry.record import Recorder
from engine.telemetry.snapshot import ProcessReading
from tests.helpers.readings import server, serving
from tests.helpers.runtime_server import serving as answering
from tests.helpers.runtime_server import streamed
from tests.helpers.sizings import RTX_4090_TOTAL, gib

COMPLETIONS = "/v1/completions"
FOREIGN = gib(0.41)
RAM = gib(64)


def sample(second: float, own: float):
    """A card on which vLLM holds ``own`` GiB, and the computer's memory."""
    from tests.helpers.readings import host

    ours = (server(4211, gib(own)),) if own else ()
    made = serving(second, ("GPU-0", RTX_4090_TOTAL, ours), foreign_bytes=FOREIGN)
    return replace(made, devices=(*made.devices, host()))


@pytest.fixture
def watched(qtbot, start, tmp_path):
    """The app over a recorded card, its worked example answered; samples are given by hand."""
    path = tmp_path / "card.jsonl"
    recorder = Recorder(path, {})
    recorder.write(sample(0, 0))
    recorder.close()
    app = start(replay=path)
    app.window.resize(1440, 900)
    qtbot.waitUntil(lambda: app.model.state.fit is not None, timeout=20_000)
    qtbot.waitUntil(lambda: app.model.is_settled, timeout=20_000)
    app.watch.stop()
    app.seeing.stop()
    app.view.tabs.open_page(app.checking.view)
    return app


def show(app, *levels: float, state: Stated | None = None) -> None:
    """One sample a second, ten of each of ``levels`` in GiB."""
    app.overlaying.take_state(state)
    for at, own in enumerate(levels):
        for second in range(10):
            app.watch.sampled.emit(sample(10 * at + second, own))


def answers(app) -> list[Status]:
    return [step.answer.status for step in app.checking.checklist.steps]


def planned(app) -> float:
    """What the plan holds of its own, in GiB, less the weights' share: a whole run's level."""
    rank = app.model.state.sizing.budget.ranks[0]
    held = [r.estimate.likely_bytes for r in rank.regions.values()]
    foreign, headroom = (
        rank.regions[region].estimate.likely_bytes for region in ("foreign", "headroom")
    )
    return (sum(held) - foreign - headroom) / gib(1)


def test_that_the_plan_alone_fills_what_it_can(watched):
    assert answers(watched) == [
        Status.KNOWN, Status.MODELLED, Status.KNOWN, Status.MODELLED, Status.OPEN,
    ]  # fmt: skip
    tabs = watched.view.tabs.tabs
    titles = [tabs.tabText(i) for i in range(tabs.count())]
    assert titles.index("Checklist") == titles.index("What holds it") + 1 == titles.index("Log") - 1


def test_that_a_run_fills_the_steps_and_the_verdict_speaks_of_it(watched):
    level = planned(watched)
    weights = 14.99 + watched.model.state.sizing.budget.ranks[0].regions[
        "runtime"
    ].estimate.likely_bytes / gib(1)
    show(watched, 0, weights, level, level, level)
    run = watched.overlaying.overlay.ranks[0].run
    assert run.phase is Seen.IDLE
    assert answers(watched)[0] is Status.KNOWN
    assert watched.checking.checklist.steps[0].answer.words.startswith("Held after loading: 14.9")
    assert watched.view.verdict.detail.full_text.startswith("Running as planned:")
    header = [c.heading for c in watched.view.regions.table.rows.columns]
    assert header == [
        "Region", "Planned GiB", "Measured GiB", "Difference", "Known from", "Note",
    ]  # fmt: skip


def test_that_more_than_the_plan_explains_is_said_first_and_marked_in_the_table(watched):
    level = planned(watched)
    show(watched, 0, level, level, level + 2)
    assert watched.view.verdict.headline.full_text.startswith("Running, ")
    assert watched.view.verdict.detail.full_text.startswith("2.0 GiB more than planned: runtime")
    table = watched.view.regions.table
    row = next(table.rows.row_at(i) for i in range(10) if table.rows.row_at(i).label == "Runtime")
    assert row.live.difference == "+2.00"
    assert row.live.is_off
    table.select(row.region)
    captions = [caption.text() for caption, _ in watched.view.regions.detail.labels]
    assert captions[0] == "Held beyond the plan"


def test_that_a_stated_pool_stands_in_the_place_of_the_limits(watched):
    level = planned(watched)
    show(watched, 0, level, level, state=Stated(True, 2, 0.5))
    assert watched.view.verdict.longest.accessibleName() == "KV cache in use: 50 %"


def test_that_another_device_shows_the_plan_alone(watched, qtbot):
    level = planned(watched)
    show(watched, 0, level, level)
    assert watched.overlaying.overlay.is_running
    watched.model.choose_device("L40S")
    qtbot.waitUntil(lambda: watched.model.is_settled, timeout=20_000)
    assert watched.overlaying.overlay is None
    assert "Running" not in watched.view.verdict.detail.full_text


def test_that_a_load_is_sent_and_its_longest_prompt_makes_the_step_known(watched, qtbot):
    level = planned(watched)
    show(watched, 0, level, level, level + 0.2)
    assert answers(watched)[1] is Status.MODELLED
    watched.checking.view.buttons[1].click()
    dialog = watched.checking.dialog
    assert dialog.load.prompt_tokens + dialog.load.output_tokens == watched.model.state.context
    context = watched.model.state.context
    usage = {"prompt_tokens": context, "completion_tokens": 3}
    with answering({COMPLETIONS: streamed(3, usage)}) as runtime:
        dialog.address.setText(str(runtime.address))
        dialog.fields["prompt_tokens"].set_value(64)
        dialog.fields["requests"].set_value(2)
        dialog.start.click()
        assert dialog.stop.isEnabled()
        qtbot.waitUntil(dialog.start.isEnabled, timeout=20_000)
    assert dialog.said.text().startswith("All sent after")
    assert "2 requests: 2 done." in dialog.said.text()
    assert len(runtime.bodies) == 2
    show(watched, 0, level, level, level + 0.2)
    assert answers(watched)[1] is Status.KNOWN


def test_that_a_load_can_be_stopped(watched, qtbot):
    watched.checking.view.buttons[4].click()
    dialog = watched.checking.dialog
    assert dialog.load.limit_s > 600
    with answering({COMPLETIONS: streamed(2, waits=True)}) as runtime:
        dialog.address.setText(str(runtime.address))
        dialog.start.click()
        qtbot.waitUntil(lambda: bool(runtime.bodies), timeout=20_000)
        dialog.findChild(QPushButton, "load stop").click()
        qtbot.waitUntil(dialog.start.isEnabled, timeout=20_000)
    assert dialog.said.text().startswith("Stopped.")


def test_that_nothing_is_sent_elsewhere(watched):
    watched.checking.view.buttons[1].click()
    dialog = watched.checking.dialog
    dialog.address.setText("http://10.0.0.5:8000")
    dialog.start.click()
    assert not dialog.stop.isEnabled()
    assert dialog.said.text() == (
        "A load is sent to this computer alone, and http://10.0.0.5:8000 is elsewhere."
    )


def test_that_what_the_plans_runtime_says_names_the_phase(watched):
    level = planned(watched)
    show(watched, 0, level)
    seen = RuntimeSeen(
        "vllm", "vLLM", Reach.ANSWERS, model=ModelSeen("m"), running=2, prompt_tokens=1,
        output_tokens=9, pool=PoolSeen(used_share=0.25),
    )  # fmt: skip
    watched.seeing.plan_told.emit(seen)
    for second in range(20, 24):
        watched.watch.sampled.emit(sample(second, level))
    rank = watched.overlaying.overlay.ranks[0]
    assert rank.run.phase is Seen.DECODE
    assert rank.kv_live_bytes == round(0.25 * rank.kv_reserved_bytes)


def test_that_each_other_step_leads_to_what_measures_it(watched):
    done = []
    for key in ("launch", "context", "open log"):
        action = watched.window.commands[key]
        action.triggered.disconnect()
        action.triggered.connect(lambda _=False, key=key: done.append(key))
    for at in (0, 2, 3):
        watched.checking.view.buttons[at].click()
    assert done == ["launch", "context", "open log"]


def test_that_a_process_of_another_model_is_not_the_plan(watched):
    other = ProcessReading(7, "vllm", gib(20), "vllm serve mistralai/Mistral-Small-24B")
    for second in range(20):
        made = serving(second, ("GPU-0", RTX_4090_TOTAL, (other,)), foreign_bytes=FOREIGN)
        watched.watch.sampled.emit(made)
    assert not watched.overlaying.overlay.is_running


def test_that_the_kernel_that_the_log_names_is_recorded(watched, qtbot):
    state = watched.model.state
    assert state.plan.deployment.runtime == "vllm"
    watched.diagnosing.read(
        "INFO 10-08 10:41:05 [api_server.py:1839] vLLM API server version 0.33.0\n"
        f"INFO 10-08 10:41:05 [utils.py:233] non-default args: {{'model': '{state.model.id}'}}\n"
        "INFO 10-08 10:41:06 [cuda.py:334] Using FLASHINFER attention backend out of potential "
        "backends: ['FLASHINFER', 'TRITON_ATTN'].\n"
    )
    qtbot.waitUntil(lambda: watched.diagnosing.model.state is not None, timeout=20_000)
    recorded = dict(watched.checking.checklist.recorded)
    assert recorded["Attention kernel"] == "FLASHINFER"
    assert recorded["Runtime"] == "vLLM 0.33.0"
