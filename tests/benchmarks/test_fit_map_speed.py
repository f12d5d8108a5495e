"""How long the fit map takes: 64 × 64 cells with the limit, on budgets not planned before."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.fit.curve import curve
from engine.fit.fit_map import CELLS, fit_map, margin_table
from engine.fit.plane import axes
from engine.source import catalogue
from tests.benchmarks.pace import allowed, quietest
from tests.benchmarks.test_engine_speed import fastest

pytestmark = pytest.mark.benchmark

ONE_MAP_S = 0.1


def _known(name: str):
    entry = catalogue.find(name)
    assert entry is not None
    return read(catalogue.raw(entry))


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-8B", "openai/gpt-oss-20b"])
@pytest.mark.parametrize("runtime", ["vllm", "sglang", "llama.cpp", "transformers"])
def test_that_a_fit_map_of_64_by_64_cells_takes_less_than_a_tenth_of_a_second(note, runtime, name):
    model, machine = _known(name), devices.machine(devices.find("RTX 4090"))
    plan = Deployment(runtime=runtime, max_model_len=8192, concurrency=4)
    shown = axes(model, plan, machine)
    # Other contexts in every round, so that nothing of one is remembered in the next.
    others = count(shown.most_context, -256)

    def work() -> None:
        found = fit_map(model, plan, machine, replace(shown, most_context=next(others)))
        assert (len(found.margins), len(found.margins[0])) == (CELLS, CELLS)

    taken = quietest(lambda: fastest(work), ONE_MAP_S)
    what = f"fit map of 64 × 64 cells, {runtime}, {name.rpartition('/')[2]}"
    note(what, f"{taken * 1e3:.0f} ms", f"{ONE_MAP_S * 1e3:.0f} ms")
    assert taken <= allowed(ONE_MAP_S)


def test_what_its_table_and_the_curve_cost(note):
    model, machine = _known("meta-llama/Llama-3.1-8B"), devices.machine(devices.find("RTX 4090"))
    plan = Deployment(max_model_len=8192, concurrency=4)
    shown = axes(model, plan, machine)
    for what, work in (("fit map in figures", margin_table), ("curve over context", curve)):
        taken = fastest(lambda work=work: work(model, plan, machine, shown))
        note(what, f"{taken * 1e3:.0f} ms", f"{ONE_MAP_S * 1e3:.0f} ms")
        assert taken <= allowed(ONE_MAP_S)
