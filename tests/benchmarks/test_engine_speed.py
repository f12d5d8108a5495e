"""How long the arithmetic takes: one budget, and a list of badges."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

import pytest

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.sizing import size
from engine.source import catalogue
from gui.browser.badges import badge_for
from gui.browser.rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.architecture.model import Model

pytestmark = pytest.mark.benchmark

ONE_BUDGET_S = 0.001
BADGES = 5000
BADGES_S = 1.0
LONGEST_S = 0.05


@pytest.fixture(scope="module")
def models() -> list[Model]:
    return [read(catalogue.raw(entry)) for entry in catalogue.entries()]


def fastest(work: Callable[[], object], rounds: int = 7) -> float:
    """CPU seconds of the quickest of several rounds: what the work costs when nothing disturbs."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.parametrize("runtime", ["vllm", "llama.cpp", "transformers"])
def test_that_one_budget_of_a_plan_just_edited_takes_less_than_a_millisecond(models, note, runtime):
    model = next(m for m in models if m.id == "meta-llama/Llama-3.1-8B")
    machine = devices.machine(devices.find("H100 SXM 80GB"))
    contexts = iter(range(4096, 10**6, 256))

    def edit() -> None:
        for _ in range(50):
            plan = Deployment(runtime=runtime, max_model_len=next(contexts), concurrency=4)
            size(model, plan, machine)

    taken = fastest(edit) / 50
    note(f"one budget, {runtime}", f"{taken * 1e3:.2f} ms", f"{ONE_BUDGET_S * 1e3:.0f} ms")
    assert taken <= ONE_BUDGET_S


def test_that_badges_for_five_thousand_rows_take_less_than_a_second(models, note):
    machine = devices.machine(devices.find("H100 SXM 80GB"))
    rows = [
        Row(f"{n}", model.id, "", fetch=lambda _token: None, model=lambda model=model: model)
        for n in range(BADGES // len(models) + 1)
        for model in models
    ][:BADGES]
    for row in rows[: len(models)]:
        badge_for(row, Deployment(max_model_len=4096), machine)
    contexts = iter((8192, 16384, 32768))
    longest = 0.0

    def refresh() -> None:
        nonlocal longest
        plan = Deployment(max_model_len=next(contexts), concurrency=4)
        for row in rows:
            started = time.process_time()
            badge_for(row, plan, machine)
            longest = max(longest, time.process_time() - started)

    gc.collect()
    taken = fastest(refresh, rounds=3)
    note(f"fit badges for {BADGES:,} rows", f"{taken:.2f} s", f"{BADGES_S:.0f} s")
    note("longest single badge", f"{longest * 1e3:.1f} ms", f"{LONGEST_S * 1e3:.0f} ms")
    assert taken <= BADGES_S
    assert longest <= LONGEST_S
