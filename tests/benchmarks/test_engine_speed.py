"""How long the arithmetic takes."""

from __future__ import annotations

import io
import json
import struct
import time
from typing import TYPE_CHECKING

import pytest

from engine.architecture.read import read, specify
from engine.deployment.spec import Deployment
from engine.devices import catalogue as devices
from engine.sizing import size
from engine.source import catalogue, safetensors
from tests.benchmarks.pace import allowed, quietest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.benchmark

ONE_BUDGET = {
    "vllm": ("H100 SXM 80GB", 0.001),
    "sglang": ("H100 SXM 80GB", 0.001),
    "transformers": ("H100 SXM 80GB", 0.001),
    "llama.cpp": ("H100 SXM 80GB", 0.001),
    "ollama": ("H100 SXM 80GB", 0.001),
    "mlx": ("M4 Max 128 GB", 0.004),
}
"""Runtime -> a device that it runs on, and the seconds that one budget may take. MLX's goes through
every allocation of an evaluation."""
ONE_CONFIG_S = 0.002
HEADER_TO_JSON = 2.5
"""Reading and checking a header, as a multiple of what Python takes to parse its text alone."""
HEADER_TENSORS = 80_000


def fastest(work: Callable[[], object], rounds: int = 7) -> float:
    """CPU seconds of the quickest of several rounds: what the work costs when nothing disturbs."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.parametrize("runtime", ONE_BUDGET)
def test_that_one_budget_of_a_plan_just_edited_takes_little_time(note, runtime):
    entry = catalogue.find("meta-llama/Llama-3.1-8B")
    assert entry is not None
    model = read(catalogue.raw(entry))
    device, limit_s = ONE_BUDGET[runtime]
    machine = devices.machine(devices.find(device))
    contexts = iter(range(4096, 10**6, 256))

    def edit() -> None:
        for _ in range(50):
            plan = Deployment(runtime=runtime, max_model_len=next(contexts), concurrency=4)
            size(model, plan, machine)

    taken = quietest(lambda: fastest(edit) / 50, limit_s)
    note(f"one budget, {runtime}", f"{taken * 1e3:.2f} ms", f"{limit_s * 1e3:.0f} ms")
    assert taken <= allowed(limit_s)


def test_that_reading_a_config_takes_less_than_two_milliseconds(note):
    taken: list[float] = []
    for entry in catalogue.entries()[:120]:
        config = catalogue.raw(entry).config
        assert config is not None
        taken.append(fastest(lambda config=config: specify(config), rounds=3))
    usual = sorted(taken)[len(taken) // 2]
    note("one config into its inventory", f"{usual * 1e3:.2f} ms", f"{ONE_CONFIG_S * 1e3:.0f} ms")
    assert usual <= allowed(ONE_CONFIG_S)


def test_that_a_header_of_80000_tensors_takes_little_more_than_its_json(note):
    # A mixture of experts that stores each expert's three matrices by themselves.
    shape, table, end = [4, 4], {}, 0
    for number in range(HEADER_TENSORS):
        layer, expert, part = number // 1536, number % 1536 // 3, ["gate", "up", "down"][number % 3]
        name = f"model.layers.{layer}.mlp.experts.{expert}.{part}_proj.weight"
        table[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + 32]}
        end += 32
    text = json.dumps(table, separators=(",", ":")).encode()
    content = struct.pack("<Q", len(text)) + text
    size_bytes = len(content) + end

    def read_header() -> None:
        found = safetensors.read(io.BytesIO(content), size_bytes, "model.safetensors")
        assert len(found) == HEADER_TENSORS

    taken, parsing = fastest(read_header), fastest(lambda: json.loads(text))
    note("a header of 80,000 tensors", f"{taken * 1e3:.0f} ms", "150 ms, not checked")
    limit = f"{HEADER_TO_JSON} times"
    note("the same, against json.loads", f"{taken / parsing:.1f} times", limit)
    assert taken <= HEADER_TO_JSON * parsing
