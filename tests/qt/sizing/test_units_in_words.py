"""Where a figure is worked out, its sizes are in the chosen unit: never mixed, never bare."""

from __future__ import annotations

import re

import pytest

from engine.budget.model import Region
from engine.runtimes.registry import RUNTIMES
from engine.units import UnitSystem
from gui.kit.charts.scene import scene_for
from gui.sizing import explain, present

_BINARY = re.compile(r"\b[KMGT]iB\b")
# Two decimals without a unit are GiB that don't say so; ratios stand before a "×" or after "1 −".
_BARE = re.compile(r"(?<!1 − )\b\d+\.\d\d\b(?! (?:[kMGT]B|×)|\.)")
_NAMES = re.compile(
    r"vLLM [\d.]+|SGLang [\d.]+|gpu_memory_utilization [\d.]+|mem_fraction_static [\d.]+"
)


def _texts(state):
    budget = state.sizing.budget
    for number, rank in enumerate(budget.ranks):
        for row in present.region_rows(budget, number, state.unit, side_by_side=False):
            yield row.note
        for region in (*Region, None):
            passages = explain.detail(budget, rank, region, state.unit).passages
            # What it rests on names releases.
            yield from (p.text for p in passages if not p.caption.endswith("from"))
    yield present.remarks(state)
    for panel in scene_for(state.sizing, state.unit).panels:
        yield from (segment.tooltip for segment in panel.segments)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_that_formulas_and_assumptions_are_in_the_chosen_unit(loaded, runtime):
    loaded.choose_device("2 x RTX 4090")
    loaded.choose_runtime(runtime, None)
    for unit, foreign in ((UnitSystem.DECIMAL, True), (UnitSystem.BINARY, False)):
        loaded.set_unit(unit)
        for text in _texts(loaded.state):
            assert not (foreign and _BINARY.search(text)), text
            if runtime in {"vllm", "sglang"} and foreign:
                assert not _BARE.search(_NAMES.sub("", text)), text


def test_that_the_pool_is_worked_out_in_the_chosen_unit(loaded):
    # 23.63 GiB of a card are 25.37 GB; 4 x 8,192 x 131,072 bytes are 4.29 GB.
    loaded.choose_runtime("vllm", None)
    loaded.choose_device("RTX 4090")
    loaded.set_unit(UnitSystem.DECIMAL)
    rows = present.region_rows(loaded.state.sizing.budget, 0, loaded.state.unit, side_by_side=False)
    note = next(row.note for row in rows if row.region is Region.KV_CACHE)
    assert note == "Rest of 0.92 × 25.37 GB; the plan needs 4.29 GB"
