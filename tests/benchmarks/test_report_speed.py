"""How long a report of six compared plans takes, from their answers to the file."""

from __future__ import annotations

import time
from datetime import date

import pytest

from engine.architecture.read import read
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.fit.solve import limits
from engine.report.compared import Compared
from engine.report.compose import About, compose
from engine.sizing import size
from engine.source import catalogue
from gui.report.pdf import write_pdf
from tests.benchmarks.pace import allowed, quietest

pytestmark = [pytest.mark.benchmark, pytest.mark.usefixtures("qapp")]

SIX_PLANS_S = 2.0
MOST_BYTES = 1_000_000
MODELS = (
    "meta-llama/Llama-3.1-8B",
    "openai/gpt-oss-20b",
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-32B",
    "meta-llama/Llama-3.1-70B",
    "google/gemma-3-12b-it",
)


def test_that_a_report_of_six_compared_plans_takes_less_than_two_seconds(note, tmp_path):
    plan = Deployment(max_model_len=8192, concurrency=4)
    machine = devices.machine(devices.find("H100 SXM 80GB"))
    compared = []
    for name in MODELS:
        entry = catalogue.find(name)
        assert entry is not None
        model = read(catalogue.raw(entry))
        made, found = size(model, plan, machine), limits(model, plan, machine)
        compared.append(Compared(name, made, limits=found))
    about = About(on=date(2026, 11, 29), plan=plan, version="1", compared=tuple(compared))
    path = tmp_path / "six.pdf"

    def once() -> float:
        started = time.perf_counter()
        write_pdf(compose(compared[0].sizing, compared[0].limits, about), path)
        return time.perf_counter() - started

    taken = quietest(once, SIX_PLANS_S)
    note("report of six compared plans", f"{taken:.2f} s", f"{SIX_PLANS_S:.2f} s")
    kilobytes = path.stat().st_size / 1000
    note("its size", f"{kilobytes:.0f} kB", f"{MOST_BYTES / 1000:.0f} kB")
    assert taken <= allowed(SIX_PLANS_S)
    assert path.stat().st_size < MOST_BYTES
